"""Some rows of a column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar, overload

Item = TypeVar("Item")


@overload
def pick(column: list[Item], rows: Sequence[int]) -> list[Item]: ...
@overload
def pick(column: Sequence[Item], rows: Sequence[int]) -> Sequence[Item]: ...
def pick(column: Sequence[Item], rows: Sequence[int]) -> Sequence[Item]:
    """The items of these ascending rows; the column itself where that is all of them, as nearly always."""
    return column if len(rows) == len(column) else [column[row] for row in rows]
