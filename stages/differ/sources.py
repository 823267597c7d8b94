"""The names of outlets behind a headline: - WXYZ.com, | Valley Daily, _新浪新闻."""

from __future__ import annotations

from twinsieve.stages.differ.align import VALUED, facts_of
from twinsieve.stages.differ.phrases import OUTLETS, Phrases
from twinsieve.stages.differ.senses import ends_with_kind
from twinsieve.stages.differ.tokens import Tokens
from twinsieve.stages.differ.workspace import Differing
from twinsieve.stages.kernel import kernel

_BEFORE_SOURCE = 4
"""Least number of tokens before the name: what a headline says."""
_SOURCE = 10
"""Greatest number of tokens of a name."""


@kernel(callee=True)
def differ_in_source(phrases: Phrases, work: Differing) -> bool:
    """Whether all that differs is one run at the end, the name of an outlet in each body or nothing."""
    later, earlier = work.later, work.earlier
    if work.alignment.count[0] != 1 or later.counts[1] or earlier.counts[1]:
        return False
    run = work.alignment.runs[0]
    if run[1] < later.counts[0] or run[3] < earlier.counts[0] or min(run[0], run[2]) < _BEFORE_SOURCE:
        return False
    return _is_source(later, run[0], phrases) and _is_source(earlier, run[2], phrases)


@kernel(callee=True)
def _is_source(tokens: Tokens, first: int, phrases: Phrases) -> bool:
    """Whether the end of a body, from a token on, is empty or the name of an outlet.

    A name has no number, and its last word is one that such names end with.
    """
    end = tokens.counts[0]
    if first == end:
        return True
    if end - first > _SOURCE or facts_of(tokens, first, end) & VALUED:
        return False
    return ends_with_kind(tokens, first, end, OUTLETS, phrases)
