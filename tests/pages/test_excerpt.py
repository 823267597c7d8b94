"""Two texts of any length are shown by what differs, and nothing that differs near the beginning is left out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twinsieve.pipeline.tools.tune.shown_pairs import Piece, excerpt

EDITS = st.lists(
    st.tuples(st.integers(0, 2_000), st.sampled_from(["", "x", "new words", "ab" * 500])), max_size=4
)


def lengths(pieces: list[Piece]) -> tuple[int, int]:
    return (
        sum(len(piece.left) + piece.hidden_left for piece in pieces),
        sum(len(piece.right) + piece.hidden_right for piece in pieces),
    )


@given(st.text("ab c", max_size=300), st.text("ab c", max_size=300))
def test_short_texts_are_shown_whole(left: str, right: str) -> None:
    pieces = excerpt(left, right)
    assert lengths(pieces) == (len(left), len(right))
    if not any(piece.hidden_left for piece in pieces):
        assert "".join(piece.left for piece in pieces) == left
        assert "".join(piece.right for piece in pieces) == right
    assert all(piece.left.split() == piece.right.split() for piece in pieces if piece.same)


@given(st.integers(0, 3_000), EDITS)
def test_pieces_follow_both_texts_in_order(length: int, edits: list[tuple[int, str]]) -> None:
    left = right = "".join(chr(0x4E00 + number % 2_000) for number in range(length))
    for place, new in edits:
        right = right[:place] + new + right[place + len(new) // 2 :]
    pieces = excerpt(left, right)
    assert lengths(pieces) == (len(left), len(right))
    at_left = at_right = 0
    for piece in pieces:
        assert left[at_left : at_left + len(piece.left)] == piece.left
        assert right[at_right : at_right + len(piece.right)] == piece.right
        at_left += len(piece.left) + piece.hidden_left
        at_right += len(piece.right) + piece.hidden_right
        if piece.same:
            assert (piece.left, piece.hidden_left) == (piece.right, piece.hidden_right)
    assert sum(len(piece.left) + len(piece.right) for piece in pieces) < 2 * (2 * 800 + 5 * 240)


def test_one_difference_deep_in_a_megabyte_is_shown_with_what_stands_around_it() -> None:
    same = "one more word " * 50_000
    pieces = excerpt(f"{same}12 dead{same}", f"{same}13 dead{same}")
    assert [(piece.left, piece.right) for piece in pieces if not piece.same] == [("12", "13")]
    before, gap, near = pieces[:3]
    assert (before.left, near.left) == (same[:80], same[-80:])
    assert gap.hidden_left == len(same) - 160
    assert sum(len(piece.left) for piece in pieces) < 400


def test_texts_that_share_nothing_are_cut() -> None:
    pieces = excerpt("a" * 10_000, "b" * 20_000)
    assert pieces == [
        Piece("a" * 800, "b" * 800, same=False),
        Piece("", "", same=False, hidden_left=9_200, hidden_right=19_200),
    ]
