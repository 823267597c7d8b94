"""The rule `opposite` for negations: one body denies what the other one says.

The negations of both whole bodies are counted; a negation in what both share counts for both. So it is
enough to count those that a run touches: an alignment may lay a part of a negation on equal characters
beside it (認めま[せんで]した, 認めました).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.differ.align import are_few, is_inside
from twinsieve.stages.differ.emoticons import are_emoticons
from twinsieve.stages.differ.forms import are_spellings, endings_of, hash_of_bases, letters_in_common
from twinsieve.stages.differ.negations import next_negation
from twinsieve.stages.differ.phrases import (
    BEGINS_DENIED,
    DENIED,
    FOREIGN,
    HELD_NEGATION,
    NEGATES,
    Phrases,
    find,
)
from twinsieve.stages.differ.spoken import spoken_in
from twinsieve.stages.differ.tokens import WORD, Tokens, class_of
from twinsieve.stages.differ.workspace import Differing
from twinsieve.stages.kernel import ZERO, kernel

_REST, _KANA = 2, 4
"""What remains of a side of a run without its negations is small if it has at most so many tokens, one more
on a side without a negation, and at most so many hiragana, which are mostly endings."""
_FIRST_KANA, _LAST_KANA = np.uint64(0x3041), np.uint64(0x309F)
_BEFORE = 16
"""A run's negations are looked for from so many tokens before it."""
_ZERO_DIGIT = np.uint32(ord("0"))
_STEM = 2
"""Least letters of a stem."""
_BACK = 2
"""Both endings may begin with the same letters, at most so many: imzala-mamak, imzala-mak."""


@kernel(callee=True, inlined=True)
def may_deny(run: NDArray[np.int64], phrases: Phrases, work: Differing) -> bool:
    """Whether a run may replace a word by a form that denies; `denials_of` counts no others."""
    later, earlier = work.later, work.earlier
    for a in range(run[0], run[1] if are_few(run) else run[0]):
        for b in range(run[2], run[3]):
            if (
                later.kinds[a] == WORD
                and earlier.kinds[b] == WORD
                and _may_be_denied(later, a, earlier, b, phrases)
            ):
                return True
    return False


@kernel(callee=True)
def _may_be_denied(later: Tokens, a: int, earlier: Tokens, b: int, phrases: Phrases) -> bool:
    """Whether behind what two words begin with, one has a letter with which an ending that denies begins."""
    alike = letters_in_common(later, a, earlier, b, phrases)
    if alike < _STEM:
        return False
    first, end = later.starts[a], later.starts[a + 1]
    other, other_end = earlier.starts[b], earlier.starts[b + 1]
    for stem in range(max(alike - _BACK, _STEM), alike + 2):
        if first + stem < end and class_of(later.chars[first + stem], phrases) & BEGINS_DENIED:
            return True
        if other + stem < other_end and class_of(earlier.chars[other + stem], phrases) & BEGINS_DENIED:
            return True
    return False


@kernel(callee=True)
def denials_of(number: int, phrases: Phrases, work: Differing) -> tuple[bool, int]:
    """(whether a small run has an odd number of negations, those of its later minus its earlier side)

    A longer run that only one body has, at an end, counts none: what a sentence more denies is its own. The
    name of an emoticon denies nothing. number: of the run
    """
    run = work.alignment.runs[number]
    later, earlier = work.later, work.earlier
    if are_emoticons(run, later, earlier, phrases):
        return False, ZERO
    before = other_before = ZERO
    if number > 0:
        before, other_before = work.alignment.runs[number - 1, 1], work.alignment.runs[number - 1, 3]
    few = are_few(run)
    if are_nothing(run, later, earlier):
        return False, ZERO
    mine, rest, kana = _side(later, run[0], run[1], before, phrases)
    other, other_rest, other_kana = _side(earlier, run[2], run[3], other_before, phrases)
    if few and run[1] > run[0] and run[3] > run[2]:
        mine -= _misspelt(later, run[0], run[1], earlier, run[2], run[3], phrases)
        other -= _misspelt(earlier, run[2], run[3], later, run[0], run[1], phrases)
        forms = _denied_forms(later, run[0], run[1], earlier, run[2], run[3], phrases, work)
        other_forms = _denied_forms(earlier, run[2], run[3], later, run[0], run[1], phrases, work)
        mine, rest = mine + forms, rest - forms
        other, other_rest = other + other_forms, other_rest - other_forms
    small = rest <= _REST + (mine == 0) and other_rest <= _REST + (other == 0)
    small = small and max(kana, other_kana) <= _KANA
    if not small and (run[0] == run[1] or run[2] == run[3]) and not is_inside(run, later, earlier):
        return False, ZERO
    return small and (mine + other) % 2 != 0, mine - other


@kernel(callee=True)
def _misspelt(
    tokens: Tokens, first: int, end: int, others: Tokens, others_first: int, others_end: int, phrases: Phrases
) -> int:
    """How many words that deny are words of the others in another spelling (nothing, ntohing; đung, đúng)."""
    count = ZERO
    for a in range(first, end):
        if tokens.kinds[a] != WORD or not tokens.facts[a] & NEGATES:
            continue
        length = tokens.starts[a + 1] - tokens.starts[a]
        twin = False
        for b in range(others_first, others_end):
            if others.kinds[b] == WORD and not others.facts[b] & NEGATES:
                alike = letters_in_common(tokens, a, others, b, phrases)
                whole = alike == length == others.starts[b + 1] - others.starts[b]
                twin |= whole or are_spellings(tokens, a, others, b)
        count += twin
    return count


@kernel(callee=True)
def are_nothing(run: NDArray[np.int64], later: Tokens, earlier: Tokens) -> bool:
    """Whether 0 stands in the place of a word that denies: 0 errors, no errors."""
    if run[1] - run[0] != 1 or run[3] - run[2] != 1:
        return False
    if later.facts[run[0]] & NEGATES:
        return _is_zero(earlier, run[2])
    return bool(earlier.facts[run[2]] & NEGATES) and _is_zero(later, run[0])


@kernel(callee=True)
def _is_zero(tokens: Tokens, position: int) -> bool:
    first = tokens.starts[position]
    return tokens.starts[position + 1] - first == 1 and tokens.chars[first] == _ZERO_DIGIT


@kernel(callee=True)
def _side(tokens: Tokens, first: int, end: int, before: int, phrases: Phrases) -> tuple[int, int, int]:
    """(negations that share a token with tokens[first:end], tokens of it in none of them, hiragana in none)

    An empty side touches the negation within which it lies.
    before: end of the run before; a negation that begins before it is that run's
    """
    kana = ZERO
    for position in range(first, end):
        kana += _is_kana(tokens, position)
    rest = end - first - kana
    count = ZERO
    position = np.int64(max(0, first - _BEFORE))
    while position < end:
        at, stop = next_negation(tokens, position, end, FOREIGN, phrases)
        if at < end and at >= before and (stop > first if end > first else at < first < stop):
            count += 1
            for k in range(max(at, first), min(stop, end)):
                if _is_kana(tokens, k):
                    kana -= 1
                else:
                    rest -= 1
        position = stop
    return count, rest, kana


@kernel(callee=True)
def _is_kana(tokens: Tokens, position: int) -> bool:
    char = tokens.ids[position]
    return char >= _FIRST_KANA and char <= _LAST_KANA


@kernel(callee=True)
def _denied_forms(
    tokens: Tokens, first: int, end: int, others: Tokens, other_first: int, other_end: int,
    phrases: Phrases, work: Differing,
) -> int:  # fmt: skip
    """How many words of tokens[first:end] deny by their endings what words of the others say without them
    (gitmiyor, gidiyor)."""
    count = ZERO
    for a in range(first, end):
        if tokens.kinds[a] != WORD or tokens.facts[a] & NEGATES:
            continue
        is_denied = False
        for b in range(other_first, other_end):
            is_denied |= others.kinds[b] == WORD and _is_denied_form(tokens, a, others, b, phrases, work)
        count += is_denied
    return count


@kernel(callee=True)
def _is_denied_form(
    tokens: Tokens, a: int, others: Tokens, b: int, phrases: Phrases, work: Differing
) -> bool:
    """Whether a word has an ending that denies behind a stem that the other word has, too.

    The last letter of the stem may differ (git-miyor, gid-iyor), and the other word goes on with an ending of
    the same language, or with nothing.
    """
    alike = letters_in_common(tokens, a, others, b, phrases)
    first, end = tokens.starts[a], tokens.starts[a + 1]
    other, other_end = others.starts[b], others.starts[b + 1]
    for stem in range(max(alike - _BACK, _STEM), alike + 2):
        if first + stem >= end or other + stem > other_end:
            continue
        # Most words have no letter here with which such an ending begins.
        if class_of(tokens.chars[first + stem], phrases) & BEGINS_DENIED:
            row = find(phrases, hash_of_bases(tokens, first + stem, end, phrases))
            if row >= 0 and phrases.roles[row] & DENIED:
                spoken = spoken_in(phrases, work) & phrases.held[row, HELD_NEGATION]
                if endings_of(others, other + stem, other_end, phrases) & spoken != np.uint32(0):
                    return True
    return False
