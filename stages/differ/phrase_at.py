"""Finds the phrases of the lists that begin at a token."""

from __future__ import annotations

import numpy as np

from twinsieve.stages.differ.phrases import LENGTHS_SHIFT, MAX_PHRASE, Phrases, find, hash_of
from twinsieve.stages.differ.tokens import CHARACTER, Tokens
from twinsieve.stages.kernel import kernel

_UP_TO_LENGTHS = (1 << (LENGTHS_SHIFT + MAX_PHRASE)) - 1


@kernel(callee=True)
def phrase_lengths(tokens: Tokens, position: int, end: int) -> int:
    """The possible lengths of a phrase that begins at token `position` and ends before token `end`.

    Bit k - 1 of the result is set if the phrase may have k tokens. A phrase of a spaced script is one word,
    so it has one token. In unspaced scripts only few characters begin phrases, and for most of these
    characters the phrases have only one or two lengths. So only few token sequences must be hashed and looked
    up.
    """
    lengths = (np.int64(tokens.facts[position]) & _UP_TO_LENGTHS) >> LENGTHS_SHIFT
    room = np.int64(1)
    while lengths >> room != 0 and position + room < end and tokens.kinds[position + room] == CHARACTER:
        room += 1
    return lengths & ((np.int64(1) << room) - 1)


@kernel(callee=True)
def phrase_row(tokens: Tokens, position: int, length: int, lengths: int, phrases: Phrases) -> int:
    """Row of the phrase that consists of the `length` tokens from `position` on; -1 if they are no phrase.

    lengths: result of `phrase_lengths` for this token
    """
    if not (lengths >> (length - 1)) & 1:
        return np.int64(-1)
    return find(phrases, hash_of(tokens.chars, tokens.starts[position], tokens.starts[position + length]))
