"""Helpers for columns and verdicts: selecting rows, the words in which two bodies differ, similarities."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import SIMILARITY_SCALE, Kind, Verdicts
from twinsieve.stages.differ.rules import Rule

Item = TypeVar("Item")


@overload
def pick(column: list[Item], rows: Sequence[int]) -> list[Item]: ...
@overload
def pick(column: Sequence[Item], rows: Sequence[int]) -> Sequence[Item]: ...
def pick(column: Sequence[Item], rows: Sequence[int]) -> Sequence[Item]:
    """The items of these rows (ascending). If these are all rows, as is usual, the column itself."""
    return column if len(rows) == len(column) else [column[row] for row in rows]


def differing_words(verdicts: Verdicts, row: int) -> tuple[str, str] | None:
    """The words of the earlier and the later body at the place that makes them no duplicates.

    None if the verdict has no such place.
    """
    place = int(verdicts.detail_rows[row])
    if place < 0:
        return None
    earlier, later = (
        "".join(map(_char, side)).partition("\0")[0] for side in verdicts.details[place].tolist()
    )
    return earlier, later


def _char(code: int) -> str:
    """The character; a saved text of a stranger may hold any number."""
    return chr(code) if code <= sys.maxunicode else "\ufffd"


@overload
def ten_thousandths(matched: int, compared: int) -> int: ...
@overload
def ten_thousandths(matched: NDArray[np.int64], compared: NDArray[np.int64]) -> NDArray[np.int64]: ...
def ten_thousandths(
    matched: int | NDArray[np.int64], compared: int | NDArray[np.int64]
) -> int | NDArray[np.int64]:
    """The similarity in units of 1/SIMILARITY_SCALE, as in every output.

    It is rounded down, so that it is never 1 for different bodies, and never equals a threshold that the
    exact similarity does not reach.

    matched, compared: numbers of features; compared is above 0

    >>> ten_thousandths(29999, 30000), ten_thousandths(2, 3)
    (9999, 6666)
    """
    return matched * SIMILARITY_SCALE // compared


MEANINGS = {rule.words: rule.meaning for rule in Rule if rule}
"""By name of a rule that keeps two messages apart: what differs between them, for people."""
LIKENESS_WORDS = {"similarity": "similarity", "distance": "bits apart", "shared": "hashes in common"}
"""What a likeness counts, in words, by the name of its measure (`likeness_of`)."""


def likeness_of(verdicts: Verdicts, row: int) -> tuple[str, float]:
    """How similar a dropped row and its leader are: the name of the measure, and its value.

    `similarity`, 0 to 1, also of exact rows; under the method hamming `distance`, in bits; under the method
    signatures `shared`, the number of hashes in common
    """
    if verdicts.kinds[row] == Kind.EXACT:
        return "similarity", 1.0
    for name, column in (("distance", verdicts.distances), ("shared", verdicts.shared)):
        if column[row] >= 0:
            return name, int(column[row])
    return "similarity", similarity_at(verdicts, row)


def similarity_at(verdicts: Verdicts, row: int) -> float:
    """The similarity of one row, 0 to 1, rounded as by `ten_thousandths`; 0.0 if no text was compared."""
    compared = int(verdicts.compared[row])
    return ten_thousandths(int(verdicts.matched[row]), compared) / SIMILARITY_SCALE if compared else 0.0
