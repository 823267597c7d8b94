"""Records whose parts are objects of Python: as bytes with columns, and back. Slow, for the few that need it.

source: https://kafka.apache.org/documentation/#recordbatch, "Record Header"
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.rows.record_columns import RecordColumns

_Header = tuple[str, bytes | None]


def laid_out(
    keys: Sequence[bytes | None],
    values: Sequence[bytes | None],
    headers: Sequence[Sequence[_Header]],
    prefix: str,
) -> tuple[NDArray[np.uint8], RecordColumns]:
    """The content of these records, uint8[], and where in it each part lies; offsets, times and epochs are
    undefined.

    prefix: beginning of the names that are marked
    raises: UnicodeEncodeError if the name of a header cannot be encoded
    """
    pieces: list[bytes] = []
    for key, value, own in zip(keys, values, headers, strict=True):
        pieces += (key or b"", value or b"", b"".join(map(_header_bytes, own)))
    sizes = np.fromiter(map(len, pieces), np.int64, len(pieces))
    starts = (np.cumsum(sizes) - sizes).reshape(-1, 3)
    found = RecordColumns.blank(len(values))
    found.key_at[:], found.value_at[:], found.headers_at[:] = starts.T
    found.key_sizes[:], found.value_sizes[:], found.headers_sizes[:] = sizes.reshape(-1, 3).T
    found.key_sizes[[key is None for key in keys]] = -1
    found.value_sizes[[value is None for value in values]] = -1
    found.header_counts[:] = [len(own) for own in headers]
    found.marked[:] = [any(name.startswith(prefix) for name, _ in own) for own in headers]
    return np.frombuffer(b"".join(pieces), np.uint8), found


def encoded_name(name: str) -> bytes:
    """The name of a header as bytes; a surrogate stands for a byte that is no UTF-8.

    raises: UnicodeEncodeError for another surrogate
    """
    return name.encode("utf-8", "surrogateescape")


def headers_in(content: memoryview, count: int) -> tuple[_Header, ...]:
    """The headers of a record. content: as they stand in it, without their number

    Bytes of a name that are no UTF-8 become surrogates.
    """
    headers: list[_Header] = []
    at = 0
    for _ in range(count):
        size, at = _number_at(content, at)
        name, at = str(content[at : at + size], "utf-8", "surrogateescape"), at + size
        size, at = _number_at(content, at)
        headers.append((name, None if size < 0 else bytes(content[at : at + size])))
        at += max(0, size)
    return tuple(headers)


def _number_at(content: memoryview, at: int) -> tuple[int, int]:
    """The varint at a place, and the place behind it."""
    rest = shift = 0
    while True:
        byte = content[at]
        rest |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return rest >> 1 ^ -(rest & 1), at


def _header_bytes(header: _Header) -> bytes:
    name, text = encoded_name(header[0]), header[1]
    return b"".join((*_varint(len(name)), name, *_varint(-1 if text is None else len(text)), text or b""))


def _varint(number: int) -> Iterable[bytes]:
    rest = number << 1 ^ number >> 63
    while rest >= 0x80:
        yield bytes((rest & 0x7F | 0x80,))
        rest >>= 7
    yield bytes((rest,))
