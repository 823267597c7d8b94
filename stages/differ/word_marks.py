"""Part of the rule `opposite`: words that differ only in the mark at their ends, such as a+ and a-."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.differ.phrases import NUMBER_MARK
from twinsieve.stages.differ.runs import are_few
from twinsieve.stages.differ.tokens import WORD, Tokens
from twinsieve.stages.kernel import kernel


@kernel(callee=True, inlined=True)
def any_marked_apart(later: Tokens, earlier: Tokens, run: NDArray[np.int64]) -> bool:
    """Whether both sides of a run are short, and a word of each side differ only in their marks."""
    if not are_few(run):
        return False
    for a in range(run[0], run[1]):
        for b in range(run[2], run[3]):
            words = later.kinds[a] == WORD and earlier.kinds[b] == WORD
            if words and are_marked_apart(later, a, earlier, b):
                return True
    return False


@kernel(callee=True)
def are_marked_apart(later: Tokens, a: int, earlier: Tokens, b: int) -> bool:
    """Whether two words differ only in the mark at their ends; one of them may have no mark (a+, a)."""
    marked, other_marked = later.facts[a] & NUMBER_MARK != 0, earlier.facts[b] & NUMBER_MARK != 0
    if not (marked or other_marked) or later.ids[a] == earlier.ids[b]:
        return False
    first, other = later.starts[a], earlier.starts[b]
    length = later.starts[a + 1] - first - marked
    if length != earlier.starts[b + 1] - other - other_marked:
        return False
    for k in range(length):  # noqa: SIM110
        if later.chars[first + k] != earlier.chars[other + k]:
            return False
    return True
