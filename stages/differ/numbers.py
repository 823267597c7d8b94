"""The rules `number`, `numeral` and `number added`: other numbers, other Chinese numerals, added numbers."""

from __future__ import annotations

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
    """Which of the three rules holds for a run, or NONE. number: of the run"""
    run = work.alignment.runs[number]
    later, earlier = work.later, work.earlier
    size, other_size = run[1] - run[0], run[3] - run[2]
    if size == 1 and other_size == 1 and _is_code(later, run[0]) and _is_code(earlier, run[2]):
        return _NUMBER
    if size == 0 or other_size == 0:
        if size + other_size > 2 or not is_inside(run, later, earlier):
            return _NONE
        added = _number_added(later, run[0], run[1]) if size else _number_added(earlier, run[2], run[3])
        return _NUMBER_ADDED if added else _NONE
    mine, other = work.values, work.other_values
    read_values(later, run[0], run[1], phrases, mine)
    read_values(earlier, run[2], run[3], phrases, other)
    if mine.counts[1] > 0 and other.counts[1] > 0:
        differ = not holds_all(other, mine, NO) and not holds_all(mine, other, NO)
        return _NUMBER if differ else _NONE
    if not are_few(run):
        return _NONE
    if mine.counts[1] > 0 and other.counts[0] > 0:
        return _NONE if holds_all(other, mine, NO) else _NUMBER
    if other.counts[1] > 0 and mine.counts[0] > 0:
        return _NONE if holds_all(mine, other, NO) else _NUMBER
    if mine.counts[0] > 0 and other.counts[0] > 0:
        return _NONE if holds_any(mine, other) else _NUMERAL
    return _NONE


@kernel(callee=True)
def _number_added(tokens: Tokens, first: int, end: int) -> bool:
    """Whether added tokens contain a number, or a Chinese numeral next to another number or numeral."""
    for position in range(first, end):
        if tokens.kinds[position] == NUMBER:
            return True
    before = tokens.kinds[first - 1] == NUMBER or is_numeral(tokens, first - 1)
    if is_numeral(tokens, first) and before:
        return True
    return is_numeral(tokens, end - 1) and is_numeral(tokens, end)


@kernel(callee=True)
def _is_code(tokens: Tokens, position: int) -> bool:
    """Whether a token is a short mix of letters and digits, such as 12a."""
    return (
        tokens.kinds[position] == MIX
        and tokens.starts[position + 1] - tokens.starts[position] <= _CODE_LENGTH
    )
