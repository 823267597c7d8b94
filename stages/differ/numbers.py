"""The rules `number`, `numeral` and `number added`: other numbers, other Chinese numerals, added numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.differ.align import are_few, is_inside
from twinsieve.stages.differ.counted import (
    add_ones,
    are_other_parts,
    count_readers,
    counts_headlines,
    counts_more,
    makes_many,
    names_many,
    numbers_a_part,
)
from twinsieve.stages.differ.dashes import is_date_part
from twinsieve.stages.differ.denials import are_nothing
from twinsieve.stages.differ.emoticons import is_face
from twinsieve.stages.differ.number_values import (
    LONGEST_CODE,
    PLAINLY,
    Values,
    holds_all,
    holds_any,
    is_numeral,
    read_in_all_ways,
    read_values,
    same_order,
    writes_one_string,
)
from twinsieve.stages.differ.phrases import (
    EDITION,
    LIGHT,
    ORDINALS,
    POWER,
    STAGES,
    Phrases,
    find,
    has_sense,
    has_sense_of_kind,
    hash_of,
)
from twinsieve.stages.differ.roman import is_its_roman_number, other_roman_number
from twinsieve.stages.differ.rules import Rule
from twinsieve.stages.differ.tokens import CHARACTER, MIX, NUMBER, WORD, Tokens, have_equal_chars
from twinsieve.stages.differ.workspace import Differing
from twinsieve.stages.differ.writings import is_one_phrase
from twinsieve.stages.differ.written import NO_SUCH, hour_of, letters_from, month_at, whole_of
from twinsieve.stages.kernel import NO, YES, kernel

_NONE, _NUMBER, _NUMERAL = int(Rule.NONE), int(Rule.NUMBER), int(Rule.NUMERAL)
_NUMBER_ADDED = int(Rule.NUMBER_ADDED)
_TWICE = np.uint32(ord("2"))
_HALF, _HOURS = np.uint32(ord("半")), tuple(np.uint32(ord(hour)) for hour in "点時")
_CODE_LENGTH, _ORDERED = 6, 6
_PLACES, _LAST = 2, 2
"""A number stands in place of words only if the bodies differ in at most so many places; and where a body
begins or ends, only if each side has at most so many tokens there."""


@kernel(callee=True)
def number_rules(number: int, phrases: Phrases, work: Differing) -> int:
    """Which of the three rules holds for a run, or NONE. number: of the run"""
    run = work.alignment.runs[number]
    later, earlier = work.later, work.earlier
    size, other_size = run[1] - run[0], run[3] - run[2]
    if (
        size == 1
        and other_size == 1
        and counts_headlines(later, run[0])
        and counts_headlines(earlier, run[2])
    ):
        return _NONE
    if other_roman_number(run, later, earlier) or _is_other_edition(run, phrases, later, earlier):
        return _NUMBER
    if writes_one_string(run, phrases, later, earlier) or is_its_roman_number(run, phrases, later, earlier):
        return _NONE
    if are_nothing(run, later, earlier):
        return _NONE
    if size == 1 and other_size == 1 and _is_code(later, run[0]) and _is_code(earlier, run[2]):
        return _NONE if _is_one_quantity(run, phrases, work) else _NUMBER
    if size == 0 or other_size == 0:
        if _is_counted_apart(number, phrases, work):
            return _NUMBER_ADDED
        if size + other_size > 2 or not is_inside(run, later, earlier):
            return _NONE
        if _completes_date(later, run[0], run[1]) or _completes_date(earlier, run[2], run[3]):
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
        return _NUMBER if differ or _are_in_other_order(run, phrases, work) else _NONE
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
    if mine.counts[0] > 0:
        return (
            _NUMBER
            if _stands_for_words(later, run[0], run[1], earlier, run[2], run[3], run, phrases, work)
            else _NONE
        )
    if other.counts[0] > 0:
        return (
            _NUMBER
            if _stands_for_words(earlier, run[2], run[3], later, run[0], run[1], run, phrases, work)
            else _NONE
        )
    return _NONE


@kernel(callee=True)
def _stands_for_words(
    tokens: Tokens, first: int, end: int, others: Tokens, others_first: int, others_end: int,
    run: NDArray[np.int64], phrases: Phrases, work: Differing,
) -> bool:  # fmt: skip
    """Whether a number or code in tokens[first:end] stands in the place of words in an otherwise equal text.

    5 users / all users, room 12 / room Alpha, 7XTQL9 / KXTPLM. At an end, where posts are cut and signed, it
    is all that differs. A single character of an unspaced script is mostly a letter that a code overwrote.
    run: the same place, to see whether it is inside
    """
    if is_one_phrase(run, work.later, work.earlier, phrases):
        return False
    if _is_twice(tokens, first, others, others_first, others_end) or _is_ordinal(tokens, first, end, phrases):
        return False
    few = work.alignment.count[0] == 1 and end - first <= _LAST and others_end - others_first <= _LAST
    if work.alignment.count[0] > _PLACES or not (few or is_inside(run, work.later, work.earlier)):
        return False
    valued = False
    for position in range(first, end):
        length = tokens.starts[position + 1] - tokens.starts[position]
        valued |= tokens.kinds[position] == NUMBER or (
            tokens.kinds[position] == MIX and length <= LONGEST_CODE
        )
    if others.kinds[others_first] != WORD or others_end - others_first > 1:
        return valued and others_end - others_first > 1
    return valued and not (
        others.facts[others_first] & LIGHT and _begins(tokens, first, others, others_first)
    )


@kernel(callee=True)
def _is_twice(tokens: Tokens, position: int, others: Tokens, first: int, end: int) -> bool:
    """Whether a token is a word and a 2, and the others are this word twice: orang2, orang-orang."""
    last = tokens.starts[position + 1] - 1
    if end - first != 2 or tokens.chars[last] != _TWICE or others.ids[first] != others.ids[first + 1]:
        return False
    length = others.starts[first + 1] - others.starts[first]
    return length == last - tokens.starts[position] and _begins(tokens, position, others, first)


@kernel(callee=True)
def _is_ordinal(tokens: Tokens, first: int, end: int, phrases: Phrases) -> bool:
    """Whether a token is a number with the ending of an ordinal, whose word no list may have: 2º, 4ème."""
    if end - first != 1 or tokens.kinds[first] != MIX:
        return False
    letters = letters_from(tokens, first, phrases)
    if letters == NO_SUCH:
        return False
    row = find(phrases, hash_of(tokens.chars, letters, tokens.starts[first + 1]))
    return has_sense_of_kind(phrases, row, ORDINALS)


@kernel(callee=True)
def _begins(tokens: Tokens, position: int, others: Tokens, other: int) -> bool:
    """Whether a token begins with all letters of a word: XD8, XD."""
    start, first = tokens.starts[position], others.starts[other]
    length = others.starts[other + 1] - first
    if tokens.starts[position + 1] - start < length:
        return False
    return have_equal_chars(tokens, start, others, first, length)


@kernel(callee=True)
def _are_in_other_order(run: NDArray[np.int64], phrases: Phrases, work: Differing) -> bool:
    """Whether both sides of a short run have the same numbers in another order: 2:1, 1:2."""
    mine, other = work.values, work.other_values
    if max(run[1] - run[0], run[3] - run[2]) > _ORDERED:
        return False
    read_values(work.later, run[0], run[1], phrases, mine, np.int64(PLAINLY))
    read_values(work.earlier, run[2], run[3], phrases, other, np.int64(PLAINLY))
    if mine.counts[0] < 2 or mine.counts[0] != other.counts[0] or same_order(mine, other):
        return False
    return bool(holds_all(mine, other, YES))


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
    if _multiplies(later, run[0], run[1]) or _multiplies(earlier, run[2], run[3]):
        return True
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
def _multiplies(tokens: Tokens, first: int, end: int) -> bool:
    """Whether one added token changes the number before it: 3 mil pesos, 8点半."""
    if end - first != 1 or first == 0:
        return False
    if tokens.kinds[first] == WORD:
        return bool(tokens.kinds[first - 1] == NUMBER) and tokens.facts[first] & POWER != 0
    char = tokens.chars[tokens.starts[first]]
    hour = tokens.chars[tokens.starts[first - 1]]
    return char == _HALF and (hour == _HOURS[0] or hour == _HOURS[1]) and first > 1


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
def _completes_date(tokens: Tokens, first: int, end: int) -> bool:
    """Whether added tokens are the month or year before the rest of a date: 2月14日, 14日."""
    if end - first != 2 or tokens.kinds[first] != NUMBER or tokens.kinds[end - 1] != CHARACTER:
        return False
    return is_date_part(tokens.chars[tokens.starts[end - 1]]) and tokens.kinds[end] == NUMBER


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
    """Whether two mixes are one number with one unit, as 5km and 5kms, 1.8b and 1.8bn, 20h and 20h00."""
    later, earlier = work.later, work.earlier
    hour, minute = hour_of(later, run[0], phrases)
    other_hour, other_minute = hour_of(earlier, run[2], phrases)
    if hour != NO_SUCH and other_hour != NO_SUCH:
        return hour == other_hour and minute == other_minute
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
def _is_other_edition(run: NDArray[np.int64], phrases: Phrases, later: Tokens, earlier: Tokens) -> bool:
    """Whether one number has the word of an edition right behind it, and the other none: 300XL, 300."""
    if run[1] - run[0] != 1 or run[3] - run[2] != 1:
        return False
    mixes = later.kinds[run[0]] == MIX
    if mixes == (earlier.kinds[run[2]] == MIX):
        return False
    tokens, position = (later, run[0]) if mixes else (earlier, run[2])
    letters = letters_from(tokens, position, phrases)
    if letters == NO_SUCH:
        return False
    row = find(phrases, hash_of(tokens.chars, letters, tokens.starts[position + 1]))
    return row >= 0 and has_sense(phrases, row, np.int64(STAGES << 8 | EDITION))


@kernel(callee=True)
def _is_code(tokens: Tokens, position: int) -> bool:
    """Whether a token is a short mix of letters and digits, such as 12a."""
    return (
        tokens.kinds[position] == MIX
        and tokens.starts[position + 1] - tokens.starts[position] <= _CODE_LENGTH
    )
