"""What each of two bodies names and the other lacks, before and behind what both have: parts of two rules.

Two lists with one item in common (a, b / b, c) have two runs, each of them in one body alone. No run replaces
anything, and still one item stands in the place of another.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import Differences
from twinsieve.stages.differ.align import NO_RUN, facts_of, is_han, is_inside
from twinsieve.stages.differ.content import says_something
from twinsieve.stages.differ.phrases import LIGHT
from twinsieve.stages.differ.tokens import CHARACTER, Tokens
from twinsieve.stages.differ.workspace import Differing
from twinsieve.stages.kernel import ZERO, kernel

_ITEM = 3
"""Least number of new pairs of characters, and letters of new words, of an item."""
_BETWEEN = 6
"""Greatest number of tokens between two items."""
_ITEM_TOKENS, _ITEM_RUNS = 32, 32
"""Longer runs are read up to here, and more of them are not asked."""
_NAMES_BETWEEN = 4
"""Greatest number of tokens between two names that are all that differs."""
_WORDS, _CHARACTERS = 2, 3
"""Most words of an alphabet, and least Han characters, that stand in each other's place."""


@kernel(callee=True)
def another_item(short: bool, limits: Differences, work: Differing) -> int:
    """Number of the first of two runs with an item each, of which the other body has none; NO_RUN for none.

    short: whether the bodies are short. Then the items may stand at both ends, around what both ask
    """
    runs, count = work.alignment.runs, work.alignment.count[0]
    if limits.in_place == 0 or count < 2:
        return np.int64(NO_RUN)
    later, earlier = work.later, work.earlier
    if short and count == 2:
        run, then = runs[0], runs[1]
        ends = min(run[0], run[2]) == 0 and then[1] == later.counts[0] and then[3] == earlier.counts[0]
        if ends and later.kinds[run[1]] == CHARACTER and _each_adds(run, then, 0, np.int64(_ITEM), work):
            return ZERO
    if count > limits.places:
        return np.int64(NO_RUN)
    for number in range(min(_ITEM_RUNS, count - 1)):
        run, then = runs[number], runs[number + 1]
        near = (
            then[0] - run[1] <= _BETWEEN
            and is_inside(run, later, earlier)
            and is_inside(then, later, earlier)
        )
        if near and _each_adds(run, then, 1, np.int64(1 if _are_two_names(work) else _ITEM), work):
            return np.int64(number)
    return np.int64(NO_RUN)


@kernel(callee=True)
def _are_two_names(work: Differing) -> bool:
    """Whether all that differs are two runs, close together, without a light word in them or between.

    飞利浦 奔腾 / 赫拉 飞利浦
    """
    runs = work.alignment.runs
    if work.alignment.count[0] != 2 or runs[1, 0] - runs[0, 1] > _NAMES_BETWEEN:
        return False
    facts = facts_of(work.later, runs[0, 0], runs[1, 1]) | facts_of(work.earlier, runs[0, 2], runs[1, 3])
    return facts & LIGHT == 0


@kernel(callee=True)
def is_in_another_script(work: Differing) -> bool:
    """Whether the bodies differ in one place alone, by words of an alphabet and Han characters."""
    run = work.alignment.runs[0]
    if work.alignment.count[0] != 1 or not is_inside(run, work.later, work.earlier):
        return False
    later, earlier = work.later, work.earlier
    if _are_words(later, run[0], run[1]):
        return _are_han(earlier, run[2], run[3])
    return _are_words(earlier, run[2], run[3]) and _are_han(later, run[0], run[1])


@kernel(callee=True)
def _are_words(tokens: Tokens, first: int, end: int) -> bool:
    """Whether tokens[first:end] are one or two words that say something."""
    if not 0 < end - first <= _WORDS:
        return False
    for position in range(first, end):  # noqa: SIM110
        if not says_something(tokens, position):
            return False
    return True


@kernel(callee=True)
def _are_han(tokens: Tokens, first: int, end: int) -> bool:
    """Whether tokens[first:end] are Han characters, _CHARACTERS or more."""
    if end - first < _CHARACTERS:
        return False
    for position in range(first, end):  # noqa: SIM110
        if not is_han(tokens, position):
            return False
    return True


@kernel(callee=True)
def _each_adds(
    run: NDArray[np.int64], then: NDArray[np.int64], characters: int, least: int, work: Differing
) -> bool:
    """Whether one of two runs is in one body alone, the other one in the other body, and both are new.

    characters: least number of new pairs of characters of unspaced scripts; least: of them and new letters
    """
    later, earlier = work.later, work.earlier
    size, other_size = run[1] - run[0], run[3] - run[2]
    added, other_added = then[1] - then[0], then[3] - then[2]
    if size > 0 and other_added > 0 and other_size == added == 0:
        return _is_new(later, run[0], run[1], earlier, characters, least) and _is_new(
            earlier, then[2], then[3], later, characters, least
        )
    if other_size > 0 and added > 0 and size == other_added == 0:
        return _is_new(earlier, run[2], run[3], later, characters, least) and _is_new(
            later, then[0], then[1], earlier, characters, least
        )
    return False


@kernel(callee=True)
def _is_new(tokens: Tokens, first: int, end: int, others: Tokens, characters: int, least: int) -> bool:
    """Whether tokens[first:end] have enough that the others lack."""
    end = min(end, first + _ITEM_TOKENS)
    pairs = letters = ZERO
    for a in range(first, end):
        if tokens.kinds[a] != CHARACTER:
            letters += ZERO if holds(others, tokens, a, 1) else tokens.starts[a + 1] - tokens.starts[a]
        elif a + 1 < end and tokens.kinds[a + 1] == CHARACTER:
            pairs += not holds(others, tokens, a, 2)
    return pairs >= characters and pairs + letters >= least


@kernel(callee=True)
def holds(others: Tokens, tokens: Tokens, first: int, size: int) -> bool:
    """Whether a body contains tokens[first:first + size]."""
    for b in range(others.counts[0] - size + 1):
        same = True
        for k in range(size):
            same &= others.ids[b + k] == tokens.ids[first + k]
        if same:
            return True
    return False
