"""Writes rows as the records of Kafka's record batches (format version 2), all rows in one call.

source: https://kafka.apache.org/documentation/#recordbatch, "Record" and "Record Header"
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.kernel import ZERO, kernel
from twinsieve.stages.rows.varints import MAX_BYTES, varint_size, write_varint

BATCH_HEADER_BYTES = 61
ROW_BYTES = 6 * MAX_BYTES + 1 + 10
"""The most bytes of a record beside its key, value and headers: six lengths, the attributes, the time."""
HEADER_BYTES = 2 * MAX_BYTES
"""The most bytes of a header beside its name and value."""
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


class _Column(NamedTuple):
    """n byte strings. content: uint8[], one behind the other; sizes: int64[n], -1 for None"""

    content: NDArray[np.uint8]
    sizes: NDArray[np.int64]


class _Rows(NamedTuple):
    """n rows with h headers in all. times_ms, header_counts: int64[n]; names, texts: of the headers"""

    times_ms: NDArray[np.int64]
    keys: _Column
    values: _Column
    header_counts: NDArray[np.int64]
    names: _Column
    texts: _Column


def encode_batches(
    times_ms: Sequence[int],
    keys: Sequence[bytes | None],
    values: Sequence[bytes | None],
    headers: Sequence[Sequence[tuple[str, bytes | None]]],
    batch_bytes: int,
) -> list[EncodedBatch]:
    """The rows as record batches, in order; all columns have one entry for each row.

    batch_bytes: a batch ends before the row with which it would be larger, uncompressed and with its header.
        A batch of one row may be larger
    headers: names and texts; bytes of a name that are no UTF-8 are in it as surrogates
    raises: UnicodeEncodeError if the name of a header cannot be encoded
    """
    count = len(values)
    pairs = list(chain.from_iterable(headers))
    rows = _Rows(
        np.array(times_ms, np.int64),
        _column(keys),
        _column(values),
        np.fromiter(map(len, headers), np.int64, count),
        _column([encoded_name(name) for name, _ in pairs]),
        _column([text for _, text in pairs]),
    )
    columns = rows.keys, rows.values, rows.names, rows.texts
    content_bytes = sum(len(column.content) for column in columns)
    out = np.empty(content_bytes + ROW_BYTES * count + HEADER_BYTES * len(pairs), np.uint8)
    row_ends, byte_ends = np.empty(count, np.int64), np.empty(count, np.int64)
    batches = _encode(rows, batch_bytes - BATCH_HEADER_BYTES, out, row_ends, byte_ends)
    encoded, row, start = [], 0, 0
    for row_end, end in zip(row_ends[:batches].tolist(), byte_ends[:batches].tolist(), strict=True):
        latest_ms = int(rows.times_ms[row:row_end].max())
        records = out[start:end].tobytes()
        encoded.append(EncodedBatch(records, row_end - row, int(rows.times_ms[row]), latest_ms))
        row, start = row_end, end
    return encoded


def encoded_name(name: str) -> bytes:
    """The name of a header as bytes; a surrogate stands for a byte that is no UTF-8.

    raises: UnicodeEncodeError for another surrogate
    """
    return name.encode("utf-8", "surrogateescape")


def _column(strings: Sequence[bytes | None]) -> _Column:
    if None not in strings:
        sizes = np.fromiter(map(len, strings), np.int64, len(strings))  # type: ignore[arg-type]
        return _Column(np.frombuffer(b"".join(strings), np.uint8), sizes)  # type: ignore[arg-type]
    sizes = np.fromiter((-1 if text is None else len(text) for text in strings), np.int64, len(strings))
    return _Column(np.frombuffer(b"".join(filter(None, strings)), np.uint8), sizes)


@kernel
def _encode(
    rows: _Rows,
    room: int,
    out: NDArray[np.uint8],
    row_ends: NDArray[np.int64],
    byte_ends: NDArray[np.int64],
) -> int:
    """Write the records of all batches, and where each ends. returns: the number of batches

    room: bytes for the records of a batch
    """
    batches, first, begin, at = ZERO, ZERO, ZERO, ZERO
    key_at, value_at, name_at, text_at, header = ZERO, ZERO, ZERO, ZERO, ZERO
    for row in range(len(rows.times_ms)):
        key_size, value_size = rows.keys.sizes[row], rows.values.sizes[row]
        headers = rows.header_counts[row]
        beside = 1 + _field_size(key_size) + _field_size(value_size) + varint_size(headers)
        for place in range(header, header + headers):
            beside += _field_size(rows.names.sizes[place]) + _field_size(rows.texts.sizes[place])
        size = beside + varint_size(rows.times_ms[row] - rows.times_ms[first]) + varint_size(row - first)
        if row > first and at - begin + varint_size(size) + size > room:
            row_ends[batches], byte_ends[batches] = row, at
            batches += 1
            first, begin = row, at
            size = beside + varint_size(ZERO) + varint_size(ZERO)
        at = write_varint(size, out, at)
        out[at] = _NO_ATTRIBUTES
        at = write_varint(rows.times_ms[row] - rows.times_ms[first], out, at + 1)
        at = write_varint(row - first, out, at)
        at, key_at = _write_field(rows.keys.content, key_at, key_size, out, at)
        at, value_at = _write_field(rows.values.content, value_at, value_size, out, at)
        at = write_varint(headers, out, at)
        for place in range(header, header + headers):
            at, name_at = _write_field(rows.names.content, name_at, rows.names.sizes[place], out, at)
            at, text_at = _write_field(rows.texts.content, text_at, rows.texts.sizes[place], out, at)
        header += headers
    if len(rows.times_ms):
        row_ends[batches], byte_ends[batches] = len(rows.times_ms), at
        batches += 1
    return batches


@kernel(callee=True)
def _field_size(size: int) -> int:
    """Bytes of a string with its length. size: -1 for None"""
    return varint_size(size) + max(size, ZERO)


@kernel(callee=True)
def _write_field(
    content: NDArray[np.uint8], start: int, size: int, out: NDArray[np.uint8], at: int
) -> tuple[int, int]:
    """Write a string with its length. returns: (the place behind it, the start of the next one in `content`)

    size: -1 for None
    """
    at = write_varint(size, out, at)
    if size <= 0:
        return at, start
    source, target = content[start : start + size], out[at : at + size]
    for i in range(size):
        target[i] = source[i]
    return at + size, start + size
