"""Recognises one word in two forms (get, gets) or spellings; such a word does not count as replaced."""

from __future__ import annotations

import numpy as np

from twinsieve.stages.differ.phrases import BASES, Phrases
from twinsieve.stages.differ.spellings import are_spellings
from twinsieve.stages.differ.tokens import WORD, Tokens
from twinsieve.stages.intrinsics import FNV_OFFSET, FNV_PRIME
from twinsieve.stages.kernel import ZERO, kernel

_STEM = 3
"""Least letters that two forms of a word have in common at their beginning."""


@kernel(callee=True)
def is_one_word(later: Tokens, a: int, earlier: Tokens, b: int, phrases: Phrases) -> bool:
    """Whether two tokens are one word: in two spellings, or in two forms.

    Forms begin with the same letters, at least _STEM and at least half of the longer one. What follows is an
    ending of one language on both sides. Accents do not count.
    """
    if later.kinds[a] != WORD or earlier.kinds[b] != WORD:
        return False
    if later.ids[a] == earlier.ids[b] or are_spellings(later, a, earlier, b):
        return True
    first, other = later.starts[a], earlier.starts[b]
    n, m = later.starts[a + 1] - first, earlier.starts[b + 1] - other
    stem = ZERO
    while stem < min(n, m) and _base(later, first + stem, phrases) == _base(earlier, other + stem, phrases):
        stem += 1
    if stem == n == m:
        return True
    if stem < _STEM or 2 * stem < max(n, m):
        return False
    return _languages(later, first + stem, first + n, phrases) & _languages(
        earlier, other + stem, other + m, phrases
    ) != np.uint32(0)


@kernel(callee=True)
def _base(tokens: Tokens, position: int, phrases: Phrases) -> np.uint32:
    """A character without its accents."""
    char = tokens.chars[position]
    return phrases.bases[char] if char < np.uint32(BASES) else char


@kernel(callee=True)
def _languages(tokens: Tokens, first: int, end: int, phrases: Phrases) -> np.uint32:
    """The languages in which chars[first:end] is a grammatical ending, as bits."""
    value = FNV_OFFSET
    for k in range(first, end):
        value = (value ^ np.uint64(_base(tokens, k, phrases))) * FNV_PRIME
    key = (value ^ (value >> np.uint64(29))) | np.uint64(1 << 63)
    place = np.searchsorted(phrases.endings, key)
    if place < len(phrases.endings) and phrases.endings[place] == key:
        return phrases.languages[place]
    return np.uint32(0)
