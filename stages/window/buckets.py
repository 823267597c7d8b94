"""The candidate index of the method text: for each band and table, buckets of the eight newest entries.

An entry stands for one kept message. It has 8 bytes: 24 bits kept index (the number of the kept message,
modulo 2 ** 24), 8 bits length code (`window.lengths`), 8 bits of the key, 24 bits of the signature. Most
entries of a bucket have another key than the message that is looked up. The bits of the key tell, so the
records of these entries are not read. In a small table (`KEYED_FROM`) an entry has all 32 bits of the
signature and none of the key. A bucket is one cache line (64 bytes). A new entry goes to the front,
and the oldest one is removed. Otherwise no entry is deleted: the kept index shows whether an entry is older
than the window. No more entries of a bucket are read, so a frequent key costs eight comparisons and not
thousands.

As long as few messages are kept, most buckets of such a table are empty, and the system takes longer to clear
its memory than to fill it. So a *sparse* index has the same entries in lists: `heads` has the newest entry
of each bucket, `links` the next older one. Lists are never cut, but only their first eight entries count. An
index becomes a table when it has no room for more entries (`window.bucket_table`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import BandLayout
from twinsieve.stages.intrinsics import (
    GOLDEN,
    lanes_between,
    lanes_close,
    lanes_equal,
    popcount,
    prefetch,
)
from twinsieve.stages.kernel import ZERO, kernel
from twinsieve.stages.window.chunk import Chunk

WAY_BITS = 3
WAYS = 1 << WAY_BITS
INDEX_BITS = 24
INDEX_MASK = (1 << INDEX_BITS) - 1
KEY_SHIFT, KEY_MASK = 32, 0xFF
"""Place of the bits of the key in an entry. They are low bits; the bucket depends on the high ones."""
SIGNATURE_SHIFT, SIGNATURE_MASK = 40, 0xFFFFFF
"""Place of the signature in an entry, and which bits of it are there."""
KEYED_FROM = 1 << 18
"""Tables for at least this many messages have bits of the key in their entries. The records of fewer are in
the cache anyway, and where so few messages share the buckets, unrelated keys meet often enough to find pairs
that share no key."""

LOOK_UP_LINES = 16
"""Rows whose look-ups are known at the same time (`LookUps`)."""

_PREFETCHED_ROWS = 2
"""The buckets of a row are prefetched while the rows before it are inserted. They are dozens, as many lines
as a core fetches at a time."""


class Buckets(NamedTuple):
    """The buckets of all bands and tables. Kernels name a bucket by its *start*: the index of its first entry
    in a table, also where the index is sparse.

    entries: uint64[(bands * band_buckets + tables * table_buckets) * WAYS], aligned to 64 bytes; 0 is empty.
        Sparse: uint64[n], in the order in which they came, from `first` on
    heads: uint32[buckets], index of the newest entry of a bucket, or 0; a single 0 in a table
    links: uint32[n], index of the next older entry of the same bucket, or 0; a single 0 in a table
    sparse: 1 if entries are in lists
    first, base: entries of message number `base` begin at `first`, one for each band and table
    bands, tables: number of MinHash bands, number of SimHash tables
    band_buckets, table_buckets: number of buckets in each band, number of buckets in each table
    weak, key_bits: number of weak bits and of key bits of a SimHash table (`BandLayout`)
    keyed: 1 if entries have bits of their keys
    """

    entries: NDArray[np.uint64]
    heads: NDArray[np.uint32]
    links: NDArray[np.uint32]
    sparse: int
    first: int
    base: int
    bands: int
    tables: int
    band_buckets: int
    table_buckets: int
    weak: int
    key_bits: int
    keyed: int


class LookUps(NamedTuple):
    """What the rows that come next read in the buckets: row r in line r % LOOK_UP_LINES.

    starts: int64[LOOK_UP_LINES, probes], the bucket, by number of the look-up
    wanted: uint64[LOOK_UP_LINES, probes], the bits of key and signature (`wanted_bits`)
    listed: uint64[WAYS], the entries of the bucket that is read now, if the index is sparse (`read_bucket`)
    """

    starts: NDArray[np.int64]
    wanted: NDArray[np.uint64]
    listed: NDArray[np.uint64]


def new_look_ups(probes: int) -> LookUps:
    """Memory for the look-ups of rows. probes: most look-ups of a row"""
    return LookUps(
        np.zeros((LOOK_UP_LINES, probes), np.int64),
        np.zeros((LOOK_UP_LINES, probes), np.uint64),
        np.zeros(WAYS, np.uint64),
    )


def is_keyed(messages: int) -> bool:
    """Whether the entries of a table for this many messages have bits of their keys."""
    return messages >= KEYED_FROM


def bucket_counts(window: int, load: float) -> tuple[int, int]:
    """(buckets in each band, buckets in each SimHash table)

    window: number of kept messages in a full window; load: average number of them in a bucket of a band
    A table has half as many buckets, because it holds only bodies of at least `simhash_from` characters.
    """
    band_buckets = max(1, round(window / load))
    return band_buckets, max(1, band_buckets // 2)


def entry_count(layout: BandLayout, window: int, load: float) -> int:
    """Number of entries (8 bytes each) that fit into all buckets together."""
    band_buckets, table_buckets = bucket_counts(window, load)
    return (layout.bands * band_buckets + layout.tables * table_buckets) * WAYS


@kernel
def bucket_of(chunk: Chunk, row: int, probe: int, buckets: Buckets) -> np.int64:
    """The bucket that a row reads in its look-up number `probe`: its start.

    Numbers 0 to bands - 1 are the MinHash bands. After them, each table has 2 ** weak look-ups: first the
    unchanged key, then the keys with flipped weak bits.
    """
    return bucket_at(key_of(chunk, row, probe, buckets), probe, buckets)


@kernel(callee=True, inlined=True)
def key_of(chunk: Chunk, row: int, probe: int, buckets: Buckets) -> np.uint64:
    """The key of a row in its look-up number `probe`: 32 bits, the scope mixed in."""
    salt = chunk.scopes[row]
    if probe < buckets.bands:
        return np.uint64(chunk.band_keys[row, probe]) ^ (salt & np.uint64(0xFFFFFFFF))
    look = probe - buckets.bands
    table = look >> buckets.weak
    flips = look & ((1 << buckets.weak) - 1)
    key = _table_key(chunk, row, table, buckets)
    for bit in range(buckets.weak):
        if flips & (1 << bit):
            key ^= np.uint64(1) << np.uint64(chunk.weak_bits[row, table, bit])
    return ((key ^ salt) * GOLDEN) >> np.uint64(32)


@kernel(callee=True, inlined=True)
def bucket_at(key: np.uint64, probe: int, buckets: Buckets) -> np.int64:
    """The start of the bucket of a key. key: of look-up number `probe`"""
    if probe < buckets.bands:
        place = np.int64((key * np.uint64(buckets.band_buckets)) >> np.uint64(32))
        return (probe * buckets.band_buckets + place) * WAYS
    table = (probe - buckets.bands) >> buckets.weak
    place = np.int64((key * np.uint64(buckets.table_buckets)) >> np.uint64(32))
    return (buckets.bands * buckets.band_buckets + table * buckets.table_buckets + place) * WAYS


@kernel(callee=True, inlined=True)
def _table_key(chunk: Chunk, row: int, table: int, buckets: Buckets) -> np.uint64:
    """The key of a SimHash table: bit j is bit (table * 128 // tables + j) % 128 of the SimHash."""
    first = table * 128 // buckets.tables
    word, shift = first >> 6, np.uint64(first & 63)
    key = chunk.simhashes[row, word] >> shift
    if shift:
        key |= chunk.simhashes[row, 1 - word] << (np.uint64(64) - shift)
    return key & ((np.uint64(1) << np.uint64(buckets.key_bits)) - np.uint64(1))


@kernel(callee=True, inlined=True)
def own_probe(table: int, buckets: Buckets) -> np.int64:
    """Number of the look-up that reads a row's own bucket, in which it is inserted.

    table: number of a band, or number of bands plus number of a table
    """
    if table < buckets.bands:
        return table
    return buckets.bands + ((table - buckets.bands) << buckets.weak)


@kernel(callee=True, inlined=True)
def _low_bits(kept_index: int, code: int) -> np.uint64:
    """The bits of an entry without those of `wanted_bits`, in the layout that the module describes.

    code: code of the message's length (`window.lengths.length_code`)
    """
    return np.uint64(kept_index & INDEX_MASK) | (np.uint64(code) << np.uint64(INDEX_BITS))


@kernel(callee=True, inlined=True)
def wanted_bits(key: np.uint64, signature: int, buckets: Buckets) -> np.uint64:
    """The bits of key and signature at their places in an entry."""
    if not buckets.keyed:
        return np.uint64(signature) << np.uint64(KEY_SHIFT)
    high = (np.uint64(signature) & np.uint64(SIGNATURE_MASK)) << np.uint64(SIGNATURE_SHIFT)
    return ((key & np.uint64(KEY_MASK)) << np.uint64(KEY_SHIFT)) | high


@kernel(callee=True, inlined=True)
def newest_place(buckets: Buckets, start: int) -> np.int64:
    """Where in `entries` the newest entry of a bucket is. The entry there is 0 if the bucket is empty."""
    return np.int64(buckets.heads[start >> WAY_BITS]) if buckets.sparse else np.int64(start)


@kernel(callee=True, inlined=True)
def older_place(buckets: Buckets, place: int) -> np.int64:
    """Where the next older entry of the same bucket is; only the first WAYS count."""
    return np.int64(buckets.links[place]) if buckets.sparse else np.int64(place + 1)


@kernel(callee=True, inlined=True)
def read_bucket(buckets: Buckets, start: int, listed: NDArray[np.uint64]) -> bool:
    """Read a bucket, before the functions below tell about its entries.

    returns: False if it is empty; a bucket of a table always counts as filled
    listed: of the look-ups; the functions below read it, if the index is sparse
    """
    if not buckets.sparse:
        return True
    place = newest_place(buckets, start)
    if place == 0:
        return False
    way = ZERO
    while place != 0 and way < WAYS:
        listed[way] = buckets.entries[place]
        place = older_place(buckets, place)
        way += 1
    listed[way:] = np.uint64(0)
    return True


@kernel(callee=True, inlined=True)
def may_be_newer(buckets: Buckets, start: int, first: int) -> bool:
    """Whether a bucket may have entries of kept message `first` or later ones. It need not be read."""
    if not buckets.sparse:
        return True
    return buckets.heads[start >> WAY_BITS] >= _own_entries(buckets, first)


@kernel(callee=True, inlined=True)
def _own_entries(buckets: Buckets, kept_index: int) -> np.int64:
    """Index of the first entry of a message in a sparse index."""
    return buckets.first + (kept_index - buckets.base) * (buckets.bands + buckets.tables)


@kernel(callee=True, inlined=True)
def entry_at(buckets: Buckets, start: int, listed: NDArray[np.uint64], way: int) -> np.uint64:
    """Entry number `way` of the bucket that was read; 0 if it has fewer."""
    return listed[way] if buckets.sparse else buckets.entries[start + way]


@kernel(callee=True, inlined=True)
def possible_entries(
    buckets: Buckets,
    start: int,
    listed: NDArray[np.uint64],
    wanted: np.uint64,
    reach: NDArray[np.uint64],
    code: int,
) -> np.uint64:
    """Which entries of the bucket that was read have the key of `wanted`, and a length and a signature in
    `reach`.

    Bit j of the result is of entry j; an empty one is never among them, because its length code is no length.
    reach: `window.lengths.reach_of`; code: length code of the row
    """
    key = _key_mask(buckets)
    if buckets.sparse:
        return _possible(listed, ZERO, key, wanted, reach, code)
    return _possible(buckets.entries, start, key, wanted, reach, code)


@kernel(callee=True, inlined=True)
def _possible(
    entries: NDArray[np.uint64],
    start: int,
    key: np.uint64,
    wanted: np.uint64,
    reach: NDArray[np.uint64],
    code: int,
) -> np.uint64:
    least, above, bits = reach[code, 0], reach[code, 1], reach[code, 2]
    close = lanes_close(entries, start, wanted, np.uint64(KEY_SHIFT), bits)
    alike = lanes_between(entries, start, np.uint64(INDEX_BITS), np.uint64(255), least, above)
    return np.uint64(lanes_equal(entries, start, wanted, key)) & np.uint64(close) & np.uint64(alike)


@kernel(callee=True, inlined=True)
def _key_mask(buckets: Buckets) -> np.uint64:
    """The place of the bits of the key in an entry; 0 if there are none."""
    return np.uint64(KEY_MASK) << np.uint64(KEY_SHIFT) if buckets.keyed else np.uint64(0)


@kernel(callee=True, inlined=True)
def newer_entries(
    buckets: Buckets, start: int, listed: NDArray[np.uint64], first: int, newest: int
) -> np.uint64:
    """Which entries of the bucket that was read are of the kept messages `first` to `newest`.

    Entries stand newest first. Behind an older one, the bits of an index may be those of another message.
    """
    low, span, none = np.uint64(first & INDEX_MASK), np.uint64(newest - first), np.uint64(0)
    mask = np.uint64(INDEX_MASK)
    if buckets.sparse:
        newer = np.uint64(lanes_between(listed, ZERO, none, mask, low, span))
    else:
        newer = np.uint64(lanes_between(buckets.entries, start, none, mask, low, span))
    return newer & ~(newer + np.uint64(1))


@kernel(callee=True, inlined=True)
def entries_of(
    buckets: Buckets, start: int, listed: NDArray[np.uint64], wanted: np.uint64, kept_index: int
) -> np.uint64:
    """Which entries of the bucket that was read are of a kept message and have the key of `wanted`."""
    key, index = _key_mask(buckets), np.uint64(kept_index & INDEX_MASK)
    if buckets.sparse:
        return _entries_of(listed, ZERO, key, wanted, index)
    return _entries_of(buckets.entries, start, key, wanted, index)


@kernel(callee=True, inlined=True)
def _entries_of(
    entries: NDArray[np.uint64], start: int, key: np.uint64, wanted: np.uint64, index: np.uint64
) -> np.uint64:
    same = lanes_equal(entries, start, index, np.uint64(INDEX_MASK))
    empty = lanes_equal(entries, start, np.uint64(0), ~np.uint64(0))
    return np.uint64(lanes_equal(entries, start, wanted, key)) & np.uint64(same) & ~np.uint64(empty)


@kernel(callee=True, inlined=True)
def code_of(entry: np.uint64) -> np.int64:
    """The length code in an entry."""
    return np.int64((entry >> np.uint64(INDEX_BITS)) & np.uint64(255))


@kernel(callee=True, inlined=True)
def differing_bits(entry: np.uint64, wanted: np.uint64) -> np.int64:
    """How many bits differ of the signatures in an entry and in `wanted`; their bits of keys are equal."""
    return np.int64(popcount((entry ^ wanted) >> np.uint64(KEY_SHIFT)))


@kernel(callee=True, inlined=True)
def find_buckets(chunk: Chunk, row: int, buckets: Buckets, look_ups: LookUps) -> None:
    """Write the look-ups of a row, and prefetch its buckets, or the heads of its lists."""
    for probe in range(chunk.probes[row]):
        _find_bucket(chunk, row, np.int64(probe), row & (LOOK_UP_LINES - 1), buckets, look_ups)


@kernel(callee=True, inlined=True)
def _find_bucket(chunk: Chunk, row: int, probe: int, line: int, buckets: Buckets, look_ups: LookUps) -> None:
    key = key_of(chunk, row, probe, buckets)
    start = bucket_at(key, probe, buckets)
    look_ups.starts[line, probe] = start
    look_ups.wanted[line, probe] = wanted_bits(key, chunk.signatures[row], buckets)
    if buckets.sparse:
        prefetch(buckets.heads, start >> WAY_BITS)
    else:
        prefetch(buckets.entries, start)


@kernel(callee=True, inlined=True)
def prefetch_lists(chunk: Chunk, row: int, buckets: Buckets, look_ups: LookUps) -> None:
    """Prefetch the newest entries of the lists of a row, if the index is sparse."""
    if not buckets.sparse:
        return
    for probe in range(chunk.probes[row]):
        place = newest_place(buckets, look_ups.starts[row & (LOOK_UP_LINES - 1), probe])
        if place != 0:
            prefetch(buckets.entries, place)
            prefetch(buckets.links, place)


@kernel(callee=True, inlined=True)
def insert_found(
    row: int, probes: int, kept_index: int, code: int, buckets: Buckets, look_ups: LookUps
) -> None:
    """Insert a kept row, whose look-ups were found, into its buckets. probes: number of its look-ups; code:
    code of its length"""
    line, tables = row & (LOOK_UP_LINES - 1), buckets.bands + buckets.tables
    _insert(line, probes, ZERO, tables, kept_index, code, buckets, look_ups)


@kernel(callee=True, inlined=True)
def _insert(
    line: int,
    probes: int,
    first_table: int,
    end_table: int,
    kept_index: int,
    code: int,
    buckets: Buckets,
    look_ups: LookUps,
) -> None:
    """Put an entry to the front of each bucket in some bands and tables; the oldest entry there goes.

    line: of the look-ups; probes: their number; code: of the message's length
    """
    entries, low = buckets.entries, _low_bits(kept_index, code)
    own = _own_entries(buckets, kept_index)
    for table in range(first_table, end_table):
        probe = own_probe(table, buckets)
        if probes <= probe:
            break
        start, entry = look_ups.starts[line, probe], low | look_ups.wanted[line, probe]
        if buckets.sparse:
            entries[own + table] = entry
            buckets.links[own + table] = buckets.heads[start >> WAY_BITS]
            buckets.heads[start >> WAY_BITS] = own + table
            continue
        for way in range(WAYS - 1, 0, -1):
            entries[start + way] = entries[start + way - 1]
        entries[start] = entry


@kernel
def insert_kept(
    chunk: Chunk,
    rows: NDArray[np.int32],
    kept_indices: NDArray[np.int64],
    count: int,
    first_table: int,
    end_table: int,
    buckets: Buckets,
    look_ups: LookUps,
) -> None:
    """Insert the first `count` of `rows` into their buckets, in bands and tables first_table to end_table.

    rows: int32, rows of the chunk in the order in which they were kept; look_ups: working memory
    """
    for i in range(count + _PREFETCHED_ROWS):
        if i < count:
            row = np.int64(rows[i])
            for table in range(first_table, end_table):
                probe = own_probe(table, buckets)
                if chunk.probes[row] > probe:
                    _find_bucket(chunk, row, probe, i & (LOOK_UP_LINES - 1), buckets, look_ups)
        before = i - _PREFETCHED_ROWS
        if before >= 0:
            row = np.int64(rows[before])
            line, kept_index, code = before & (LOOK_UP_LINES - 1), kept_indices[before], chunk.codes[row]
            _insert(line, chunk.probes[row], first_table, end_table, kept_index, code, buckets, look_ups)


@kernel
def write_table(buckets: Buckets, entries: NDArray[np.uint64]) -> None:
    """Write the entries of a sparse index to the zeros of a table."""
    for bucket in range(len(buckets.heads)):
        place = newest_place(buckets, bucket * WAYS)
        for way in range(WAYS):
            if place == 0:
                break
            entries[bucket * WAYS + way] = buckets.entries[place]
            place = older_place(buckets, place)


@kernel
def write_lists(entries: NDArray[np.uint64], filled: NDArray[np.int64], buckets: Buckets) -> int:
    """Write the entries of a table to an empty sparse index, which must have room. returns: index behind the
    last one

    filled: int64[n], numbers of the buckets with entries
    """
    end = buckets.first
    for number in range(len(filled)):
        bucket = filled[number]
        for way in range(WAYS - 1, -1, -1):
            entry = entries[bucket * WAYS + way]
            if entry:
                buckets.entries[end] = entry
                buckets.links[end] = buckets.heads[bucket]
                buckets.heads[bucket] = end
                end += 1
    return end
