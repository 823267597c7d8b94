"""The candidate index: per band or table, 64-byte buckets of the eight newest entries.

An entry is 8 bytes: kept index modulo 2 ** 24 | length code 8 | signature 32. A bucket is one cache line; a
new entry goes to the front and the oldest falls out. Nothing is deleted: an entry older than the window is
recognised by its kept index. No chains, so that a hot topic costs eight comparisons, not thousands.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import BandLayout
from twinsieve.stages.intrinsics import GOLDEN, prefetch
from twinsieve.stages.kernel import kernel
from twinsieve.stages.window.chunk import Chunk

WAYS = 8
INDEX_BITS = 24
INDEX_MASK = (1 << INDEX_BITS) - 1


class Buckets(NamedTuple):
    """entries: uint64[(bands * band_buckets + tables * table_buckets) * WAYS], 64-byte aligned; 0 is empty.

    The rest is the layout: numbers of bands, tables, buckets in each, weak bits and key bits of a table.
    """

    entries: NDArray[np.uint64]
    bands: int
    tables: int
    band_buckets: int
    table_buckets: int
    weak: int
    key_bits: int


def bucket_counts(window: int, load: float) -> tuple[int, int]:
    """Buckets in each band and in each SimHash table, for a window of that many kept messages.

    Tables serve only bodies of at least `simhash_from` characters and get half as many.
    """
    band_buckets = max(1, round(window / load))
    return band_buckets, max(1, band_buckets // 2)


def entry_count(layout: BandLayout, window: int, load: float) -> int:
    """Entries of 8 bytes in the whole index."""
    band_buckets, table_buckets = bucket_counts(window, load)
    return (layout.bands * band_buckets + layout.tables * table_buckets) * WAYS


@kernel
def bucket_of(chunk: Chunk, row: int, probe: int, buckets: Buckets) -> np.int64:
    """First entry of the bucket a row looks into at its `probe`-th look.

    Looks 0…bands - 1 are the MinHash bands; then each table's 2 ** weak keys, the unchanged one first.
    """
    salt = chunk.scopes[row]
    if probe < buckets.bands:
        mixed = (np.uint64(chunk.band_keys[row, probe]) ^ (salt & np.uint64(0xFFFFFFFF))) * np.uint64(
            buckets.band_buckets
        )
        return (probe * buckets.band_buckets + np.int64(mixed >> np.uint64(32))) * WAYS
    look = probe - buckets.bands
    table = look >> buckets.weak
    flips = look & ((1 << buckets.weak) - 1)
    key = _table_key(chunk, row, table, buckets)
    for bit in range(buckets.weak):
        if flips & (1 << bit):
            key ^= np.uint64(1) << np.uint64(chunk.weak_bits[row, table, bit])
    hashed = ((key ^ salt) * GOLDEN) >> np.uint64(32)
    place = np.int64((hashed * np.uint64(buckets.table_buckets)) >> np.uint64(32))
    return (buckets.bands * buckets.band_buckets + table * buckets.table_buckets + place) * WAYS


@kernel(callee=True)
def _table_key(chunk: Chunk, row: int, table: int, buckets: Buckets) -> np.uint64:
    """Bits (table * 128 // tables + j) % 128 of the SimHash, j < key_bits."""
    first = table * 128 // buckets.tables
    word, shift = first >> 6, np.uint64(first & 63)
    key = chunk.simhashes[row, word] >> shift
    if shift:
        key |= chunk.simhashes[row, 1 - word] << (np.uint64(64) - shift)
    return key & ((np.uint64(1) << np.uint64(buckets.key_bits)) - np.uint64(1))


@kernel(callee=True)
def own_probe(table: int, buckets: Buckets) -> np.int64:
    """The look at which a row finds its own bucket of a band or table (bands first, then tables)."""
    if table < buckets.bands:
        return table
    return buckets.bands + ((table - buckets.bands) << buckets.weak)


@kernel(callee=True)
def pack_entry(kept_index: int, code: int, signature: int) -> np.uint64:
    """The 8 bytes a bucket holds for one message."""
    low = np.uint64(kept_index & INDEX_MASK) | (np.uint64(code) << np.uint64(INDEX_BITS))
    return low | (np.uint64(signature) << np.uint64(32))


@kernel
def insert_kept(
    chunk: Chunk,
    rows: NDArray[np.int32],
    kept_indices: NDArray[np.int64],
    count: int,
    first_table: int,
    end_table: int,
    buckets: Buckets,
) -> None:
    """Enter the first `count` of `rows` into their buckets of the given bands and tables.

    rows: int32, chunk rows in order of keeping; exact-only rows are passed over
    """
    entries = buckets.entries
    ahead = 8
    for table in range(first_table, end_table):
        probe = own_probe(table, buckets)
        for i in range(count):
            if i + ahead < count and chunk.probes[rows[i + ahead]] > probe:
                prefetch(entries, bucket_of(chunk, np.int64(rows[i + ahead]), probe, buckets))
            row = np.int64(rows[i])
            if chunk.probes[row] <= probe:
                continue
            start = bucket_of(chunk, row, probe, buckets)
            for way in range(WAYS - 1, 0, -1):
                entries[start + way] = entries[start + way - 1]
            entries[start] = pack_entry(kept_indices[i], chunk.codes[row], chunk.signatures[row])
