"""The functions of `instructions.py` in plain Python, for kernels that are interpreted."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_EIGHT = 8


def prefetch(_array: NDArray[np.generic], _index: int) -> None:
    """Nothing: it would change no value."""


def popcount(value: np.unsignedinteger) -> np.unsignedinteger:
    """Number of bits that are 1."""
    return type(value)(int(value).bit_count())


def flags_at(array: NDArray[np.uint8], start: int) -> np.uint16:
    """Which of the 16 bytes from `start` on are not 0."""
    flags = np.packbits(array[start : start + 16] != 0, bitorder="little")
    return np.uint16(flags[0]) | np.uint16(flags[1]) << np.uint16(8)


def lanes_equal(array: NDArray[np.uint64], start: int, value: np.uint64, mask: np.uint64) -> np.uint8:
    """Which of the 8 words from `start` on have the bits of `value` where `mask` has ones."""
    return _lanes(((array[start : start + _EIGHT] ^ value) & mask) == 0)


def lanes_close(
    array: NDArray[np.uint64], start: int, value: np.uint64, shift: np.uint64, most: np.uint64
) -> np.uint8:
    """Which of 8 words differ from `value` in at most `most` of the bits from bit `shift` on."""
    return _lanes(np.bitwise_count((array[start : start + _EIGHT] ^ value) >> shift) <= most)


def lanes_between(
    array: NDArray[np.uint64], start: int, shift: np.uint64, mask: np.uint64, low: np.uint64, span: np.uint64
) -> np.uint8:
    """Which of 8 words w have ((w >> shift) - low) & mask <= span."""
    return _lanes((((array[start : start + _EIGHT] >> shift) - low) & mask) <= span)


def _lanes(flags: NDArray[np.bool_]) -> np.uint8:
    return np.uint8(np.packbits(flags, bitorder="little")[0])
