"""What only one of two short bodies says: parts of the rule *word added*.

Who drops the later message loses what only that message says. In an alphabet that is words. Japanese and Thai
have no blanks, and most characters of a short sentence there are endings, particles and courtesy. So what
counts is a Han character or a letter of katakana that the other body lacks, a number, and a letter of Thai,
none of them in a phrase that says little.
"""

from __future__ import annotations

import numpy as np

from twinsieve.stages.contract import Differences
from twinsieve.stages.differ.align import NO_RUN, VALUED, facts_of, is_han, is_inside
from twinsieve.stages.differ.content import says_something
from twinsieve.stages.differ.dashes import is_date_part
from twinsieve.stages.differ.forms import has_form
from twinsieve.stages.differ.items import holds
from twinsieve.stages.differ.phrases import (
    BLAND,
    INSTITUTIONS,
    LIGHT,
    MAX_PHRASE,
    NUMERAL,
    Phrases,
    find,
    hash_of,
)
from twinsieve.stages.differ.senses import ends_with_kind
from twinsieve.stages.differ.tokens import CHARACTER, NUMBER, WORD, Tokens
from twinsieve.stages.differ.workspace import Differing
from twinsieve.stages.differ.writings import is_one_phrase
from twinsieve.stages.kernel import ZERO, kernel

_OTHER, _JAPANESE, _THAI = 0, 1, 2
_FIRST_KANA, _LAST_KANA = np.uint32(0x3041), np.uint32(0x30FF)
_FIRST_KATAKANA, _LAST_KATAKANA = np.uint32(0x30A1), np.uint32(0x30FA)
_FIRST_THAI, _LAST_THAI = np.uint32(0x0E00), np.uint32(0x0E7F)
_KANA, _LETTERS_OF_THAI = 2, 4
"""Least number of kana in two bodies, counted together, that makes them Japanese; and of Thai letters that
makes them Thai."""
_WORTH = 4
"""Letters that a Han character, a letter of katakana, a number and a short word are worth."""
_FEW_LETTERS = 24
"""In a body of fewer letters, each letter of Thai counts twice."""
_INSTITUTION, _ADDED = 3, 3
"""Least characters of the added name of an institution, and least words of an added phrase."""
_CLAUSE, _CLAUSES = 6, 4
"""A clause has _CLAUSE times as many letters as a word. It counts in bodies of up to _CLAUSES times the
length of short ones."""
_TOKENS = 64
"""Longer runs are read up to here."""


@kernel(callee=True)
def says_more(shorter: int, limits: Differences, phrases: Phrases, work: Differing) -> int:
    """Number of the run that adds a word, a phrase or a clause to a short body; NO_RUN for none.

    Of Japanese and Thai that is what the later body says more, and of rather short bodies of Japanese, what
    each says of its own. shorter: characters
    """
    short = shorter < limits.short
    if short:
        number = _phrase_added(phrases, work)
        if number != NO_RUN:
            return number
    script = np.int64(_OTHER) if shorter >= _CLAUSES * limits.short else _script_of(work)
    if script == _OTHER:
        return np.int64(NO_RUN)
    later, earlier = work.later, work.earlier
    most = limits.added_short if short else _CLAUSE * limits.added_short
    mine = other = first = ZERO
    for number in range(work.alignment.count[0]):
        run = work.alignment.runs[number]
        if is_one_phrase(run, later, earlier, phrases):
            continue
        worth = np.int64(0 if facts_of(earlier, run[2], run[3]) & VALUED else _WORTH)
        said = _letters_said(later, run[0], run[1], earlier, worth, phrases)
        if said > most:
            return np.int64(number)
        first = np.int64(number) if mine == 0 else first
        mine += said
        other += _letters_said(earlier, run[2], run[3], later, ZERO, phrases)
    each = script == _JAPANESE and shorter < 2 * limits.short and min(mine, other) > limits.added_short
    return first if each else np.int64(NO_RUN)


@kernel(callee=True)
def _script_of(work: Differing) -> int:
    """_JAPANESE, _THAI or _OTHER."""
    if work.later.counts[4] == 0 and work.earlier.counts[4] == 0:
        return np.int64(_OTHER)
    kana, thai = _letters_of(work.later)
    other_kana, other_thai = _letters_of(work.earlier)
    if thai + other_thai >= _LETTERS_OF_THAI:
        return np.int64(_THAI)
    return np.int64(_JAPANESE if kana + other_kana >= _KANA else _OTHER)


@kernel(callee=True)
def _letters_of(tokens: Tokens) -> tuple[int, int]:
    """(kana, letters of Thai) of a body."""
    kana = thai = ZERO
    for position in range(tokens.starts[tokens.counts[0]]):
        kana += _FIRST_KANA <= tokens.chars[position] <= _LAST_KANA
        thai += _FIRST_THAI <= tokens.chars[position] <= _LAST_THAI
    return kana, thai


@kernel(callee=True)
def _letters_said(tokens: Tokens, first: int, end: int, others: Tokens, worth: int, phrases: Phrases) -> int:
    """Letters of tokens[first:end] that say something and that the other body lacks.

    worth: letters that a number is worth
    """
    if end == first or holds(others, tokens, first, end - first):
        return ZERO
    letters = min(tokens.starts[tokens.counts[0]], others.starts[others.counts[0]])
    weight = np.int64(2 if letters < _FEW_LETTERS else 1)
    end = min(end, first + _TOKENS)
    mere = _in_bland(tokens, first, end, phrases)
    total = ZERO
    for position in range(first, end):
        kind = tokens.kinds[position]
        length = tokens.starts[position + 1] - tokens.starts[position]
        if kind == NUMBER:
            total += worth
        elif kind == WORD and length > 1 and tokens.facts[position] & LIGHT == 0:
            twin = has_form(tokens, position, others, ZERO, others.counts[0], phrases)
            total += ZERO if twin else max(_WORTH, length)
        elif kind == CHARACTER and mere >> np.uint64(position - first) & np.uint64(1) == np.uint64(0):
            char = tokens.chars[tokens.starts[position]]
            if _is_thai_letter(char):
                total += weight
            elif is_han(tokens, position) or _FIRST_KATAKANA <= char <= _LAST_KATAKANA:
                valued = tokens.facts[position] & NUMERAL != 0 or _is_unit(tokens, position)
                total += ZERO if valued or holds(others, tokens, position, 1) else _WORTH
    return total


@kernel(callee=True)
def _in_bland(tokens: Tokens, first: int, end: int, phrases: Phrases) -> np.uint64:
    """The tokens of tokens[first:end] that are in a phrase that says little, as bits."""
    mere = np.uint64(0)
    for start in range(max(ZERO, first - MAX_PHRASE + 1), end):
        stop = start + 1
        while stop <= min(start + MAX_PHRASE, tokens.counts[0]) and tokens.kinds[stop - 1] == CHARACTER:
            if stop > first:
                row = find(phrases, hash_of(tokens.chars, tokens.starts[start], tokens.starts[stop]))
                if row >= 0 and phrases.roles[row] & BLAND:
                    for position in range(max(start, first), min(stop, end)):
                        mere |= np.uint64(1) << np.uint64(position - first)
            stop += 1
    return mere


@kernel(callee=True)
def _is_unit(tokens: Tokens, position: int) -> bool:
    """Whether a character is that of a date behind a number: 3月5日, 10時."""
    char = tokens.chars[tokens.starts[position]]
    return position > 0 and tokens.kinds[position - 1] == NUMBER and is_date_part(char)


@kernel(callee=True)
def _is_thai_letter(char: np.uint32) -> bool:
    """Whether a character is Thai and no vowel or tone above or below a letter."""
    if not _FIRST_THAI <= char <= _LAST_THAI:
        return False
    return not (char == 0x0E31 or 0x0E34 <= char <= 0x0E3A or 0x0E47 <= char <= 0x0E4E)


@kernel(callee=True)
def _phrase_added(phrases: Phrases, work: Differing) -> int:
    """Number of the run that adds an institution, or a phrase to the later body; NO_RUN for none.

    An institution is all that differs: 江西 / 江西师范大学. A phrase stands inside, has _ADDED words or more,
    and one of them says something.
    """
    later, earlier, runs = work.later, work.earlier, work.alignment.runs
    count = work.alignment.count[0]
    if count == 1 and (
        _is_institution(later, runs[0, 0], runs[0, 1], runs[0, 2] == runs[0, 3], phrases)
        or _is_institution(earlier, runs[0, 2], runs[0, 3], runs[0, 0] == runs[0, 1], phrases)
    ):
        return ZERO
    for number in range(count):
        run = runs[number]
        if run[3] == run[2] and run[1] - run[0] >= _ADDED and is_inside(run, later, earlier):
            for position in range(run[0], run[1]):
                if says_something(later, position):
                    return np.int64(number)
    return np.int64(NO_RUN)


@kernel(callee=True)
def _is_institution(tokens: Tokens, first: int, end: int, added: bool, phrases: Phrases) -> bool:
    """Whether tokens[first:end] were added and end with the word of an institution."""
    return added and end - first >= _INSTITUTION and ends_with_kind(tokens, first, end, INSTITUTIONS, phrases)
