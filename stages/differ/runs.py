"""Properties of a run that several rules need."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.differ.phrases import DIGIT, NUMERAL
from twinsieve.stages.differ.tokens import Tokens
from twinsieve.stages.kernel import ZERO, kernel

NO_RUN = -1
VALUED = DIGIT | NUMERAL
"""Facts of a token that has a numeric value."""
_FEW = 4
"""Single words decide only in a run with at most this many tokens on each side."""


@kernel(callee=True)
def facts_of(tokens: Tokens, first: int, end: int) -> int:
    """The facts of all tokens[first:end] together (bitwise or)."""
    facts = ZERO
    for at in range(first, end):
        facts |= tokens.facts[at]
    return facts


@kernel(callee=True)
def are_few(run: NDArray[np.int64]) -> bool:
    """Whether both sides of a run have so few tokens that single words decide."""
    return run[1] - run[0] <= _FEW and run[3] - run[2] <= _FEW


@kernel(callee=True)
def is_inside(run: NDArray[np.int64], later: Tokens, earlier: Tokens) -> bool:
    """Whether a run touches neither end of either body."""
    if run[0] == 0 or run[2] == 0:
        return False
    return run[1] < later.counts[0] and run[3] < earlier.counts[0]
