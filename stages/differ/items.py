"""What each of two bodies names and the other lacks, before and behind what both have: parts of two rules.

Two lists with one item in common (a, b / b, c) have two runs, each of them in one body alone. No run replaces
anything, and still one item stands in the place of another.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import Differences
from twinsieve.stages.differ.align import NO_RUN, is_inside
from twinsieve.stages.differ.tokens import CHARACTER, Tokens
from twinsieve.stages.differ.workspace import Differing
from twinsieve.stages.kernel import ZERO, kernel

_ITEM = 3
"""Least number of new pairs of characters, and letters of new words, of an item."""
_BETWEEN = 6
"""Greatest number of tokens between two items."""
_ITEM_TOKENS, _ITEM_RUNS = 32, 32
"""Longer runs are read up to here, and more of them are not asked."""
_MO, _YA = np.uint32(ord("も")), np.uint32(ord("や"))
_FIRST_HAN, _LAST_HAN = np.uint32(0x4E00), np.uint32(0x9FFF)
_FIRST_KATAKANA, _LAST_KATAKANA = np.uint32(0x30A1), np.uint32(0x30FC)
_THINGS = 2
_WHEN = np.array([ord(char) for char in "次年回今度毎何"], np.uint32)
"""Characters of times and questions (来年も, 次も, 何も): も adds nothing to them."""


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
        if ends and later.kinds[run[1]] == CHARACTER and _each_adds(run, then, 0, work):
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
        if near and _each_adds(run, then, 1, work):
            return np.int64(number)
    return np.int64(NO_RUN)


@kernel(callee=True)
def _each_adds(run: NDArray[np.int64], then: NDArray[np.int64], characters: int, work: Differing) -> bool:
    """Whether one of two runs is in one body alone, the other one in the other body, and both are new.

    characters: least number of new pairs of characters of unspaced scripts
    """
    later, earlier = work.later, work.earlier
    size, other_size = run[1] - run[0], run[3] - run[2]
    added, other_added = then[1] - then[0], then[3] - then[2]
    if size > 0 and other_added > 0 and other_size == added == 0:
        return _is_new(later, run[0], run[1], earlier, characters) and _is_new(
            earlier, then[2], then[3], later, characters
        )
    if other_size > 0 and added > 0 and size == other_added == 0:
        return _is_new(earlier, run[2], run[3], later, characters) and _is_new(
            later, then[0], then[1], earlier, characters
        )
    return False


@kernel(callee=True)
def _is_new(tokens: Tokens, first: int, end: int, others: Tokens, characters: int) -> bool:
    """Whether tokens[first:end] have enough that the others lack."""
    end = min(end, first + _ITEM_TOKENS)
    pairs = letters = ZERO
    for a in range(first, end):
        if tokens.kinds[a] != CHARACTER:
            letters += ZERO if _holds(others, tokens, a, 1) else tokens.starts[a + 1] - tokens.starts[a]
        elif a + 1 < end and tokens.kinds[a + 1] == CHARACTER:
            pairs += not _holds(others, tokens, a, 2)
    return pairs >= characters and pairs + letters >= _ITEM


@kernel(callee=True)
def _holds(others: Tokens, tokens: Tokens, first: int, size: int) -> bool:
    """Whether a body contains tokens[first:first + size]."""
    for b in range(others.counts[0] - size + 1):
        same = True
        for k in range(size):
            same &= others.ids[b + k] == tokens.ids[first + k]
        if same:
            return True
    return False


@kernel(callee=True)
def adds_one_of_many(run: NDArray[np.int64], work: Differing) -> bool:
    """Whether one body says the same of another thing, too: お風呂も between 部屋も and 広い.

    A thing is two Han characters or letters of katakana, with も or や behind it, or や before it.
    """
    if not is_inside(run, work.later, work.earlier):
        return False
    if run[3] == run[2]:
        return _is_one_of_many(work.later, run[0], run[1])
    return run[1] == run[0] and _is_one_of_many(work.earlier, run[2], run[3])


@kernel(callee=True)
def _is_one_of_many(tokens: Tokens, first: int, end: int) -> bool:
    things, listed = ZERO, tokens.chars[tokens.starts[first]] == _YA
    for position in range(first, end):
        char = tokens.chars[tokens.starts[position]]
        for when in _WHEN:
            if char == when:
                return False
        if _is_thing(char):
            things += 1
            following = tokens.chars[tokens.starts[position + 1]]
            listed |= following in (_MO, _YA)
    return listed and things >= _THINGS


@kernel(callee=True)
def _is_thing(char: np.uint32) -> bool:
    """Whether a character is a Han one or a letter of katakana."""
    return _FIRST_HAN <= char <= _LAST_HAN or _FIRST_KATAKANA <= char <= _LAST_KATAKANA
