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

from twinsieve.stages.differ.phrases import (
    CURRENCY,
    DIGIT,
    EXCLUDES,
    NUMBER_MARK,
    NUMERAL,
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

_NAME = np.uint64(0x5851F42D4C957F2D)
_DOT, _COMMA = ord("."), ord(",")
_NAME_LETTERS = 2
_NAME_LENGTH = 14
_BEHIND = np.uint64(32)
"""Shift of a mark after a number, so that it has another hash than the same mark before the number."""
_TEN = 10
_M = ord("m")
_MILLION = 6


MAX_VALUES = 64
"""Greatest number of values that are read of one run. It limits the time for a text that is all digits."""


class Values(NamedTuple):
    """The values of some tokens; memory of one thread.

    values: uint64[…], hashes, equal for equal values
    numerals: bool[…], whether the value was written in Chinese numerals
    counts: int64[2], (number of values, number of values not written in Chinese numerals)
    """

    values: NDArray[np.uint64]
    numerals: NDArray[np.bool_]
    counts: NDArray[np.int64]


def new_values() -> Values:
    """New memory for one thread."""
    return Values(np.zeros(MAX_VALUES, np.uint64), np.zeros(MAX_VALUES, np.bool_), np.zeros(2, np.int64))


@kernel(callee=True)
def _add(values: Values, value: np.uint64, numeral: bool) -> None:
    count = values.counts[0]
    if count == MAX_VALUES:
        return
    values.values[count] = value
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

    One point is a decimal point. With several points, it is a version or an address, and all parts count.
    prefix: hash of a sign, currency or comparison before the digits and a mark after them; 0 without these
    """
    points = ZERO
    for i in range(first, end):
        points += chars[i] == _DOT or chars[i] == _COMMA
    digits, zeros = FNV_OFFSET, ZERO
    exponent = power if points <= 1 else ZERO
    behind = False
    for i in range(first, end):
        if chars[i] == _DOT or chars[i] == _COMMA:
            behind = True
            if points > 1:
                for _ in range(zeros):
                    digits = (digits ^ np.uint64(0)) * FNV_PRIME
                zeros = ZERO
                digits = (digits ^ np.uint64(_DOT)) * FNV_PRIME
            continue
        digit = np.uint64(phrases.worth[chars[i]])
        exponent -= behind and points == 1
        if digit == np.uint64(0) and (digits != FNV_OFFSET or zeros > 0 or points > 1):
            zeros += 1
        elif digit != np.uint64(0):
            for _ in range(zeros):
                digits = (digits ^ np.uint64(0)) * FNV_PRIME
            zeros = ZERO
            digits = (digits ^ digit) * FNV_PRIME
    if digits == FNV_OFFSET:
        return _finish(digits, ZERO, prefix)
    return _finish(digits, exponent + zeros, prefix)


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
    tokens: Tokens, position: int, end: int, power: int, prefix: np.uint64, phrases: Phrases, values: Values
) -> None:
    """Add the values of one token with digits.

    end: where its number ends, before letters behind it; power: zeros that are added to the last value
    prefix: hash of a currency that stands behind the number as a word, 0 for none
    """
    chars, first = tokens.chars, tokens.starts[position]
    i = first
    while i < end:
        if class_of(chars[i], phrases) & DIGIT:
            stop = _digits_end(chars, i, end, phrases)
            marked = stop == end - 1 and class_of(chars[stop], phrases) & NUMBER_MARK != 0
            last = power if stop == end or marked else ZERO
            if marked:
                prefix = (prefix ^ (np.uint64(chars[stop]) << _BEHIND)) * FNV_PRIME
            _add(values, _of_digits(chars, i, stop, last, prefix, phrases), NO)
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
    """Whether a mix of letters and digits is a name: it has more than two letters and is short enough."""
    letters = ZERO
    for i in range(tokens.starts[position], tokens.starts[position + 1]):
        letters += class_of(tokens.chars[i], phrases) & (DIGIT | NUMBER_MARK) == 0
    return letters > _NAME_LETTERS and tokens.starts[position + 1] - tokens.starts[position] <= _NAME_LENGTH


@kernel(callee=True)
def _of_numerals(tokens: Tokens, position: int, end: int, phrases: Phrases) -> np.uint64:
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
def read_values(tokens: Tokens, first: int, end: int, phrases: Phrases, values: Values) -> None:
    """Write the values of tokens[first:end] to `values`."""
    values.counts[0] = values.counts[1] = 0
    position = first
    while position < end:
        kind = tokens.kinds[position]
        if kind == CHARACTER:
            stop = position
            while stop < end and is_numeral(tokens, stop):
                stop += 1
            if stop > position:
                _add(values, _of_numerals(tokens, position, stop, phrases), YES)
                position = stop
                continue
        elif kind == WORD:
            if tokens.facts[position] & EXCLUDES:
                stop = _read_date(tokens, position, end, phrases, values)
                if stop > position:
                    position = stop
                    continue
            if tokens.facts[position] & NUMERAL:
                _add(values, _of_integer(phrases.number[find(phrases, tokens.ids[position])]), NO)
        else:
            stop = _read_written(tokens, position, end, phrases, values)
            position = stop if stop > position else read_digits(tokens, position, end, phrases, values)
            continue
        position += 1


@kernel(callee=True)
def read_digits(tokens: Tokens, position: int, end: int, phrases: Phrases, values: Values) -> int:
    """Add the values of the token with digits at `position` to `values`. returns: index of the next token"""
    if tokens.kinds[position] == MIX and _is_name(tokens, position, phrases):
        _add(values, tokens.ids[position] ^ _NAME, NO)
        return position + 1
    power, stop = _power_behind(tokens, position + 1, end, phrases)
    _of_token(tokens, position, tokens.starts[position + 1], power, np.uint64(0), phrases, values)
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
def _read_written(tokens: Tokens, position: int, end: int, phrases: Phrases, values: Values) -> int:
    """Add the values of a date, a time or a sum that begins with the digits at `position`.

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
    elif stop < tokens.counts[0] and tokens.facts[stop] & POWER:
        power = meant_at(tokens, tokens.starts[stop], tokens.starts[stop + 1], np.int64(POWER), phrases)
        stop += 1
    if stop < tokens.counts[0] and tokens.facts[stop] & CURRENCY:
        sign = meant_at(tokens, tokens.starts[stop], tokens.starts[stop + 1], np.int64(CURRENCY), phrases)
        stop += 1
    if power == NO_SUCH and sign == NO_SUCH:
        return position
    prefix = np.uint64(0)
    if sign != NO_SUCH and class_of(tokens.chars[tokens.starts[position]], phrases) & DIGIT:
        prefix = np.uint64(sign) * FNV_PRIME
    _of_token(tokens, position, letters, max(power, ZERO), prefix, phrases, values)
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
            present += some.values[k] == value
        if present < wanted:
            return False
    return True


@kernel(callee=True)
def holds_any(some: Values, of: Values) -> bool:
    """Whether both have a value in common."""
    for i in range(of.counts[0]):
        for k in range(some.counts[0]):
            if some.values[k] == of.values[i]:
                return True
    return False


@kernel(callee=True)
def same_order(some: Values, other: Values) -> bool:
    """Whether both have the same values in the same order."""
    if some.counts[0] != other.counts[0]:
        return False
    for i in range(some.counts[0]):  # noqa: SIM110
        if some.values[i] != other.values[i]:
            return False
    return True
