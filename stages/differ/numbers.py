"""Other numbers, numerals, numbers that were added: the rules `number`, `numeral`, `number added`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.differ.phrases import Phrases
from twinsieve.stages.differ.rules import Rule
from twinsieve.stages.differ.runs import are_few, is_inside
from twinsieve.stages.differ.tokens import MIX, NUMBER, Tokens
from twinsieve.stages.differ.values import holds_all, holds_any, is_numeral, read_values
from twinsieve.stages.differ.workspace import Differing
from twinsieve.stages.kernel import NO, kernel

_NONE, _NUMBER, _NUMERAL = int(Rule.NONE), int(Rule.NUMBER), int(Rule.NUMERAL)
_NUMBER_ADDED = int(Rule.NUMBER_ADDED)
_CODE_LENGTH = 6


@kernel(callee=True)
def number_rules(number: int, phrases: Phrases, work: Differing) -> int:
    """The rule of numbers that holds for one run, or NONE."""
    run = work.alignment.runs[number]
    later, earlier = work.later, work.earlier
    size, other_size = run[1] - run[0], run[3] - run[2]
    replaced = size > 0 and other_size > 0
    few = are_few(run)
    if size == 1 and other_size == 1 and _is_code(later, run[0]) and _is_code(earlier, run[2]):
        return _NUMBER
    a0, a1, b0, b1 = widened(run, later, earlier)
    mine, other = work.values, work.other_values
    read_values(later, a0, a1, phrases, mine)
    read_values(earlier, b0, b1, phrases, other)
    # Of a run that was added, `widened` gives values to both sides only if it adds numerals to a number.
    uncut = run[1] < later.counts[0] and run[3] < earlier.counts[0]
    counted = replaced or (few and uncut)
    if counted and mine.counts[1] > 0 and other.counts[1] > 0:
        differ = not holds_all(other, mine, NO) and not holds_all(mine, other, NO)
        return _NUMBER if differ else _NONE
    if replaced and few and mine.counts[1] > 0 and other.counts[0] > 0:
        return _NONE if holds_all(other, mine, NO) else _NUMBER
    if replaced and few and other.counts[1] > 0 and mine.counts[0] > 0:
        return _NONE if holds_all(mine, other, NO) else _NUMBER
    if counted and few and mine.counts[0] > 0 and other.counts[0] > 0:
        return _NONE if holds_any(mine, other) else _NUMERAL
    if not replaced and size + other_size <= 2 and is_inside(run, later, earlier):
        tokens, at, end = (later, run[0], run[1]) if size > 0 else (earlier, run[2], run[3])
        for k in range(at, end):
            if tokens.kinds[k] == NUMBER:
                return _NUMBER_ADDED
    return _NONE


@kernel(callee=True)
def widened(run: NDArray[np.int64], later: Tokens, earlier: Tokens) -> tuple[int, int, int, int]:
    """The run with the Chinese numerals that adjoin it; added ones with the number before them (5, 5万)."""
    a0, a1, b0, b1 = run[0], run[1], run[2], run[3]
    while a0 > 0 and b0 > 0 and is_numeral(later, a0 - 1) and is_numeral(earlier, b0 - 1):
        touches = a1 > a0 and is_numeral(later, a0)
        touches |= b1 > b0 and is_numeral(earlier, b0)
        if not touches:
            break
        a0 -= 1
        b0 -= 1
    n, m = later.counts[0], earlier.counts[0]
    while a1 < n and b1 < m and is_numeral(later, a1) and is_numeral(earlier, b1):
        touches = a1 > a0 and is_numeral(later, a1 - 1)
        touches |= b1 > b0 and is_numeral(earlier, b1 - 1)
        if not touches:
            break
        a1 += 1
        b1 += 1
    if a0 > 0 and b0 > 0 and later.kinds[a0 - 1] == NUMBER and earlier.kinds[b0 - 1] == NUMBER:
        added = a1 > a0 and run[3] == run[2] and is_numeral(later, a0)
        if added or (b1 > b0 and run[1] == run[0] and is_numeral(earlier, b0)):
            a0 -= 1
            b0 -= 1
    return a0, a1, b0, b1


@kernel(callee=True)
def _is_code(tokens: Tokens, at: int) -> bool:
    """Whether a token is a short mix of letters and digits, such as 12a."""
    return tokens.kinds[at] == MIX and tokens.starts[at + 1] - tokens.starts[at] <= _CODE_LENGTH
