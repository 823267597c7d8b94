"""The rule `correction`: an end of one body has a word of correction that the other body lacks."""

from __future__ import annotations

import numpy as np

from twinsieve.stages.differ.phrases import CORRECTS, MAX_PHRASE, Phrases, hash_of
from twinsieve.stages.differ.tokens import CHARACTER, WORD, Tokens, phrase_lengths, phrase_row
from twinsieve.stages.differ.workspace import Differing
from twinsieve.stages.kernel import ZERO, kernel

_CORRECTION_TOKENS = 8
"""A longer run is another text, with words of its own."""


@kernel(callee=True)
def corrects(number: int, phrases: Phrases, work: Differing) -> bool:
    """Whether a run at an end of a body has a correction (更正, update, fake) that the other body lacks.

    number: of the run
    """
    run = work.alignment.runs[number]
    at_end = run[0] == 0 or run[1] == work.later.counts[0]
    other_at_end = run[2] == 0 or run[3] == work.earlier.counts[0]
    if at_end and _has_correction(work.later, run[0], run[1], work.earlier, phrases):
        return True
    return other_at_end and _has_correction(work.earlier, run[2], run[3], work.later, phrases)


@kernel(callee=True)
def _has_correction(tokens: Tokens, first: int, end: int, other: Tokens, phrases: Phrases) -> bool:
    if end - first > _CORRECTION_TOKENS:
        return False
    for position in range(first, end):
        if tokens.facts[position] & CORRECTS == 0:
            continue
        lengths = phrase_lengths(tokens, position, end)
        is_word = tokens.kinds[position] == WORD
        for length in range(1, MAX_PHRASE + 1):
            row = phrase_row(tokens, position, length, lengths, phrases)
            if row >= 0 and phrases.roles[row] & CORRECTS:
                characters = ZERO if is_word else np.int64(length)
                key = phrases.ids[row] if is_word else phrases.keys[row]
                if not _holds_phrase(other, key, characters):
                    return True
    return False


@kernel(callee=True)
def _holds_phrase(tokens: Tokens, key: np.uint64, length: int) -> bool:
    """Whether a body contains a phrase. key: its hash; length: its characters, 0 for a word"""
    for position in range(tokens.counts[0]):
        if length == 0:
            matches = tokens.kinds[position] == WORD and tokens.ids[position] == key
        else:
            end = position + length
            matches = end <= tokens.counts[0] and tokens.kinds[end - 1] == CHARACTER
            matches = matches and hash_of(tokens.chars, tokens.starts[position], tokens.starts[end]) == key
        if matches:
            return True
    return False
