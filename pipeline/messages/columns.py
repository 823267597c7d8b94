"""Some rows of a column, and what a verdict says in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar, overload

from twinsieve.stages.contract import Verdicts

Item = TypeVar("Item")


@overload
def pick(column: list[Item], rows: Sequence[int]) -> list[Item]: ...
@overload
def pick(column: Sequence[Item], rows: Sequence[int]) -> Sequence[Item]: ...
def pick(column: Sequence[Item], rows: Sequence[int]) -> Sequence[Item]:
    """The items of these ascending rows; the column itself where that is all of them, as nearly always."""
    return column if len(rows) == len(column) else [column[row] for row in rows]


def said_apart(verdicts: Verdicts, row: int) -> tuple[str, str] | None:
    """What the earlier and what the later body say in the one place that keeps them apart, if one does."""
    place = int(verdicts.detail_rows[row])
    if place < 0:
        return None
    earlier, later = ("".join(map(chr, side)).partition("\0")[0] for side in verdicts.details[place].tolist())
    return earlier, later
