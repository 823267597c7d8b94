"""Which languages two bodies are written in, so that the lists of others do not hold.

A word means other things in other languages: *vivo* is "live" in Spanish and a maker elsewhere, *no* is
"in the" in Portuguese. So the light words of both bodies vote, each for the languages that have it, and a
role of a word counts only in the languages that give it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.differ.phrases import (
    AGENCY,
    CORRECTS,
    ENGLISH,
    EVERY_LANGUAGE,
    FOREIGN,
    HELD,
    LIGHT,
    NEGATES,
    NUMERAL,
    Phrases,
)
from twinsieve.stages.differ.tokens import LIGHT_POINTS, WORD, Tokens, word_points
from twinsieve.stages.differ.workspace import Differing
from twinsieve.stages.kernel import ZERO, kernel

_VOTERS = 16
"""Only so many light words of a body vote."""
_SHARE, _OF = 3, 4
"""A language is spoken if it has this share of the votes of the language with most of them."""
_LEAST = 3
"""With fewer votes the language is not known: one word, once in both bodies, may be a name."""
_ROLES = LIGHT | NUMERAL | NEGATES | CORRECTS | AGENCY
_UNKNOWN = np.int64(-1)


@kernel(callee=True)
def hush(phrases: Phrases, work: Differing) -> None:
    """Take from the words of both bodies the roles that they have only in languages that are not spoken here.

    A negation keeps its role, because tails count those of all languages; it gets the fact FOREIGN.
    work.spoken: becomes the languages, or unknown, if it is sure without a vote that no role falls
    """
    work.spoken[0] = _UNKNOWN
    later, earlier = work.later, work.earlier
    if later.counts[6]:
        _restore(later, phrases)
    common = np.int64(later.counts[3] & earlier.counts[3])
    if _is_unspaced(work):
        if common & ENGLISH:
            return
    elif common == EVERY_LANGUAGE or (common != 0 and later.counts[5] + earlier.counts[5] >= _LEAST):
        return
    spoken = np.int64(spoken_in(phrases, work))
    marks = np.int64(ENGLISH) if spoken == EVERY_LANGUAGE else spoken
    _hush(later, spoken, marks, phrases)
    _hush(earlier, spoken, marks, phrases)


@kernel(callee=True)
def spoken_in(phrases: Phrases, work: Differing) -> np.uint32:
    """The languages of two bodies as bits, all if they are not known. To ask before words lose roles."""
    if work.spoken[0] != _UNKNOWN:
        return np.uint32(work.spoken[0])
    spoken = np.int64(ENGLISH)
    if not _is_unspaced(work):
        votes = work.votes
        votes[:] = 0
        _vote(work.later, votes, phrases)
        _vote(work.earlier, votes, phrases)
        most = ZERO
        for k in range(len(votes)):
            most = max(most, votes[k])
        spoken = ZERO if most >= _LEAST else np.int64(EVERY_LANGUAGE)
        for k in range(len(votes)):
            if _OF * votes[k] >= _SHARE * most:
                spoken |= np.int64(phrases.beside[k])
    work.spoken[0] = spoken
    return np.uint32(spoken)


@kernel(callee=True)
def _is_unspaced(work: Differing) -> bool:
    """Whether at least half of all tokens are characters of unspaced scripts. The words are English then."""
    return (
        2 * (work.later.counts[4] + work.earlier.counts[4]) >= work.later.counts[0] + work.earlier.counts[0]
    )


@kernel(callee=True)
def _vote(tokens: Tokens, votes: NDArray[np.int64], phrases: Phrases) -> None:
    voters = ZERO
    for position in range(tokens.counts[0]):
        if tokens.kinds[position] == WORD and tokens.facts[position] & LIGHT:
            languages = np.int64(phrases.held[tokens.rows[position], 0])
            if languages != EVERY_LANGUAGE:
                for k in range(len(votes)):
                    votes[k] += languages >> k & 1
                voters += 1
                if voters == _VOTERS:
                    return


@kernel(callee=True)
def _restore(tokens: Tokens, phrases: Phrases) -> None:
    """Give the words of a body all their roles again: a later body meets several earlier ones."""
    for position in range(tokens.counts[0]):
        row = tokens.rows[position]
        if tokens.kinds[position] == WORD and row >= 0 and phrases.roles[row] & _ROLES:
            tokens.facts[position] |= phrases.roles[row] & np.uint32(_ROLES)
            tokens.facts[position] &= ~np.uint32(FOREIGN)
            if phrases.roles[row] & LIGHT:
                tokens.points[position] = LIGHT_POINTS
    tokens.counts[6] = 0


@kernel(callee=True)
def _hush(tokens: Tokens, spoken: int, marks: int, phrases: Phrases) -> None:
    tokens.counts[6] = 1
    for position in range(tokens.counts[0]):
        row = tokens.rows[position]
        if tokens.kinds[position] != WORD or row < 0 or phrases.roles[row] & _ROLES == 0:
            continue
        for k in range(len(HELD)):
            role = HELD[k]
            here = marks if role == AGENCY else spoken
            if phrases.roles[row] & role and np.int64(phrases.held[row, k]) & here == 0:
                if role == NEGATES:
                    tokens.facts[position] |= np.uint32(FOREIGN)
                else:
                    tokens.facts[position] &= ~np.uint32(role)
                if role == LIGHT:
                    tokens.points[position] = word_points(tokens, position)
