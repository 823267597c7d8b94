"""Counts the negations in a part of a body, for the rule `opposite` and for tails."""

from __future__ import annotations

import numpy as np

from twinsieve.stages.differ.phrases import IDIOM, MAX_PHRASE, NEGATES, Phrases, find, hash_of
from twinsieve.stages.differ.tokens import CHARACTER, Tokens, phrase_lengths, phrase_row
from twinsieve.stages.differ.workspace import Differing
from twinsieve.stages.kernel import ZERO, kernel

_SHORT = 3
"""A negation decides only in a run of at most this many tokens."""


@kernel(callee=True)
def negation_of(number: int, phrases: Phrases, work: Differing) -> tuple[bool, int]:
    """(whether a short run has an odd number of negations, negations of its later minus its earlier side)

    number: of the run
    """
    run = work.alignment.runs[number]
    a0, a1, b0, b1 = run[0], run[1], run[2], run[3]
    mine = negations(work.later, a0, a1, phrases)
    other = negations(work.earlier, b0, b1, phrases)
    if mine + other == 0 and (a0 == a1 or b0 == b1):
        by, other_by = _slide(work.later, a0, a1, phrases), _slide(work.earlier, b0, b1, phrases)
        a0, a1, b0, b1 = a0 - by, a1 - by, b0 - other_by, b1 - other_by
        mine = negations(work.later, a0, a1, phrases)
        other = negations(work.earlier, b0, b1, phrases)
    short = _is_short(work.later, a0, a1, phrases) and _is_short(work.earlier, b0, b1, phrases)
    return short and (mine + other) % 2 != 0, mine - other


@kernel(callee=True)
def _is_short(tokens: Tokens, first: int, end: int, phrases: Phrases) -> bool:
    """Whether one side of a run has few tokens, or is a negation and nothing else."""
    if end - first <= _SHORT:
        return True
    for position in range(first, end):
        if tokens.kinds[position] != CHARACTER:
            return False
    row = find(phrases, hash_of(tokens.chars, tokens.starts[first], tokens.starts[end]))
    return row >= 0 and phrases.roles[row] & NEGATES != 0


@kernel(callee=True)
def negations(tokens: Tokens, first: int, end: int, phrases: Phrases) -> int:
    """Number of negations in tokens[first:end]."""
    count = ZERO
    position = first
    while position < end:
        step = np.int64(1)
        lengths = phrase_lengths(tokens, position, end) if tokens.facts[position] & NEGATES else ZERO
        for length in range(1, MAX_PHRASE + 1 if lengths else 0):
            row = phrase_row(tokens, position, length, lengths, phrases)
            negates = row >= 0 and phrases.roles[row] & NEGATES != 0
            if negates and not _in_idiom(tokens, position, position + length, phrases):
                count += 1
                step = np.int64(length)
                break
        position += step
    return count


@kernel(callee=True)
def _slide(tokens: Tokens, first: int, end: int, phrases: Phrases) -> int:
    """How many tokens to move an added run to the left so that it holds a negation; 0 if that is impossible.

    An added run can often be placed differently: ab[cb]d is also a[bc]bd.
    """
    for by in range(1, min(first, end - first) + 1):
        if tokens.ids[first - by] != tokens.ids[end - by]:
            break
        if negations(tokens, first - by, end - by, phrases) > 0:
            return np.int64(by)
    return ZERO


@kernel(callee=True)
def _in_idiom(tokens: Tokens, first: int, end: int, phrases: Phrases) -> bool:
    """Whether the tokens are part of a phrase that contains a negation but does not negate: 无论, 不过."""
    for position in range(max(0, end - MAX_PHRASE), first + 1):
        if tokens.kinds[position] != CHARACTER:
            continue
        lengths = phrase_lengths(tokens, position, tokens.counts[0])
        for length in range(end - position, MAX_PHRASE + 1):
            row = phrase_row(tokens, position, length, lengths, phrases)
            if row >= 0 and phrases.roles[row] & IDIOM:
                return True
    return False
