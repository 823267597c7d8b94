"""Collects the headers that messages get, one header of all of them at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.rows.record_copies import NONE, AddedHeaders


class HeaderTable:
    """The headers that m messages get, in the order of the calls.

    >>> table = HeaderTable(2)
    >>> table.add("stage", texts=table.numbers_of([b"near", None]))
    >>> table.add("distance", numbers=np.array([3, -1]))
    >>> table.headers().listed()
    [[('stage', b'near'), ('distance', b'3')], []]
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._strings: dict[bytes, int] = {}
        self._names: list[NDArray[np.int32]] = []
        self._texts: list[NDArray[np.int32]] = []
        self._numbers: list[NDArray[np.int64]] = []
        self._decimals: list[int] = []

    def number_of(self, text: bytes) -> int:
        """The number of a text."""
        return self._strings.setdefault(text, len(self._strings))

    def numbers_of(self, texts: Sequence[bytes | None]) -> NDArray[np.int32]:
        """int32[m]: the numbers of these texts; NONE for None."""
        return np.array([NONE if text is None else self.number_of(text) for text in texts], np.int32)

    def add(
        self,
        name: str,
        *,
        texts: NDArray[np.int32] | int = NONE,
        numbers: NDArray[np.int64] | int = NONE,
        decimals: int = 0,
    ) -> None:
        """Add a header to the messages that have a text or a number for it.

        texts: number of each message's text; numbers: each message's number, from 0 on, which stands behind
            the text; NONE where there is none
        decimals: digits of the numbers that stand behind a dot
        """
        texts = np.full(self._count, texts, np.int32)
        numbers = np.full(self._count, numbers, np.int64)
        is_given = (texts != NONE) | (numbers != NONE)
        self._names.append(np.where(is_given, self.number_of(name.encode()), NONE).astype(np.int32))
        self._texts.append(texts)
        self._numbers.append(numbers)
        self._decimals.append(decimals)

    def headers(self) -> AddedHeaders:
        """All headers that were added."""
        if not self._names:
            return AddedHeaders.none(self._count)
        names, texts = np.stack(self._names, axis=1), np.stack(self._texts, axis=1)
        return AddedHeaders.of(
            [*self._strings], names, texts, np.stack(self._numbers, axis=1), self._decimals
        )
