"""Recognises a phrase of Japanese in two writings: kanji and kana (美味しい, おいしい), polite and plain."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.differ.phrases import MAX_PHRASE, Phrases, find, hash_of
from twinsieve.stages.differ.tokens import Tokens
from twinsieve.stages.kernel import kernel

_FIRST_KANA, _LAST_KANA = np.uint32(0x3041), np.uint32(0x30FF)
_AROUND = 3
"""A run holds only the differing part of a phrase. The phrase may have this many more tokens on each side."""


@kernel(callee=True)
def is_one_phrase(run: NDArray[np.int64], later: Tokens, earlier: Tokens, phrases: Phrases) -> bool:
    """Whether both sides of a run are one listed phrase in two writings, and one side is written in kana."""
    size, other_size = run[1] - run[0], run[3] - run[2]
    if min(size, other_size) == 0 or max(size, other_size) > MAX_PHRASE:
        return False
    if not (_is_kana(later, run[0], run[1]) or _is_kana(earlier, run[2], run[3])):
        return False
    most = min(_AROUND, later.counts[0] - run[1], earlier.counts[0] - run[3])
    for before in range(min(_AROUND, run[0], run[2]) + 1):
        for behind in range(most + 1):
            first, end = later.starts[run[0] - before], later.starts[run[1] + behind]
            row = find(phrases, hash_of(later.chars, first, end))
            if row >= 0:
                first, end = earlier.starts[run[2] - before], earlier.starts[run[3] + behind]
                other = find(phrases, hash_of(earlier.chars, first, end))
                if other >= 0 and phrases.ids[row] == phrases.ids[other]:
                    return True
    return False


@kernel(callee=True)
def _is_kana(tokens: Tokens, first: int, end: int) -> bool:
    """Whether tokens[first:end] are kana alone."""
    for k in range(tokens.starts[first], tokens.starts[end]):
        if not _FIRST_KANA <= tokens.chars[k] <= _LAST_KANA:
            return False
    return True
