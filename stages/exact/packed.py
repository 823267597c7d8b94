"""`PackedColumn`: int64 values with random access, stored as small differences in few bytes each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_BLOCK = 128
_WORD = 8


class PackedColumn:
    """n int64 values: a base for each block of 128 values, and each value's difference to it in 0..8 bytes.

    Kept indices without gaps need 0 bytes (after subtracting the row), times a few bytes, positions of one
    input 2 bytes. Any int64 value is stored exactly, with 8 bytes if necessary.

    bases: int64[blocks]; deltas: uint8[n, width], the differences, lowest byte first

    >>> column = PackedColumn.of(np.array([7_000_000_000_000, 7_000_000_000_300], dtype=np.int64))
    >>> column.deltas.shape
    (2, 2)
    >>> column.values(np.array([1, 0])).tolist()
    [7000000000300, 7000000000000]
    """

    __slots__ = ("bases", "deltas")

    def __init__(self, bases: NDArray[np.int64], deltas: NDArray[np.uint8]) -> None:
        self.bases = bases
        self.deltas = deltas

    @classmethod
    def of(cls, values: NDArray[np.int64]) -> PackedColumn:
        """A column with these values. values: int64[n]"""
        n = len(values)
        if n == 0:
            return cls(np.zeros(0, dtype=np.int64), np.zeros((0, 0), dtype=np.uint8))
        bases = np.minimum.reduceat(values, np.arange(0, n, _BLOCK))
        # Unsigned differences stay correct even if a difference inside a block exceeds an int64.
        above = values.view(np.uint64) - np.repeat(bases, _BLOCK)[:n].view(np.uint64)
        width = -(-int(above.max()).bit_length() // 8)
        little = above.astype("<u8").view(np.uint8).reshape(n, _WORD)
        # Always copy: a view of a few columns, even of none, would keep all 8 bytes a value in memory.
        return cls(bases, little[:, :width].copy())

    def values(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64[m]: the values of these rows. rows: int64[m], 0 <= row < n"""
        wide = np.zeros((len(rows), _WORD), dtype=np.uint8)
        wide[:, : self.deltas.shape[1]] = self.deltas[rows]
        above = wide.reshape(-1).view("<u8").astype(np.uint64)
        return (above + self.bases[rows // _BLOCK].view(np.uint64)).view(np.int64)

    def __len__(self) -> int:
        return len(self.deltas)

    @property
    def nbytes(self) -> int:
        """Bytes of both arrays."""
        return self.bases.nbytes + self.deltas.nbytes

    def is_sound(self, length: int) -> bool:
        """Whether the arrays, if loaded from a file, hold exactly `length` values that can be read safely."""
        return (
            self.bases.dtype == np.int64
            and self.deltas.dtype == np.uint8
            and self.bases.shape == (-(-length // _BLOCK),)
            and self.deltas.ndim == 2
            and len(self.deltas) == length
            and self.deltas.shape[1] <= _WORD
        )
