"""The rules `number`, `numeral` and `number added`: other numbers, other Chinese numerals, added numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.differ.align import are_few, is_inside
from twinsieve.stages.differ.counted import (
    add_ones,
    are_other_parts,
    count_readers,
    counts_more,
    makes_many,
    names_many,
    numbers_a_part,
)
from twinsieve.stages.differ.emoticons import is_face
from twinsieve.stages.differ.number_values import (
    PLAINLY,
    Values,
    holds_all,
    holds_any,
    is_numeral,
    read_in_all_ways,
    read_values,
)
from twinsieve.stages.differ.phrases import AGENCY, POWER, Phrases, find, hash_of
from twinsieve.stages.differ.rules import Rule
from twinsieve.stages.differ.tokens import MIX, NUMBER, Tokens
from twinsieve.stages.differ.workspace import Differing
from twinsieve.stages.differ.written import NO_SUCH, letters_from, month_at, whole_of
from twinsieve.stages.kernel import NO, YES, kernel

_NONE, _NUMBER, _NUMERAL = int(Rule.NONE), int(Rule.NUMBER), int(Rule.NUMERAL)
_NUMBER_ADDED = int(Rule.NUMBER_ADDED)
_CODE_LENGTH = 6


@kernel(callee=True)
def number_rules(number: int, phrases: Phrases, work: Differing) -> int:
    """Which of the three rules holds for a run, or NONE. number: of the run"""
    run = work.alignment.runs[number]
    later, earlier = work.later, work.earlier
    size, other_size = run[1] - run[0], run[3] - run[2]
    if size == 1 and other_size == 1 and run[0] == 1 and run[2] == 1 and later.facts[0] & AGENCY:
        return _NONE  # UPDATE 1 - …, UPDATE 2 - …
    if size == 1 and other_size == 1 and _is_code(later, run[0]) and _is_code(earlier, run[2]):
        return _NONE if _is_one_quantity(run, phrases, work) else _NUMBER
    if size == 0 or other_size == 0:
        if _is_counted_apart(number, phrases, work):
            return _NUMBER_ADDED
        if size + other_size > 2 or not is_inside(run, later, earlier):
            return _NONE
        if size:
            added = _number_added(later, run[0], run[1]) and not is_face(later, run[0], run[1])
            added = added and not _day_has_moved(later, run[0], size, earlier, run[2], phrases)
        else:
            added = _number_added(earlier, run[2], run[3]) and not is_face(earlier, run[2], run[3])
            added = added and not _day_has_moved(earlier, run[2], other_size, later, run[0], phrases)
        return _NUMBER_ADDED if added else _NONE
    mine, other = work.values, work.other_values
    read_values(later, run[0], run[1], phrases, mine, np.int64(PLAINLY))
    read_values(earlier, run[2], run[3], phrases, other, np.int64(PLAINLY))
    if mine.counts[1] > 0 and other.counts[1] > 0:
        differ = _lack_values(mine, other)
        if differ:
            read_in_all_ways(later, earlier, run, phrases, mine, other)
            differ = _lack_values(mine, other) and not count_readers(run, phrases, later, earlier)
        return _NUMBER if differ else _NONE
    if not are_few(run):
        return _NONE
    if are_other_parts(run, work, phrases):
        return _NUMBER
    if mine.counts[0] == 0 and names_many(earlier, run[2], run[3], later, run[0], run[1], phrases):
        return _NUMBER
    if other.counts[0] == 0 and names_many(later, run[0], run[1], earlier, run[2], run[3], phrases):
        return _NUMBER
    if mine.counts[0] == 0 and other.counts[1] > 0:
        add_ones(later, run[0], run[1], phrases, mine)
    elif other.counts[0] == 0 and mine.counts[1] > 0:
        add_ones(earlier, run[2], run[3], phrases, other)
    if mine.counts[1] > 0 and other.counts[0] > 0:
        return _NONE if holds_all(other, mine, NO) else _NUMBER
    if other.counts[1] > 0 and mine.counts[0] > 0:
        return _NONE if holds_all(mine, other, NO) else _NUMBER
    if mine.counts[0] > 0 and other.counts[0] > 0:
        return _NONE if holds_any(mine, other) else _NUMERAL
    return _NONE


@kernel(callee=True)
def _lack_values(mine: Values, other: Values) -> bool:
    """Whether each side has a number that the other side lacks."""
    return not holds_all(other, mine, NO) and not holds_all(mine, other, NO)


@kernel(callee=True)
def _is_counted_apart(number: int, phrases: Phrases, work: Differing) -> bool:
    """Whether added tokens change what is counted: three more, part 2, 11 policemen / policeman."""
    runs, count = work.alignment.runs, work.alignment.count[0]
    run = runs[number]
    later, earlier = work.later, work.earlier
    if run[1] > run[0]:
        return (
            counts_more(later, run[0], run[1], phrases)
            or makes_many(number, later, earlier, YES, phrases, runs, count)
            or numbers_a_part(later, run[0], run[1], count, phrases)
        )
    return (
        counts_more(earlier, run[2], run[3], phrases)
        or makes_many(number, earlier, later, NO, phrases, runs, count)
        or numbers_a_part(earlier, run[2], run[3], count, phrases)
    )


@kernel(callee=True)
def _day_has_moved(
    tokens: Tokens, first: int, size: int, other: Tokens, other_first: int, phrases: Phrases
) -> bool:
    """Whether one added number is a day that stands on the other side of its month in the other body.

    first, size: of the added tokens; other_first: the place in the other body that lacks them
    """
    if size != 1:
        return False
    behind, before = other_first + 1, other_first - 2
    if behind < other.counts[0] and month_at(tokens, first + 1, phrases) != NO_SUCH:
        return _is_one_day(tokens, first, other, behind, phrases)
    if before >= 0 and month_at(tokens, first - 1, phrases) != NO_SUCH:
        return _is_one_day(tokens, first, other, before, phrases)
    return False


@kernel(callee=True)
def _is_one_day(tokens: Tokens, position: int, other: Tokens, other_position: int, phrases: Phrases) -> bool:
    """Whether both tokens are the same day of a month, as 5 and 5th."""
    day = whole_of(tokens, position, phrases)
    return day > 0 and day == whole_of(other, other_position, phrases)


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
def _is_one_quantity(run: NDArray[np.int64], phrases: Phrases, work: Differing) -> bool:
    """Whether two mixes are one number with one unit, as 5km and 5kms or 1.8b and 1.8bn."""
    later, earlier = work.later, work.earlier
    first, other_first = letters_from(later, run[0], phrases), letters_from(earlier, run[2], phrases)
    if first == NO_SUCH or other_first == NO_SUCH:
        return False
    end, other_end = later.starts[run[0] + 1], earlier.starts[run[2] + 1]
    unit, other_unit = hash_of(later.chars, first, end), hash_of(earlier.chars, other_first, other_end)
    if unit != other_unit:
        row, other_row = find(phrases, unit), find(phrases, other_unit)
        if row < 0 or other_row < 0:
            return False
        power, other_power = phrases.roles[row] & POWER, phrases.roles[other_row] & POWER
        if phrases.ids[row] != phrases.ids[other_row] and (power == 0 or other_power == 0):
            return False
    mine, other = work.values, work.other_values
    read_values(later, run[0], run[1], phrases, mine, np.int64(PLAINLY))
    read_values(earlier, run[2], run[3], phrases, other, np.int64(PLAINLY))
    return mine.counts[0] == other.counts[0] and holds_all(mine, other, NO)


@kernel(callee=True)
def _is_code(tokens: Tokens, position: int) -> bool:
    """Whether a token is a short mix of letters and digits, such as 12a."""
    return (
        tokens.kinds[position] == MIX
        and tokens.starts[position + 1] - tokens.starts[position] <= _CODE_LENGTH
    )
