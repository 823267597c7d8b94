"""`ByteColumn`: byte strings that lie in one array, which need not become `bytes` one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Self, overload

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.kernel import kernel
from twinsieve.stages.rows.varints import read_only


class ByteColumn(Sequence[bytes | None]):
    """n byte strings, each of which may be None. They become `bytes` when they are asked for.

    content: uint8[], the array in which they lie
    starts: int64[n], where each begins; sizes: int32[n] or int64[n], bytes of each, -1 for None
    """

    def __init__(
        self, content: NDArray[np.uint8], starts: NDArray[np.int64], sizes: NDArray[np.signedinteger]
    ) -> None:
        self.content = content
        self.starts = starts
        self.sizes = sizes

    @classmethod
    def of(cls, strings: Sequence[bytes | None]) -> Self:
        """The column of these strings.

        >>> [*ByteColumn.of([b"a", None, b""])]
        [b'a', None, b'']
        """
        count = len(strings)
        sizes = np.fromiter((-1 if each is None else len(each) for each in strings), np.int64, count)
        starts = np.cumsum(np.maximum(sizes, 0)) - np.maximum(sizes, 0)
        return cls(np.frombuffer(b"".join(filter(None, strings)), np.uint8), starts, sizes)

    def __len__(self) -> int:
        return len(self.sizes)

    @overload
    def __getitem__(self, place: int) -> bytes | None: ...
    @overload
    def __getitem__(self, place: slice) -> Self: ...
    def __getitem__(self, place: int | slice) -> bytes | Self | None:
        if isinstance(place, slice):
            return type(self)(self.content, self.starts[place], self.sizes[place])
        start, size = int(self.starts[place]), int(self.sizes[place])
        return None if size < 0 else self.content[start : start + size].tobytes()

    def __iter__(self) -> Iterator[bytes | None]:
        raw = self.content.data
        for start, size in zip(self.starts.tolist(), self.sizes.tolist(), strict=True):
            yield None if size < 0 else bytes(raw[start : start + size])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and [*self] == [*other]

    __hash__ = None  # type: ignore[assignment]

    def only(self, rows: NDArray[np.int64]) -> Self:
        """The strings of these rows."""
        return type(self)(self.content, self.starts[rows], self.sizes[rows])

    @property
    def longest(self) -> int:
        """Bytes of the longest string; 0 without any."""
        return max(0, int(self.sizes.max(initial=0)))

    def packed(self) -> ByteColumn:
        """The strings one behind the other, with nothing between them: this column itself if they lie so."""
        sizes = np.maximum(self.sizes, 0)
        lies_so = np.array_equal(self.starts, np.cumsum(sizes) - sizes) and sizes.sum() == len(self.content)
        return self if lies_so else self.joined()

    def joined(self, *others: ByteColumn) -> ByteColumn:
        """The strings of this column and of others, copied so that they lie one behind the other."""
        columns = self, *others
        wide = [column.sizes.astype(np.int64) for column in columns]
        sizes = np.concatenate(wide)
        filled = np.maximum(sizes, 0)
        ends = np.cumsum(filled)
        content = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
        at = 0
        for column, own_sizes in zip(columns, wide, strict=True):
            at = _gather(read_only(column.content), column.starts, own_sizes, content, at)
        return ByteColumn(content, ends - filled, sizes)


def as_column(strings: Sequence[bytes | None]) -> ByteColumn:
    """These strings as a column."""
    return strings if isinstance(strings, ByteColumn) else ByteColumn.of(strings)


@kernel
def _gather(
    content: NDArray[np.uint8],
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    out: NDArray[np.uint8],
    at: int,
) -> int:
    """Copy strings one behind the other. returns: the place behind them"""
    for row in range(len(sizes)):
        start, size = starts[row], sizes[row]
        if size > 0:
            source, target = content[start : start + size], out[at : at + size]
            for i in range(size):
                target[i] = source[i]
            at += size
    return at
