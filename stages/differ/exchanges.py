"""The rule `exchanged`: two parts of a body have changed places."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.differ.number_values import PLAINLY, holds_all, read_values, same_order
from twinsieve.stages.differ.phrases import Phrases
from twinsieve.stages.differ.tokens import Tokens
from twinsieve.stages.differ.workspace import Differing
from twinsieve.stages.kernel import YES, kernel

_EXCHANGED_TOKENS, _EXCHANGED_RUNS = 6, 32


@kernel(callee=True, inlined=True)
def is_exchanged(number: int, valued: bool, phrases: Phrases, work: Differing) -> bool:
    """Whether a run shows that two parts of the body have changed places (3:1 / 1:3).

    number: number of the run (a place where the bodies differ) in `work.alignment.runs`
    valued: whether the run contains numbers in both bodies
    """
    later, earlier = work.later, work.earlier
    runs, count = work.alignment.runs, work.alignment.count[0]
    run = runs[number]
    if run[1] - run[0] > _EXCHANGED_TOKENS or run[3] - run[2] > _EXCHANGED_TOKENS:
        return False
    if valued and _same_values_in_other_order(run, phrases, work):
        return True
    for follows in range(number + 1, min(count, number + 1 + _EXCHANGED_RUNS)):
        then = runs[follows]
        if _crosses(run, then, later, earlier):
            return True
    if number + 1 == count or runs[number + 1][0] - run[1] > _EXCHANGED_TOKENS:
        return False
    then = runs[number + 1]
    size, other_size = run[1] - run[0], run[3] - run[2]
    added, other_added = then[1] - then[0], then[3] - then[2]
    if size == other_added == 0 and added == other_size:
        return _turns_round(earlier, run[2], run[3], later, then[0])
    turned = other_size == added == 0 and other_added == size
    return turned and _turns_round(later, run[0], run[1], earlier, then[2])


@kernel(callee=True)
def _crosses(run: NDArray[np.int64], then: NDArray[np.int64], later: Tokens, earlier: Tokens) -> bool:
    size, other_size = run[1] - run[0], run[3] - run[2]
    if size == 0 or other_size == 0 or then[3] - then[2] != size or then[1] - then[0] != other_size:
        return False
    return _same_tokens(later, run[0], earlier, then[2], size) and _same_tokens(
        later, then[0], earlier, run[2], other_size
    )


@kernel(callee=True)
def _turns_round(tokens: Tokens, first: int, end: int, other: Tokens, other_first: int) -> bool:
    """Whether tokens that were deleted at one place appear at the other place with their two parts exchanged.

    For "a beats b" and "b beats a", "a beats" before b becomes "beats a" after b.
    """
    size = end - first
    if _same_tokens(tokens, first, other, other_first, size):
        # The tokens moved to another place, but kept their order (such as 哈哈). So nothing was exchanged.
        return False
    for head in range(1, size):
        if _same_tokens(tokens, first, other, other_first + size - head, head) and _same_tokens(
            tokens, first + head, other, other_first, size - head
        ):
            return True
    return False


@kernel(callee=True)
def _same_tokens(later: Tokens, a: int, earlier: Tokens, b: int, size: int) -> bool:
    for k in range(size):  # noqa: SIM110
        if later.ids[a + k] != earlier.ids[b + k]:
            return False
    return True


@kernel(callee=True)
def _same_values_in_other_order(run: NDArray[np.int64], phrases: Phrases, work: Differing) -> bool:
    mine, other = work.values, work.other_values
    read_values(work.later, run[0], run[1], phrases, mine, np.int64(PLAINLY))
    if mine.counts[0] < 2:
        return False
    read_values(work.earlier, run[2], run[3], phrases, other, np.int64(PLAINLY))
    if mine.counts[0] != other.counts[0] or same_order(mine, other):
        return False
    return bool(holds_all(mine, other, YES))
