"""What is another one although it stands at an end or has moved: titles, last words, phrases with names."""

from __future__ import annotations

import numpy as np

from twinsieve.stages.differ.align import NO_RUN
from twinsieve.stages.differ.content import holds_token, may_be_a_name, points_of, says_something
from twinsieve.stages.differ.forms import has_form, is_one_word
from twinsieve.stages.differ.phrases import LIGHT, Phrases, key_of
from twinsieve.stages.differ.tokens import CHARACTER, WORD, Tokens
from twinsieve.stages.differ.workspace import Differing
from twinsieve.stages.kernel import ZERO, kernel

_TEMPLATE = 4
"""Least number of tokens before a title or the last words."""
_TITLE = 15
_LAST_WORDS = 2
_POINTS = 4
_PHRASE_LEAST, _PHRASE = 2, 4
_RUNS = 32
_KANA, _KANA_END = np.uint32(0x3040), np.uint32(0x3100)
_LINKS = tuple(np.uint64(key_of(word)) for word in ("http", "https", "url"))
"""A word that is left of a link, or stands for one."""


@kernel(callee=True)
def other_ending(phrases: Phrases, work: Differing) -> int:
    """Number of the run in which two bodies have another title, other last words, or a phrase that moved with
    another name; NO_RUN for none."""
    run = work.alignment.runs[0]
    whole = work.later.counts[1] == 0 and work.earlier.counts[1] == 0
    if (
        whole
        and run[0] >= _TEMPLATE
        and (_has_other_title(phrases, work) or _has_other_last_words(phrases, work))
    ):
        return ZERO
    return _moved_name(phrases, work)


@kernel(callee=True)
def _has_other_title(phrases: Phrases, work: Differing) -> bool:
    """Whether what one mark cuts off behind a template is another title (「岡山県」 / 「静岡県」).

    A body shows that a mark or blank stood before a character, and not which one. So the body has one such
    place alone. Behind Japanese words it is mostly a bracket, and the title may share words with the other
    one. Behind Chinese words it may be a comma; there most of the title is another one.
    """
    later, earlier, runs = work.later, work.earlier, work.alignment.runs
    longest = max(later.counts[0], earlier.counts[0])
    if longest - runs[0, 0] > _TITLE:
        return False
    at = _only_part(later)
    if at != _only_part(earlier) or not _TEMPLATE <= at <= runs[0, 0] or longest - at > _TITLE:
        return False
    own = other = replaced = ZERO
    for number in range(work.alignment.count[0]):
        run = runs[number]
        own += _name_points(later, run[0], run[1], earlier, run[2], run[3], phrases)
        other += _name_points(earlier, run[2], run[3], later, run[0], run[1], phrases)
        replaced += points_of(later, run[0], run[1])
    for position in range(at):
        is_character = later.kinds[position] == CHARACTER
        if is_character and _KANA <= later.chars[later.starts[position]] < _KANA_END:
            return max(own, other) >= _POINTS
    return min(own, other) > max(_POINTS - 1, points_of(later, at, later.counts[0]) - replaced)


@kernel(callee=True)
def _only_part(tokens: Tokens) -> int:
    """The character that a mark or blank separates from the one before it; -1 for none or several."""
    found = np.int64(-1)
    for position in range(1, tokens.counts[0]):
        characters = tokens.kinds[position] == CHARACTER and tokens.kinds[position - 1] == CHARACTER
        if characters and tokens.word_starts[tokens.starts[position]]:
            if found >= 0:
                return np.int64(-1)
            found = np.int64(position)
    return found


@kernel(callee=True)
def _name_points(
    tokens: Tokens, first: int, end: int, others: Tokens, others_first: int, others_end: int, phrases: Phrases
) -> int:
    """Points of what may be a name in tokens[first:end] and is no word of the others."""
    total = ZERO
    for position in range(first, end):
        if may_be_a_name(tokens, position):
            twin = has_form(tokens, position, others, others_first, others_end, phrases)
            total += ZERO if twin else tokens.points[position]
    return total


@kernel(callee=True)
def _has_other_last_words(phrases: Phrases, work: Differing) -> bool:
    """Whether the last word or two are other ones, and all before is equal (… in Boston / … in Denver).

    A light word before the last one may differ too (Der Prozess / Das Schloss).
    """
    later, earlier, run = work.later, work.earlier, work.alignment.runs[0]
    size = run[1] - run[0]
    at_end = run[1] == later.counts[0] and run[3] == earlier.counts[0]
    if not at_end or size != run[3] - run[2] or not 1 <= size <= _LAST_WORDS:
        return False
    if work.alignment.count[0] > 1 or later.kinds[run[0] - 1] != WORD:
        return False
    is_light = size > 1 and later.facts[run[0]] & earlier.facts[run[2]] & LIGHT != 0
    for a in range(run[0] + is_light, run[1]):
        for b in range(run[2] + is_light, run[3]):
            if not (_is_last_word(later, a) and _is_last_word(earlier, b)):
                return False
            if is_one_word(later, a, earlier, b, phrases) or _is_cut_off(later, a, earlier, b):
                return False
    return True


@kernel(callee=True)
def _is_last_word(tokens: Tokens, position: int) -> bool:
    is_link = False
    for link in _LINKS:
        is_link |= tokens.ids[position] == link
    return says_something(tokens, position) and not is_link


@kernel(callee=True)
def _is_cut_off(later: Tokens, a: int, earlier: Tokens, b: int) -> bool:
    """Whether one word is the beginning of the other one (threats, threa)."""
    first, other = later.starts[a], earlier.starts[b]
    for k in range(min(later.starts[a + 1] - first, earlier.starts[b + 1] - other)):
        if later.chars[first + k] != earlier.chars[other + k]:
            return False
    return True


@kernel(callee=True)
def _moved_name(phrases: Phrases, work: Differing) -> int:
    """Number of an added run that says what a left-out one says, with another name; NO_RUN for none."""
    runs = work.alignment.runs
    count = work.alignment.count[0]
    added = ZERO
    for number in range(count):
        run = runs[number]
        if run[3] > run[2] or not _PHRASE_LEAST <= run[1] - run[0] <= _PHRASE:
            continue
        added += 1
        left = ZERO
        for other_number in range(count):
            other = runs[other_number]
            if other[1] > other[0] or not _PHRASE_LEAST <= other[3] - other[2] <= _PHRASE:
                continue
            left += 1
            if added > _RUNS or left > _RUNS:
                break
            size = run[1] - run[0]
            fits = size == other[3] - other[2] and work.later.ids[run[0]] == work.earlier.ids[other[2]]
            if fits and _are_other_names(run[0] + 1, other[2] + 1, size - 1, phrases, work):
                return np.int64(number)
    return np.int64(NO_RUN)


@kernel(callee=True)
def _are_other_names(a: int, b: int, size: int, phrases: Phrases, work: Differing) -> bool:
    """Whether `size` tokens from later[a] and earlier[b] on are names that the other body has in no form."""
    later, earlier = work.later, work.earlier
    for k in range(size):
        if not (may_be_a_name(later, a + k) and may_be_a_name(earlier, b + k)):
            return False
        if holds_token(earlier, later.ids[a + k]) or holds_token(later, earlier.ids[b + k]):
            return False
        for i in range(size):
            if is_one_word(later, a + k, earlier, b + i, phrases):
                return False
    return min(points_of(later, a, a + size), points_of(earlier, b, b + size)) >= _POINTS
