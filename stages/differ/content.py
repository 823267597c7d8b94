"""What single tokens say: whether one may be a name or a fact, and what tokens weigh together."""

from __future__ import annotations

import numpy as np

from twinsieve.stages.differ.phrases import AGENCY, LIGHT
from twinsieve.stages.differ.tokens import CHARACTER, WORD, Tokens
from twinsieve.stages.kernel import ZERO, kernel

_NAME_LETTERS = 3
"""A word of fewer letters is no name and no fact, unless another name of two letters stands in its place."""


@kernel(callee=True)
def says_something(tokens: Tokens, position: int) -> bool:
    """Whether a token is a word that may be a name or a fact: not light, no agency mark, not too short."""
    length = tokens.starts[position + 1] - tokens.starts[position]
    mere = tokens.facts[position] & (LIGHT | AGENCY) != 0
    return tokens.kinds[position] == WORD and not mere and length >= _NAME_LETTERS


@kernel(callee=True)
def may_be_a_name(tokens: Tokens, position: int) -> bool:
    """Whether a token is such a word, or a character that is not light and may be a part of one."""
    if tokens.kinds[position] == CHARACTER:
        return tokens.facts[position] & LIGHT == 0
    return bool(says_something(tokens, position))


@kernel(callee=True)
def points_of(tokens: Tokens, first: int, end: int) -> int:
    """Points of tokens[first:end]."""
    total = ZERO
    for position in range(first, end):
        total += tokens.points[position]
    return total


@kernel(callee=True)
def holds_token(tokens: Tokens, token: np.uint64) -> bool:
    """Whether a body contains a token. token: its id, as in Tokens.ids"""
    for position in range(tokens.counts[0]):  # noqa: SIM110
        if tokens.ids[position] == token:
            return True
    return False
