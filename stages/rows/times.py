"""Reads the usual forms of a time from many texts in one call: 2024-01-01, 2024-01-01T08:00:00.004+08:00."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.kernel import NO, YES, ZERO, kernel

_DATE_BYTES, _MINUTES_BYTES, _SECONDS_BYTES, _ZONE_BYTES = 10, 16, 19, 6
"""Where the date, the minutes and the seconds end; the length of `+08:00`."""
_EXACT = 1 << 53
"""Whole numbers below this are doubles."""
_DASH, _COLON, _DOT, _PLUS, _LETTER_T, _LETTER_Z, _BLANK, _NEWLINE = (
    np.uint8(ord(char)) for char in "-:.+TZ \n"
)
_DIGIT_0, _DIGIT_9 = np.uint8(ord("0")), np.uint8(ord("9"))
_MONTH_DAYS = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], np.int64)
_DAYS_BEFORE = np.array([0, 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334], np.int64)
"""Days of a month, and of a year before it, by its number; of a year that is no leap year."""
_EPOCH_DAYS = 719_162
"""Days from 0001-01-01 to 1970-01-01."""
_NONE = ZERO - 1


def read_times(texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """(int64[n]: ms since 1970; bool[n]: whether the text was read; the time of another text is 0)

    A text is read if it is a valid date, or a date and time to the minute or second, with none, three or six
    digits behind it, in UTC or with an offset of hours and minutes. Of such a text the time is that of
    `datetime.fromisoformat`, rounded as Python's `round(moment.timestamp() * 1000)`.
    """
    return read_time_lines("\n".join([*texts, ""]).encode("utf-8", "surrogatepass"), len(texts))


def read_time_lines(content: bytes, count: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The same for UTF-8 of `count` texts, each with a line break behind it."""
    times, is_read = np.zeros(count, np.int64), np.zeros(count, np.bool_)
    # More lines than texts: a text has a line break, and nothing is known of the others.
    if content.count(b"\n") == count:
        _read_times(np.frombuffer(content, np.uint8), times, is_read)
    return times, is_read


@kernel
def _read_times(content: NDArray[np.uint8], times: NDArray[np.int64], is_read: NDArray[np.bool_]) -> None:
    """Read the times of lines; each ends with a line break."""
    start = ZERO
    for row in range(len(times)):
        end = start
        while content[end] != _NEWLINE:
            end += 1
        is_read[row] = _read_time(content[start:end], row, times)
        start = end + 1


@kernel(callee=True)
def _read_time(text: NDArray[np.uint8], row: int, times: NDArray[np.int64]) -> bool:
    """Set the time of a row. returns: whether the text was read"""
    if len(text) < _DATE_BYTES or text[4] != _DASH or text[7] != _DASH:
        return NO
    year, month, day = _number(text[0:4]), _number(text[5:7]), _number(text[8:10])
    if year < 1 or month < 1 or month > 12 or day < 1:
        return NO
    leap = ZERO + (year % 4 == 0 and (year % 100 != 0 or year % 400 == 0))
    if day > _MONTH_DAYS[month] + leap * (month == 2):
        return NO
    at, seconds, digits, fraction = ZERO + _DATE_BYTES, ZERO, ZERO, ZERO
    if len(text) > at:
        if len(text) < _MINUTES_BYTES or (text[at] != _LETTER_T and text[at] != _BLANK):
            return NO
        seconds = _seconds(text[at + 1 : _MINUTES_BYTES])
        at = ZERO + _MINUTES_BYTES
        if seconds < 0:
            return NO
        if len(text) >= _SECONDS_BYTES and text[at] == _COLON:
            second = _number(text[at + 1 : _SECONDS_BYTES])
            if second < 0 or second > 59:
                return NO
            seconds += second
            at = ZERO + _SECONDS_BYTES
            if len(text) > at and text[at] == _DOT:
                at += 1
                while at + digits < len(text) and _DIGIT_0 <= text[at + digits] <= _DIGIT_9:
                    digits += 1
                if digits != 3 and digits != 6:
                    return NO
                fraction = _number(text[at : at + digits])
                at += digits
        if not _is_zone(text[at:]):
            return NO
    offset = ZERO
    if len(text) == at + _ZONE_BYTES:
        offset = _seconds(text[at + 1 :]) * (-1 if text[at] == _DASH else 1)
    past = year - 1
    days = past * 365 + past // 4 - past // 100 + past // 400 - _EPOCH_DAYS
    days += _DAYS_BEFORE[month] + leap * (month > 2) + day - 1
    whole = days * 86_400 + seconds - offset
    if digits == 6:
        micros = whole * 1_000_000 + fraction
        if abs(micros) >= _EXACT:
            return NO
        times[row] = np.int64(np.rint(np.float64(micros) / 1e6 * 1e3))
    else:
        times[row] = whole * 1_000 + fraction
    return YES


@kernel(callee=True)
def _is_zone(text: NDArray[np.uint8]) -> bool:
    """Whether this is nothing, Z, or an offset of hours and minutes."""
    if len(text) != _ZONE_BYTES:
        return len(text) == 0 or (len(text) == 1 and text[0] == _LETTER_Z)
    return (text[0] == _PLUS or text[0] == _DASH) and _seconds(text[1:]) >= 0


@kernel(callee=True)
def _seconds(text: NDArray[np.uint8]) -> int:
    """Seconds of hours and minutes (08:00), -1 if they are not valid."""
    hours, minutes = _number(text[0:2]), _number(text[3:5])
    if text[2] != _COLON or hours < 0 or hours > 23 or minutes < 0 or minutes > 59:
        return _NONE
    return hours * 3_600 + minutes * 60


@kernel(callee=True)
def _number(digits: NDArray[np.uint8]) -> int:
    """The number of these digits, -1 if one is none."""
    number = ZERO
    for digit in digits:
        if digit < _DIGIT_0 or digit > _DIGIT_9:
            return _NONE
        number = number * 10 + (ZERO + digit - _DIGIT_0)
    return number
