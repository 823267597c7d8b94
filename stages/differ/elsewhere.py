"""The rules *number*, *numeral*, *calendar* and *opposite* over whole bodies: what changed and moved.

Where the words around a number stand in another order in the later text, one run holds what was left out and
another one what was added, and none of them replaces anything. So what each body has of its own is compared,
wherever it stands. What only one of them adds is no matter of this file.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.differ.counted import counts_headlines
from twinsieve.stages.differ.number_values import (
    DOTTED_DATES,
    MAX_VALUES,
    NAME,
    SPACED,
    Values,
    are_one,
    is_numeral,
    of_numerals,
    read_values,
    writes_dates,
)
from twinsieve.stages.differ.phrases import EXCLUDES, LIGHT, MAX_PHRASE, Phrases, has_sense
from twinsieve.stages.differ.senses import add_senses, excluded
from twinsieve.stages.differ.tokens import CHARACTER, MIX, Tokens, phrase_lengths, phrase_row
from twinsieve.stages.differ.workspace import Differing
from twinsieve.stages.kernel import ZERO, kernel

_MAX_NUMERALS = 16
"""Greatest number of numerals of a body that are compared with those of the other one."""
_LATER, _EARLIER = 0, 2
"""Columns of a run: where its side of a body begins."""
_WORD_LETTERS = 3
"""A shorter word (in, up) is everywhere; it decides only in the place of another one."""


@kernel(callee=True)
def each_has_a_number(phrases: Phrases, work: Differing) -> bool:
    """Whether each body has a number in digits or words that the other one lacks.

    A mix that is a name (w10pro) does not count: it is written in too many ways.
    """
    later, earlier, ends = work.later, work.earlier, work.alignment.ends
    ways = _ways(later, earlier)
    _read(later, ends[0], ways, phrases, work.values)
    _read(earlier, earlier.counts[0], ways, phrases, work.other_values)
    if not _has_own(later, work.values, work.other_values):
        return False
    _read(later, later.counts[0], ways, phrases, work.values)
    _read(earlier, ends[1], ways, phrases, work.other_values)
    return _has_own(earlier, work.other_values, work.values)


@kernel(callee=True)
def _ways(later: Tokens, earlier: Tokens) -> int:
    """The ways in which numbers of these bodies may be written."""
    dated = writes_dates(later, ZERO, later.counts[0]) or writes_dates(earlier, ZERO, earlier.counts[0])
    return np.int64(SPACED | DOTTED_DATES if dated else SPACED)


@kernel(callee=True)
def _read(tokens: Tokens, end: int, ways: int, phrases: Phrases, values: Values) -> None:
    """Read the numbers of a body up to a token, without the counter of a label (UPDATE 2-)."""
    first = np.int64(2) if end > 1 and counts_headlines(tokens, np.int64(1)) else ZERO
    read_values(tokens, first, end, phrases, values, ways)


@kernel(callee=True)
def _has_own(tokens: Tokens, mine: Values, others: Values) -> bool:
    """Whether some values hold one that the others lack. tokens: where the former stand"""
    if max(mine.counts[0], others.counts[0]) == MAX_VALUES:
        return False
    for k in range(mine.counts[0]):
        if not mine.numerals[k] and not _holds_one(others, mine, k) and not _is_name(tokens, mine.values[k]):
            return True
    return False


@kernel(callee=True)
def _holds_one(values: Values, of: Values, k: int) -> bool:
    """Whether some values hold value k of others, in one of the ways to read both."""
    for i in range(values.counts[0]):  # noqa: SIM110
        if are_one(values, i, of, k):
            return True
    return False


@kernel(callee=True)
def _holds(values: Values, value: np.uint64) -> bool:
    for k in range(values.counts[0]):  # noqa: SIM110
        if values.values[k] == value:
            return True
    return False


@kernel(callee=True)
def _is_name(tokens: Tokens, value: np.uint64) -> bool:
    for position in range(tokens.counts[0]):
        if tokens.kinds[position] == MIX and tokens.ids[position] ^ NAME == value:
            return True
    return False


@kernel(callee=True)
def each_has_a_numeral(phrases: Phrases, work: Differing) -> bool:
    """Whether each body has a Chinese numeral of its own before the same character (三号线, 四号线)."""
    later, earlier, runs = work.later, work.earlier, work.alignment.runs
    ways = _ways(later, earlier)
    _read(later, later.counts[0], ways, phrases, work.values)
    _read(earlier, earlier.counts[0], ways, phrases, work.other_values)
    if max(work.values.counts[0], work.other_values.counts[0]) == MAX_VALUES:
        return False
    seen = ZERO
    for number in range(work.alignment.count[0]):
        position = runs[number, 0]
        while position < runs[number, 1] and seen < _MAX_NUMERALS:
            first, stop = _numerals_at(later, position)
            if stop > position and _ends_before_character(later, stop):
                seen += 1
                value = of_numerals(later, first, stop, phrases)
                unit = later.ids[stop]
                if not _holds(work.other_values, value) and _has_other_numeral(unit, phrases, work):
                    return True
            position = max(stop, position + 1)
    return False


@kernel(callee=True)
def _has_other_numeral(unit: np.uint64, phrases: Phrases, work: Differing) -> bool:
    """Whether the earlier body has a numeral of its own before this character, in a run."""
    earlier, runs = work.earlier, work.alignment.runs
    seen = ZERO
    for number in range(work.alignment.count[0]):
        position = runs[number, 2]
        while position < runs[number, 3] and seen < _MAX_NUMERALS:
            first, stop = _numerals_at(earlier, position)
            if stop > position and _ends_before_character(earlier, stop):
                seen += 1
                fits = earlier.ids[stop] == unit
                if fits and not _holds(work.values, of_numerals(earlier, first, stop, phrases)):
                    return True
            position = max(stop, position + 1)
    return False


@kernel(callee=True)
def _numerals_at(tokens: Tokens, position: int) -> tuple[int, int]:
    """First token and end of the numerals around a token; twice its position if it is none."""
    first = stop = position
    while stop < tokens.counts[0] and is_numeral(tokens, stop):
        stop += 1
    if stop > position:
        while first > 0 and is_numeral(tokens, first - 1):
            first -= 1
    return first, stop


@kernel(callee=True)
def _ends_before_character(tokens: Tokens, stop: int) -> bool:
    return stop < tokens.counts[0] and tokens.kinds[stop] == CHARACTER


@kernel(callee=True)
def sense_elsewhere(phrases: Phrases, work: Differing) -> int:
    """CALENDAR or OPPOSITE where each body has a word whose side the other lacks in all of it; else NONE."""
    count = _senses_of_runs(work.later, _LATER, phrases, work, work.senses)
    other_count = _senses_of_runs(work.earlier, _EARLIER, phrases, work, work.other_senses)
    rule = excluded(work.senses, count, work.other_senses, other_count)
    if rule == 0:
        return rule
    count = _lacking(work.senses, count, work.earlier, phrases)
    other_count = _lacking(work.other_senses, other_count, work.later, phrases)
    return excluded(work.senses, count, work.other_senses, other_count)


@kernel(callee=True)
def _senses_of_runs(
    tokens: Tokens, side: int, phrases: Phrases, work: Differing, senses: NDArray[np.int64]
) -> int:
    """Write the senses of the words and phrases that touch a run. returns: number of senses"""
    runs, count = work.alignment.runs, ZERO
    for number in range(work.alignment.count[0]):
        first, end = runs[number, side], runs[number, side + 1]
        if end == first:
            continue
        for position in range(max(ZERO, first - MAX_PHRASE + 1), end):
            if tokens.facts[position] & EXCLUDES == 0:
                continue
            lengths = phrase_lengths(tokens, position, tokens.counts[0])
            for length in range(1, MAX_PHRASE + 1):
                touches = position + length > first and lengths >> (length - 1) & 1
                if touches and _is_strong(tokens, position, length):
                    row = phrase_row(tokens, position, length, lengths, phrases)
                    count = add_senses(row, phrases, senses, count)
    return count


@kernel(callee=True)
def _is_strong(tokens: Tokens, position: int, length: int) -> bool:
    """Whether a phrase says by itself what it excludes: two characters, or a word of some letters."""
    if tokens.kinds[position] == CHARACTER:
        return length > 1
    letters = tokens.starts[position + 1] - tokens.starts[position]
    return letters >= _WORD_LETTERS and tokens.facts[position] & LIGHT == 0


@kernel(callee=True)
def _lacking(senses: NDArray[np.int64], count: int, body: Tokens, phrases: Phrases) -> int:
    """Keep only the senses that no word of a body has. returns: number of senses"""
    kept = ZERO
    for k in range(count):
        if not _has_anywhere(body, senses[k], phrases):
            senses[kept] = senses[k]
            kept += 1
    return kept


@kernel(callee=True)
def _has_anywhere(body: Tokens, sense: int, phrases: Phrases) -> bool:
    for position in range(body.counts[0]):
        if body.facts[position] & EXCLUDES:
            lengths = phrase_lengths(body, position, body.counts[0])
            for length in range(1, MAX_PHRASE + 1):
                row = phrase_row(body, position, length, lengths, phrases)
                if row >= 0 and has_sense(phrases, row, sense):
                    return True
    return False
