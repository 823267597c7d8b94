"""Numbers that are written with words: sums (1.8 billion), times (3 pm) and dates (March 5, 2024).

They have the values of the same number in digits: 1800000000, 15:00, 2024-03-05. A date counts as year, month
and day, in this order, so a date that can be read in two ways (05/03/2024) equals none that is written out.
"""

from __future__ import annotations

import numpy as np

from twinsieve.stages.differ.phrases import (
    DIGIT,
    MONTHS,
    NUMBER_MARK,
    Phrases,
    find,
    hash_of,
)
from twinsieve.stages.differ.tokens import MIX, NUMBER, WORD, Tokens, class_of
from twinsieve.stages.kernel import ZERO, kernel

NO_SUCH = -1
"""What a function returns for a token that is not what it looks for."""
_A, _H, _P, _M, _COLON, _DOT = (ord(c) for c in "ahpm:.")
_HALF_DAY, _DAY, _MINUTES, _TEN = 12, 24, 60, 10
_MONTHS, _DAYS, _FIRST_YEAR, _LAST_YEAR = 12, 31, 1000, 2999
_ORDINAL_LETTERS = 2


@kernel(callee=True)
def letters_from(tokens: Tokens, position: int, phrases: Phrases) -> int:
    """Where the letters begin in a mix of a number and letters right behind it (5kg, $1.8bn); or NO_SUCH."""
    i, end = tokens.starts[position], tokens.starts[position + 1]
    while i < end and class_of(tokens.chars[i], phrases) & (DIGIT | NUMBER_MARK):
        i += 1
    first = i
    while i < end:
        if class_of(tokens.chars[i], phrases) & (DIGIT | NUMBER_MARK):
            return np.int64(NO_SUCH)
        i += 1
    return first if tokens.starts[position] < first < end else np.int64(NO_SUCH)


@kernel(callee=True)
def meant_at(tokens: Tokens, first: int, end: int, role: int, phrases: Phrases) -> int:
    """What the word chars[first:end] means in a role: the power of ten of a POWER (million: 6), the sign of a
    CURRENCY (dollars: $); NO_SUCH if it has no such role."""
    row = find(phrases, hash_of(tokens.chars, first, end))
    return phrases.number[row] if row >= 0 and phrases.roles[row] & role else np.int64(NO_SUCH)


@kernel(callee=True)
def half_day_at(tokens: Tokens, position: int) -> tuple[int, int]:
    """(0 for am, 12 for pm, else NO_SUCH; number of tokens that say it), of `am`, `pm`, `a m` or `p m`."""
    if position >= tokens.counts[0] or tokens.kinds[position] != WORD:
        return np.int64(NO_SUCH), ZERO
    first, end = tokens.starts[position], tokens.starts[position + 1]
    if end - first == 2 and tokens.chars[first + 1] == _M:
        return half_of(tokens.chars[first]), np.int64(1)
    if end - first == 1 and position + 1 < tokens.counts[0]:
        then = tokens.starts[position + 1]
        if tokens.starts[position + 2] - then == 1 and tokens.chars[then] == _M:
            return half_of(tokens.chars[first]), np.int64(2)
    return np.int64(NO_SUCH), ZERO


@kernel(callee=True)
def half_of(char: np.uint32) -> int:
    """12 for the p of pm, 0 for the a of am, else NO_SUCH."""
    if char == _P:
        return np.int64(_HALF_DAY)
    return ZERO if char == _A else np.int64(NO_SUCH)


@kernel(callee=True)
def clock_of(tokens: Tokens, position: int, phrases: Phrases) -> tuple[int, int, int]:
    """(hour, minute, where the letters begin or the token ends) of a token such as 3, 3:30 or 3.30pm.

    The hour is NO_SUCH if it cannot be a time on a clock of twelve hours.
    """
    i, end = tokens.starts[position], tokens.starts[position + 1]
    hour, i = _small(tokens, i, end, phrases)
    minute = ZERO
    if i < end and (tokens.chars[i] == _COLON or tokens.chars[i] == _DOT):
        minute, i = _small(tokens, i + 1, end, phrases)
    if hour < 1 or hour > _HALF_DAY or minute < 0 or minute >= _MINUTES:
        return np.int64(NO_SUCH), ZERO, end
    return hour, minute, i


@kernel(callee=True)
def is_clock(tokens: Tokens, position: int, phrases: Phrases) -> bool:
    """Whether a token is an hour of a day, a mark and two digits of minutes: 14.30, 9:05."""
    i, end = tokens.starts[position], tokens.starts[position + 1]
    hour, i = _small(tokens, i, end, phrases)
    if hour < 0 or hour > _DAY or i + 3 != end:
        return False
    minute, i = _small(tokens, i + 1, end, phrases)
    return 0 <= minute < _MINUTES and i == end


@kernel(callee=True)
def _small(tokens: Tokens, i: int, end: int, phrases: Phrases) -> tuple[int, int]:
    """(value of the one or two digits from chars[i] on, or NO_SUCH; index after the digits)"""
    first, value = i, ZERO
    while i < end and class_of(tokens.chars[i], phrases) & DIGIT:
        value = min(value * _TEN + phrases.worth[tokens.chars[i]], 10_000)
        i += 1
    return value if 1 <= i - first <= 2 else np.int64(NO_SUCH), np.int64(i)


@kernel(callee=True)
def hour_of(tokens: Tokens, position: int, phrases: Phrases) -> tuple[int, int]:
    """(hour, minute) of a mix such as 20h, 20h00 or 9h30; the hour is NO_SUCH for any other token."""
    i, end = tokens.starts[position], tokens.starts[position + 1]
    hour, i = _small(tokens, i, end, phrases)
    if tokens.kinds[position] != MIX or not 0 <= hour <= _DAY or i == end or tokens.chars[i] != _H:
        return np.int64(NO_SUCH), ZERO
    if i + 1 == end:
        return hour, ZERO
    minute, stop = _small(tokens, i + 1, end, phrases)
    fits = stop == end and end - i == 3 and minute < _MINUTES
    return hour if fits else np.int64(NO_SUCH), minute


@kernel(callee=True)
def whole_of(tokens: Tokens, position: int, phrases: Phrases) -> int:
    """The value of a token that is nothing but up to four digits, or of an ordinal (5th); else NO_SUCH."""
    if position >= tokens.counts[0]:
        return np.int64(NO_SUCH)
    i, end = tokens.starts[position], tokens.starts[position + 1]
    if tokens.kinds[position] == MIX and end - i > _ORDINAL_LETTERS:
        if letters_from(tokens, position, phrases) != end - _ORDINAL_LETTERS:
            return np.int64(NO_SUCH)
        end -= _ORDINAL_LETTERS
    elif tokens.kinds[position] != NUMBER:
        return np.int64(NO_SUCH)
    if end - i > 4:
        return np.int64(NO_SUCH)
    value = ZERO
    while i < end:
        if not class_of(tokens.chars[i], phrases) & DIGIT:
            return np.int64(NO_SUCH)
        value = value * _TEN + phrases.worth[tokens.chars[i]]
        i += 1
    return value


@kernel(callee=True)
def month_at(tokens: Tokens, position: int, phrases: Phrases) -> int:
    """The month that a word names, 1 to 12, or NO_SUCH."""
    if position >= tokens.counts[0] or tokens.kinds[position] != WORD:
        return np.int64(NO_SUCH)
    row = find(phrases, tokens.ids[position])
    if row >= 0:
        for k in range(phrases.sense_starts[row], phrases.sense_starts[row + 1]):
            if phrases.senses[k] >> 8 == MONTHS:
                return (phrases.senses[k] & 255) + 1
    return np.int64(NO_SUCH)


@kernel(callee=True)
def date_at(tokens: Tokens, position: int, end: int, phrases: Phrases) -> tuple[int, int, int, int]:
    """(year, month, day, index of the next token) of a date that names its month, as March 5, 2024.

    It begins at the token `position` and ends before token `end`. The year is NO_SUCH if it is not said, the
    month if there is no date.
    """
    month, after = month_at(tokens, position, phrases), position + 1
    if month != NO_SUCH:
        day = whole_of(tokens, after, phrases)
        after += 1
    else:
        day = whole_of(tokens, position, phrases)
        if after < end and _is_of(tokens, after):
            after += 1
        month = month_at(tokens, after, phrases) if after < end else np.int64(NO_SUCH)
        after += 1
    if month == NO_SUCH or day < 1 or day > _DAYS or after > end:
        return np.int64(NO_SUCH), np.int64(NO_SUCH), ZERO, np.int64(position)
    year = whole_of(tokens, after, phrases) if after < end else np.int64(NO_SUCH)
    if _FIRST_YEAR <= year <= _LAST_YEAR:
        return year, month, day, np.int64(after + 1)
    return np.int64(NO_SUCH), month, day, np.int64(after)


@kernel(callee=True)
def _is_of(tokens: Tokens, position: int) -> bool:
    """Whether a token is a word of two letters, such as `of` or `de`, which may stand before a month."""
    return tokens.kinds[position] == WORD and tokens.starts[position + 1] - tokens.starts[position] == 2


@kernel(callee=True)
def parts_of_date(tokens: Tokens, position: int, phrases: Phrases) -> tuple[int, int, int]:
    """(year, month, day) of a number of three parts that is a date in one way alone; else month NO_SUCH.

    2024-03-05 is one, 25/12/2024 is one, and 05/03/2024 is none.
    """
    i, end = tokens.starts[position], tokens.starts[position + 1]
    a, b, c, lengths = ZERO, ZERO, ZERO, ZERO
    for part in range(3):
        first, value = i, ZERO
        while i < end and class_of(tokens.chars[i], phrases) & DIGIT:
            value = min(value * _TEN + phrases.worth[tokens.chars[i]], 10_000)
            i += 1
        if i == first or (part < 2 and i == end):
            return ZERO, np.int64(NO_SUCH), ZERO
        lengths = lengths * 8 + min(i - first, 7)
        a, b, c = b, c, value
        i += part < 2
    if i != end:
        return ZERO, np.int64(NO_SUCH), ZERO
    if lengths >> 6 == 4:
        fits = _FIRST_YEAR <= a <= _LAST_YEAR and 1 <= b <= _MONTHS and 1 <= c <= _DAYS
        return (a, b, c) if fits else (ZERO, np.int64(NO_SUCH), ZERO)
    if lengths & 7 != 4 or c < _FIRST_YEAR or c > _LAST_YEAR or min(a, b) < 1:
        return ZERO, np.int64(NO_SUCH), ZERO
    if _MONTHS < a <= _DAYS and b <= _MONTHS:
        return c, b, a
    if _MONTHS < b <= _DAYS and a <= _MONTHS:
        return c, a, b
    if a == b and a <= _MONTHS:
        return c, a, b
    return ZERO, np.int64(NO_SUCH), ZERO
