"""What a look-up finds for the rows of a chunk: matches (kept messages that are alike to a row) and copies.

Both carry all that phase two needs: where the kept message stands in the order of keeping, its position and
its time. So phase two does not ask in which segment, or in which process, the message is stored.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.kernel import kernel

NO_MATCH = -1
NOT_PROPOSED = -2
"""Values of `heads`: the row has no match; its matches were not searched, or there was no room for them."""

MATCHES_PER_ROW = 64
"""Average room for the matches of a row. Rows for which there is no room are looked up one by one."""


class Matches(NamedTuple):
    """Matches of n rows: a linked list for each row, so that look-ups in several segments add to one list.

    heads: int32[n], place of the match that was added last, NO_MATCH or NOT_PROPOSED
    next: int32[room], place of the match of the same row that was added before, or NO_MATCH
    kept: int64[room], kept index of the matching entry; positions, times: int64[room], of that entry
    matched, compared: int32[room]; status: uint8[room]; all three as `verify.compare` returns them
    """

    heads: NDArray[np.int32]
    next: NDArray[np.int32]
    kept: NDArray[np.int64]
    positions: NDArray[np.int64]
    times: NDArray[np.int64]
    matched: NDArray[np.int32]
    compared: NDArray[np.int32]
    status: NDArray[np.uint8]


def new_matches(rows: int, room: int) -> Matches:
    """Empty memory. rows: number of rows; room: number of matches of all rows together"""
    return Matches(
        np.full(rows, NOT_PROPOSED, np.int32),
        np.zeros(room, np.int32),
        np.zeros(room, np.int64),
        np.zeros(room, np.int64),
        np.zeros(room, np.int64),
        np.zeros(room, np.int32),
        np.zeros(room, np.int32),
        np.zeros(room, np.uint8),
    )


class Copies(NamedTuple):
    """For each of n rows, the newest message of the window with its digest tag; no rows if nobody asks.

    kept: int64[n], its kept index, or -1 for none; positions, times: int64[n], of that message
    same: bool[n], whether its stored text confirms the copy, or texts are not compared
    """

    kept: NDArray[np.int64]
    positions: NDArray[np.int64]
    times: NDArray[np.int64]
    same: NDArray[np.bool_]


def new_copies(rows: int) -> Copies:
    """Memory for the copies of `rows` rows: none yet."""
    return Copies(
        np.full(rows, -1, np.int64),
        np.zeros(rows, np.int64),
        np.zeros(rows, np.int64),
        np.zeros(rows, np.bool_),
    )


@kernel(callee=True)
def add_match(
    matches: Matches,
    row: int,
    place: int,
    end: int,
    kept_message: tuple[int, int, int],
    compared_as: tuple[int, int, int],
) -> int:
    """Add a match to those of a row, at `place`, unless its status is 0. The order does not matter.

    kept_message: (kept index, position, time) of the matching entry
    compared_as: (status, matched, compared) as `compare` returns them
    returns: place of the next match; if there is no room before `end`, NOT_PROPOSED, and the row is
        NOT_PROPOSED
    """
    status, matched, compared = compared_as
    if status == 0:
        return place
    if place >= end:
        matches.heads[row] = NOT_PROPOSED
        return NOT_PROPOSED
    kept_index, position, time = kept_message
    matches.kept[place] = kept_index
    matches.positions[place] = position
    matches.times[place] = time
    matches.matched[place] = matched
    matches.compared[place] = compared
    matches.status[place] = status
    matches.next[place] = matches.heads[row]
    matches.heads[row] = place
    return place + 1


@kernel(callee=True)
def is_forgotten(forgotten: NDArray[np.int64], kept_index: int) -> bool:
    """Whether a kept message leads no more. forgotten: int64[…], ascending"""
    if len(forgotten) == 0:
        return False
    place = np.searchsorted(forgotten, kept_index)
    return place < len(forgotten) and forgotten[place] == kept_index
