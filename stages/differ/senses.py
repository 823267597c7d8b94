"""Words that exclude each other by the lists: other days (`calendar`) and opposites (`opposite`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.differ.phrase_at import phrase_lengths, phrase_row
from twinsieve.stages.differ.phrases import (
    CALENDAR_KINDS,
    EXCLUDES,
    LENGTHS_SHIFT,
    MAX_PHRASE,
    Phrases,
    find,
    hash_of,
)
from twinsieve.stages.differ.rules import Rule
from twinsieve.stages.differ.runs import are_few
from twinsieve.stages.differ.tokens import CHARACTER, Tokens
from twinsieve.stages.differ.workspace import MAX_SENSES, Differing
from twinsieve.stages.kernel import ZERO, kernel

_NONE, _CALENDAR, _OPPOSITE = int(Rule.NONE), int(Rule.CALENDAR), int(Rule.OPPOSITE)


@kernel(callee=True)
def may_exclude(later: Tokens, earlier: Tokens, run: NDArray[np.int64]) -> bool:
    """Whether phrases that exclude others may stand on both sides of a run."""
    size, other_size = run[1] - run[0], run[3] - run[2]
    if size > 0 and other_size > 0:
        few = are_few(run)
        return _excludes(later, run[0], run[1], few) and _excludes(earlier, run[2], run[3], few)
    for before in range(min(run[0], run[2], MAX_PHRASE - size - other_size) + 1):
        if _begins_at(later, run[0] - before) and _begins_at(earlier, run[2] - before):
            return True
    return False


@kernel(callee=True)
def _excludes(tokens: Tokens, first: int, end: int, few: bool) -> bool:
    """Whether a phrase that `_senses` would find may begin somewhere."""
    stop = min(tokens.counts[0], end + 1) if few else first + 1
    for at in range(max(0, end - MAX_PHRASE), stop):
        facts = np.int64(tokens.facts[at])
        covers = at <= first and facts >> (LENGTHS_SHIFT + end - at - 1) != 0
        if facts & EXCLUDES and (covers or (few and at >= first - 1)):
            return True
    return False


@kernel(callee=True)
def _begins_at(tokens: Tokens, at: int) -> bool:
    """Whether a character begins phrases that exclude others."""
    if at >= tokens.counts[0] or tokens.kinds[at] != CHARACTER:
        return False
    return tokens.facts[at] & EXCLUDES != 0


@kernel(callee=True)
def sense_rules(number: int, phrases: Phrases, work: Differing) -> int:
    """CALENDAR, OPPOSITE or NONE for one run.

    Phrases of short sides are read, with one token of context on either side, and phrases that cover a side.
    """
    run = work.alignment.runs[number]
    size, other_size = run[1] - run[0], run[3] - run[2]
    if size == 0 or other_size == 0:
        return _torn(run, phrases, work)
    few = are_few(run)
    mine = _senses(work.later, run[0], run[1], few, phrases, work.senses)
    other = _senses(work.earlier, run[2], run[3], few, phrases, work.other_senses)
    return _excluded(work.senses, mine, work.other_senses, other)


@kernel(callee=True)
def _excluded(senses: NDArray[np.int64], count: int, others: NDArray[np.int64], other_count: int) -> int:
    """CALENDAR or OPPOSITE where a sense that one side alone has excludes one that the other alone has."""
    found = _NONE
    for i in range(count):
        sense = senses[i]
        if _has(others, other_count, sense):
            continue
        for k in range(other_count):
            if others[k] >> 8 == sense >> 8 and not _has(senses, count, others[k]):
                if sense >> 8 < CALENDAR_KINDS:
                    return _CALENDAR
                found = _OPPOSITE
    return found


@kernel(callee=True)
def _torn(run: NDArray[np.int64], phrases: Phrases, work: Differing) -> int:
    """The same where characters were added inside a phrase, which makes it another one: 明日, 明後日."""
    full, empty = (work.later, work.earlier) if run[1] > run[0] else (work.earlier, work.later)
    first, end, at = (run[0], run[1], run[2]) if run[1] > run[0] else (run[2], run[3], run[0])
    found = _NONE
    for before in range(min(first, at, MAX_PHRASE - (end - first)) + 1):
        if not _begins_at(full, first - before) or not _begins_at(empty, at - before):
            continue
        for behind in range(before == 0, MAX_PHRASE - (end - first) - before + 1):
            if empty.counts[0] < at + behind or full.counts[0] < end + behind:
                break
            mine = _phrase_senses(full, first - before, end + behind, phrases, work.senses)
            other = _phrase_senses(empty, at - before, at + behind, phrases, work.other_senses)
            said = _excluded(work.senses, mine, work.other_senses, other)
            if said == _CALENDAR:
                return said
            found = max(found, said)
    return found


@kernel(callee=True)
def _phrase_senses(tokens: Tokens, first: int, end: int, phrases: Phrases, senses: NDArray[np.int64]) -> int:
    """Write what characters first to end exclude, if they are one phrase; the number of senses."""
    for at in range(first, end):
        if tokens.kinds[at] != CHARACTER:
            return ZERO
    row = find(phrases, hash_of(tokens.chars, tokens.starts[first], tokens.starts[end]))
    return add_senses(row, phrases, senses, ZERO)


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
    """Write what phrases of a side exclude that cover tokens[first:end]; their number.

    few: also those inside, and with one token more on either side
    """
    count = ZERO
    for at in range(max(0, end - MAX_PHRASE), min(tokens.counts[0], end + 1)):
        if tokens.facts[at] & EXCLUDES == 0:
            continue
        lengths = phrase_lengths(tokens, at, tokens.counts[0])
        for length in range(1, MAX_PHRASE + 1):
            if lengths >> (length - 1) & 1 and _concerns(at, at + length, first, end, few):
                count = add_senses(phrase_row(tokens, at, length, lengths, phrases), phrases, senses, count)
    return count


@kernel(callee=True)
def _concerns(at: int, stop: int, first: int, end: int, few: bool) -> bool:
    """Whether a phrase covers a side, or stands in a short one or a token beside."""
    return (at <= first and stop >= end) or (few and at >= first - 1 and stop <= end + 1)


@kernel(callee=True)
def add_senses(row: int, phrases: Phrases, senses: NDArray[np.int64], count: int) -> int:
    """Write what a phrase excludes behind the first `count` senses; their number. row: -1 for no phrase"""
    if row >= 0:
        for at in range(phrases.sense_starts[row], phrases.sense_starts[row + 1]):
            if count < MAX_SENSES:
                senses[count] = phrases.senses[at]
                count += 1
    return count
