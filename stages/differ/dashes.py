"""Tells a dash before a number from a minus: "29 Mar. -25 Apr." is a range, "-2 °C" is below zero.

A body keeps a dash that touches the number behind it and no letter before it, and loses a dash between
blanks. So a range or a list has a "minus" in one copy and none in the other one.
"""

from __future__ import annotations

import numpy as np

from twinsieve.stages.differ.phrases import (
    BELOW_ZERO,
    CURRENCY,
    EXCLUDES,
    LIGHT,
    MAX_PHRASE,
    MEASURE,
    MONTHS,
    UNSPACED,
    Phrases,
    find,
    hash_of,
)
from twinsieve.stages.differ.tokens import CHARACTER, MIX, NUMBER, WORD, Tokens, class_of
from twinsieve.stages.differ.written import NO_SUCH, letters_from, meant_at, whole_of
from twinsieve.stages.kernel import ZERO, kernel

_DASH, _POINT = ord("-"), ord(".")
_DATE_PARTS = tuple(map(ord, "年月日号號点點时時"))
_BEFORE, _BEHIND = 32, 8
"""How many tokens before and behind a dash are read for what can be below zero, and for other dashes."""
_LONGEST = MAX_PHRASE
"""Characters of the longest phrase of an unspaced script that is looked up."""
_ABBREVIATION = 4
_UNIT_CHARACTERS = 6


@kernel(callee=True)
def is_dash(tokens: Tokens, position: int, phrases: Phrases) -> bool:
    """Whether a number begins with a dash that is no minus: it is the end of a range, or stands in a list.

    False for a number without a dash, too.
    """
    first, end = tokens.starts[position], tokens.starts[position + 1]
    if tokens.chars[first] != _DASH or end - first < 2:
        return False
    if _measures_below_zero(tokens, position, phrases):
        return False
    before = position - 1
    if before >= 0 and _ends_date(tokens, before, phrases):
        return True
    if _is_about_below_zero(tokens, position, phrases):
        return False
    if before >= 0 and tokens.facts[before] & LIGHT:
        return False
    if _is_paid(tokens, position, phrases):
        return True
    if before >= 0 and tokens.kinds[before] >= NUMBER:
        return _separates(tokens, position, phrases)
    if before >= 0 and _ends_quantity(tokens, before):
        return True
    return _is_listed(tokens, position)


@kernel(callee=True)
def is_second_with_dash(tokens: Tokens, position: int) -> bool:
    """Whether a token is the second one, a number that a dash cuts off from what follows: UPDATE 2-Oil."""
    end = tokens.starts[position + 1]
    return position == 1 and tokens.kinds[position] == NUMBER and tokens.chars[end - 1] == _DASH


@kernel(callee=True)
def role_at(tokens: Tokens, position: int, role: int, phrases: Phrases) -> bool:
    """Whether a phrase with this role begins at a token."""
    if position >= tokens.counts[0]:
        return False
    if tokens.kinds[position] == WORD:
        return tokens.facts[position] & role != 0
    size = np.int64(1)
    while size <= _LONGEST and position + size <= tokens.counts[0]:
        if tokens.kinds[position + size - 1] != CHARACTER:
            return False
        row = find(phrases, hash_of(tokens.chars, tokens.starts[position], tokens.starts[position + size]))
        if row >= 0 and np.int64(phrases.roles[row]) & role:
            return True
        size += 1
    return False


@kernel(callee=True)
def _measures_below_zero(tokens: Tokens, position: int, phrases: Phrases) -> bool:
    """Whether the unit of a number has values below zero: -5 C, -5c, -5度, -3 points."""
    if tokens.kinds[position] == MIX:
        letters = letters_from(tokens, position, phrases)
        if letters != NO_SUCH:
            row = find(phrases, hash_of(tokens.chars, letters, tokens.starts[position + 1]))
            if row >= 0 and np.int64(phrases.roles[row]) & BELOW_ZERO:
                return True
    return role_at(tokens, position + 1, BELOW_ZERO, phrases)


@kernel(callee=True)
def _is_about_below_zero(tokens: Tokens, position: int, phrases: Phrases) -> bool:
    """Whether a word near a number says that it may be below zero (temperature, balance).

    A single character or letter says so only right behind the number: 度 is a part of many words.
    """
    for at in range(max(ZERO, position - _BEFORE), min(tokens.counts[0], position + _BEHIND)):
        is_word = tokens.kinds[at] == WORD and tokens.starts[at + 1] - tokens.starts[at] > 1
        if is_word and tokens.facts[at] & BELOW_ZERO:
            return True
        end = at + 2
        while tokens.kinds[at] == CHARACTER and end - at <= _LONGEST and end <= tokens.counts[0]:
            if tokens.kinds[end - 1] != CHARACTER:
                break
            row = find(phrases, hash_of(tokens.chars, tokens.starts[at], tokens.starts[end]))
            if row >= 0 and np.int64(phrases.roles[row]) & BELOW_ZERO:
                return True
            end += 1
    return False


@kernel(callee=True)
def _ends_date(tokens: Tokens, position: int, phrases: Phrases) -> bool:
    """Whether a token ends a date or a time: March, Monday, 日 behind a number."""
    if tokens.kinds[position] == WORD and tokens.facts[position] & EXCLUDES:
        row = find(phrases, tokens.ids[position])
        if row >= 0:
            for k in range(phrases.sense_starts[row], phrases.sense_starts[row + 1]):
                if phrases.senses[k] >> 8 <= MONTHS:
                    return True
    if tokens.kinds[position] != CHARACTER or position == 0 or tokens.kinds[position - 1] != NUMBER:
        return False
    return is_date_part(tokens.chars[tokens.starts[position]])


@kernel(callee=True)
def is_date_part(char: np.uint32) -> bool:
    """Whether a character stands behind the numbers of a date or a time."""
    for part in _DATE_PARTS:  # noqa: SIM110
        if char == part:
            return True
    return False


@kernel(callee=True)
def _ends_quantity(tokens: Tokens, position: int) -> bool:
    """Whether a token ends an abbreviation or a unit behind a number: 29 abr, 5 km, 29 มีค."""
    if tokens.kinds[position] == WORD:
        short = tokens.starts[position + 1] - tokens.starts[position] <= _ABBREVIATION
        return short and position > 0 and tokens.kinds[position - 1] >= NUMBER
    at = position
    while at > 0 and tokens.kinds[at] == CHARACTER and position - at < _UNIT_CHARACTERS:
        at -= 1
    return at < position and tokens.kinds[at] >= NUMBER


@kernel(callee=True)
def _separates(tokens: Tokens, position: int, phrases: Phrases) -> bool:
    """Whether the dash of a number right behind another number is none of a row of numbers below zero.

    A word behind it says what is counted (Season 3 -12 episodes). Without one, a range goes up. Only behind
    another number with a point may the number have one: 1900 -2.5 is a fall.
    """
    before = position - 1
    if tokens.chars[tokens.starts[before]] == _DASH:
        return False
    if _has_point(tokens, position) and not _has_point(tokens, before):
        return False
    behind = position + 1
    if behind < tokens.counts[0] and tokens.kinds[behind] < NUMBER and not tokens.facts[behind] & LIGHT:
        return True
    low, high = whole_of(tokens, before, phrases), ZERO
    for i in range(tokens.starts[position] + 1, tokens.starts[position + 1]):
        high = min(high * 10 + max(phrases.worth[tokens.chars[i]], ZERO), 1_000_000)
    return low < high


@kernel(callee=True)
def _has_point(tokens: Tokens, position: int) -> bool:
    for i in range(tokens.starts[position], tokens.starts[position + 1]):  # noqa: SIM110
        if tokens.chars[i] == _POINT:
            return True
    return False


@kernel(callee=True)
def _is_paid(tokens: Tokens, position: int, phrases: Phrases) -> bool:
    """Whether a number is a price: it has a currency before it, in it or behind it."""
    first, end = tokens.starts[position], tokens.starts[position + 1]
    for i in range(first + 1, end):
        if meant_at(tokens, i, i + 1, np.int64(CURRENCY), phrases) != NO_SUCH:
            return True
    if tokens.kinds[position] == MIX:
        letters = letters_from(tokens, position, phrases)
        if letters != NO_SUCH and meant_at(tokens, letters, end, np.int64(CURRENCY), phrases) != NO_SUCH:
            return True
    if position + 1 == tokens.counts[0]:
        return False
    if tokens.kinds[position + 1] == WORD:
        return tokens.facts[position + 1] & CURRENCY != 0
    is_unit = class_of(tokens.chars[end], phrases) & UNSPACED and tokens.kinds[position + 1] == CHARACTER
    return is_unit and role_at(tokens, position + 1, MEASURE, phrases)


@kernel(callee=True)
def _is_listed(tokens: Tokens, position: int) -> bool:
    """Whether there is another number with a dash, and each has a word behind it: -2 shirts -3 socks."""
    dashes = ZERO
    for at in range(max(ZERO, position - _BEFORE), min(tokens.counts[0], position + _BEFORE)):
        if tokens.kinds[at] >= NUMBER and tokens.chars[tokens.starts[at]] == _DASH:
            behind = at + 1
            if behind == tokens.counts[0] or tokens.kinds[behind] >= NUMBER or tokens.facts[behind] & LIGHT:
                return False
            dashes += 1
    return dashes > 1
