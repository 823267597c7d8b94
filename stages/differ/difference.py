"""Decides whether the differences between two similar bodies keep them apart, and by which rule.

The bodies are aligned by their tokens. The first rule of `rules.py` that holds is the reason. First come
guards, which look for differences that change the meaning; then links, @names and tags, if bodies carry them
(`text.compare`); then the amount of differences. All arithmetic is in integers.
source: measured on judged pairs; docs/DIFFERENCES.md has the rules with their numbers
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import FULL, Differences
from twinsieve.stages.differ.align import NO_RUN, VALUED, align, are_few, facts_of
from twinsieve.stages.differ.amounts import measured
from twinsieve.stages.differ.corrections import corrects
from twinsieve.stages.differ.counted import may_count_more
from twinsieve.stages.differ.denials import denials_of, may_deny
from twinsieve.stages.differ.elsewhere import each_has_a_number, each_has_a_numeral, sense_elsewhere
from twinsieve.stages.differ.events import tells_other_stage
from twinsieve.stages.differ.greetings import drop_greeting
from twinsieve.stages.differ.numbers import number_rules
from twinsieve.stages.differ.operators import other_operator
from twinsieve.stages.differ.phrases import (
    CORRECTS,
    EXCLUDES,
    MAX_PHRASE,
    MORE,
    NEGATES,
    NUMBER_MARK,
    Phrases,
)
from twinsieve.stages.differ.repeated import are_repeated
from twinsieve.stages.differ.roman import may_be_roman
from twinsieve.stages.differ.rules import GUARD_RULES, Rule
from twinsieve.stages.differ.senses import may_exclude, sense_rules
from twinsieve.stages.differ.sources import differ_in_source
from twinsieve.stages.differ.spoken import hush
from twinsieve.stages.differ.tokens import WORD, Tokens, have_equal_chars, other_reference
from twinsieve.stages.differ.workspace import Differing
from twinsieve.stages.kernel import ZERO, kernel

_NUMBER, _NUMERAL, _REPEATED = int(Rule.NUMBER), int(Rule.NUMERAL), int(Rule.REPEATED)
_NONE, _OPPOSITE, _LINK = int(Rule.NONE), int(Rule.OPPOSITE), int(Rule.LINK)
_CORRECTION, _STAGE = int(Rule.CORRECTION), int(Rule.STAGE)


@kernel
def difference(phrases: Phrases, limits: Differences, work: Differing) -> tuple[int, int]:
    """(rule that keeps two bodies apart, or NONE; number of the run that decides, or NO_RUN)

    work: work.later and work.earlier hold the tokens of the bodies. The number of a run is its row in
        work.alignment.runs; NO_RUN if no single run decides
    """
    align(work.later, work.earlier, work.alignment)
    kind = other_reference(work.later, work.earlier)
    if work.alignment.count[0] == 0 or differ_in_source(phrases, work):
        return np.int64(_LINK + kind if kind >= 0 else _NONE), np.int64(NO_RUN)
    hush(phrases, work)
    drop_greeting(phrases, work)
    reason, run = _guards(phrases, work)
    if reason == _NONE and kind >= 0:
        return np.int64(_LINK + kind), np.int64(NO_RUN)
    if reason == _NONE and limits.level == FULL:
        shorter = min(work.later.starts[work.later.counts[0]], work.earlier.starts[work.earlier.counts[0]])
        return measured(shorter, limits, phrases, work)
    return reason, run


@kernel(callee=True, inlined=True)
def _guards(phrases: Phrases, work: Differing) -> tuple[int, int]:
    """(first guard that holds, or NONE; number of its run, or NO_RUN)

    Most runs are names, clauses and endings without any word of the lists. So a guard is called only if the
    facts of the tokens show that it can hold: it would read the tokens again to find that it cannot.
    """
    first = work.first_runs
    first[:] = NO_RUN
    later, earlier = work.later, work.earlier
    negations = ZERO
    negated = np.int64(NO_RUN)
    added = left_out = every = other_every = ZERO
    replaced = other_replaced = ZERO
    excludes = other_excludes = ZERO
    for number in range(work.alignment.count[0]):
        run = work.alignment.runs[number]
        mine, other = facts_of(later, run[0], run[1]), facts_of(earlier, run[2], run[3])
        # A phrase of an unspaced script that touches a run may begin before it.
        around = mine | facts_of(later, max(ZERO, run[0] - MAX_PHRASE), run[0])
        other_around = other | facts_of(earlier, max(ZERO, run[2] - MAX_PHRASE), run[2])
        excludes |= around if run[1] > run[0] else ZERO
        other_excludes |= other_around if run[3] > run[2] else ZERO
        every |= mine
        other_every |= other
        added |= mine if other & VALUED == 0 else ZERO
        left_out |= other if mine & VALUED == 0 else ZERO
        if run[1] > run[0] and run[3] > run[2]:
            replaced += run[1] - run[0]
            other_replaced += run[3] - run[2]
        counted = (mine | other) & (VALUED | MORE) or may_count_more(later, earlier, run)
        if counted or may_be_roman(run, later, earlier):
            _note(first, number_rules(number, phrases, work), number)
        if (around | other_around) & NEGATES or may_deny(run, phrases, work):
            odd, here = denials_of(number, phrases, work)
            negations += here
            if odd and negated == NO_RUN:
                negated = np.int64(number)
        if may_exclude(later, earlier, run):
            _note(first, sense_rules(number, phrases, work), number)
        if first[_OPPOSITE] == NO_RUN and (
            _any_marked_apart(later, earlier, run) or other_operator(run, later, earlier)
        ):
            first[_OPPOSITE] = number
        if (around | other_around) & EXCLUDES and tells_other_stage(number, phrases, work):
            _note(first, _STAGE, number)
        if first[_CORRECTION] == NO_RUN and (mine | other) & CORRECTS and corrects(number, phrases, work):
            first[_CORRECTION] = number
    if first[_OPPOSITE] == NO_RUN and negations % 2 != 0:
        first[_OPPOSITE] = negated
    if replaced > 1 and other_replaced > 1 and are_repeated(phrases, work):
        first[_REPEATED] = 0
    # Nobody knows whether what a cut body seems to lack stands behind the cut. A run with numbers on both
    # sides was judged by itself.
    whole = later.counts[1] == 0 and earlier.counts[1] == 0
    moved = whole and added & VALUED != 0 and left_out & VALUED != 0
    if moved and first[_NUMBER] == NO_RUN and each_has_a_number(phrases, work):
        first[_NUMBER] = _run_with(VALUED, work)
    valued = whole and every & VALUED != 0 and other_every & VALUED != 0
    if valued and first[_NUMERAL] == NO_RUN and each_has_a_numeral(phrases, work):
        first[_NUMERAL] = _run_with(VALUED, work)
    if whole and excludes & other_excludes & EXCLUDES:
        _note(first, sense_elsewhere(phrases, work), ZERO)
    for reason in GUARD_RULES:
        if first[reason] != NO_RUN:
            return np.int64(reason), first[reason]
    return np.int64(_NONE), np.int64(NO_RUN)


@kernel(callee=True)
def _run_with(fact: int, work: Differing) -> int:
    """Number of the first run whose later side has a fact; the first run if there is none."""
    for number in range(work.alignment.count[0]):
        run = work.alignment.runs[number]
        if facts_of(work.later, run[0], run[1]) & fact:
            return np.int64(number)
    return ZERO


@kernel(callee=True)
def _note(first: NDArray[np.int64], reason: int, number: int) -> None:
    if reason != _NONE and first[reason] == NO_RUN:
        first[reason] = number


@kernel(callee=True, inlined=True)
def _any_marked_apart(later: Tokens, earlier: Tokens, run: NDArray[np.int64]) -> bool:
    """Whether both sides of a run are short, and a word of each side differ only in their marks."""
    if not are_few(run):
        return False
    for a in range(run[0], run[1]):
        for b in range(run[2], run[3]):
            words = later.kinds[a] == WORD and earlier.kinds[b] == WORD
            if words and _are_marked_apart(later, a, earlier, b):
                return True
    return False


@kernel(callee=True)
def _are_marked_apart(later: Tokens, a: int, earlier: Tokens, b: int) -> bool:
    """Whether two words differ only in the mark at their ends; one of them may have no mark (a+, a)."""
    marked, other_marked = later.facts[a] & NUMBER_MARK != 0, earlier.facts[b] & NUMBER_MARK != 0
    if not (marked or other_marked) or later.ids[a] == earlier.ids[b]:
        return False
    first, other = later.starts[a], earlier.starts[b]
    length = later.starts[a + 1] - first - marked
    if length != earlier.starts[b + 1] - other - other_marked:
        return False
    return have_equal_chars(later, first, earlier, other, length)
