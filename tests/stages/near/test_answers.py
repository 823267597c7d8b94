"""What can win in a segment: the entries of an answer give the verdict of all matches, wherever the window
ends, and none of them is there in vain."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from twinsieve.stages.near.answers import MOST_ENTRIES, write_winners
from twinsieve.stages.near.matches import NO_MATCH, Matches, new_matches
from twinsieve.stages.near.verify import ALIKE, REASON_SHIFT


class _Match(NamedTuple):
    kept: int
    matched: int
    compared: int
    reason: int


_ROWS = st.lists(
    st.lists(
        st.builds(
            _Match, st.integers(0, 30), st.integers(1, 6), st.sampled_from([6, 8, 12]), st.integers(0, 2)
        ),
        max_size=9,
        unique_by=lambda match: match.kept,
    ),
    min_size=1,
    max_size=4,
)


def _linked(rows: list[list[_Match]]) -> Matches:
    """The matches of rows, as a look-up adds them: the rows in turn, so that their lists lie across."""
    matches = new_matches(len(rows), 1 + sum(map(len, rows)))
    matches.heads[:] = NO_MATCH
    place = 0
    for number in range(max(map(len, rows))):
        for row, own in enumerate(rows):
            if number < len(own):
                kept, matched, compared, reason = own[number]
                matches.kept[place] = kept
                matches.matched[place], matches.compared[place] = matched, compared
                matches.status[place] = ALIKE | reason << REASON_SHIFT
                matches.next[place], matches.heads[row] = matches.heads[row], place
                place += 1
    return matches


def _winners(rows: list[list[_Match]]) -> list[list[_Match] | None]:
    """The matches that `write_winners` leaves of each row; None for a row with too many."""
    matches = _linked(rows)
    most = max(map(len, rows)) + 1
    winners, counts = np.zeros(len(rows) * MOST_ENTRIES, np.int64), np.zeros(len(rows), np.int32)
    written = write_winners(0, len(rows), matches, np.zeros(most, np.int64), winners, counts)
    assert written == np.maximum(counts, 0).sum()
    left: list[list[_Match] | None] = []
    places = winners[:written].tolist()
    for count in counts.tolist():
        if count < 0:
            left.append(None)
            continue
        own, places = places[:count], places[count:]
        left.append(
            [
                _Match(
                    int(matches.kept[at]),
                    int(matches.matched[at]),
                    int(matches.compared[at]),
                    int(matches.status[at]) >> REASON_SHIFT,
                )
                for at in own
            ]
        )
    return left


def _verdict(matches: list[_Match], begin: int) -> _Match | None:
    """The match that decides in a window that begins there: the most similar, of these the oldest. Without
    one, the most similar entry that a rule keeps apart, of these the newest."""
    inside = [match for match in matches if match.kept >= begin]
    like = [match for match in inside if not match.reason]
    if like:
        return max(like, key=lambda match: (match.matched / match.compared, -match.kept))
    return max(inside, key=lambda match: (match.matched / match.compared, match.kept), default=None)


@given(_ROWS)
def test_all_that_can_win_is_left_and_nothing_else(rows: list[list[_Match]]) -> None:
    for own, left in zip(rows, _winners(rows), strict=True):
        assert left is not None
        verdicts = [_verdict(own, begin) for begin in range(32)]
        assert verdicts == [_verdict(left, begin) for begin in range(32)]
        assert sorted(left, reverse=True) == left
        assert set(left) == set(verdicts) - {None}


def test_a_row_with_more_than_fit_is_left_out_whole_and_the_others_are_not() -> None:
    few = [_Match(3, 5, 6, 0)]
    # The newer, the less similar: each can win.
    many = [_Match(kept, 1000 - kept, 1000, 0) for kept in range(MOST_ENTRIES + 1)]
    assert _winners([few, many, few]) == [few, None, few]
    assert _winners([many[:-1]]) == [many[-2::-1]]
