"""Phrases of the lists that begin at a token."""

from __future__ import annotations

import numpy as np

from twinsieve.stages.differ.phrases import LENGTHS_SHIFT, Phrases, find, hash_of
from twinsieve.stages.differ.tokens import CHARACTER, Tokens
from twinsieve.stages.kernel import kernel


@kernel(callee=True)
def phrase_lengths(tokens: Tokens, position: int, end: int) -> int:
    """How long phrases can be that begin at a token and end by `end`: bit k - 1 for k tokens.

    A word is a phrase of one token. Few characters begin phrases, and most of them phrases of one or two
    lengths: nothing else is hashed.
    """
    lengths = np.int64(tokens.facts[position]) >> LENGTHS_SHIFT
    room = np.int64(1)
    while lengths >> room != 0 and position + room < end and tokens.kinds[position + room] == CHARACTER:
        room += 1
    return lengths & ((np.int64(1) << room) - 1)


@kernel(callee=True)
def phrase_row(tokens: Tokens, position: int, length: int, lengths: int, phrases: Phrases) -> int:
    """Row of the phrase of `length` tokens that begins at a token, -1 for none.

    lengths: as `phrase_lengths` gives them
    """
    if not (lengths >> (length - 1)) & 1:
        return np.int64(-1)
    return find(phrases, hash_of(tokens.chars, tokens.starts[position], tokens.starts[position + length]))
