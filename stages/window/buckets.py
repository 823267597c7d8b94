"""The candidate index of the method text: for each band and table, buckets of the eight newest entries.

An entry stands for one kept message. It has 8 bytes: 24 bits kept index (the number of the kept message,
modulo 2 ** 24), 8 bits length code (`window.lengths`), 8 bits of the key, 24 bits of the signature. Most
entries of a bucket have another key than the message that is looked up. The bits of the key tell, so the
records of these entries are not read. In a small table (`KEYED_FROM`) an entry has all 32 bits of the
signature and none of the key. A bucket is one cache line (64 bytes). A new entry goes to the front,
and the oldest one is removed. Otherwise no entry is deleted: the kept index shows whether an entry is older
than the window. There are no chains, so a frequent key costs eight comparisons and not thousands.
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

WAYS = 8
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
    """The buckets of all bands and tables.

    entries: uint64[(bands * band_buckets + tables * table_buckets) * WAYS], aligned to 64 bytes; 0 is empty
    bands, tables: number of MinHash bands, number of SimHash tables
    band_buckets, table_buckets: number of buckets in each band, number of buckets in each table
    weak, key_bits: number of weak bits and of key bits of a SimHash table (`BandLayout`)
    keyed: 1 if entries have bits of their keys
    """

    entries: NDArray[np.uint64]
    bands: int
    tables: int
    band_buckets: int
    table_buckets: int
    weak: int
    key_bits: int
    keyed: int


class LookUps(NamedTuple):
    """What the rows that come next read in the buckets: row r in line r % LOOK_UP_LINES.

    starts: int64[LOOK_UP_LINES, probes], index of the first entry of the bucket, by number of the look-up
    wanted: uint64[LOOK_UP_LINES, probes], the bits of key and signature (`wanted_bits`)
    """

    starts: NDArray[np.int64]
    wanted: NDArray[np.uint64]


def new_look_ups(probes: int) -> LookUps:
    """Memory for the look-ups of rows. probes: most look-ups of a row"""
    return LookUps(np.zeros((LOOK_UP_LINES, probes), np.int64), np.zeros((LOOK_UP_LINES, probes), np.uint64))


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
    """The bucket that a row reads in its look-up number `probe`: the index of the bucket's first entry.

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
    """The bucket of a key: the index of its first entry. key: of look-up number `probe`"""
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


@kernel
def own_buckets(chunk: Chunk, buckets: Buckets, found: NDArray[np.int64]) -> int:
    """Write the buckets in which the rows of a chunk are inserted. returns: their number

    found: int64[rows * (bands + tables)], indices of the first entries of the buckets
    """
    count = ZERO
    for row in range(len(chunk.probes)):
        for table in range(buckets.bands + buckets.tables):
            probe = own_probe(table, buckets)
            if chunk.probes[row] > probe:
                found[count] = bucket_of(chunk, np.int64(row), probe, buckets)
                count += 1
    return count


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
def _with_key(buckets: Buckets, start: int, wanted: np.uint64) -> np.uint64:
    """Which entries of a bucket have the bits of the key in `wanted` (`wanted_bits`), or have none: bit j is
    of entry j. start: index of the bucket's first entry"""
    mask = np.uint64(KEY_MASK) << np.uint64(KEY_SHIFT) if buckets.keyed else np.uint64(0)
    return np.uint64(lanes_equal(buckets.entries, start, wanted, mask))


@kernel(callee=True, inlined=True)
def possible_entries(
    buckets: Buckets, start: int, wanted: np.uint64, reach: NDArray[np.uint64], code: int
) -> np.uint64:
    """Which entries of a bucket have the key of `wanted`, and a length and a signature in `reach`.

    Bit j of the result is of entry j; an empty one is never among them, because its length code is no length.
    start: index of the bucket's first entry; reach: `window.lengths.reach_of`; code: length code of the row
    """
    least, above, bits = reach[code, 0], reach[code, 1], reach[code, 2]
    entries, lengths = buckets.entries, np.uint64(INDEX_BITS)
    close = lanes_close(entries, start, wanted, np.uint64(KEY_SHIFT), bits)
    alike = lanes_between(entries, start, lengths, np.uint64(255), least, above)
    return _with_key(buckets, start, wanted) & np.uint64(close) & np.uint64(alike)


@kernel(callee=True, inlined=True)
def newer_entries(buckets: Buckets, start: int, first: int, newest: int) -> np.uint64:
    """Which entries of a bucket are of the kept messages `first` to `newest`: bit j is of entry j.

    Entries stand newest first. Behind an older one, the bits of an index may be those of another message.
    start: index of the bucket's first entry
    """
    low, span = np.uint64(first & INDEX_MASK), np.uint64(newest - first)
    newer = np.uint64(lanes_between(buckets.entries, start, np.uint64(0), np.uint64(INDEX_MASK), low, span))
    return newer & ~(newer + np.uint64(1))


@kernel(callee=True, inlined=True)
def entries_of(buckets: Buckets, start: int, wanted: np.uint64, kept_index: int) -> np.uint64:
    """Which entries of a bucket are of a kept message and have the key of `wanted`: bit j is of entry j.

    start: index of the bucket's first entry
    """
    index = np.uint64(kept_index & INDEX_MASK)
    same = lanes_equal(buckets.entries, start, index, np.uint64(INDEX_MASK))
    empty = lanes_equal(buckets.entries, start, np.uint64(0), ~np.uint64(0))
    return _with_key(buckets, start, wanted) & np.uint64(same) & ~np.uint64(empty)


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
    """Write the look-ups of a row, and prefetch its buckets."""
    for probe in range(chunk.probes[row]):
        _find_bucket(chunk, row, np.int64(probe), row & (LOOK_UP_LINES - 1), buckets, look_ups)


@kernel(callee=True, inlined=True)
def _find_bucket(chunk: Chunk, row: int, probe: int, line: int, buckets: Buckets, look_ups: LookUps) -> None:
    key = key_of(chunk, row, probe, buckets)
    start = bucket_at(key, probe, buckets)
    look_ups.starts[line, probe] = start
    look_ups.wanted[line, probe] = wanted_bits(key, chunk.signatures[row], buckets)
    prefetch(buckets.entries, start)


@kernel(callee=True, inlined=True)
def insert_found(
    row: int, probes: int, kept_index: int, code: int, buckets: Buckets, look_ups: LookUps
) -> None:
    """Insert a kept row, whose look-ups were found, into its buckets. probes: number of its look-ups; code:
    code of its length"""
    line, tables = row & (LOOK_UP_LINES - 1), buckets.bands + buckets.tables
    _insert(line, probes, ZERO, tables, _low_bits(kept_index, code), buckets, look_ups)


@kernel(callee=True, inlined=True)
def _insert(
    line: int,
    probes: int,
    first_table: int,
    end_table: int,
    low: np.uint64,
    buckets: Buckets,
    look_ups: LookUps,
) -> None:
    """Put an entry to the front of each bucket in some bands and tables; the oldest entry there goes.

    line: of the look-ups; probes: their number; low: `_low_bits` of the entry
    """
    entries = buckets.entries
    for table in range(first_table, end_table):
        probe = own_probe(table, buckets)
        if probes <= probe:
            break
        start = look_ups.starts[line, probe]
        for way in range(WAYS - 1, 0, -1):
            entries[start + way] = entries[start + way - 1]
        entries[start] = low | look_ups.wanted[line, probe]


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
            line, low = before & (LOOK_UP_LINES - 1), _low_bits(kept_indices[before], chunk.codes[row])
            _insert(line, chunk.probes[row], first_table, end_table, low, buckets, look_ups)
