"""Answers: what one sealed segment has for the rows of a block, computed by anybody (docs/DESIGN.md).

A sealed segment never changes, so an answer is a function of the rows, the segment and the rules. It does not
know where the window ends when the rows are judged: all that can win for any end is in it, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.kernel import ZERO, kernel
from twinsieve.stages.near.matches import NOT_PROPOSED, Copies, Matches, add_match, is_forgotten
from twinsieve.stages.near.propose import Begin, is_within
from twinsieve.stages.near.verify import REASON_SHIFT
from twinsieve.stages.window.segments import SegmentId

MOST_ENTRIES = 64
"""A row with more entries that could win is left to whoever judges (`Answer.unanswered`)."""


class Answer(NamedTuple):
    """What one segment has for n rows.

    rows: int32[m], ascending, the row of each entry; of one row, the entries have descending kept indices
    kept: int64[m], kept index of the entry; positions, times: int64[m], of that entry
    matched, compared: int32[m]; status: uint8[m]; all three as `verify.compare` returns them
    copy_rows: int32[c], ascending, rows with whose digest tag the segment has a message
    copy_kept, copy_positions, copy_times: int64[c], of the newest such message
    copy_same: bool[c], whether its stored text confirms the copy, or texts are not compared
    unanswered: int32[u], ascending, rows without entries here: whoever judges them looks them up in the
        segment. Their copies are here
    """

    rows: NDArray[np.int32]
    kept: NDArray[np.int64]
    positions: NDArray[np.int64]
    times: NDArray[np.int64]
    matched: NDArray[np.int32]
    compared: NDArray[np.int32]
    status: NDArray[np.uint8]
    copy_rows: NDArray[np.int32]
    copy_kept: NDArray[np.int64]
    copy_positions: NDArray[np.int64]
    copy_times: NDArray[np.int64]
    copy_same: NDArray[np.bool_]
    unanswered: NDArray[np.int32]


NO_ANSWERS: Mapping[SegmentId, Answer] = {}
ENTRIES = ("rows", "kept", "positions", "times", "matched", "compared", "status")
COPIES = ("copy_rows", "copy_kept", "copy_positions", "copy_times", "copy_same")
GROUPS = (ENTRIES, COPIES, ("unanswered",))
"""The columns that have one length: those of entries, of copies, and the unanswered rows. Rows come first."""


def lies_in(answer: Answer, first: int, end: int, positions: NDArray[np.int64]) -> bool:
    """Whether all messages that an answer names can lie in a segment. Whoever uses an answer of a stranger
    asks this before.

    first, end: kept indices of the segment, `end` exclusive; positions: int64[2], its smallest and greatest
    """
    low, high = positions.tolist()
    bounds = {"kept": (first, end - 1), "positions": (low, high)}
    return all(
        column.min(initial=least) >= least and column.max(initial=most) <= most
        for name, (least, most) in bounds.items()
        for column in (getattr(answer, name), getattr(answer, f"copy_{name}"))
    )


def part_of(answer: Answer, low: int, high: int) -> Answer:
    """The answer for rows low to high (exclusive), which are numbered from 0 then."""
    places = [slice(*np.searchsorted(getattr(answer, names[0]), (low, high))) for names in GROUPS]
    return _numbered(selected(answer, places), lambda rows: rows - np.int32(low))


def chosen_of(answer: Answer, wanted: NDArray[np.bool_]) -> Answer:
    """The answer for some of the rows, numbered in their order. wanted: bool[n]"""
    if wanted.all():
        return answer
    numbers = np.cumsum(wanted, dtype=np.int32) - 1
    places = [wanted[getattr(answer, names[0])] for names in GROUPS]
    return _numbered(selected(answer, places), lambda rows: numbers[rows])


def joined(parts: Sequence[tuple[Answer, int]]) -> Answer:
    """One answer for the rows of several, which follow each other. parts: each with its number of rows"""
    if len(parts) == 1:
        return parts[0][0]
    moved, before = [], np.int32(0)
    for answer, count in parts:
        moved.append(_numbered(answer, partial(np.add, before)))
        before += np.int32(count)
    return Answer._make(np.concatenate(columns) for columns in zip(*moved, strict=True))


def selected(answer: Answer, places: Sequence[slice | NDArray[np.bool_]]) -> Answer:
    """Some entries, copies and unanswered rows of an answer. places: which, for each of `GROUPS`"""
    groups = zip(GROUPS, places, strict=True)
    return Answer(**{name: getattr(answer, name)[which] for names, which in groups for name in names})


def _numbered(answer: Answer, number: Callable[[NDArray[np.int32]], NDArray[np.int32]]) -> Answer:
    """The answer with other row numbers. number: gives them for those that it has"""
    return answer._replace(**{names[0]: number(getattr(answer, names[0])) for names in GROUPS})


@kernel
def write_winners(
    low: int,
    high: int,
    matches: Matches,
    places: NDArray[np.int64],
    winners: NDArray[np.int64],
    counts: NDArray[np.int32],
) -> int:
    """Write the places of those matches of rows low to high (exclusive) that can win, row after row, the
    newest of a row first.

    The window ends at a kept index. So a match cannot win if a newer one is more similar, and an entry kept
    apart (a status with a reason) does not count if there is a newer match, or a newer such entry that is as
    similar: of the most alike entries kept apart the newest is named, of the most alike matches the oldest.
    places: int64[most matches of a row], working memory
    winners: int64[…], room for MOST_ENTRIES places a row
    counts: int32[…], how many each row has; -1 if they are more than MOST_ENTRIES, and none is written
    returns: how many places were written
    """
    written = ZERO
    for row in range(low, high):
        found = ZERO
        place = np.int64(matches.heads[row])
        while place >= 0:
            # By insertion: they are few, or in order already (a scan).
            at = found
            while at > 0 and matches.kept[places[at - 1]] < matches.kept[place]:
                places[at] = places[at - 1]
                at -= 1
            places[at] = place
            found += 1
            place = np.int64(matches.next[place])
        counts[row] = 0
        matched, compared, apart_matched, apart_compared = ZERO, ZERO + 1, ZERO, ZERO + 1
        has_match = False
        first = written
        for number in range(found):
            at = places[number]
            own, both = np.int64(matches.matched[at]), np.int64(matches.compared[at])
            if matches.status[at] >> REASON_SHIFT:
                if has_match or own * apart_compared <= apart_matched * both:
                    continue
                apart_matched, apart_compared = own, both
            else:
                if own * compared < matched * both:
                    continue
                matched, compared, has_match = own, both, True
            if written - first == MOST_ENTRIES:
                written = first
                counts[row] = -1
                break
            winners[written] = at
            written += 1
            counts[row] = written - first
    return written


@kernel
def add_answer(
    low: int,
    high: int,
    probes: NDArray[np.int32],
    begin: int,
    before: int,
    exact: Begin,
    answer: Answer,
    forgotten: NDArray[np.int64],
    matches: Matches,
    copies: Copies,
    own: NDArray[np.int32],
    place: int,
    end: int,
) -> tuple[int, int]:
    """Add what a segment answered for rows low to high (exclusive): the same as `look_up` in that segment.

    probes: `Chunk.probes`; begin, before, exact: `begin.kept`, `before` and `exact` of the segment's
        `NearIndex`, which has arrays that take longer to hand over than all the rest does
    forgotten: kept indices of the messages that lead no more, ascending; a row with one of them among its
        entries is looked up, because what the entry exceeds was left out
    own: int32[high - low], receives the rows that have to be looked up in this segment
    others, and the result: as for `look_up`, with the number of rows in `own` behind the place
    """
    if len(copies.kept) > 0:
        for number in range(np.searchsorted(answer.copy_rows, low), len(answer.copy_rows)):
            row = np.int64(answer.copy_rows[number])
            if row >= high:
                break
            if copies.kept[row] >= 0:
                continue
            copies.kept[row] = answer.copy_kept[number]
            copies.positions[row] = answer.copy_positions[number]
            copies.times[row] = answer.copy_times[number]
            copies.same[row] = answer.copy_same[number]
            if probes[row] > 0 and is_within(exact, copies.kept[row], copies.times[row]):
                matches.heads[row] = NOT_PROPOSED
    count = ZERO
    if begin >= before:
        return place, count
    for number in range(np.searchsorted(answer.unanswered, low), len(answer.unanswered)):
        row = np.int64(answer.unanswered[number])
        if row >= high:
            break
        if matches.heads[row] != NOT_PROPOSED:
            own[count] = row
            count += 1
    number = np.searchsorted(answer.rows, low)
    while number < len(answer.rows) and answer.rows[number] < high:
        row, first = np.int64(answer.rows[number]), number
        leads = True
        while number < len(answer.rows) and answer.rows[number] == row:
            leads = leads and not is_forgotten(forgotten, answer.kept[number])
            number += 1
        if matches.heads[row] == NOT_PROPOSED:
            continue
        if not leads:
            own[count] = row
            count += 1
            continue
        for entry in range(first, number):
            if answer.kept[entry] < begin:
                continue
            kept_message = (answer.kept[entry], answer.positions[entry], answer.times[entry])
            compared_as = (
                np.int64(answer.status[entry]),
                np.int64(answer.matched[entry]),
                np.int64(answer.compared[entry]),
            )
            following = add_match(matches, row, place, end, kept_message, compared_as)
            if following == NOT_PROPOSED:
                break
            place = following
    return place, count
