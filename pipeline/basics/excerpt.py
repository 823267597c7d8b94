"""Two texts of any length side by side, shortened to what differs and some characters around it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from twinsieve.pipeline.basics.printable import alike_at_ends, parts_of

_MAX_COMPARED = 800
"""The most characters of each side that are shown between what both begin and end with."""
_LONGEST_ALIKE = 240
_AROUND = 80


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of two texts, or a gap.

    left, right: the part in each text; same: whether both have it alike
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
    [('1', '1'), ('2', '3'), (' dead', ' dead')]
    >>> [(len(piece.left), piece.hidden_left) for piece in excerpt("a" * 1000, "a" * 1000 + "b")]
    [(80, 0), (0, 840), (80, 0), (0, 0)]
    """
    begin, end = alike_at_ends(left, right)
    middle_left, middle_right = left[begin : len(left) - end], right[begin : len(right) - end]
    pieces = list(_shortened(left[:begin]))
    for part in parts_of(middle_left, middle_right, _MAX_COMPARED):
        pieces += _shortened(part.left) if part.same else [Piece(part.left, part.right, same=False)]
    hidden_left = max(0, len(middle_left) - _MAX_COMPARED)
    hidden_right = max(0, len(middle_right) - _MAX_COMPARED)
    if hidden_left or hidden_right:
        pieces.append(Piece("", "", same=False, hidden_left=hidden_left, hidden_right=hidden_right))
    return [*pieces, *_shortened(left[len(left) - end :])]


def _shortened(alike: str) -> Iterator[Piece]:
    """What both texts have alike: whole, or its beginning and its end."""
    if len(alike) > _LONGEST_ALIKE:
        hidden = len(alike) - 2 * _AROUND
        yield Piece(alike[:_AROUND], alike[:_AROUND], same=True)
        yield Piece("", "", same=True, hidden_left=hidden, hidden_right=hidden)
        alike = alike[-_AROUND:]
    if alike:
        yield Piece(alike, alike, same=True)
