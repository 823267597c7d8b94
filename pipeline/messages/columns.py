"""Some rows of a column, and the words and numbers of a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import SIMILARITY_SCALE, Verdicts

Item = TypeVar("Item")


@overload
def pick(column: list[Item], rows: Sequence[int]) -> list[Item]: ...
@overload
def pick(column: Sequence[Item], rows: Sequence[int]) -> Sequence[Item]: ...
def pick(column: Sequence[Item], rows: Sequence[int]) -> Sequence[Item]:
    """The items of these ascending rows; the column itself where that is all of them, as nearly always."""
    return column if len(rows) == len(column) else [column[row] for row in rows]


def differing_words(verdicts: Verdicts, row: int) -> tuple[str, str] | None:
    """The words of the earlier and of the later body in the one place that keeps them apart, if one does."""
    place = int(verdicts.detail_rows[row])
    if place < 0:
        return None
    earlier, later = ("".join(map(chr, side)).partition("\0")[0] for side in verdicts.details[place].tolist())
    return earlier, later


@overload
def ten_thousandths(matched: int, compared: int) -> int: ...
@overload
def ten_thousandths(matched: NDArray[np.int64], compared: NDArray[np.int64]) -> NDArray[np.int64]: ...
def ten_thousandths(
    matched: int | NDArray[np.int64], compared: int | NDArray[np.int64]
) -> int | NDArray[np.int64]:
    """The similarity out of SIMILARITY_SCALE, as every output has it: rounded down, so that it is never 1 for
    bodies that differ, and never at a threshold that it does not reach.

    compared: above 0

    >>> ten_thousandths(29999, 30000), ten_thousandths(2, 3)
    (9999, 6666)
    """
    return matched * SIMILARITY_SCALE // compared


def similarity_at(verdicts: Verdicts, row: int) -> float:
    """`ten_thousandths` of one row from 0 to 1; 0.0 where nothing was compared by text."""
    compared = int(verdicts.compared[row])
    return ten_thousandths(int(verdicts.matched[row]), compared) / SIMILARITY_SCALE if compared else 0.0
