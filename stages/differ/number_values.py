"""Values of numbers, so that they can be compared if they are written differently.

Numbers may be written in digits of any script, in Chinese numerals or in words: "1,500" is 1500, "1.5万" is
15000, "十二" is 12, "twelve" is 12, "007" is 7. A colon, dash or slash separates values in a token: "9:30" is
9 and 30. A mix with at most two letters has the value of its digits ("5kg"). A mix with more letters is a
name, a value of its own ("h5n1x", an order number). A mark at the end belongs to the value: "15+" is not 15.
`written.py` reads sums, times and dates that are written with words.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.differ.dashes import is_dash, is_second_with_dash, role_at
from twinsieve.stages.differ.names import is_hangul
from twinsieve.stages.differ.phrases import (
    BELOW_ZERO,
    CURRENCY,
    DIGIT,
    EXCLUDES,
    LIGHT,
    MEASURE,
    NUMBER_MARK,
    NUMERAL,
    ONE,
    POWER,
    UNITS,
    Phrases,
    find,
    has_sense_of_kind,
)
from twinsieve.stages.differ.tokens import CHARACTER, MIX, NUMBER, WORD, Tokens, class_of
from twinsieve.stages.differ.written import (
    NO_SUCH,
    clock_of,
    date_at,
    half_day_at,
    half_of,
    hour_of,
    is_clock,
    letters_from,
    meant_at,
    parts_of_date,
    whole_of,
)
from twinsieve.stages.intrinsics import FNV_OFFSET, FNV_PRIME, GOLDEN
from twinsieve.stages.kernel import NO, YES, ZERO, kernel

NAME = np.uint64(0x5851F42D4C957F2D)
"""Makes the value of a mix that is a name from its id."""
_DOT, _COMMA = ord("."), ord(",")
_GROUP = 3
_NAME_LETTERS = 2
LONGEST_CODE = 14
"""Greatest length of a mix that is a name; a longer one is random."""
_BEHIND = np.uint64(32)
"""Shift of a mark after a number, so that it has another hash than the same mark before the number."""
_TEN = 10
_M = ord("m")
_MILLION = 6
_MOST = 10**15
"""Values of words are not multiplied beyond this, so that they stay below 2^63."""
_MONTHS, _DAYS = 12, 31
_X, _TIMES = ord("x"), ord("*")
_OPERATORS = tuple(map(ord, "+*^±"))
"""Signs inside a token that change the value behind them: 12+5 is not 12-5. A dash, a slash and a colon also
write dates, ranges and results."""
_ZERO_DIGIT = ord("0")
_SLASH, _MONTH, _COLON, _DASH = ord("/"), ord("月"), ord(":"), ord("-")
_CLOCK_LENGTH, _STRING = 4, 7
_BESIDE = 3
"""A number has a unit if one is among so many tokens before it or behind it."""
_DAY, _HALF_DAY = 24, 12
_LASTS = tuple(map(ord, "間间"))
_HOURS, _HALF = tuple(map(ord, "点點时時")), ord("半")
_AFTERNOON = tuple(tuple(map(ord, word)) for word in ("下午", "午後", "午后", "晚上"))
_DOLLAR, _R, _REAL = ord("$"), ord("r"), ord("R")
_US = tuple(map(ord, "us"))
_DOLLARS = tuple(tuple(map(ord, country)) for country in ("hk", "nz", "nt", "mx", "au", "ca", "sg"))
_THOUSAND = 1000
PLAINLY, SPACED, DOTTED_DATES, DOTTED_TIMES = 0, 1, 2, 4
"""Bits of ways to read numbers, in addition to the plain one: 1 299,00 as 1299; 9.22 as month and
day; 14.30 as hour and minute."""


MAX_VALUES = 64
"""Greatest number of values that are read of one run. It limits the time for a text that is all digits."""


class Values(NamedTuple):
    """The values of some tokens; memory of one thread.

    values: uint64[…], hashes, equal for equal values
    others: uint64[…], the hash of another way to read a value (59.000 as 59000), 0 for none
    numerals: bool[…], whether the value was written in Chinese numerals
    counts: int64[2], (number of values, number of values not written in Chinese numerals)
    """

    values: NDArray[np.uint64]
    others: NDArray[np.uint64]
    numerals: NDArray[np.bool_]
    counts: NDArray[np.int64]


def new_values() -> Values:
    """New memory for one thread."""
    return Values(
        np.zeros(MAX_VALUES, np.uint64),
        np.zeros(MAX_VALUES, np.uint64),
        np.zeros(MAX_VALUES, np.bool_),
        np.zeros(2, np.int64),
    )


@kernel(callee=True)
def _add(values: Values, value: np.uint64, numeral: bool) -> None:
    count = values.counts[0]
    if count == MAX_VALUES:
        return
    values.values[count] = value
    values.others[count] = np.uint64(0)
    values.numerals[count] = numeral
    values.counts[0] = count + 1
    values.counts[1] += not numeral


@kernel(callee=True)
def _finish(digits: np.uint64, exponent: int, prefix: np.uint64) -> np.uint64:
    return (digits + np.uint64(exponent + 64) * GOLDEN) ^ prefix


@kernel(callee=True)
def _of_integer(value: int) -> np.uint64:
    """The value of an integer; the same as that of its digits in a text."""
    digits, exponent = FNV_OFFSET, ZERO
    if value > 0:
        while value % _TEN == 0:
            value //= _TEN
            exponent += 1
        scale = np.int64(1)
        while value // scale >= _TEN:
            scale *= _TEN
        while scale > 0:
            digits = (digits ^ np.uint64(value // scale % _TEN)) * FNV_PRIME
            scale //= _TEN
    return _finish(digits, exponent, np.uint64(0))


@kernel(callee=True)
def add_weak(values: Values, value: int) -> None:
    """Add a whole number as if it were written in Chinese numerals: it decides in short runs only."""
    _add(values, _of_integer(value), YES)


@kernel(callee=True)
def _digits_end(chars: NDArray[np.uint32], first: int, end: int, phrases: Phrases) -> int:
    """Index after the digits that begin at `first`, including points and commas between them."""
    i = first
    while i < end:
        inner = chars[i] == _DOT or chars[i] == _COMMA
        if inner and not (i + 1 < end and class_of(chars[i + 1], phrases) & DIGIT):
            break
        if not inner and not class_of(chars[i], phrases) & DIGIT:
            break
        i += 1
    return i


@kernel(callee=True)
def _of_digits(
    chars: NDArray[np.uint32], first: int, end: int, power: int, prefix: np.uint64, parts: bool,
    phrases: Phrases,
) -> np.uint64:  # fmt: skip
    """The value of digits with points or commas between them, times 10 ** power.

    One point is a decimal point. With several points, it is a date, a version or an address, and all parts
    count, without zeros in front (05.03.2024).
    prefix: hash of a sign, currency or comparison before the digits and a mark after them; 0 without these
    parts: all parts count although there is one point (3.10)
    """
    points = np.int64(parts)
    for i in range(first, end):
        points += chars[i] == _DOT or chars[i] == _COMMA
    digits, zeros = FNV_OFFSET, ZERO
    exponent = power if points <= 1 else ZERO
    behind = begun = False
    for i in range(first, end):
        if chars[i] == _DOT or chars[i] == _COMMA:
            behind, begun = True, False
            if points > 1:
                for _ in range(zeros):
                    digits = (digits ^ np.uint64(0)) * FNV_PRIME
                zeros = ZERO
                digits = (digits ^ np.uint64(_DOT)) * FNV_PRIME
            continue
        digit = np.uint64(phrases.worth[chars[i]])
        exponent -= behind and points == 1
        if digit == np.uint64(0):
            zeros += begun if points > 1 else digits != FNV_OFFSET or zeros > 0
        else:
            begun = True
            for _ in range(zeros):
                digits = (digits ^ np.uint64(0)) * FNV_PRIME
            zeros = ZERO
            digits = (digits ^ digit) * FNV_PRIME
    if digits == FNV_OFFSET:
        return _finish(digits, ZERO, prefix)
    return _finish(digits, exponent + zeros, prefix)


@kernel(callee=True)
def _thousands_end(chars: NDArray[np.uint32], first: int, end: int, phrases: Phrases) -> int:
    """Where the whole part of digits ends if their points may separate thousands; `first` if they may not.

    Three digits stand behind each such point, and one to three before the first: 59.000, 1.234.567, 1.299,00.
    Indian commas stand before two digits each, the last one before three: 12,34,567.
    """
    i = first
    while i < end and class_of(chars[i], phrases) & DIGIT:
        i += 1
    if not first < i < end or i - first > _GROUP or phrases.worth[chars[first]] == 0:
        return first
    point = chars[i]
    group = i
    while i < end and chars[i] == point:
        group = i + 1
        i = group
        while i < end and class_of(chars[i], phrases) & DIGIT:
            i += 1
        is_whole = i - group == _GROUP
        is_pair = point == _COMMA and i - group == _GROUP - 1 and i < end and chars[i] == _COMMA
        if not is_whole and not is_pair:
            return first
        if is_whole and point == _COMMA and i < end and chars[i] == _COMMA:
            return first
    if i == end:
        return end
    for k in range(i + 1, end):
        if not class_of(chars[k], phrases) & DIGIT:
            return first
    return i


@kernel(callee=True)
def _of_thousands(
    chars: NDArray[np.uint32], first: int, end: int, power: int, prefix: np.uint64, phrases: Phrases
) -> np.uint64:
    """The value of digits whose points separate thousands, as `_of_digits`; 0 if they cannot."""
    whole = _thousands_end(chars, first, end, phrases)
    if whole == first:
        return np.uint64(0)
    digits, zeros = FNV_OFFSET, ZERO
    for i in range(first, end):
        if chars[i] == _DOT or chars[i] == _COMMA:
            continue
        digit = np.uint64(phrases.worth[chars[i]])
        if digit == np.uint64(0):
            zeros += 1
            continue
        for _ in range(zeros):
            digits = (digits ^ np.uint64(0)) * FNV_PRIME
        zeros = ZERO
        digits = (digits ^ digit) * FNV_PRIME
    behind = end - whole - 1 if whole < end else ZERO
    return _finish(digits, power + zeros - behind, prefix)


@kernel(callee=True)
def _power_behind(tokens: Tokens, position: int, end: int, phrases: Phrases) -> tuple[int, int]:
    """(zeros that the numerals at `position` add to the number before them, index after these numerals)

    For example, 万 adds 4 zeros.
    """
    power = ZERO
    while position < end and is_numeral(tokens, position):
        value = phrases.worth[tokens.chars[tokens.starts[position]]]
        if value < _TEN:
            break
        while value >= _TEN:
            value //= _TEN
            power += 1
        position += 1
    return power, position


@kernel(callee=True)
def is_numeral(tokens: Tokens, position: int) -> bool:
    """Whether the token at `position` is a Chinese numeral."""
    return tokens.kinds[position] == CHARACTER and tokens.facts[position] & NUMERAL != 0


@kernel(callee=True)
def _add_digits(
    chars: NDArray[np.uint32], first: int, end: int, power: int, prefix: np.uint64, parts: bool,
    phrases: Phrases, values: Values,
) -> None:  # fmt: skip
    """Add the value of digits, as `_of_digits` reads it, and beside it that of their other reading."""
    count = values.counts[0]
    _add(values, _of_digits(chars, first, end, power, prefix, parts, phrases), NO)
    if values.counts[0] > count:
        values.others[count] = _of_thousands(chars, first, end, power, prefix, phrases)


@kernel(callee=True)
def _of_token(
    tokens: Tokens, first: int, end: int, power: int, prefix: np.uint64, phrases: Phrases, values: Values
) -> None:
    """Add the values of one token with digits, chars[first:end].

    end: where its number ends, before letters behind it; power: zeros that are added to the last value
    prefix: hash of a currency that stands behind the number as a word, 0 for none
    """
    chars = tokens.chars
    i = first
    while i < end:
        if class_of(chars[i], phrases) & DIGIT:
            stop = _digits_end(chars, i, end, phrases)
            marked = stop == end - 1 and class_of(chars[stop], phrases) & NUMBER_MARK != 0
            last = power if stop == end or marked else ZERO
            if marked:
                prefix = (prefix ^ (np.uint64(chars[stop]) << _BEHIND)) * FNV_PRIME
            _add_digits(chars, i, stop, last, prefix, NO, phrases, values)
            prefix = np.uint64(0)
            i = stop
            continue
        # A sign, currency or comparison before a number. After a digit, the same characters separate values,
        # but for operators; x between digits is one of them (5x10, 5*10).
        sign = chars[i]
        if sign == _X and first < i < end - 1 and class_of(chars[i - 1], phrases) & DIGIT:
            sign = np.uint32(_TIMES) if class_of(chars[i + 1], phrases) & DIGIT else sign
        operates = False
        for operator in _OPERATORS:
            operates |= sign == operator
        before = i == first or prefix != np.uint64(0) or (operates and i < end - 1)
        if before and class_of(sign, phrases) & NUMBER_MARK:
            prefix = (prefix ^ np.uint64(sign)) * FNV_PRIME
        i += 1


@kernel(callee=True)
def _is_name(tokens: Tokens, position: int, phrases: Phrases) -> bool:
    """Whether a mix of letters and digits is a name: it has more than two letters and is short enough.

    Letters that are all x mask digits (138xxxx1234).
    """
    letters = masks = ZERO
    for i in range(tokens.starts[position], tokens.starts[position + 1]):
        letters += class_of(tokens.chars[i], phrases) & (DIGIT | NUMBER_MARK) == 0
        masks += tokens.chars[i] == _X
    return (
        letters > _NAME_LETTERS
        and letters > masks
        and tokens.starts[position + 1] - tokens.starts[position] <= LONGEST_CODE
    )


@kernel(callee=True)
def of_numerals(tokens: Tokens, position: int, end: int, phrases: Phrases) -> np.uint64:
    """The value of Chinese numerals, written digit by digit (二〇二〇) or with 十 百 千 万 亿."""
    total = section = current = ZERO
    places = True
    for i in range(position, end):
        places &= phrases.worth[tokens.chars[tokens.starts[i]]] < _TEN
    if places:
        digits, zeros = FNV_OFFSET, ZERO
        for i in range(position, end):
            value = phrases.worth[tokens.chars[tokens.starts[i]]]
            if value == 0:
                zeros += digits != FNV_OFFSET
                continue
            for _ in range(zeros):
                digits = (digits ^ np.uint64(0)) * FNV_PRIME
            zeros = ZERO
            digits = (digits ^ np.uint64(value)) * FNV_PRIME
        return _finish(digits, zeros, np.uint64(0))
    for i in range(position, end):
        value = phrases.worth[tokens.chars[tokens.starts[i]]]
        if value < _TEN:
            current = value
        elif value < 10_000:
            section += max(current, 1) * value
            current = ZERO
        else:
            # Several of 万 and 亿 in a row are no number. The modulus keeps such a value below 2^63.
            total = max(total + section + current, 1) % 100_000_000 * value
            section = current = ZERO
    return _of_integer(total + section + current)


@kernel(callee=True)
def read_values(tokens: Tokens, first: int, end: int, phrases: Phrases, values: Values, ways: int) -> None:
    """Write the values of tokens[first:end] to `values`.

    ways: bits of further ways to read them, such as SPACED
    """
    values.counts[0] = values.counts[1] = 0
    position = first
    while position < end:
        kind = tokens.kinds[position]
        if kind == CHARACTER:
            stop = position
            while stop < end and is_numeral(tokens, stop):
                stop += 1
            if stop > position:
                _add(values, of_numerals(tokens, position, stop, phrases), YES)
                position = stop
                continue
        elif kind == WORD:
            if tokens.facts[position] & EXCLUDES:
                stop = _read_date(tokens, position, end, phrases, values)
                if stop > position:
                    position = stop
                    continue
            if tokens.facts[position] & NUMERAL:
                value, position = _said_number(tokens, position, end, phrases)
                _add(values, _of_integer(value), NO)
                continue
        else:
            stop = _read_in_ways(tokens, position, end, ways, phrases, values) if ways else position
            skipped = np.int64(is_dash(tokens, position, phrases))
            if stop == position:
                stop = _read_written(tokens, position, first, end, skipped, phrases, values)
            if stop == position:
                stop = read_digits(tokens, position, end, skipped, phrases, values)
            position = stop
            continue
        position += 1


@kernel(callee=True)
def _said_number(tokens: Tokens, position: int, end: int, phrases: Phrases) -> tuple[int, int]:
    """(value of a number in words, index after them): two hundred and five, twenty one, three million.

    end: of the tokens that are read; a power may stand behind it, where both bodies are equal
    """
    value = phrases.number[find(phrases, tokens.ids[position])]
    at = position + 1
    while at < tokens.counts[0] and tokens.kinds[at] == WORD:
        if tokens.facts[at] & POWER:
            power = phrases.number[find(phrases, tokens.ids[at])]
            for _ in range(power):
                value = value * _TEN if value < _MOST else value
            at += 1
            continue
        more = at
        if tokens.starts[at + 1] - tokens.starts[at] <= _GROUP and tokens.facts[at] & LIGHT:
            more = at + 1
        if more >= end or tokens.kinds[more] != WORD:
            break
        unit = np.int64(1) if tokens.facts[more] & ONE else ZERO
        if tokens.facts[more] & NUMERAL:
            unit = phrases.number[find(phrases, tokens.ids[more])]
        fits = (value >= 100 and value % 100 == 0 and unit < 100) or (
            value % 10 == 0 and value % 100 >= 20 and unit < _TEN
        )
        if unit == 0 or not fits:
            break
        value += unit
        at = more + 1
    return value, np.int64(at)


@kernel(callee=True)
def _read_in_ways(
    tokens: Tokens, position: int, end: int, ways: int, phrases: Phrases, values: Values
) -> int:
    """Add the values of a number that can be read in another way. returns: index after it, or `position`

    ways: SPACED, 1 299,00 is 1299; DOTTED_DATES, 9.22 is the month 9 and the day 22
    """
    first, token_end = tokens.starts[position], tokens.starts[position + 1]
    if ways & DOTTED_DATES and tokens.kinds[position] == NUMBER:
        dot = _dot_of_date(tokens, position, phrases)
        if dot > first:
            _of_token(tokens, first, dot, ZERO, np.uint64(0), phrases, values)
            _of_token(tokens, dot + 1, token_end, ZERO, np.uint64(0), phrases, values)
            return position + 1
    if ways & DOTTED_TIMES and tokens.kinds[position] == NUMBER and token_end - first >= _CLOCK_LENGTH:
        dot = token_end - _GROUP
        if tokens.chars[dot] == _DOT and is_clock(tokens, position, phrases):
            _of_token(tokens, first, dot, ZERO, np.uint64(0), phrases, values)
            _of_token(tokens, dot + 1, token_end, ZERO, np.uint64(0), phrases, values)
            return position + 1
    stop = _spaced_end(tokens, position, end, phrases) if ways & SPACED else position
    if stop == position:
        return position
    token_end = tokens.starts[stop]
    power, after = _power_behind(tokens, stop, end, phrases)
    prefix = np.uint64(0)
    if after == stop:
        power, sign, after = _said_behind(tokens, stop, phrases)
        if sign != NO_SUCH and class_of(tokens.chars[first], phrases) & DIGIT:
            prefix = np.uint64(sign) * FNV_PRIME
    _of_token(tokens, first, token_end, max(power, ZERO), prefix, phrases, values)
    return max(stop, min(after, end))


@kernel(callee=True)
def _said_behind(tokens: Tokens, stop: int, phrases: Phrases) -> tuple[int, int, int]:
    """(power of ten of a word at `stop`, sign of a currency there or behind it; index after both)

    NO_SUCH for a word that is not there
    """
    power = sign = np.int64(NO_SUCH)
    if stop < tokens.counts[0] and tokens.facts[stop] & POWER:
        power = meant_at(tokens, tokens.starts[stop], tokens.starts[stop + 1], np.int64(POWER), phrases)
        stop += 1
    paid = stop + _is_us(tokens, stop)
    if paid < tokens.counts[0] and tokens.facts[paid] & CURRENCY:
        sign = meant_at(tokens, tokens.starts[paid], tokens.starts[paid + 1], np.int64(CURRENCY), phrases)
        stop = paid + 1
    return power, sign, np.int64(stop)


@kernel(callee=True)
def _is_us(tokens: Tokens, position: int) -> bool:
    """Whether a token is the word us, as in US dollars."""
    if position >= tokens.counts[0] or tokens.starts[position + 1] - tokens.starts[position] != len(_US):
        return False
    first = tokens.starts[position]
    return tokens.chars[first] == _US[0] and tokens.chars[first + 1] == _US[1]


@kernel(callee=True)
def _dot_of_date(tokens: Tokens, position: int, phrases: Phrases) -> int:
    """Where the dot of 9.22 stands, of two numbers that can be a month and a day; else 0."""
    first, end = tokens.starts[position], tokens.starts[position + 1]
    dot = first
    while dot < end and tokens.chars[dot] != _DOT:
        dot += 1
    if not (1 <= dot - first <= 2 and 1 <= end - dot - 1 <= 2):
        return ZERO
    one = other = ZERO
    for i in range(first, end):
        if i == dot:
            continue
        if not class_of(tokens.chars[i], phrases) & DIGIT:
            return ZERO
        if i < dot:
            one = one * _TEN + phrases.worth[tokens.chars[i]]
        else:
            other = other * _TEN + phrases.worth[tokens.chars[i]]
    fits = min(one, other) >= 1 and min(one, other) <= _MONTHS and max(one, other) <= _DAYS
    return dot if fits else ZERO


@kernel(callee=True)
def _spaced_end(tokens: Tokens, position: int, end: int, phrases: Phrases) -> int:
    """Index after the tokens of one number whose thousands have blanks between them; or `position`."""
    if tokens.kinds[position] != NUMBER:
        return position
    i, token_end = tokens.starts[position], tokens.starts[position + 1]
    while i < token_end and not class_of(tokens.chars[i], phrases) & DIGIT:
        i += 1
    if i == token_end or token_end - i > _GROUP or phrases.worth[tokens.chars[i]] == 0:
        return position
    if _digits_of(tokens, i, token_end, phrases) != token_end:
        return position
    stop = position + 1
    while stop < end and tokens.kinds[stop] == NUMBER:
        begin, token_end = tokens.starts[stop], tokens.starts[stop + 1]
        behind = _digits_of(tokens, begin, token_end, phrases)
        if behind - begin != _GROUP:
            break
        stop += 1
        if behind < token_end:
            is_cut = tokens.chars[behind] == _DOT or tokens.chars[behind] == _COMMA
            if not is_cut or _digits_of(tokens, behind + 1, token_end, phrases) != token_end:
                stop -= 1
            break
    return stop if stop > position + 1 else position


@kernel(callee=True)
def _digits_of(tokens: Tokens, i: int, end: int, phrases: Phrases) -> int:
    """Index after the digits alone that begin at chars[i]."""
    while i < end and class_of(tokens.chars[i], phrases) & DIGIT:
        i += 1
    return i


@kernel(callee=True)
def writes_dates(tokens: Tokens, first: int, end: int) -> bool:
    """Whether tokens hold a date of month and day that is no decimal number: 9/22, 9月22日, 05.03."""
    for position in range(first, end):
        begin = tokens.starts[position]
        is_long = tokens.kinds[position] == NUMBER and tokens.starts[position + 1] - begin > _GROUP
        if is_long and tokens.chars[begin] == _ZERO_DIGIT and tokens.chars[begin + 2] == _DOT:
            return True
        for i in range(tokens.starts[position], tokens.starts[position + 1]):
            if tokens.chars[i] == _SLASH or tokens.chars[i] == _MONTH:
                return True
    return False


@kernel(callee=True)
def _writes_times(tokens: Tokens, first: int, end: int, phrases: Phrases) -> bool:
    """Whether tokens hold a time with a colon: 14:30."""
    for position in range(first, end):
        begin, stop = tokens.starts[position], tokens.starts[position + 1]
        is_long = tokens.kinds[position] == NUMBER and stop - begin >= _CLOCK_LENGTH
        if is_long and tokens.chars[stop - _GROUP] == _COLON and is_clock(tokens, position, phrases):
            return True
    return False


@kernel(callee=True)
def writes_one_string(run: NDArray[np.int64], phrases: Phrases, later: Tokens, earlier: Tokens) -> bool:
    """Whether both sides of a run are one string of seven digits or more, in one piece or in equal groups.

    555-123-4567, 5551234567; 06 12 34 56 78, 06.12.34.56.78: a number of a phone, a card or a book. Other
    groups of the same digits are another number: 1.12.2024, 11.2.2024.
    """
    i, end = later.starts[run[0]], later.starts[run[1]]
    k, other_end = earlier.starts[run[2]], earlier.starts[run[3]]
    a, b = run[0] + 1, run[2] + 1
    digits = gaps = other_gaps = both = ZERO
    while i < end and k < other_end:
        if later.chars[i] != earlier.chars[k] or not class_of(later.chars[i], phrases) & DIGIT:
            return False
        digits, i, k = digits + 1, i + 1, k + 1
        gap, a, i = _gap(later, i, end, a)
        other_gap, b, k = _gap(earlier, k, other_end, b)
        gaps, other_gaps, both = gaps + gap, other_gaps + other_gap, both + (gap and other_gap)
    return bool(
        i == end
        and k == other_end
        and digits >= _STRING
        and (gaps == 0 or other_gaps == 0 or gaps == other_gaps == both)
    )


@kernel(callee=True)
def _gap(tokens: Tokens, i: int, end: int, following: int) -> tuple[bool, int, int]:
    """(whether a group of digits ends before chars[i], the token that begins behind it, where it goes on)

    following: token whose beginning ends the group
    """
    if i < end and i == tokens.starts[following]:
        return YES, following + 1, i
    if i + 1 < end and tokens.chars[i] in (_DOT, _SLASH, _DASH):
        return YES, following, i + 1
    return NO, following, i


@kernel(callee=True)
def read_in_all_ways(
    later: Tokens,
    earlier: Tokens,
    run: NDArray[np.int64],
    phrases: Phrases,
    mine: Values,
    other: Values,
) -> None:
    """Write the values of both sides of a run, each read in the ways in which the other may be written."""
    dated = writes_dates(later, run[0], run[1]) or writes_dates(earlier, run[2], run[3])
    ways = np.int64(SPACED | DOTTED_DATES if dated else SPACED)
    if _writes_times(later, run[0], run[1], phrases) or _writes_times(earlier, run[2], run[3], phrases):
        ways |= DOTTED_TIMES
    read_values(later, run[0], run[1], phrases, mine, ways)
    read_values(earlier, run[2], run[3], phrases, other, ways)


@kernel(callee=True)
def read_digits(
    tokens: Tokens, position: int, end: int, skipped: int, phrases: Phrases, values: Values
) -> int:
    """Add the values of the token with digits at `position` to `values`. returns: index of the next token

    skipped: characters at its beginning that are not read, a dash that is no minus
    """
    if tokens.kinds[position] == MIX and _is_name(tokens, position, phrases):
        _add(values, tokens.ids[position] ^ NAME, NO)
        return position + 1
    power, stop = _power_behind(tokens, position + 1, end, phrases)
    first, token_end = tokens.starts[position] + skipped, tokens.starts[position + 1]
    token_end -= is_second_with_dash(tokens, position)
    first, prefix = _after_sign_of_real(tokens, position, first)
    if power == 0 and _is_version(tokens, position, phrases):
        _add_digits(tokens.chars, first, token_end, ZERO, prefix, YES, phrases, values)
        return stop
    _of_token(tokens, first, token_end, power, prefix, phrases, values)
    return stop


@kernel(callee=True)
def _after_sign_of_real(tokens: Tokens, position: int, first: int) -> tuple[int, np.uint64]:
    """(where the digits of R$ 50 or HK$ 50 begin, hash of its currency); (first, 0) for another sign."""
    if position == 0 or tokens.chars[first] != _DOLLAR or tokens.kinds[position - 1] != WORD:
        return first, np.uint64(0)
    before = tokens.starts[position - 1]
    length = tokens.starts[position] - before
    if length == 1 and tokens.chars[before] == _R:
        return first + 1, np.uint64(_REAL) * FNV_PRIME
    if length == len(_US):
        for k in range(len(_DOLLARS)):
            if tokens.chars[before] == _DOLLARS[k][0] and tokens.chars[before + 1] == _DOLLARS[k][1]:
                return first + 1, np.uint64(_DOLLARS[k][0] * _THOUSAND + _DOLLARS[k][1]) * FNV_PRIME
    return first, np.uint64(0)


@kernel(callee=True)
def _is_version(tokens: Tokens, position: int, phrases: Phrases) -> bool:
    """Whether a number with a point ends with a zero that counts: version 3.10, section 3.20.

    It does not beside a unit, a currency or a power: 2.50 dollars. Bodies have dropped such zeros before a %.
    """
    first, end = tokens.starts[position], tokens.starts[position + 1]
    if tokens.kinds[position] != NUMBER or phrases.worth[tokens.chars[end - 1]] != 0:
        return False
    dot = end - 2 if tokens.chars[end - 2] == _DOT else end - 3
    if dot <= first or dot - first > _GROUP or tokens.chars[dot] != _DOT:
        return False
    for i in range(first, end):
        if i != dot and not class_of(tokens.chars[i], phrases) & DIGIT:
            return False
    sum_of_money = dot == end - 3 and phrases.worth[tokens.chars[end - 2]] == 0  # 12.00
    if sum_of_money or (dot == first + 1 and phrases.worth[tokens.chars[first]] == 0):
        return False
    for at in range(max(0, position - _BESIDE), position):
        if tokens.kinds[at] == WORD and (
            tokens.facts[at] & CURRENCY or has_sense_of_kind(phrases, tokens.rows[at], UNITS)
        ):
            return False
    for at in range(position + 1, min(position + 1 + _BESIDE, tokens.counts[0])):
        if (at == position + 1 or tokens.kinds[at] == WORD) and _measures(tokens, at, phrases):
            return False
    return True


@kernel(callee=True)
def _measures(tokens: Tokens, position: int, phrases: Phrases) -> bool:
    """Whether a token is a unit, a currency, a power or what can be below zero."""
    if tokens.kinds[position] == WORD:
        if tokens.facts[position] & (POWER | CURRENCY | BELOW_ZERO):
            return True
        return has_sense_of_kind(phrases, tokens.rows[position], UNITS)
    return is_numeral(tokens, position) or role_at(tokens, position, np.int64(MEASURE | BELOW_ZERO), phrases)


@kernel(callee=True)
def _has_currency(tokens: Tokens, position: int, phrases: Phrases) -> bool:
    """Whether a token begins with the sign of a currency, as $5m does: then m is a million, else metres."""
    first = tokens.starts[position]
    return meant_at(tokens, first, first + 1, np.int64(CURRENCY), phrases) != NO_SUCH


@kernel(callee=True)
def _read_date(tokens: Tokens, position: int, end: int, phrases: Phrases, values: Values) -> int:
    """Add year, month and day of a date with the name of its month. returns: index after it, or `position`"""
    year, month, day, stop = date_at(tokens, position, end, phrases)
    if month != NO_SUCH:
        if year != NO_SUCH:
            _add(values, _of_integer(year), NO)
        _add(values, _of_integer(month), NO)
        _add(values, _of_integer(day), NO)
    return stop


@kernel(callee=True)
def _hour_at(tokens: Tokens, position: int, first: int, end: int, phrases: Phrases) -> tuple[int, int, int]:
    """(hour, minute, index behind) of 8点半, 20点 or 午後3時; the hour is NO_SUCH for no such time.

    The minute is NO_SUCH where a number follows, which says it (8点30分), and where both bodies have the
    same behind the hour. first, end: of the tokens that are read; 下午 before them is in both
    """
    hour, at = whole_of(tokens, position, phrases), position + 1
    if not 0 <= hour <= _DAY or at >= tokens.counts[0] or tokens.kinds[at] != CHARACTER:
        return np.int64(NO_SUCH), ZERO, position
    named = False
    for char in _HOURS:
        named |= tokens.chars[tokens.starts[at]] == char
    if not named:
        return np.int64(NO_SUCH), ZERO, position
    if hour < _HALF_DAY and position >= first + 2 and _is_afternoon(tokens, position):
        hour += _HALF_DAY
    minute, at = ZERO if at < end else np.int64(NO_SUCH), at + 1
    if at < tokens.counts[0] and (
        tokens.chars[tokens.starts[at]] == _LASTS[0] or tokens.chars[tokens.starts[at]] == _LASTS[1]
    ):
        return np.int64(NO_SUCH), ZERO, position
    if at < tokens.counts[0] and tokens.chars[tokens.starts[at]] == _HALF:
        minute, at = np.int64(30), at + 1
    elif at < tokens.counts[0] and tokens.kinds[at] == NUMBER:
        minute = np.int64(NO_SUCH)
    return hour, minute, at


@kernel(callee=True)
def _is_afternoon(tokens: Tokens, position: int) -> bool:
    """Whether 下午, 午後 or 晚上 stands before a number."""
    if position < 2 or tokens.kinds[position - 1] != CHARACTER or tokens.kinds[position - 2] != CHARACTER:
        return False
    one, other = tokens.chars[tokens.starts[position - 2]], tokens.chars[tokens.starts[position - 1]]
    for k in range(len(_AFTERNOON)):  # noqa: SIM110
        if one == _AFTERNOON[k][0] and other == _AFTERNOON[k][1]:
            return True
    return False


@kernel(callee=True)
def _read_written(
    tokens: Tokens, position: int, first_read: int, end: int, skipped: int, phrases: Phrases, values: Values
) -> int:
    """Add the values of a date, a time or a sum that begins with the digits at `position`.

    skipped: as in `read_digits`
    first_read, end: of the tokens that are read; am, pm and powers may stand behind them, in both bodies
    returns: index of the next token, or `position` if the token is none of these
    """
    stop = _read_date(tokens, position, end, phrases, values) if position + 1 < end else position
    if stop > position:
        return stop
    if tokens.kinds[position] == NUMBER:
        year, month, day = parts_of_date(tokens, position, phrases)
        if month != NO_SUCH:
            _add(values, _of_integer(year), NO)
            _add(values, _of_integer(month), NO)
            _add(values, _of_integer(day), NO)
            return position + 1
        hour, minute, stop = _hour_at(tokens, position, first_read, end, phrases)
    else:
        hour, minute = hour_of(tokens, position, phrases)
        stop = position + 1
    if hour != NO_SUCH:
        _add(values, _of_integer(hour), NO)
        if minute != NO_SUCH:
            _add(values, _of_integer(minute), NO)
        return min(stop, max(end, position + 1))
    hour, minute, letters = clock_of(tokens, position, phrases)
    token_end = tokens.starts[position + 1]
    half, said = np.int64(NO_SUCH), ZERO
    if hour != NO_SUCH and letters == token_end:
        half, said = half_day_at(tokens, position + 1)
    elif hour != NO_SUCH and token_end - letters == 2 and tokens.chars[letters + 1] == _M:
        half = half_of(tokens.chars[letters])
    if half != NO_SUCH:
        _add(values, _of_integer(hour % 12 + half), NO)
        _add(values, _of_integer(minute), NO)
        return min(position + 1 + said, max(end, position + 1))
    letters = letters_from(tokens, position, phrases) if tokens.kinds[position] == MIX else token_end
    if letters == NO_SUCH:
        return position
    stop = position + 1
    power = sign = np.int64(NO_SUCH)
    if letters < token_end:
        power = meant_at(tokens, letters, token_end, np.int64(POWER), phrases)
        stem = token_end - 1
        while power == NO_SUCH and stem > letters and is_hangul(tokens.chars[letters]):
            power = meant_at(tokens, letters, stem, np.int64(POWER), phrases)  # 억원 of 3억원을
            stem -= 1
        if (
            token_end - letters == 1
            and tokens.chars[letters] == _M
            and _has_currency(tokens, position, phrases)
        ):
            power = np.int64(_MILLION)
        sign = meant_at(tokens, letters, token_end, np.int64(CURRENCY), phrases)
        if stop < tokens.counts[0] and tokens.facts[stop] & CURRENCY:
            sign = meant_at(tokens, tokens.starts[stop], tokens.starts[stop + 1], np.int64(CURRENCY), phrases)
            stop += 1
    else:
        power, sign, stop = _said_behind(tokens, stop, phrases)
    if power == NO_SUCH and sign == NO_SUCH:
        return position
    first, prefix = _after_sign_of_real(tokens, position, tokens.starts[position] + skipped)
    if sign != NO_SUCH and class_of(tokens.chars[first], phrases) & DIGIT:
        prefix = np.uint64(sign) * FNV_PRIME
    _of_token(tokens, first, letters, max(power, ZERO), prefix, phrases, values)
    return min(stop, max(end, position + 1))


@kernel(callee=True)
def holds_all(some: Values, of: Values, numerals: bool) -> bool:
    """Whether `some` contains each value of `of`, at least as often.

    numerals: if False, values of `of` that were written in Chinese numerals are ignored
    """
    for i in range(of.counts[0]):
        if of.numerals[i] and not numerals:
            continue
        value = of.values[i]
        wanted = present = ZERO
        for k in range(of.counts[0]):
            wanted += of.values[k] == value and (numerals or not of.numerals[k])
        for k in range(some.counts[0]):
            present += are_one(some, k, of, i)
        if present < wanted:
            return False
    return True


@kernel(callee=True)
def holds_any(some: Values, of: Values) -> bool:
    """Whether both have a value in common."""
    for i in range(of.counts[0]):
        for k in range(some.counts[0]):
            if are_one(some, k, of, i):
                return True
    return False


@kernel(callee=True)
def are_one(some: Values, k: int, other: Values, i: int) -> bool:
    """Whether two values are one, in one of the ways to read each of them."""
    value, other_value = some.values[k], other.values[i]
    if value == other_value:
        return True
    read, other_read = some.others[k], other.others[i]
    if read == np.uint64(0):
        return other_read == value
    return bool(read == other_value) | bool(read == other_read)


@kernel(callee=True)
def same_order(some: Values, other: Values) -> bool:
    """Whether both have the same values in the same order."""
    if some.counts[0] != other.counts[0]:
        return False
    for i in range(some.counts[0]):  # noqa: SIM110
        if not are_one(some, i, other, i):
            return False
    return True
