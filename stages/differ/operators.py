"""Operators between two terms: what a sum says that a difference does not (a + b, A ∪ B).

Between numbers an operator is a part of the token and of the value behind it (`number_values.py`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.differ.align import are_few
from twinsieve.stages.differ.tokens import WORD, Tokens
from twinsieve.stages.kernel import kernel

_OPERATORS = tuple(np.uint32(ord(sign)) for sign in "+*±∪∩∧∨")
_JOIN = tuple(np.uint32(ord(sign)) for sign in "&|→")
"""Signs that often mean a word, too (&, and). One counts where another sign stands in its place, not where it
was added."""


@kernel(callee=True, inlined=True)
def other_operator(run: NDArray[np.int64], later: Tokens, earlier: Tokens) -> bool:
    """Whether one side of a short run has an operator, and the other side another one or nothing."""
    if not are_few(run):
        return False
    return _has_another(later, run[0], run[1], earlier, run[2], run[3]) or _has_another(
        earlier, run[2], run[3], later, run[0], run[1]
    )


@kernel(callee=True)
def _has_another(
    tokens: Tokens, first: int, end: int, others: Tokens, others_first: int, others_end: int
) -> bool:
    for position in range(first, end):
        replaces = others_end > others_first
        joins = replaces and _is_of(tokens, position, _JOIN)
        if not joins and not _is_of(tokens, position, _OPERATORS):
            continue
        twin, other = False, not replaces
        for at in range(others_first, others_end):
            twin |= others.ids[at] == tokens.ids[position]
            other |= _is_of(others, at, _OPERATORS) or _is_of(others, at, _JOIN)
        if other and not twin:
            return True
    return False


@kernel(callee=True)
def _is_of(tokens: Tokens, position: int, signs: tuple[np.uint32, ...]) -> bool:
    """Whether a token is one of these signs."""
    first = tokens.starts[position]
    if tokens.kinds[position] != WORD or tokens.starts[position + 1] - first != 1:
        return False
    for sign in signs:  # noqa: SIM110
        if tokens.chars[first] == sign:
            return True
    return False
