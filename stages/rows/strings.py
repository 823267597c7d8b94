"""`Strings`: many strings in one piece of UTF-8, which need not become `str` one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.kernel import ZERO, kernel

_ASCII_END, _THREE_BYTES, _FOUR_BYTES = np.uint8(0x80), np.uint8(0xE0), np.uint8(0xF0)
_LAST_CONTINUATION = np.int8(0xBF - 0x100)
"""The greatest byte that continues a character, as a signed number: those bytes are the lowest ones."""
_LOW_6, _LOW_5, _LOW_4, _LOW_3 = (np.uint32(mask) for mask in (0x3F, 0x1F, 0x0F, 0x07))
_6, _12, _18 = (np.uint32(bits) for bits in (6, 12, 18))


class Strings(Sequence[str]):
    """Strings that lie in one piece of UTF-8. They become `str` when one of them is asked for.

    content: each with a NUL behind it; none contains a NUL; count: their number
    """

    def __init__(self, content: bytes, count: int) -> None:
        self.content = content
        self._count = count
        self._listed: list[str] | None = None

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        return self.listed()[place]

    def __iter__(self) -> Iterator[str]:
        return iter(self.listed())

    def listed(self) -> list[str]:
        """The strings as `str`."""
        if self._listed is None:
            self._listed = self.content.decode().split("\0")[:-1]
        return self._listed

    def code_points(self) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """(uint32[total], code points of all strings; int64[n + 1], where each begins and the last one ends)

        >>> chars, starts = Strings("aé\\0\\0界😀\\0".encode(), 3).code_points()
        >>> [*map(chr, chars)], starts.tolist()
        (['a', 'é', '界', '😀'], [0, 2, 2, 4])
        """
        content = np.frombuffer(self.content, np.uint8)
        total = int(np.count_nonzero(content.view(np.int8) > _LAST_CONTINUATION)) - self._count
        chars, starts = np.empty(total, np.uint32), np.empty(self._count + 1, np.int64)
        _decode(content, chars, starts)
        return chars, starts


@kernel
def _decode(content: NDArray[np.uint8], chars: NDArray[np.uint32], starts: NDArray[np.int64]) -> None:
    """Write the code points of valid UTF-8, and where each string begins."""
    at = w = ZERO
    for row in range(len(starts) - 1):
        starts[row] = w
        while True:
            first = content[at]
            code = np.uint32(first)
            if first < _ASCII_END:
                at += 1
                if first == 0:
                    break
            elif first < _THREE_BYTES:
                code = (code & _LOW_5) << _6 | (np.uint32(content[at + 1]) & _LOW_6)
                at += 2
            elif first < _FOUR_BYTES:
                second, third = np.uint32(content[at + 1]), np.uint32(content[at + 2])
                code = (code & _LOW_4) << _12 | (second & _LOW_6) << _6 | (third & _LOW_6)
                at += 3
            else:
                second, third = np.uint32(content[at + 1]), np.uint32(content[at + 2])
                code = (code & _LOW_3) << _18 | (second & _LOW_6) << _12 | (third & _LOW_6) << _6
                code |= np.uint32(content[at + 3]) & _LOW_6
                at += 4
            chars[w] = code
            w += 1
    starts[len(starts) - 1] = w
