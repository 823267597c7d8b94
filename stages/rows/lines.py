"""`Lines`: many lines in one piece of bytes, which need not become `bytes` one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Self, overload

import numpy as np
from numpy.typing import NDArray

_NEWLINE = ord("\n")


class Lines(Sequence[bytes]):
    """Lines of one piece of bytes, without their newlines. They become `bytes` when they are asked for.

    content: the piece; ends: int64[n], where the newline of each line stands
    begin: where the first line stands
    sizes: int64[n], bytes of each line, its newline counted
    longest: bytes of the longest line, without its newline; 0 without lines
    """

    def __init__(self, content: bytes, ends: NDArray[np.int64], begin: int = 0) -> None:
        self._content = content
        self._ends = ends
        self._begin = begin
        self._starts = np.empty_like(ends)
        self._starts[1:] = ends[:-1] + 1
        self._starts[:1] = begin
        self.sizes: NDArray[np.int64] = ends - self._starts + 1
        self.longest = int(np.maximum.reduce(self.sizes, initial=1)) - 1

    @classmethod
    def of(cls, content: bytes) -> Self:
        """The lines of a piece that ends with a newline, or is empty.

        >>> [*Lines.of(b"a\\n\\nb\\n")]
        [b'a', b'', b'b']
        """
        return cls(content, (np.frombuffer(content, np.uint8) == _NEWLINE).nonzero()[0])

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, place: int) -> bytes: ...
    @overload
    def __getitem__(self, place: slice) -> Self: ...
    def __getitem__(self, place: int | slice) -> bytes | Self:
        if isinstance(place, slice):
            first, last, step = place.indices(len(self))
            if step != 1:
                raise ValueError(f"lines are cut in order, not in steps of {step}")
            return type(self)(self._content, self._ends[first : max(first, last)], self._start_of(first))
        number = range(len(self))[place]
        return self._content[self._start_of(number) : self._ends[number]]

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.piece().split(b"\n")[:-1])

    def piece(self) -> bytes:
        """The lines with their newlines."""
        return self._content[self._begin : self._start_of(len(self))]

    def least_first_byte(self) -> int:
        """The least byte with which a line begins, a newline if one is empty; 255 without lines."""
        content = np.frombuffer(self._content, np.uint8)
        return int(np.minimum.reduce(content[self._starts], initial=255))

    def picked(self, lines: Sequence[int]) -> list[bytes]:
        """The lines with these numbers (ascending), in pieces: lines that follow each other are one piece,
        with the newlines between them.

        >>> Lines.of(b"a\\nb\\nc\\nd\\n").picked([0, 1, 3])
        [b'a\\nb', b'd']
        """
        if not len(lines):
            return []
        numbers = np.asarray(lines, np.int64)
        is_last = np.append(np.diff(numbers) != 1, True)
        is_first = np.append(True, is_last[:-1])
        starts = self._starts[numbers[is_first]]
        bounds = zip(starts.tolist(), self._ends[numbers[is_last]].tolist(), strict=True)
        return [self._content[start:end] for start, end in bounds]

    def _start_of(self, number: int) -> int:
        """Where a line begins, or for the number of lines, where the last one ends."""
        return int(self._ends[number - 1]) + 1 if number else self._begin
