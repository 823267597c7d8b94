"""Checks of answers that come from a stranger, before anything uses them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import NO_TIME
from twinsieve.stages.differ.rules import Rule
from twinsieve.stages.kernel import ZERO, kernel
from twinsieve.stages.near.answers import MOST_ENTRIES, Answer
from twinsieve.stages.near.verify import ALIKE, ESTIMATED, REASON_SHIFT
from twinsieve.stages.window.soundness import MOST_KEPT

STATUSES = np.zeros(256, np.bool_)
"""Which values of a status `verify.compare` returns for two messages that are alike."""
_WITH_RULES = np.array([ALIKE | int(rule) << REASON_SHIFT for rule in Rule])
STATUSES[_WITH_RULES] = STATUSES[_WITH_RULES | ESTIMATED] = True


@kernel
def is_sound(
    answers: Answer,
    counts: NDArray[np.int64],
    rows: NDArray[np.int64],
    spans: NDArray[np.int64],
    statuses: NDArray[np.bool_],
) -> bool:
    """Whether these columns can be n answers, one after the other, each of a segment for a block.

    answers: the columns of all of them; each numbers the rows of its block from 0
    counts: int64[3, n], entries, copies and unanswered rows of each; they add up to the lengths of the
        columns
    rows: int64[n], rows of the block
    spans: int64[2, n], kept indices of the segment: the first, and the end, exclusive
    statuses: `STATUSES`
    """
    entry, copy, left = ZERO, ZERO, ZERO
    for block in range(len(rows)):
        limit, first, end = rows[block], spans[0, block], spans[1, block]
        entries_end = entry + counts[0, block]
        row_before, kept_before, of_row = ZERO - 1, ZERO, ZERO
        while entry < entries_end:
            row, kept = np.int64(answers.rows[entry]), answers.kept[entry]
            # A row of -1 ends here too: no kept index is smaller than 0.
            if row == row_before:
                of_row += 1
                if kept >= kept_before or of_row > MOST_ENTRIES:
                    return False
            elif row < row_before or row >= limit:
                return False
            else:
                of_row = ZERO + 1
            if not _can_be_kept(kept, answers.positions[entry], answers.times[entry], first, end):
                return False
            if answers.matched[entry] <= 0 or answers.matched[entry] > answers.compared[entry]:
                return False
            if not statuses[answers.status[entry]]:
                return False
            row_before, kept_before = row, kept
            entry += 1
        copies_end = copy + counts[1, block]
        row_before = ZERO - 1
        while copy < copies_end:
            row = np.int64(answers.copy_rows[copy])
            if row <= row_before or row >= limit:
                return False
            kept, position = answers.copy_kept[copy], answers.copy_positions[copy]
            if not _can_be_kept(kept, position, answers.copy_times[copy], first, end):
                return False
            row_before = row
            copy += 1
        left_end = left + counts[2, block]
        row_before = ZERO - 1
        answered = entries_end - counts[0, block]
        while left < left_end:
            row = np.int64(answers.unanswered[left])
            if row <= row_before or row >= limit:
                return False
            while answered < entries_end and answers.rows[answered] < row:
                answered += 1
            if answered < entries_end and answers.rows[answered] == row:
                return False
            row_before = row
            left += 1
    return True


@kernel(callee=True, inlined=True)
def _can_be_kept(kept: int, position: int, time: int, first: int, end: int) -> bool:
    if kept < first or kept >= end or position < 0:
        return False
    return time == NO_TIME or -MOST_KEPT < time < MOST_KEPT
