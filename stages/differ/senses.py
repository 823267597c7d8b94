"""The rules `calendar` and `opposite`: both bodies have listed words that exclude each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.differ.align import are_few
from twinsieve.stages.differ.emoticons import are_emoticons
from twinsieve.stages.differ.phrases import (
    CALENDAR_KINDS,
    EXCLUDES,
    FIRST_OPPOSITE,
    LENGTHS_SHIFT,
    MAX_PHRASE,
    Phrases,
    has_sense_of_kind,
)
from twinsieve.stages.differ.rules import Rule
from twinsieve.stages.differ.tokens import Tokens, phrase_lengths, phrase_row
from twinsieve.stages.differ.workspace import MAX_SENSES, Differing
from twinsieve.stages.kernel import NO, ZERO, kernel

_NONE, _CALENDAR, _OPPOSITE = int(Rule.NONE), int(Rule.CALENDAR), int(Rule.OPPOSITE)


@kernel(callee=True, inlined=True)
def may_exclude(later: Tokens, earlier: Tokens, run: NDArray[np.int64]) -> bool:
    """Whether both sides of a run may have phrases with senses; only then `sense_rules` must be called."""
    few = _is_filled(run) and are_few(run)
    return _excludes(later, run[0], run[1], few) and _excludes(earlier, run[2], run[3], few)


@kernel(callee=True)
def _is_filled(run: NDArray[np.int64]) -> bool:
    return run[1] > run[0] and run[3] > run[2]


@kernel(callee=True)
def _excludes(tokens: Tokens, first: int, end: int, few: bool) -> bool:
    """Whether there may be a phrase that `_senses` would find for tokens[first:end]."""
    stop = min(tokens.counts[0], end + 1 if few else first + 1)
    for position in range(max(0, end - MAX_PHRASE), stop):
        facts = np.int64(tokens.facts[position])
        lengths = facts >> LENGTHS_SHIFT & ((1 << MAX_PHRASE) - 1)
        covers = position <= first and lengths >> (end - position - 1) != 0
        if facts & EXCLUDES and (covers or (few and position >= first - 1)):
            return True
    return False


@kernel(callee=True)
def sense_rules(number: int, phrases: Phrases, work: Differing) -> int:
    """CALENDAR, OPPOSITE or NONE for one run. number: of the run

    It reads phrases that cover a whole side, and in short sides also phrases inside, with one token of
    context before and after. If characters were only added, they can turn a phrase into another one (明日,
    明後日). Then the token before or after the run is read together with it.
    """
    run = work.alignment.runs[number]
    if are_emoticons(run, work.later, work.earlier, phrases):
        return _NONE
    if _is_filled(run):
        return _sense_rule(run[0], run[1], run[2], run[3], are_few(run), phrases, work)
    rule = _NONE
    if run[0] > 0 and run[2] > 0:
        rule = _sense_rule(run[0] - 1, run[1], run[2] - 1, run[3], NO, phrases, work)
    if rule == _NONE and run[1] < work.later.counts[0] and run[3] < work.earlier.counts[0]:
        rule = _sense_rule(run[0], run[1] + 1, run[2], run[3] + 1, NO, phrases, work)
    return rule


@kernel(callee=True)
def _sense_rule(a0: int, a1: int, b0: int, b1: int, few: bool, phrases: Phrases, work: Differing) -> int:
    senses = _senses(work.later, a0, a1, few, phrases, work.senses)
    other_senses = _senses(work.earlier, b0, b1, few, phrases, work.other_senses)
    return excluded(work.senses, senses, work.other_senses, other_senses)


@kernel(callee=True)
def excluded(senses: NDArray[np.int64], count: int, others: NDArray[np.int64], other_count: int) -> int:
    """CALENDAR or OPPOSITE if a sense that only one side has excludes one that only the other side has."""
    rule = _NONE
    for i in range(count):
        sense = senses[i]
        if CALENDAR_KINDS <= sense >> 8 < FIRST_OPPOSITE or _has(others, other_count, sense):
            continue
        for k in range(other_count):
            if others[k] >> 8 == sense >> 8 and not _has(senses, count, others[k]):
                if sense >> 8 < CALENDAR_KINDS:
                    return _CALENDAR
                rule = _OPPOSITE
    return rule


@kernel(callee=True)
def _has(senses: NDArray[np.int64], count: int, sense: int) -> bool:
    for i in range(count):  # noqa: SIM110
        if senses[i] == sense:
            return True
    return False


@kernel(callee=True)
def _senses(
    tokens: Tokens, first: int, end: int, few: bool, phrases: Phrases, senses: NDArray[np.int64]
) -> int:
    """Write the senses of the phrases that cover tokens[first:end]. returns: number of senses

    few: also of phrases that are inside, including one more token on either side
    """
    count = ZERO
    for position in range(max(0, end - MAX_PHRASE), min(tokens.counts[0], end + 1)):
        if tokens.facts[position] & EXCLUDES == 0:
            continue
        lengths = phrase_lengths(tokens, position, tokens.counts[0])
        for length in range(1, MAX_PHRASE + 1):
            if lengths >> (length - 1) & 1 and _concerns(position, position + length, first, end, few):
                count = add_senses(
                    phrase_row(tokens, position, length, lengths, phrases), phrases, senses, count
                )
    return count


@kernel(callee=True)
def _concerns(position: int, stop: int, first: int, end: int, few: bool) -> bool:
    """Whether a phrase covers a side, or (few) is inside it or at most one token outside of it.

    position, stop: first token and end of the phrase; first, end: those of the side
    """
    return (position <= first and stop >= end) or (few and position >= first - 1 and stop <= end + 1)


@kernel(callee=True)
def add_senses(row: int, phrases: Phrases, senses: NDArray[np.int64], count: int) -> int:
    """Append the senses of a phrase to the first `count` senses. returns: the new number of senses

    row: of the phrase, -1 for none
    """
    if row >= 0:
        for position in range(phrases.sense_starts[row], phrases.sense_starts[row + 1]):
            if count < MAX_SENSES:
                senses[count] = phrases.senses[position]
                count += 1
    return count


@kernel(callee=True)
def ends_with_kind(tokens: Tokens, first: int, end: int, kind: int, phrases: Phrases) -> bool:
    """Whether tokens[first:end] end with a phrase that has a sense of this kind."""
    for position in range(max(first, end - MAX_PHRASE), end):
        if tokens.facts[position] & EXCLUDES:
            lengths = phrase_lengths(tokens, position, end)
            row = phrase_row(tokens, position, end - position, lengths, phrases)
            if has_sense_of_kind(phrases, row, kind):
                return True
    return False
