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

from twinsieve.stages.differ.dashes import is_dash
from twinsieve.stages.differ.phrases import (
    CURRENCY,
    DIGIT,
    EXCLUDES,
    LIGHT,
    NUMBER_MARK,
    NUMERAL,
    ONE,
    POWER,
    Phrases,
    find,
)
from twinsieve.stages.differ.tokens import CHARACTER, MIX, NUMBER, WORD, Tokens, class_of
from twinsieve.stages.differ.written import (
    NO_SUCH,
    clock_of,
    date_at,
    half_day_at,
    half_of,
    letters_from,
    meant_at,
    parts_of_date,
)
from twinsieve.stages.intrinsics import FNV_OFFSET, FNV_PRIME, GOLDEN
from twinsieve.stages.kernel import NO, YES, ZERO, kernel

NAME = np.uint64(0x5851F42D4C957F2D)
"""Makes the value of a mix that is a name from its id."""
_DOT, _COMMA = ord("."), ord(",")
_GROUP = 3
_NAME_LETTERS = 2
_NAME_LENGTH = 14
_BEHIND = np.uint64(32)
"""Shift of a mark after a number, so that it has another hash than the same mark before the number."""
_TEN = 10
_M = ord("m")
_MILLION = 6
_MOST = 10**15
"""Values of words are not multiplied beyond this, so that they stay below 2^63."""
_MONTHS, _DAYS = 12, 31
_X = ord("x")
_ZERO_DIGIT = ord("0")
_SLASH, _MONTH = ord("/"), ord("月")
PLAINLY, SPACED, DOTTED_DATES = 0, 1, 2
"""Bits of ways to read numbers, in addition to the plain one: 1 299,00 as 1299; 9.22 as month and day."""


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
    chars: NDArray[np.uint32], first: int, end: int, power: int, prefix: np.uint64, phrases: Phrases
) -> np.uint64:
    """The value of digits with points or commas between them, times 10 ** power.

    One point is a decimal point. With several points, it is a date, a version or an address, and all parts
    count, without zeros in front (05.03.2024).
    prefix: hash of a sign, currency or comparison before the digits and a mark after them; 0 without these
    """
    points = ZERO
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
            count = values.counts[0]
            _add(values, _of_digits(chars, i, stop, last, prefix, phrases), NO)
            if values.counts[0] > count:
                values.others[count] = _of_thousands(chars, i, stop, last, prefix, phrases)
            prefix = np.uint64(0)
            i = stop
            continue
        # A sign, currency or comparison before a number. After a digit, the same characters separate values.
        before = i == first or prefix != np.uint64(0)
        if before and class_of(chars[i], phrases) & NUMBER_MARK:
            prefix = (prefix ^ np.uint64(chars[i])) * FNV_PRIME
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
        and tokens.starts[position + 1] - tokens.starts[position] <= _NAME_LENGTH
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
                stop = _read_written(tokens, position, end, skipped, phrases, values)
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
    if stop < tokens.counts[0] and tokens.facts[stop] & CURRENCY:
        sign = meant_at(tokens, tokens.starts[stop], tokens.starts[stop + 1], np.int64(CURRENCY), phrases)
        stop += 1
    return power, sign, np.int64(stop)


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
    _of_token(tokens, first, token_end, power, np.uint64(0), phrases, values)
    return stop


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
def _read_written(
    tokens: Tokens, position: int, end: int, skipped: int, phrases: Phrases, values: Values
) -> int:
    """Add the values of a date, a time or a sum that begins with the digits at `position`.

    skipped: as in `read_digits`
    end: of the tokens that are read; am, pm and powers may stand behind it, where both bodies are equal
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
    prefix = np.uint64(0)
    first = tokens.starts[position] + skipped
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
