"""Two texts of any length side by side, shortened to what differs and some characters around it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from twinsieve.pipeline.pages.differing import alike_at_ends, parts_of

_MAX_COMPARED = 800
"""The most characters of each side that are shown between what both begin and end with."""
_LONGEST_ALIKE = 240
_AROUND = 80


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of two texts, or a gap.

    left, right: the part in each text; same: whether it has the same words in both
    hidden_left, hidden_right: for a gap, how many characters of each text are not shown; the rest is ""
    """

    left: str
    right: str
    same: bool
    hidden_left: int = 0
    hidden_right: int = 0


def excerpt(left: str, right: str) -> list[Piece]:
    """Both texts as pieces, in order. What both begin and end with is found in texts of any length; between
    that, only the first _MAX_COMPARED characters of each are shown.

    >>> [(piece.left, piece.right) for piece in excerpt("12 dead", "13 dead")]
    [('12', '13'), (' dead', ' dead')]
    >>> [(len(piece.left), piece.hidden_left) for piece in excerpt("so " * 400, "so " * 400 + "b")]
    [(80, 0), (0, 1040), (80, 0), (0, 0)]
    """
    begin, end = alike_at_ends(left, right)
    middle_left, middle_right = left[begin : len(left) - end], right[begin : len(right) - end]
    pieces = list(_shortened(left[:begin], left[:begin]))
    for part in parts_of(middle_left, middle_right, _MAX_COMPARED):
        pieces += _shortened(part.left, part.right) if part.same else [Piece(*part)]
    hidden_left = max(0, len(middle_left) - _MAX_COMPARED)
    hidden_right = max(0, len(middle_right) - _MAX_COMPARED)
    if hidden_left or hidden_right:
        pieces.append(Piece("", "", same=False, hidden_left=hidden_left, hidden_right=hidden_right))
    same = left[len(left) - end :]
    return [*pieces, *_shortened(same, same)]


def _shortened(left: str, right: str) -> Iterator[Piece]:
    """A part with the same words in both texts: whole, or its beginning and its end."""
    if min(len(left), len(right)) > _LONGEST_ALIKE:
        yield Piece(left[:_AROUND], right[:_AROUND], same=True)
        yield Piece("", "", True, len(left) - 2 * _AROUND, len(right) - 2 * _AROUND)
        left, right = left[-_AROUND:], right[-_AROUND:]
    if left or right:
        yield Piece(left, right, same=True)
