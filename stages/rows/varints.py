"""Numbers as Kafka writes them in a record: seven bits a byte, the lowest first; the sign is bit 0.

source: https://kafka.apache.org/documentation/#messageformat, "varint"
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.kernel import ZERO, kernel

MAX_BYTES = 5
"""The most bytes of a number below 2^31."""
_MORE = np.uint8(0x80)
_LOW_7 = np.uint64(0x7F)
_SIGN = np.uint64(1)
_STEP, _LAST_STEP = np.uint64(7), np.uint64(63)
NO_NUMBER = cast("int", np.int64(-1))
"""The place that `read_varint` returns if it refuses the number."""


def read_only(content: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The same bytes, for a kernel that reads them: one for bytes that may be written would be another
    specialisation."""
    view = content.view()
    view.flags.writeable = False
    return view


@kernel(callee=True)
def varint_size(number: int) -> int:
    """Bytes of a number, as `write_varint` writes it."""
    rest = np.uint64((number << 1) ^ (number >> 63))
    size = ZERO + 1
    while rest >= np.uint64(_MORE):
        rest >>= _STEP
        size += 1
    return size


@kernel(callee=True)
def write_varint(number: int, out: NDArray[np.uint8], at: int) -> int:
    """Write a number. returns: the place behind it"""
    rest = np.uint64((number << 1) ^ (number >> 63))
    while rest >= np.uint64(_MORE):
        out[at] = np.uint8(rest) | _MORE
        rest >>= _STEP
        at += 1
    out[at] = np.uint8(rest)
    return at + 1


@kernel(callee=True)
def read_varint(content: NDArray[np.uint8], at: int, end: int) -> tuple[Any, int]:
    """The number at a place, and the place behind it.

    returns: NO_NUMBER as the place if the number does not end before `end`, has more than 64 bits, or has
        more bytes than it needs
    """
    value, shift = np.uint64(0), np.uint64(0)
    while at < end:
        byte = content[at]
        at += 1
        if shift == _LAST_STEP and byte > 1:
            break
        value |= (np.uint64(byte) & _LOW_7) << shift
        if byte < _MORE:
            if byte == 0 and shift > 0:
                break
            return np.int64(value >> _SIGN) ^ -np.int64(value & _SIGN), at
        shift += _STEP
    return ZERO, NO_NUMBER
