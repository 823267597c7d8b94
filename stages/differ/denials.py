"""Words that deny each other by their letters: safe and unsafe, a+ and a; the rule `opposite`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.differ.phrases import NUMBER_MARK
from twinsieve.stages.differ.runs import are_few
from twinsieve.stages.differ.tokens import WORD, Tokens
from twinsieve.stages.kernel import kernel


@kernel(callee=True)
def any_denied(later: Tokens, earlier: Tokens, run: NDArray[np.int64]) -> bool:
    """Whether a word of one short side denies one of the other, or differs from it in its mark alone."""
    if not are_few(run):
        return False
    for a in range(run[0], run[1]):
        for b in range(run[2], run[3]):
            words = later.kinds[a] == WORD and earlier.kinds[b] == WORD
            if words and excludes_word(later, a, earlier, b):
                return True
    return False


@kernel(callee=True)
def excludes_word(later: Tokens, a: int, earlier: Tokens, b: int) -> bool:
    """Whether two words deny each other (safe, unsafe), or differ in the mark at their ends alone (a+, a)."""
    if _denies(later, a, earlier, b) or _denies(earlier, b, later, a):
        return True
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


@kernel(callee=True)
def _denies(tokens: Tokens, at: int, other: Tokens, other_at: int) -> bool:
    """Whether a word is the other one with un-, in-, im-, dis- or non- in front."""
    first, end = tokens.starts[at], tokens.starts[at + 1]
    start, length = other.starts[other_at], other.starts[other_at + 1] - other.starts[other_at]
    extra = end - first - length
    if length < 4 or not 2 <= extra <= 3:
        return False
    a, b = tokens.chars[first], tokens.chars[first + 1]
    if extra == 2:
        known = (a == ord("u") or a == ord("i")) and (b == ord("n") or (a == ord("i") and b == ord("m")))
    else:
        c = tokens.chars[first + 2]
        known = a == ord("d") and b == ord("i") and c == ord("s")
        known |= a == ord("n") and b == ord("o") and c == ord("n")
    if not known:
        return False
    for k in range(length):  # noqa: SIM110
        if tokens.chars[first + extra + k] != other.chars[start + k]:
            return False
    return True
