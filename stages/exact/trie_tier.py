"""`SealedTier`: a read-only index of entries around a marisa trie, with about 15 bytes for key and values.
One that was read from a file has `SortedKeys` in place of the trie.

The trie holds the first 4 bytes of each digest. With up to a million keys, these are nearly always unique,
and marisa needs only 3 bytes a key because the keys have no long tails. The other 12 bytes of each digest
stand in two arrays, in the order of trie ids; a look-up compares them, so each answer is exact. If several
digests share their first 4 bytes, the trie holds all 16 bytes of them. (1 M digests: 15.1 B each, against
19.5 B if the trie held whole digests; bench/exact_trie.py.)
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import marisa_trie
import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.errors import NEW_STATE, StateError
from twinsieve.stages.exact.bloom_kernel import (
    CURSOR_LIVE,
    Bloom,
    add_batch,
    bloom_bytes,
    contains_batch,
    new_bloom,
)
from twinsieve.stages.exact.bloom_sizing import BloomSizing, filter_sizes, row_bytes
from twinsieve.stages.exact.packed import PackedColumn
from twinsieve.stages.exact.sections import SectionReader, Sections
from twinsieve.stages.exact.sorted_keys import SortedKeys
from twinsieve.stages.exact.trie_head import Entries

_PREFIX = 4
_FILTER_ERROR_RATE = 0.02
_CHUNK = 32_768
_FOREVER = 2**62
_PREFIX_SHIFT = np.uint64(32)


class SealedTier:
    """Entries with distinct digests, in kept order; the trie gives each digest an id.

    level: number of merges that led to this tier
    low, second: uint32[n], uint64[n], by id: the last 12 bytes of the digest
    rows: PackedColumn, by id: row of the entry in kept order
    kept_less_row: PackedColumn, by row: kept index minus row; positions, times: PackedColumn, by row
    filter_bits: uint8[…], a Bloom filter of the digests, so that most digests that are not in the tier are
        not searched for in the trie
    """

    def __init__(
        self,
        level: int,
        trie: marisa_trie.BinaryTrie | SortedKeys,
        low: NDArray[np.uint32],
        second: NDArray[np.uint64],
        rows: PackedColumn,
        kept_less_row: PackedColumn,
        positions: PackedColumn,
        times: PackedColumn,
        filter_bits: NDArray[np.uint8],
        trie_bytes: int,
    ) -> None:
        self.level = level
        self.trie = trie
        self.low = low
        self.second = second
        self.rows = rows
        self.kept_less_row = kept_less_row
        self.positions = positions
        self.times = times
        self.filter = empty_filter(len(trie))._replace(bits=filter_bits)
        self.filter.cursor[CURSOR_LIVE] = 1
        self._trie_bytes = trie_bytes
        last = np.array([len(trie) - 1])
        self.oldest_kept = int(self.kept_less_row.values(np.zeros(1, np.int64))[0])
        self.newest_kept = int(self.kept_less_row.values(last)[0]) + len(trie) - 1
        self.newest_time_ms = int(self.times.values(last)[0])

    @classmethod
    def of(cls, level: int, entries: Entries) -> SealedTier:
        """A tier of these entries. entries: at least one, in kept order, with distinct digests"""
        n = len(entries.kept)
        order = np.argsort(entries.digests[:, 0])
        ordered = entries.digests[order]
        if (ordered[1:, 0] == ordered[:-1, 0]).any():
            order = np.lexsort((entries.digests[:, 1], entries.digests[:, 0]))
            ordered = entries.digests[order]
        keys = _TrieKeys(ordered)
        trie = marisa_trie.BinaryTrie(
            iter(keys), num_tries=1, cache_size=marisa_trie.TINY_CACHE, order=marisa_trie.LABEL_ORDER
        )
        # The trie gives its keys in ascending order, as the digests are.
        ids = np.fromiter((number for _, number in trie.iteritems()), dtype=np.int64, count=n)
        low = np.empty(n, dtype=np.uint32)
        second = np.empty(n, dtype=np.uint64)
        rows = np.empty(n, dtype=np.int64)
        low[ids] = ordered[:, 0].astype(np.uint32)
        second[ids] = ordered[:, 1]
        rows[ids] = order
        own_filter = empty_filter(n)
        add_batch(own_filter, entries.digests, np.arange(n, dtype=np.int64), np.zeros(n, dtype=np.int64))
        return cls(
            level=level,
            trie=trie,
            low=low,
            second=second,
            rows=PackedColumn.of(rows),
            kept_less_row=PackedColumn.of(entries.kept - np.arange(n)),
            positions=PackedColumn.of(entries.positions),
            times=PackedColumn.of(entries.times_ms),
            filter_bits=own_filter.bits,
            trie_bytes=len(trie.tobytes()),
        )

    def __len__(self) -> int:
        return len(self.trie)

    @property
    def bytes_used(self) -> int:
        """Bytes of the trie and all columns."""
        columns = (self.rows, self.kept_less_row, self.positions, self.times, self.low, self.second)
        return self._trie_bytes + bloom_bytes(self.filter.sizing) + sum(part.nbytes for part in columns)

    def find(self, digests: NDArray[np.uint64]) -> NDArray[np.int64]:
        """int64[n]: row of the entry of each digest, or -1. digests: uint64[n, 2]"""
        maybe = np.empty(len(digests), dtype=np.bool_)
        contains_batch(self.filter, digests, maybe)
        candidates = np.flatnonzero(maybe)
        rows = np.full(len(digests), -1, dtype=np.int64)
        if len(candidates) == 0:
            return rows
        ids = self._ids_of(digests[candidates])
        with_id = np.flatnonzero(ids >= 0)
        ids, candidates = ids[with_id], candidates[with_id]
        wanted = digests[candidates]
        same = (self.low[ids] == wanted[:, 0].astype(np.uint32)) & (self.second[ids] == wanted[:, 1])
        rows[candidates[same]] = self.rows.values(ids[same])
        return rows

    def _ids_of(self, digests: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The id of the trie key that may belong to each digest, or -1. The caller compares the other bytes.

        marisa-trie looks up one key a call, in about 1 µs. Looking up sorted keys would save only 5 to 8 %,
        sorting included. Only digests that pass the Bloom filter get here: those in the tier, and one in
        fifty of the others (`python -m bench.exact_trie --look-ups`).
        """
        get = self.trie.get
        prefixes = _prefixes(digests)
        ids = np.fromiter((get(key, -1) for key in prefixes), dtype=np.int64, count=len(digests))
        missing = np.flatnonzero(ids < 0)
        whole = _whole_keys(digests[missing])
        ids[missing] = np.fromiter((get(key, -1) for key in whole), dtype=np.int64, count=len(missing))
        return ids

    def kept_at(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64[m]: kept indices of these rows."""
        return self.kept_less_row.values(rows) + rows

    def digests(self) -> NDArray[np.uint64]:
        """uint64[n, 2]: the digests by id."""
        first = (_prefix_of_ids(self.trie).astype(np.uint64) << _PREFIX_SHIFT) | self.low
        return np.stack((first, self.second), axis=1)

    def entries(self) -> Entries:
        """All entries, in kept order. The digests are rebuilt from the trie and the columns."""
        n = len(self)
        everything = np.arange(n)
        digests = np.empty((n, 2), dtype=np.uint64)
        digests[self.rows.values(everything)] = self.digests()
        return Entries(
            digests,
            self.positions.values(everything),
            self.kept_at(everything),
            self.times.values(everything),
        )


class _TrieKeys:
    """Iterates over the trie keys of n digests: the first 4 bytes, or all 16 if the first 4 are not unique.

    digests: uint64[n, 2], ascending
    shared: bool[n], whether the first 4 bytes are not unique
    It makes the keys in pieces, because a million bytes objects at once would take 45 MB.
    """

    def __init__(self, digests: NDArray[np.uint64]) -> None:
        self._digests = digests
        prefix = digests[:, 0] >> _PREFIX_SHIFT
        equal = prefix[1:] == prefix[:-1]
        shared = np.zeros(len(digests), dtype=np.bool_)
        shared[1:] |= equal
        shared[:-1] |= equal
        self.shared = shared

    def __iter__(self) -> Iterator[bytes]:
        starts = range(0, len(self._digests), _CHUNK)
        return chain.from_iterable(self._piece(start) for start in starts)

    def _piece(self, start: int) -> list[bytes]:
        digests = self._digests[start : start + _CHUNK]
        keys = _prefixes(digests)
        shared = np.flatnonzero(self.shared[start : start + _CHUNK])
        for number, key in zip(shared.tolist(), _whole_keys(digests[shared]), strict=True):
            keys[number] = key
        return keys


def _prefix_of_ids(trie: marisa_trie.BinaryTrie | SortedKeys) -> NDArray[np.uint32]:
    """uint32[n]: the first 4 bytes of the digest of each trie id."""
    restore = trie.restore_key
    n = len(trie)
    parts = [
        b"".join([restore(number)[:_PREFIX] for number in range(start, min(start + _CHUNK, n))])
        for start in range(0, n, _CHUNK)
    ]
    return np.frombuffer(b"".join(parts), dtype=">u4").astype(np.uint32)


def _prefixes(digests: NDArray[np.uint64]) -> list[bytes]:
    high = (digests[:, 0] >> _PREFIX_SHIFT).astype(">u4")
    keys: list[bytes] = high.view(f"V{_PREFIX}").tolist()
    return keys


def _whole_keys(digests: NDArray[np.uint64]) -> list[bytes]:
    keys: list[bytes] = np.ascontiguousarray(digests.astype(">u8")).view("V16").reshape(-1).tolist()
    return keys


def empty_filter(capacity: int) -> Bloom:
    """An empty Bloom filter for `capacity` digests: one generation that never closes."""
    slices, slice_bits = filter_sizes(capacity, _FILTER_ERROR_RATE)
    stride = row_bytes(slices * slice_bits)
    sizing = BloomSizing(
        capacity, slices, slice_bits, _FILTER_ERROR_RATE, 1, stride, messages=_FOREVER, age_ms=-1, span_ms=-1
    )
    return new_bloom(sizing)


def tier_to_sections(tier: SealedTier) -> Sections:
    """The arrays of a tier: `level`, `digests` in ascending order, `filter` and the columns."""
    digests = tier.digests()
    order = np.lexsort((digests[:, 1], digests[:, 0]))
    sections: Sections = {
        "level": np.array([tier.level], dtype=np.int64),
        "digests": digests[order],
        "filter": tier.filter.bits,
    }
    for name in _PACKED:
        column: PackedColumn = getattr(tier, name)
        if name == "rows":
            column = PackedColumn.of(column.values(order))
        sections[f"{name}.bases"] = column.bases
        sections[f"{name}.deltas"] = column.deltas
    return sections


def tier_from_sections(reader: SectionReader) -> SealedTier:
    """The tier from its saved arrays. raises: StateError if the arrays do not fit together"""
    if reader.has("trie"):
        raise StateError(
            f"trie: an earlier version saved it in another format; {NEW_STATE}, or let that version run"
        )
    digests = reader.array("digests", np.uint64, (None, 2)).astype(np.uint64)
    n = len(digests)
    level = int(reader.array("level", np.int64, (1,))[0])
    first, second = digests.T.copy()
    ascend = (first[1:] > first[:-1]) | ((first[1:] == first[:-1]) & (second[1:] > second[:-1]))
    if n == 0 or not ascend.all():
        raise reader.damaged(f"{n} digests of a tier are not in order")
    columns = {name: _packed(reader, name, n) for name in _PACKED}
    if not _is_permutation(columns["rows"].values(np.arange(n)), n):
        raise reader.damaged("rows of a tier are not a permutation")
    bits = reader.array("filter", np.uint8, empty_filter(n).bits.shape).astype(np.uint8)
    keys, low = SortedKeys(digests), first.astype(np.uint32)
    return SealedTier(
        level=level, trie=keys, low=low, second=second, **columns, filter_bits=bits, trie_bytes=keys.nbytes
    )


def _is_permutation(rows: NDArray[np.int64], n: int) -> bool:
    if rows.min() < 0 or rows.max() >= n:
        return False
    is_there = np.zeros(n, dtype=np.bool_)
    is_there[rows] = True
    return bool(is_there.all())


_PACKED = ("rows", "kept_less_row", "positions", "times")


def _packed(reader: SectionReader, name: str, n: int) -> PackedColumn:
    column = PackedColumn(
        reader.array(f"{name}.bases", np.int64, (None,)).astype(np.int64),
        reader.array(f"{name}.deltas", np.uint8, (n, None)).astype(np.uint8),
    )
    if not column.is_sound(n):
        raise reader.damaged(f"column {name!r} of a tier does not hold {n} values")
    return column
