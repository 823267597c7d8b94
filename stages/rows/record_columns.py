"""The records of record batches (format version 2) as columns: where the parts of each lie in their bytes.

No object is made for a record. A batch with anything unusual is refused, and its reader decides about it.

source: https://kafka.apache.org/documentation/#recordbatch, "Record" and "Record Header"
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.kernel import NO, YES, ZERO, kernel
from twinsieve.stages.rows.varints import NO_NUMBER, read_only, read_varint

LEAST_BYTES = 7
"""Bytes of the smallest record: each of its seven parts has at least one."""
_MOST_BYTES = (1 << 31) - 1
_LAST, _FIRST = cast("int", np.int64((1 << 63) - 1)), cast("int", np.int64(-(1 << 63)))
_KINDS = (*[np.int64] * 2, np.int32, *[np.int64] * 3, *[np.int32] * 4, np.bool_)
"""The types of the columns of `RecordColumns`."""


class RecordColumns(NamedTuple):
    """n records in offset order; a place is that of a byte in the content that holds them all.

    offsets, times_ms: int64[n]; a time below 0 is none
    epochs: int32[n], leader epochs
    key_at, value_at, headers_at: int64[n], places of key and value, and of the first header; they ascend
    key_sizes, value_sizes: int32[n], bytes; -1 for None
    headers_sizes: int32[n], bytes of all headers; header_counts: int32[n]
    marked: bool[n], whether the name of a header begins with the prefix that was asked for
    """

    offsets: NDArray[np.int64]
    times_ms: NDArray[np.int64]
    epochs: NDArray[np.int32]
    key_at: NDArray[np.int64]
    value_at: NDArray[np.int64]
    headers_at: NDArray[np.int64]
    key_sizes: NDArray[np.int32]
    value_sizes: NDArray[np.int32]
    headers_sizes: NDArray[np.int32]
    header_counts: NDArray[np.int32]
    marked: NDArray[np.bool_]

    @classmethod
    def blank(cls, count: int) -> RecordColumns:
        """Columns of `count` records, without content."""
        return cls(*(np.empty(count, kind) for kind in _KINDS))

    def part(self, rows: slice | NDArray[np.int64]) -> RecordColumns:
        """The columns of these rows."""
        return RecordColumns(*(column[rows] for column in self))  # type: ignore[arg-type]

    def moved(self, by: int) -> RecordColumns:
        """The columns of the same records, whose content lies `by` bytes further on."""
        places = {name: getattr(self, name) + by for name in ("key_at", "value_at", "headers_at")}
        return self._replace(**places)

    @property
    def content_sizes(self) -> NDArray[np.int64]:
        """int64[n]: bytes of key, value and headers of each record."""
        sizes = np.maximum(self.key_sizes, 0).astype(np.int64)
        sizes += np.maximum(self.value_sizes, 0)
        sizes += self.headers_sizes
        return sizes


class BatchFacts(NamedTuple):
    """What the header of a batch says.

    size: bytes of its records
    first_ms: time of the first record; latest_ms: the latest time, that of all records if `stamped_by_broker`
    """

    size: int
    base_offset: int
    epoch: int
    records: int
    first_ms: int
    latest_ms: int
    stamped_by_broker: bool


def scan_records(
    content: NDArray[np.uint8], batches: Sequence[BatchFacts], prefix: bytes
) -> RecordColumns | None:
    """The records of some batches; None if one is damaged, or unusual: a number longer than it has to be,
    offsets that do not ascend, a time outside int64, trailing bytes.

    content: uint8[], the records as they stand behind the headers of the batches, unpacked, one batch behind
        the other
    prefix: beginning of the names that are marked
    """
    if not all(0 <= each.records * LEAST_BYTES <= each.size <= _MOST_BYTES for each in batches):
        return None
    facts = np.array(batches, np.int64)
    records = facts[:, BatchFacts._fields.index("records")]
    found = RecordColumns.blank(int(records.sum()))
    found.epochs[:] = np.repeat(facts[:, BatchFacts._fields.index("epoch")], records)
    is_sound = _scan(read_only(content), facts, np.frombuffer(prefix, np.uint8), found)
    return found if is_sound else None


@kernel
def _scan(
    content: NDArray[np.uint8], batches: NDArray[np.int64], prefix: NDArray[np.uint8], found: RecordColumns
) -> bool:
    """Fill the columns. batches: int64[k, 7], the fields of `BatchFacts`; returns: whether all are sound"""
    start, row = ZERO, ZERO
    for batch in range(len(batches)):
        size, base_offset, _, records, first_ms, latest_ms, stamped = batches[batch]
        if size > len(content) - start:
            return NO
        bounds = base_offset, first_ms, latest_ms
        if not _scan_batch(content, start, start + size, row, row + records, bounds, stamped, prefix, found):
            return NO
        if row > 0 and records > 0 and found.offsets[row] <= found.offsets[row - 1]:
            return NO
        start, row = start + size, row + records
    return YES if start == len(content) else NO


@kernel(callee=True)
def _scan_batch(
    content: NDArray[np.uint8],
    start: int,
    whole: int,
    first_row: int,
    end_row: int,
    bounds: tuple[int, int, int],
    stamped: int,
    prefix: NDArray[np.uint8],
    found: RecordColumns,
) -> bool:
    """Fill the rows [first_row, end_row) from the bytes [start, whole). returns: whether they are sound

    bounds: base offset, time of the first record, latest time
    """
    base_offset, first_ms, latest_ms = bounds
    at = start
    before = base_offset - 1
    for row in range(first_row, end_row):
        length, at = read_varint(content, at, whole)
        # The attributes have one byte, and no bit of them has a meaning.
        if at == NO_NUMBER or length < 1 or length > whole - at or content[at] >= 0x80:
            return NO
        end = at + length
        delta_ms, at = read_varint(content, at + 1, end)
        if at == NO_NUMBER or not _fits(first_ms, delta_ms):
            return NO
        delta, at = read_varint(content, at, end)
        if at == NO_NUMBER or not _fits(base_offset, delta) or base_offset + delta <= before:
            return NO
        before = base_offset + delta
        found.offsets[row] = before
        found.times_ms[row] = latest_ms if stamped else first_ms + delta_ms
        size, at = read_varint(content, at, end)
        if at == NO_NUMBER or size < -1 or size > end - at:
            return NO
        found.key_at[row], found.key_sizes[row] = at, size
        size, at = read_varint(content, at + max(size, ZERO), end)
        if at == NO_NUMBER or size < -1 or size > end - at:
            return NO
        found.value_at[row], found.value_sizes[row] = at, size
        headers, at = read_varint(content, at + max(size, ZERO), end)
        if at == NO_NUMBER or headers < 0 or headers > end - at:
            return NO
        found.headers_at[row], found.headers_sizes[row], found.header_counts[row] = at, end - at, headers
        found.marked[row] = NO
        for _ in range(headers):
            size, at = read_varint(content, at, end)
            if at == NO_NUMBER or size < 0 or size > end - at:
                return NO
            if _begins_with(content, at, size, prefix):
                found.marked[row] = YES
            size, at = read_varint(content, at + size, end)
            if at == NO_NUMBER or size < -1 or size > end - at:
                return NO
            at += max(size, ZERO)
        if at != end:
            return NO
    return YES if at == whole else NO


@kernel(callee=True)
def _fits(number: int, delta: int) -> bool:
    """Whether the sum is in int64."""
    return number <= _LAST - delta if delta >= 0 else number >= _FIRST - delta


@kernel(callee=True)
def _begins_with(content: NDArray[np.uint8], at: int, size: int, prefix: NDArray[np.uint8]) -> bool:
    if size < len(prefix):
        return NO
    for place in range(len(prefix)):
        if content[at + place] != prefix[place]:
            return NO
    return YES
