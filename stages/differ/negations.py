"""Finds the negations of a body, for the rule `opposite` and for tails.

A negation is a listed word (not), a listed phrase of an unspaced script (ませんでした), or a word with a
listed part (Korean 못했다). Of phrases that begin at one character the longest counts, and bodies are read
from left to right.
"""

from __future__ import annotations

import numpy as np

from twinsieve.stages.differ.phrases import (
    ASKS,
    CONCORD,
    IDIOM,
    MAX_PHRASE,
    NEGATES,
    POWER,
    Phrases,
    find,
    hash_of,
)
from twinsieve.stages.differ.tokens import CHARACTER, NUMBER, WORD, Tokens, phrase_lengths, phrase_row
from twinsieve.stages.kernel import ZERO, kernel

_NEAR = 4
"""A word of concord (pas, nunca) is one negation with another one that is at most this many tokens away."""


@kernel(callee=True)
def negations(tokens: Tokens, first: int, end: int, phrases: Phrases) -> int:
    """Number of negations of any language that begin in tokens[first:end]."""
    count = ZERO
    position = first
    while position < end:
        at, stop = next_negation(tokens, position, end, ZERO, phrases)
        count += at < end
        position = stop
    return count


@kernel(callee=True)
def next_negation(tokens: Tokens, position: int, end: int, foreign: int, phrases: Phrases) -> tuple[int, int]:
    """(first token, end) of the first negation that begins in tokens[position:end]; (end, end) for none

    foreign: fact of words that are no negation here, or 0
    """
    position = np.int64(position)
    while position < end:
        facts = np.int64(tokens.facts[position])
        if facts & NEGATES == 0:
            position += 1
        elif tokens.kinds[position] == WORD:
            if facts & foreign == 0 and _word_negates(tokens, position, foreign, phrases):
                return position, position + 1
            position += 1
        else:
            longest = ZERO
            is_idiom = False
            lengths = phrase_lengths(tokens, position, tokens.counts[0])
            for length in range(1, MAX_PHRASE + 1):
                row = phrase_row(tokens, position, length, lengths, phrases)
                if row >= 0 and phrases.roles[row] & NEGATES:
                    longest = np.int64(length)
                    is_idiom |= _in_idiom(tokens, position, position + length, phrases)
            if longest > 0 and not is_idiom:
                return position, position + longest
            position += max(longest, np.int64(1))
    return np.int64(end), np.int64(end)


@kernel(callee=True)
def _word_negates(tokens: Tokens, position: int, foreign: int, phrases: Phrases) -> bool:
    """Whether a negation negates where it stands: in no idiom, no question and not beside another one."""
    for first in range(max(0, position - 1), min(position + 1, tokens.counts[0] - 1)):
        if tokens.kinds[first] == WORD and tokens.kinds[first + 1] == WORD:
            row = find(phrases, hash_of(tokens.chars, tokens.starts[first], tokens.starts[first + 2]))
            if row >= 0 and phrases.roles[row] & IDIOM:
                return False
    row = np.int64(tokens.rows[position])
    if row < 0:
        return True
    if phrases.roles[row] & POWER and position > 0 and tokens.kinds[position - 1] == NUMBER:
        return False  # 7 k
    if phrases.roles[row] & ASKS and tokens.counts[1] == 0 and position + 1 == tokens.counts[0]:
        return False
    if phrases.roles[row] & CONCORD:
        for other in range(max(0, position - _NEAR), min(tokens.counts[0], position + _NEAR + 1)):
            if other == position or tokens.kinds[other] != WORD or tokens.facts[other] & foreign:
                continue
            roles = np.int64(phrases.roles[tokens.rows[other]]) if tokens.rows[other] >= 0 else ZERO
            if roles & NEGATES and (other < position or roles & CONCORD == 0):
                return False
    return True


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
