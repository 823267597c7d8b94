"""Writes records again as they were read, with headers behind their own, as Kafka's record batches.

Key, value and headers are copied where they lie, byte for byte; no object is made for a record.

source: https://kafka.apache.org/documentation/#recordbatch, "Record" and "Record Header"
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.kernel import ZERO, kernel
from twinsieve.stages.rows.record_columns import RecordColumns
from twinsieve.stages.rows.varints import MAX_BYTES, read_only, varint_size, write_varint

BATCH_HEADER_BYTES = 61
ROW_BYTES = 6 * MAX_BYTES + 1 + 10
"""The most bytes of a record beside its key, value and headers: six lengths, the attributes, the time."""
HEADER_BYTES = 2 * MAX_BYTES
"""The most bytes of a header beside its name and value."""
NONE = -1
"""No header, no text, or no number."""
_NUMBER_BYTES = 20
"""The most bytes of a number with a dot."""
_ZERO_DIGIT, _DOT = np.uint8(ord("0")), np.uint8(ord("."))
_NO_ATTRIBUTES = np.uint8(0)


class EncodedBatch(NamedTuple):
    """The records of one batch.

    records: as they stand behind the batch's header, not compressed; rows: how many they are
    first_ms, latest_ms: time of the first record, and the latest of all
    """

    records: bytes | memoryview
    rows: int
    first_ms: int
    latest_ms: int


class AddedHeaders(NamedTuple):
    """The headers that m records get: at most h each, in order. The value of one is a text, a number, or a
    number behind a text.

    content: uint8[], texts one behind the other; ends: int64[t + 1], text i is content[ends[i]:ends[i + 1]]
    names, texts: int32[m, h], numbers of texts; as a name NONE: the record has no such header
    numbers: int64[m, h], from 0 on, or NONE
    decimals: int64[h], digits of the numbers behind a dot; without any there is no dot
    """

    content: NDArray[np.uint8]
    ends: NDArray[np.int64]
    names: NDArray[np.int32]
    texts: NDArray[np.int32]
    numbers: NDArray[np.int64]
    decimals: NDArray[np.int64]

    @classmethod
    def none(cls, count: int) -> AddedHeaders:
        """No header for any of `count` records."""
        numbers = np.empty((count, 0), np.int32)
        return cls.of([], numbers, numbers, np.empty((count, 0), np.int64), [])

    @classmethod
    def of(
        cls,
        strings: Sequence[bytes],
        names: NDArray[np.int32],
        texts: NDArray[np.int32],
        numbers: NDArray[np.int64],
        decimals: Sequence[int],
    ) -> AddedHeaders:
        """As the fields; strings: the texts"""
        ends = np.cumsum([0, *map(len, strings)], dtype=np.int64)
        content = np.frombuffer(b"".join(strings), np.uint8)
        return cls(content, ends, names, texts, numbers, np.array(decimals, np.int64))

    def only(self, rows: NDArray[np.int64]) -> Self:
        """Those of these records."""
        return self._replace(names=self.names[rows], texts=self.texts[rows], numbers=self.numbers[rows])

    def bounds(self) -> NDArray[np.int64]:
        """int64[m]: for each record at least the bytes that its headers take, with their lengths."""
        text_bytes = np.append(np.diff(self.ends), 0)  # the last one is for NONE
        sizes = text_bytes[self.names] + text_bytes[self.texts] + HEADER_BYTES
        sizes += np.where(self.numbers == NONE, 0, _NUMBER_BYTES)
        bounds: NDArray[np.int64] = np.where(self.names == NONE, 0, sizes).sum(axis=1, dtype=np.int64)
        return bounds

    def listed(self) -> list[list[tuple[str, bytes]]]:
        """Names and values of the headers of each record."""
        raw, ends = self.content.tobytes(), self.ends.tolist()
        strings = [*(raw[start:end] for start, end in pairwise(ends)), b""]
        columns = zip(self.names.tolist(), self.texts.tolist(), self.numbers.tolist(), strict=True)
        places = self.decimals.tolist()
        return [
            [
                (strings[name].decode(), strings[text] + _written(number, decimals))
                for name, text, number, decimals in zip(*row, places, strict=True)
                if name != NONE
            ]
            for row in columns
        ]


def _written(number: int, decimals: int) -> bytes:
    if number == NONE:
        return b""
    digits = b"%0*d" % (decimals + 1, number)
    return digits[:-decimals] + b"." + digits[-decimals:] if decimals else digits


class CopiedRecords(NamedTuple):
    """Records to write. content: where the columns say that they lie

    times_ms: int64[m], the times to write; columns and added: of the m records
    """

    content: NDArray[np.uint8]
    columns: RecordColumns
    times_ms: NDArray[np.int64]
    added: AddedHeaders

    def bounds(self) -> NDArray[np.int64]:
        """int64[m]: at least the bytes of each record."""
        return self.columns.content_sizes + self.added.bounds() + ROW_BYTES


class _State(NamedTuple):
    """What goes on from one part to the next, each an int64[1].

    at: where the next record is written; begin: where its batch begins; records: of the batch so far
    first_ms: time of the batch's first record; batches: that are closed
    """

    at: NDArray[np.int64]
    begin: NDArray[np.int64]
    records: NDArray[np.int64]
    first_ms: NDArray[np.int64]
    batches: NDArray[np.int64]


class _Batches(NamedTuple):
    """The batches: where each ends, its number of records, the time of the first one and the latest time."""

    ends: NDArray[np.int64]
    records: NDArray[np.int64]
    firsts_ms: NDArray[np.int64]
    latest_ms: NDArray[np.int64]


def copy_records(parts: Sequence[CopiedRecords], batch_bytes: int) -> list[EncodedBatch]:
    """The records of all parts as record batches, in order.

    batch_bytes: a batch ends before the record with which it would be larger, uncompressed and with its
        header. A batch of one record may be larger
    """
    count = sum(len(part.times_ms) for part in parts)
    if not count:
        return []
    out = np.empty(sum(int(part.bounds().sum()) for part in parts), np.uint8)
    batches = _Batches(*(np.zeros(count, np.int64) for _ in _Batches._fields))
    state = _State(*(np.zeros(1, np.int64) for _ in _State._fields))
    for part in parts:
        _copy(
            part._replace(content=read_only(part.content)),
            batch_bytes - BATCH_HEADER_BYTES,
            out,
            batches,
            state,
        )
    made, start = [], 0
    columns = (column[: int(state.batches[0]) + 1].tolist() for column in batches)
    for end, records, first_ms, latest_ms in zip(*columns, strict=True):
        made.append(EncodedBatch(out[start:end].data, records, first_ms, latest_ms))
        start = end
    return made


@kernel
def _copy(part: CopiedRecords, room: int, out: NDArray[np.uint8], batches: _Batches, state: _State) -> None:
    """Write the records of one part behind those of the parts before. room: bytes for those of a batch"""
    columns, added, times_ms = part.columns, part.added, part.times_ms
    at, begin, records = state.at[0], state.begin[0], state.records[0]
    first_ms, batch = state.first_ms[0], state.batches[0]
    for row in range(len(times_ms)):
        key_size, value_size = ZERO + columns.key_sizes[row], ZERO + columns.value_sizes[row]
        headers, more = _sizes_of_added(added, row)
        headers += columns.header_counts[row]
        beside = 1 + varint_size(key_size) + max(key_size, ZERO) + varint_size(value_size)
        beside += max(value_size, ZERO) + varint_size(headers) + columns.headers_sizes[row] + more
        size = beside + varint_size(times_ms[row] - first_ms) + varint_size(records)
        if records > 0 and at - begin + varint_size(size) + size > room:
            batch += 1
            records = ZERO
        if records == 0:
            begin, first_ms = at, times_ms[row]
            batches.firsts_ms[batch] = batches.latest_ms[batch] = first_ms
            size = beside + varint_size(ZERO) + varint_size(ZERO)
        at = write_varint(size, out, at)
        out[at] = _NO_ATTRIBUTES
        at = write_varint(times_ms[row] - first_ms, out, at + 1)
        at = write_varint(records, out, at)
        at = write_varint(key_size, out, at)
        at = _copy_bytes(part.content, columns.key_at[row], max(key_size, ZERO), out, at)
        at = write_varint(value_size, out, at)
        at = _copy_bytes(part.content, columns.value_at[row], max(value_size, ZERO), out, at)
        at = write_varint(headers, out, at)
        at = _copy_bytes(part.content, columns.headers_at[row], ZERO + columns.headers_sizes[row], out, at)
        at = _write_added(added, row, out, at)
        records += 1
        batches.latest_ms[batch] = max(batches.latest_ms[batch], times_ms[row])
        batches.records[batch], batches.ends[batch] = records, at
    state.at[0], state.begin[0], state.records[0] = at, begin, records
    state.first_ms[0], state.batches[0] = first_ms, batch


@kernel(callee=True)
def _sizes_of_added(added: AddedHeaders, row: int) -> tuple[int, int]:
    """Number of the headers that a record gets, and their bytes."""
    count, size = ZERO, ZERO
    for place in range(added.names.shape[1]):
        name = added.names[row, place]
        if name != NONE:
            count += 1
            name_size = added.ends[name + 1] - added.ends[name]
            value_size = _value_size(added, row, place)
            size += varint_size(name_size) + name_size + varint_size(value_size) + value_size
    return count, size


@kernel(callee=True)
def _value_size(added: AddedHeaders, row: int, place: int) -> int:
    """Bytes of the value of an added header."""
    size = ZERO
    text, number, decimals = added.texts[row, place], added.numbers[row, place], added.decimals[place]
    if text != NONE:
        size += added.ends[text + 1] - added.ends[text]
    if number != NONE:
        size += _digits(number, decimals) + (1 if decimals > 0 else 0)
    return size


@kernel(callee=True)
def _digits(number: int, decimals: int) -> int:
    """Digits of a number that has at least one before its dot."""
    count = ZERO + 1
    while number >= 10:
        number = number // 10
        count += 1
    return max(count, decimals + 1)


@kernel(callee=True)
def _write_added(added: AddedHeaders, row: int, out: NDArray[np.uint8], at: int) -> int:
    """Write the headers that a record gets. returns: the place behind them"""
    for place in range(added.names.shape[1]):
        name = added.names[row, place]
        if name == NONE:
            continue
        size = added.ends[name + 1] - added.ends[name]
        at = write_varint(size, out, at)
        at = _copy_bytes(added.content, added.ends[name], size, out, at)
        at = write_varint(_value_size(added, row, place), out, at)
        text, number, decimals = added.texts[row, place], added.numbers[row, place], added.decimals[place]
        if text != NONE:
            at = _copy_bytes(
                added.content, added.ends[text], added.ends[text + 1] - added.ends[text], out, at
            )
        if number != NONE:
            at = _write_number(number, decimals, out, at)
    return at


@kernel(callee=True)
def _write_number(number: int, decimals: int, out: NDArray[np.uint8], at: int) -> int:
    """Write a number from its last digit on. returns: the place behind it"""
    digits = _digits(number, decimals)
    end = at + digits + (1 if decimals > 0 else 0)
    place = end
    for written in range(digits):
        if decimals > 0 and written == decimals:
            place -= 1
            out[place] = _DOT
        place -= 1
        out[place] = _ZERO_DIGIT + np.uint8(number % 10)
        number = number // 10
    return end


@kernel(callee=True)
def _copy_bytes(content: NDArray[np.uint8], start: int, size: int, out: NDArray[np.uint8], at: int) -> int:
    """Copy bytes. returns: the place behind them"""
    # Use slices, because the compiler makes a call of memcpy of a loop over them.
    source, target = content[start : start + size], out[at : at + size]
    for i in range(size):
        target[i] = source[i]
    return at + size
