"""Two bodies are alike enough: does what differs between them keep them apart, and why?

The bodies are aligned by tokens; the first rule of the list that holds names the reason. Rules 1 to 7 are
guards: they look for a difference that changes what is said; behind them come links, @names and tags, where
bodies carry them (`text.compare`). Rules 8 to 13 bound how much may differ; their
limits belong to a profile. Everything is integers.
source: measured on judged pairs; docs/DIFFERENCES.md has the list with its numbers
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import Differences, Reason
from twinsieve.stages.intrinsics import GOLDEN
from twinsieve.stages.kernel import NO, YES, ZERO, kernel
from twinsieve.stages.near.align import Alignment, align, new_alignment
from twinsieve.stages.near.phrases import (
    CONCORD,
    CORRECTS,
    DIGIT,
    EXCLUDES,
    GRADES,
    IDIOM,
    LENGTHS_SHIFT,
    MAX_PHRASE,
    NEGATES,
    NUMBER_MARK,
    NUMERAL,
    Phrases,
    find,
    hash_of,
)
from twinsieve.stages.near.tokens import (
    CHARACTER,
    MIX,
    NUMBER,
    WORD,
    Tokens,
    new_tokens,
    other_reference,
)
from twinsieve.stages.near.values import (
    Values,
    holds_all,
    holds_any,
    is_numeral,
    new_values,
    read_values,
    same_order,
)

OFF, GUARDS, FULL = 0, 1, 2
"""Levels of `near.differences`."""

_NONE = int(Reason.NONE)
_NUMBER, _NUMERAL, _CALENDAR = int(Reason.NUMBER), int(Reason.NUMERAL), int(Reason.CALENDAR)
_NUMBER_ADDED, _OPPOSITE = int(Reason.NUMBER_ADDED), int(Reason.OPPOSITE)
_EXCHANGED, _CORRECTION = int(Reason.EXCHANGED), int(Reason.CORRECTION)
_REPLACED, _BOTH_SAY_MORE = int(Reason.REPLACED), int(Reason.BOTH_SAY_MORE)
_LONG_REPLACEMENT, _IN_ITS_PLACE = int(Reason.LONG_REPLACEMENT), int(Reason.IN_ITS_PLACE)
_OWN_WORDS, _LINK = int(Reason.OWN_WORDS), int(Reason.LINK)
_ADDED_INSIDE = int(Reason.ADDED_INSIDE)
_REASONS = len(Reason)

CALENDAR_KINDS = 3
"""Kinds of senses below this are weekdays, months and days; the others are pairs of opposites."""

_SENSES = 64
_FEW, _SHORT = 4, 3
"""Tokens of a run in which single words decide; of one where a negation does."""
_CODE_LENGTH = 6
_CONCORD_TOKENS = 4
_EXCHANGED_TOKENS, _EXCHANGED_RUNS = 6, 32
_CORRECTION_TOKENS = 20
_SPELLING_TOKENS = 12
_PAIR_CELLS = 1024
_NO_RUN = -1
_VALUED = DIGIT | NUMERAL
_AT_HEAD = np.int64(1 << 20)
"""In place of the points of a replacement at the head of both bodies, where names stand: any are enough."""


class Limits(NamedTuple):
    """How much may differ (rules 8 to 13); points are half characters of an unspaced script.

    level: OFF, GUARDS or FULL
    short: bodies with fewer characters are short
    replaced_short, replaced: per mille of what is paired; only_short: per mille, 1000 for no limit
    longest: points of one replacement
    place_points: of a replacement before the end, where the bodies differ in at most `place_runs` runs (0: no
        rule)
    inside: points that one body has more in one place inside
    own: new pairs of characters, and letters of new words, in one run
    """

    level: int
    short: int
    replaced_short: int
    replaced: int
    only_short: int
    longest: int
    place_points: int
    place_runs: int
    inside: int
    own: int


def limits_of(config: Differences) -> Limits:
    """The limits of a configuration."""
    level = (OFF, GUARDS, FULL)[("off", "guards", "full").index(config.level)]
    return Limits(
        level,
        config.short,
        config.replaced_short,
        config.replaced,
        config.only_short,
        config.longest,
        config.place_points,
        config.place_runs,
        config.inside,
        config.own,
    )


class Differing(NamedTuple):
    """Memory of one thread. first_runs: int64[reasons], the first run with this reason, or -1"""

    later: Tokens
    earlier: Tokens
    alignment: Alignment
    values: Values
    other_values: Values
    senses: NDArray[np.int64]
    other_senses: NDArray[np.int64]
    first_runs: NDArray[np.int64]
    pairs: NDArray[np.uint64]


def new_differing() -> Differing:
    """Fresh memory for one thread."""
    return Differing(
        new_tokens(),
        new_tokens(),
        new_alignment(),
        new_values(),
        new_values(),
        np.zeros(_SENSES, np.int64),
        np.zeros(_SENSES, np.int64),
        np.zeros(_REASONS, np.int64),
        np.zeros(_PAIR_CELLS, np.uint64),
    )


@kernel
def difference(phrases: Phrases, limits: Limits, work: Differing) -> tuple[int, int]:
    """(reason, run) that keeps two bodies apart; reason NONE where nothing does.

    Their tokens stand in work.later and work.earlier. run: a row of work.alignment.runs, -1 where no single
    run decides
    """
    align(work.later, work.earlier, work.alignment)
    kind = other_reference(work.later, work.earlier)
    if work.alignment.count[0] == 0:
        return np.int64(_LINK + kind if kind >= 0 else _NONE), np.int64(_NO_RUN)
    reason, run = _guards(phrases, work)
    if reason == _NONE and kind >= 0:
        return np.int64(_LINK + kind), np.int64(_NO_RUN)
    if reason == _NONE and limits.level == FULL:
        shorter = min(work.later.starts[work.later.counts[0]], work.earlier.starts[work.earlier.counts[0]])
        return _measured(shorter, phrases, limits, work)
    return reason, run


@kernel(callee=True)
def _guards(phrases: Phrases, work: Differing) -> tuple[int, int]:
    """Rules 1 to 7.

    Most runs are names, clauses and endings of which no list knows a word. A rule is asked only where the
    facts of the tokens let it find something: each call hands over all arrays, which costs more than to look.
    """
    first = work.first_runs
    first[:] = _NO_RUN
    later, earlier = work.later, work.earlier
    negations = ZERO
    negated = np.int64(_NO_RUN)
    for number in range(work.alignment.count[0]):
        run = work.alignment.runs[number]
        mine, other = _facts(later, run[0], run[1]), _facts(earlier, run[2], run[3])
        if (mine | other) & _VALUED or _are_letters(later, earlier, run):
            _note(first, _number_rules(number, phrases, work), number)
        if (mine | other) & NEGATES:
            odd, here = _negation_of(number, phrases, work)
            negations += here
            if odd and negated == _NO_RUN:
                negated = np.int64(number)
        if _may_exclude(later, earlier, run):
            _note(first, _sense_rules(number, phrases, work), number)
        if first[_OPPOSITE] == _NO_RUN and _any_denied(later, earlier, run):
            first[_OPPOSITE] = number
        valued = mine & _VALUED != 0 and other & _VALUED != 0
        if first[_EXCHANGED] == _NO_RUN and _is_exchanged(number, valued, phrases, work):
            first[_EXCHANGED] = number
        if first[_CORRECTION] == _NO_RUN and (mine | other) & CORRECTS and _corrects(number, phrases, work):
            first[_CORRECTION] = number
    if first[_OPPOSITE] == _NO_RUN and negations % 2 != 0:
        first[_OPPOSITE] = negated
    for reason in range(_NUMBER, _CORRECTION + 1):
        if first[reason] != _NO_RUN:
            return np.int64(reason), first[reason]
    return np.int64(_NONE), np.int64(_NO_RUN)


@kernel(callee=True)
def _facts(tokens: Tokens, first: int, end: int) -> int:
    """All facts of tokens[first:end]."""
    facts = ZERO
    for at in range(first, end):
        facts |= tokens.facts[at]
    return facts


@kernel(callee=True)
def _may_exclude(later: Tokens, earlier: Tokens, run: NDArray[np.int64]) -> bool:
    """Whether phrases that exclude others may stand on both sides of a run."""
    size, other_size = run[1] - run[0], run[3] - run[2]
    if size > 0 and other_size > 0:
        few = _are_few(run)
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
def _are_few(run: NDArray[np.int64]) -> bool:
    """Whether both sides have so few tokens that single words decide."""
    return run[1] - run[0] <= _FEW and run[3] - run[2] <= _FEW


@kernel(callee=True)
def _are_letters(later: Tokens, earlier: Tokens, run: NDArray[np.int64]) -> bool:
    """Whether one lone letter from a to f, or o, was replaced by another one."""
    one = run[1] - run[0] == 1 and run[3] - run[2] == 1
    return one and _is_letter(later, run[0]) and _is_letter(earlier, run[2])


@kernel(callee=True)
def _is_letter(tokens: Tokens, at: int) -> bool:
    char = tokens.chars[tokens.starts[at]]
    graded = ord("a") <= char <= ord("f") or char == ord("o")
    return tokens.starts[at + 1] - tokens.starts[at] == 1 and graded


@kernel(callee=True)
def _note(first: NDArray[np.int64], reason: int, number: int) -> None:
    if reason != _NONE and first[reason] == _NO_RUN:
        first[reason] = number


@kernel(callee=True)
def _is_inside(run: NDArray[np.int64], later: Tokens, earlier: Tokens) -> bool:
    """Whether a run touches neither end of either body."""
    if run[0] == 0 or run[2] == 0:
        return False
    return run[1] < later.counts[0] and run[3] < earlier.counts[0]


@kernel(callee=True)
def _widened(run: NDArray[np.int64], later: Tokens, earlier: Tokens) -> tuple[int, int, int, int]:
    """The run with the Chinese numerals that adjoin it; added ones with the number before them (5, 5万)."""
    a0, a1, b0, b1 = run[0], run[1], run[2], run[3]
    while a0 > 0 and b0 > 0 and is_numeral(later, a0 - 1) and is_numeral(earlier, b0 - 1):
        touches = a1 > a0 and is_numeral(later, a0)
        touches |= b1 > b0 and is_numeral(earlier, b0)
        if not touches:
            break
        a0 -= 1
        b0 -= 1
    n, m = later.counts[0], earlier.counts[0]
    while a1 < n and b1 < m and is_numeral(later, a1) and is_numeral(earlier, b1):
        touches = a1 > a0 and is_numeral(later, a1 - 1)
        touches |= b1 > b0 and is_numeral(earlier, b1 - 1)
        if not touches:
            break
        a1 += 1
        b1 += 1
    if a0 > 0 and b0 > 0 and later.kinds[a0 - 1] == NUMBER and earlier.kinds[b0 - 1] == NUMBER:
        added = a1 > a0 and run[3] == run[2] and is_numeral(later, a0)
        if added or (b1 > b0 and run[1] == run[0] and is_numeral(earlier, b0)):
            a0 -= 1
            b0 -= 1
    return a0, a1, b0, b1


@kernel(callee=True)
def _number_rules(number: int, phrases: Phrases, work: Differing) -> int:
    """Rules 1, 2 and 4 for one run."""
    run = work.alignment.runs[number]
    later, earlier = work.later, work.earlier
    size, other_size = run[1] - run[0], run[3] - run[2]
    replaced = size > 0 and other_size > 0
    few = _are_few(run)
    if size == 1 and other_size == 1:
        if _is_code(later, run[0]) and _is_code(earlier, run[2]):
            return _NUMBER
        graded = _are_letters(later, earlier, run) and _is_graded(later, run[0], phrases)
        if graded and _is_graded(earlier, run[2], phrases):
            return _NUMBER
    a0, a1, b0, b1 = _widened(run, later, earlier)
    mine, other = work.values, work.other_values
    read_values(later, a0, a1, phrases, mine)
    read_values(earlier, b0, b1, phrases, other)
    # Of a run that was added, `_widened` gives values to both sides only if it adds numerals to a number.
    uncut = run[1] < later.counts[0] and run[3] < earlier.counts[0]
    counted = replaced or (few and uncut)
    if counted and mine.counts[1] > 0 and other.counts[1] > 0:
        differ = not holds_all(other, mine, NO) and not holds_all(mine, other, NO)
        return _NUMBER if differ else _NONE
    if replaced and few and mine.counts[1] > 0 and other.counts[0] > 0:
        return _NONE if holds_all(other, mine, NO) else _NUMBER
    if replaced and few and other.counts[1] > 0 and mine.counts[0] > 0:
        return _NONE if holds_all(mine, other, NO) else _NUMBER
    if counted and few and mine.counts[0] > 0 and other.counts[0] > 0:
        return _NONE if holds_any(mine, other) else _NUMERAL
    if not replaced and size + other_size <= 2 and _is_inside(run, later, earlier):
        tokens, at, end = (later, run[0], run[1]) if size > 0 else (earlier, run[2], run[3])
        for k in range(at, end):
            if tokens.kinds[k] == NUMBER:
                return _NUMBER_ADDED
    return _NONE


@kernel(callee=True)
def _is_code(tokens: Tokens, at: int) -> bool:
    """Whether a token is a short mix of letters and digits, such as 12a."""
    return tokens.kinds[at] == MIX and tokens.starts[at + 1] - tokens.starts[at] <= _CODE_LENGTH


@kernel(callee=True)
def _is_graded(tokens: Tokens, at: int, phrases: Phrases) -> bool:
    """Whether a lone letter stands beside a word that says what it grades: type a, a型."""
    return _grades(tokens, at - 1, phrases) or _grades(tokens, at + 1, phrases)


@kernel(callee=True)
def _grades(tokens: Tokens, at: int, phrases: Phrases) -> bool:
    if not 0 <= at < tokens.counts[0]:
        return False
    row = find(phrases, hash_of(tokens.chars, tokens.starts[at], tokens.starts[at + 1]))
    return row >= 0 and phrases.roles[row] & GRADES != 0


@kernel(callee=True)
def _phrase_end(tokens: Tokens, at: int, end: int, length: int) -> int:
    """Where a phrase of `length` characters would end that begins at token `at`; -1 if it cannot."""
    if at + length > end or tokens.kinds[at + length - 1] != CHARACTER:
        return _NO_RUN
    return at + length


@kernel(callee=True)
def _negation_of(number: int, phrases: Phrases, work: Differing) -> tuple[bool, int]:
    """(an odd number of negations in a short run?, those of the later body less those of the earlier one)"""
    run = work.alignment.runs[number]
    a0, a1, b0, b1 = run[0], run[1], run[2], run[3]
    mine = negations(work.later, a0, a1, phrases)
    other = negations(work.earlier, b0, b1, phrases)
    if mine + other == 0 and (a0 == a1 or b0 == b1):
        by, other_by = _slide(work.later, a0, a1, phrases), _slide(work.earlier, b0, b1, phrases)
        a0, a1, b0, b1 = a0 - by, a1 - by, b0 - other_by, b1 - other_by
        mine = negations(work.later, a0, a1, phrases)
        other = negations(work.earlier, b0, b1, phrases)
    short = _is_short(work.later, a0, a1, phrases) and _is_short(work.earlier, b0, b1, phrases)
    return short and (mine + other) % 2 != 0, mine - other


@kernel(callee=True)
def _is_short(tokens: Tokens, first: int, end: int, phrases: Phrases) -> bool:
    """Whether a side has few tokens, or is a negation and nothing else."""
    if end - first <= _SHORT:
        return True
    for at in range(first, end):
        if tokens.kinds[at] != CHARACTER:
            return False
    row = find(phrases, hash_of(tokens.chars, tokens.starts[first], tokens.starts[end]))
    return row >= 0 and phrases.roles[row] & NEGATES != 0


@kernel(callee=True)
def negations(tokens: Tokens, first: int, end: int, phrases: Phrases) -> int:
    """How many negations stand in tokens[first:end]."""
    count = ZERO
    at = first
    while at < end:
        step = np.int64(1)
        lengths = _lengths(tokens, at, end) if tokens.facts[at] & NEGATES else ZERO
        for length in range(1, MAX_PHRASE + 1 if lengths else 0):
            row = _row(tokens, at, length, lengths, phrases)
            negates = row >= 0 and phrases.roles[row] & NEGATES != 0
            if negates and not _in_idiom(tokens, at, at + length, phrases):
                count += phrases.roles[row] & CONCORD == 0 or not _goes_with_another(tokens, at, phrases)
                step = np.int64(length)
                break
        at += step
    return count


@kernel(callee=True)
def _goes_with_another(tokens: Tokens, at: int, phrases: Phrases) -> bool:
    """Whether a negation only goes with one that counts: pas in "ne sera pas", nor in "neither a nor b"."""
    for k in range(max(0, at - _CONCORD_TOKENS), min(tokens.counts[0], at + _CONCORD_TOKENS + 1)):
        if k == at or tokens.kinds[k] != WORD or tokens.facts[k] & NEGATES == 0:
            continue
        row = find(phrases, hash_of(tokens.chars, tokens.starts[k], tokens.starts[k + 1]))
        if k < at or phrases.roles[row] & CONCORD == 0:
            return True
    return False


@kernel(callee=True)
def _slide(tokens: Tokens, first: int, end: int, phrases: Phrases) -> int:
    """How far to the left an added run holds a negation, if it was as well added there: ab[cb]d, a[bc]bd."""
    for by in range(1, min(first, end - first) + 1):
        if tokens.ids[first - by] != tokens.ids[end - by]:
            break
        if negations(tokens, first - by, end - by, phrases) > 0:
            return np.int64(by)
    return ZERO


@kernel(callee=True)
def _lengths(tokens: Tokens, at: int, end: int) -> int:
    """How long phrases can be that begin at a token and end by `end`: bit k - 1 for k tokens.

    A word is a phrase of one token. Few characters begin phrases, and most of them phrases of one or two
    lengths: nothing else is hashed.
    """
    lengths = np.int64(tokens.facts[at]) >> LENGTHS_SHIFT
    room = np.int64(1)
    while lengths >> room != 0 and at + room < end and tokens.kinds[at + room] == CHARACTER:
        room += 1
    return lengths & ((np.int64(1) << room) - 1)


@kernel(callee=True)
def _row(tokens: Tokens, at: int, length: int, lengths: int, phrases: Phrases) -> int:
    """Row of the phrase of `length` tokens that begins at a token, -1 for none. lengths: by `_lengths`"""
    if not (lengths >> (length - 1)) & 1:
        return np.int64(-1)
    return find(phrases, hash_of(tokens.chars, tokens.starts[at], tokens.starts[at + length]))


@kernel(callee=True)
def _in_idiom(tokens: Tokens, first: int, end: int, phrases: Phrases) -> bool:
    """Whether a phrase that only looks like a negation covers these tokens: 无论, 不过."""
    for at in range(max(0, end - MAX_PHRASE), first + 1):
        if tokens.kinds[at] != CHARACTER:
            continue
        lengths = _lengths(tokens, at, tokens.counts[0])
        for length in range(end - at, MAX_PHRASE + 1):
            row = _row(tokens, at, length, lengths, phrases)
            if row >= 0 and phrases.roles[row] & IDIOM:
                return True
    return False


@kernel(callee=True)
def _sense_rules(number: int, phrases: Phrases, work: Differing) -> int:
    """Rules 3 and 5 for one run: other days, or opposites.

    Phrases of short sides are read, with one token of context on either side, and phrases that cover a side.
    """
    run = work.alignment.runs[number]
    size, other_size = run[1] - run[0], run[3] - run[2]
    if size == 0 or other_size == 0:
        return _torn(run, phrases, work)
    few = _are_few(run)
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
    """Rules 3 and 5 where characters were added inside a phrase, which makes it another one: 明日, 明後日."""
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
    return _add_senses(row, phrases, senses, ZERO)


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
        lengths = _lengths(tokens, at, tokens.counts[0])
        for length in range(1, MAX_PHRASE + 1):
            if lengths >> (length - 1) & 1 and _concerns(at, at + length, first, end, few):
                count = _add_senses(_row(tokens, at, length, lengths, phrases), phrases, senses, count)
    return count


@kernel(callee=True)
def _concerns(at: int, stop: int, first: int, end: int, few: bool) -> bool:
    """Whether a phrase covers a side, or stands in a short one or a token beside."""
    return (at <= first and stop >= end) or (few and at >= first - 1 and stop <= end + 1)


@kernel(callee=True)
def _add_senses(row: int, phrases: Phrases, senses: NDArray[np.int64], count: int) -> int:
    if row >= 0:
        for at in range(phrases.sense_starts[row], phrases.sense_starts[row + 1]):
            if count < _SENSES:
                senses[count] = phrases.senses[at]
                count += 1
    return count


@kernel(callee=True)
def _any_denied(later: Tokens, earlier: Tokens, run: NDArray[np.int64]) -> bool:
    """Whether a word of one short side denies one of the other, or differs from it in its mark alone."""
    if not _are_few(run):
        return False
    for a in range(run[0], run[1]):
        for b in range(run[2], run[3]):
            words = later.kinds[a] == WORD and earlier.kinds[b] == WORD
            if words and _excludes_word(later, a, earlier, b):
                return True
    return False


@kernel(callee=True)
def _excludes_word(later: Tokens, a: int, earlier: Tokens, b: int) -> bool:
    """Whether two words deny each other (safe, unsafe), or differ in the mark at their ends alone (a+, a)."""
    if _denies(later, a, earlier, b) or _denies(earlier, b, later, a):
        return True
    marked, other_marked = later.facts[a] & NUMBER_MARK != 0, earlier.facts[b] & NUMBER_MARK != 0
    if not (marked or other_marked) or later.ids[a] == earlier.ids[b]:
        return False
    first, other = later.starts[a], earlier.starts[b]
    length = later.starts[a + 1] - first - marked
    if length != earlier.starts[b + 1] - other - other_marked:
        return False
    for k in range(length):  # noqa: SIM110
        if later.chars[first + k] != earlier.chars[other + k]:
            return False
    return True


@kernel(callee=True)
def _denies(tokens: Tokens, at: int, other: Tokens, other_at: int) -> bool:
    """Whether a word is the other one with un-, in-, im-, dis- or non- in front."""
    first, end = tokens.starts[at], tokens.starts[at + 1]
    start, length = other.starts[other_at], other.starts[other_at + 1] - other.starts[other_at]
    extra = end - first - length
    if length < 4 or not 2 <= extra <= 3:
        return False
    a, b = tokens.chars[first], tokens.chars[first + 1]
    if extra == 2:
        known = (a == ord("u") or a == ord("i")) and (b == ord("n") or (a == ord("i") and b == ord("m")))
    else:
        c = tokens.chars[first + 2]
        known = a == ord("d") and b == ord("i") and c == ord("s")
        known |= a == ord("n") and b == ord("o") and c == ord("n")
    if not known:
        return False
    for k in range(length):  # noqa: SIM110
        if tokens.chars[first + extra + k] != other.chars[start + k]:
            return False
    return True


@kernel(callee=True)
def _is_exchanged(number: int, valued: bool, phrases: Phrases, work: Differing) -> bool:
    """Rule 6: what stood in one place stands in another one, and the other way round (3比1 / 1比3).

    valued: both sides hold numbers
    """
    later, earlier = work.later, work.earlier
    runs, count = work.alignment.runs, work.alignment.count[0]
    run = runs[number]
    if run[1] - run[0] > _EXCHANGED_TOKENS or run[3] - run[2] > _EXCHANGED_TOKENS:
        return False
    if valued and _same_values_in_other_order(run[0], run[1], run[2], run[3], phrases, work):
        return True
    for follows in range(number + 1, min(count, number + 1 + _EXCHANGED_RUNS)):
        then = runs[follows]
        if _crosses(run, then, later, earlier):
            return True
    if number + 1 == count:
        return False
    then = runs[number + 1]
    if then[0] - run[1] <= _EXCHANGED_TOKENS:
        size, other_size = run[1] - run[0], run[3] - run[2]
        added, other_added = then[1] - then[0], then[3] - then[2]
        turned = size == other_added == 0 and added == other_size
        if turned and _turns_round(earlier, run[2], run[3], later, then[0]):
            return True
        turned = other_size == added == 0 and other_added == size
        if turned and _turns_round(later, run[0], run[1], earlier, then[2]):
            return True
    if then[0] - run[1] > 2 or then[1] - run[0] > _EXCHANGED_TOKENS:
        return False
    mine, other = _facts(later, run[0], then[1]), _facts(earlier, run[2], then[3])
    if mine & _VALUED == 0 or other & _VALUED == 0:
        return False
    return _same_values_in_other_order(run[0], then[1], run[2], then[3], phrases, work)


@kernel(callee=True)
def _crosses(run: NDArray[np.int64], then: NDArray[np.int64], later: Tokens, earlier: Tokens) -> bool:
    size, other_size = run[1] - run[0], run[3] - run[2]
    if size == 0 or other_size == 0 or then[3] - then[2] != size or then[1] - then[0] != other_size:
        return False
    return _same_tokens(later, run[0], earlier, then[2], size) and _same_tokens(
        later, then[0], earlier, run[2], other_size
    )


@kernel(callee=True)
def _turns_round(tokens: Tokens, first: int, end: int, other: Tokens, at: int) -> bool:
    """Whether what stood before a word, "a beats", stands behind it as "beats a": a beats b, b beats a."""
    size = end - first
    if _same_tokens(tokens, first, other, at, size):
        # Moved, as a block: 哈哈.
        return False
    for head in range(1, size):
        if _same_tokens(tokens, first, other, at + size - head, head) and _same_tokens(
            tokens, first + head, other, at, size - head
        ):
            return True
    return False


@kernel(callee=True)
def _same_tokens(later: Tokens, a: int, earlier: Tokens, b: int, size: int) -> bool:
    for k in range(size):  # noqa: SIM110
        if later.ids[a + k] != earlier.ids[b + k]:
            return False
    return True


@kernel(callee=True)
def _same_values_in_other_order(
    a0: int, a1: int, b0: int, b1: int, phrases: Phrases, work: Differing
) -> bool:
    mine, other = work.values, work.other_values
    read_values(work.later, a0, a1, phrases, mine)
    if mine.counts[0] < 2:
        return False
    read_values(work.earlier, b0, b1, phrases, other)
    if mine.counts[0] != other.counts[0] or same_order(mine, other):
        return False
    return bool(holds_all(mine, other, YES))


@kernel(callee=True)
def _corrects(number: int, phrases: Phrases, work: Differing) -> bool:
    """Rule 7: an end of one body holds a correction (更正, 谣言, update, fake) that the other one lacks."""
    run = work.alignment.runs[number]
    at_end = run[0] == 0 or run[1] == work.later.counts[0]
    other_at_end = run[2] == 0 or run[3] == work.earlier.counts[0]
    if at_end and _has_correction(work.later, run[0], run[1], work.earlier, phrases):
        return True
    return other_at_end and _has_correction(work.earlier, run[2], run[3], work.later, phrases)


@kernel(callee=True)
def _has_correction(tokens: Tokens, first: int, end: int, other: Tokens, phrases: Phrases) -> bool:
    if end - first > _CORRECTION_TOKENS:
        return False
    for at in range(first, end):
        if tokens.facts[at] & CORRECTS == 0:
            continue
        lengths = _lengths(tokens, at, end)
        is_word = tokens.kinds[at] == WORD
        for length in range(1, MAX_PHRASE + 1):
            row = _row(tokens, at, length, lengths, phrases)
            if row >= 0 and phrases.roles[row] & CORRECTS:
                characters = ZERO if is_word else np.int64(length)
                if not _holds_phrase(other, phrases.keys[row], characters):
                    return True
    return False


@kernel(callee=True)
def _holds_phrase(tokens: Tokens, key: np.uint64, length: int) -> bool:
    """Whether the phrase stands anywhere; length: its characters, 0 for a word."""
    for at in range(tokens.counts[0]):
        if length == 0:
            found = tokens.kinds[at] == WORD and tokens.ids[at] == key
        else:
            stop = _phrase_end(tokens, at, tokens.counts[0], length)
            found = stop >= 0 and hash_of(tokens.chars, tokens.starts[at], tokens.starts[stop]) == key
        if found:
            return True
    return False


class Sums(NamedTuple):
    """What rules 8 to 13 measure, in points."""

    shared: int
    replaced: int
    only: int
    longest: int
    longest_run: int
    place: int
    place_run: int
    inside: int
    inside_run: int
    own_run: int


@kernel(callee=True)
def _measured(shorter: int, phrases: Phrases, limits: Limits, work: Differing) -> tuple[int, int]:
    """Rules 8 to 13."""
    sums = _sums(phrases, limits, work)
    short = shorter < limits.short
    most = limits.replaced_short if short else limits.replaced
    if sums.replaced * 1000 > most * (sums.replaced + sums.shared):
        return np.int64(_REPLACED), sums.longest_run
    if short and sums.only * 1000 > limits.only_short * (sums.only + sums.shared):
        return np.int64(_BOTH_SAY_MORE), ZERO
    if sums.longest > limits.longest:
        return np.int64(_LONG_REPLACEMENT), sums.longest_run
    few = work.alignment.count[0] <= limits.place_runs
    if few and limits.place_points > 0 and sums.place >= limits.place_points:
        return np.int64(_IN_ITS_PLACE), sums.place_run
    if sums.own_run != _NO_RUN:
        return np.int64(_OWN_WORDS), sums.own_run
    if sums.inside > limits.inside:
        return np.int64(_ADDED_INSIDE), sums.inside_run
    return np.int64(_NONE), np.int64(_NO_RUN)


@kernel(callee=True)
def _sums(phrases: Phrases, limits: Limits, work: Differing) -> Sums:
    later, earlier, runs = work.later, work.earlier, work.alignment.runs
    shared = replaced = only = other_only = longest = place = inside = ZERO
    longest_run = place_run = inside_run = own_run = np.int64(_NO_RUN)
    most_own = np.int64(limits.own)
    at = ZERO
    for number in range(work.alignment.count[0]):
        run = runs[number]
        shared += _points(later, at, run[0])
        at = run[1]
        points, other_points = _paired_points(run, phrases, work)
        only += points
        other_only += other_points
        both = min(points, other_points) if run[1] > run[0] and run[3] > run[2] else ZERO
        replaced += both
        if both > longest:
            longest, longest_run = both, np.int64(number)
        if run[1] < later.counts[0] and run[3] < earlier.counts[0]:
            held = min(_character_points(later, run[0], run[1]), _character_points(earlier, run[2], run[3]))
            if held > 0 and run[0] == 0 and run[2] == 0:
                held = _AT_HEAD
            if held > place:
                place, place_run = held, np.int64(number)
        alone = max(points, other_points) if run[1] == run[0] or run[3] == run[2] else ZERO
        if alone > inside and _is_inside(run, later, earlier):
            inside, inside_run = alone, np.int64(number)
        if later.starts[run[1]] - later.starts[run[0]] > most_own:
            new = _new_pairs(run, work)
            if new > most_own:
                most_own, own_run = new, np.int64(number)
    shared += _points(later, at, later.counts[0])
    less = min(only, other_only)
    return Sums(shared, replaced, less, longest, longest_run, place, place_run, inside, inside_run, own_run)


@kernel(callee=True)
def _points(tokens: Tokens, first: int, end: int) -> int:
    total = ZERO
    for at in range(first, end):
        total += tokens.points[at]
    return total


@kernel(callee=True)
def _character_points(tokens: Tokens, first: int, end: int) -> int:
    total = ZERO
    for at in range(first, end):
        total += tokens.points[at] if tokens.kinds[at] == CHARACTER else 0
    return total


@kernel(callee=True)
def _paired_points(run: NDArray[np.int64], phrases: Phrases, work: Differing) -> tuple[int, int]:
    """Points of both sides, less those of equal numbers and of words in two spellings."""
    later, earlier = work.later, work.earlier
    points, other = _points(later, run[0], run[1]), _points(earlier, run[2], run[3])
    size, other_size = run[1] - run[0], run[3] - run[2]
    if size == 0 or other_size == 0:
        return points, other
    facts = _facts(later, run[0], run[1]) | _facts(earlier, run[2], run[3])
    if facts & _VALUED and _are_few(run):
        a0, a1, b0, b1 = _widened(run, later, earlier)
        read_values(later, a0, a1, phrases, work.values)
        if work.values.counts[0] > 0:
            read_values(earlier, b0, b1, phrases, work.other_values)
            if same_order(work.values, work.other_values):
                points = _points_beside_numbers(later, run[0], run[1])
                other = _points_beside_numbers(earlier, run[2], run[3])
    if size <= _SPELLING_TOKENS and other_size <= _SPELLING_TOKENS:
        taken = ZERO
        for a in range(run[0], run[1]):
            for b in range(run[2], run[3]):
                free = (taken >> (b - run[2])) & 1 == 0
                alike = free and _are_spellings(later, a, earlier, b)
                if alike and not _are_opposites(later, a, earlier, b, phrases, work):
                    points -= later.points[a]
                    other -= earlier.points[b]
                    taken |= np.int64(1) << (b - run[2])
                    break
    return max(points, ZERO), max(other, ZERO)


@kernel(callee=True)
def _points_beside_numbers(tokens: Tokens, first: int, end: int) -> int:
    total = ZERO
    for at in range(first, end):
        if tokens.kinds[at] != NUMBER and not is_numeral(tokens, at):
            total += tokens.points[at]
    return total


@kernel(callee=True)
def _are_spellings(later: Tokens, a: int, earlier: Tokens, b: int) -> bool:
    """Whether two words are one in two spellings.

    One begins the other (4 letters at least), has one letter more, or (5 letters at least) another one.
    """
    if later.kinds[a] != WORD or earlier.kinds[b] != WORD:
        return False
    if later.starts[a + 1] - later.starts[a] <= earlier.starts[b + 1] - earlier.starts[b]:
        return _is_spelling(later, a, earlier, b)
    return _is_spelling(earlier, b, later, a)


@kernel(callee=True)
def _are_opposites(later: Tokens, a: int, earlier: Tokens, b: int, phrases: Phrases, work: Differing) -> bool:
    """Whether one of two words excludes or denies the other."""
    if later.facts[a] & earlier.facts[b] & EXCLUDES:
        mine = _add_senses(find(phrases, later.ids[a]), phrases, work.senses, ZERO)
        other = _add_senses(find(phrases, earlier.ids[b]), phrases, work.other_senses, ZERO)
        for i in range(mine):
            for k in range(other):
                one, two = work.senses[i], work.other_senses[k]
                if one >> 8 == two >> 8 and one != two:
                    return True
    return _excludes_word(later, a, earlier, b)


@kernel(callee=True)
def _is_spelling(short: Tokens, a: int, long: Tokens, b: int) -> bool:
    first, second = short.starts[a], long.starts[b]
    n, m = short.starts[a + 1] - first, long.starts[b + 1] - second
    same = ZERO
    while same < n and short.chars[first + same] == long.chars[second + same]:
        same += 1
    if same == n:
        return n == m or n >= 4
    if n < 4 or m - n > 1 or (m == n and n < 5):
        return False
    rest = same + (m == n)
    for k in range(rest, n):  # noqa: SIM110
        if short.chars[first + k] != long.chars[second + k + (m - n)]:
            return False
    return True


@kernel(callee=True)
def _new_pairs(run: NDArray[np.int64], work: Differing) -> int:
    """Pairs of neighbouring characters in the later body's run that stand nowhere in the earlier body.

    A word counts by its letters if the earlier body lacks it: any long text has most pairs of letters.
    """
    pairs, earlier, later = work.pairs, work.earlier, work.later
    pairs[:] = 0
    for k in range(earlier.starts[earlier.counts[0]] - 1):
        key = _pair(earlier.chars, k)
        pairs[_pair_cell(pairs, key)] = key
    new = ZERO
    last = later.starts[run[1]] - 1
    for at in range(run[0], run[1]):
        first, end = later.starts[at], later.starts[at + 1]
        if later.kinds[at] == WORD:
            new += ZERO if _holds(earlier, later.ids[at]) else end - first
            continue
        for k in range(first, min(end, last)):
            key = _pair(later.chars, k)
            new += pairs[_pair_cell(pairs, key)] != key
    return new


@kernel(callee=True)
def _holds(tokens: Tokens, token: np.uint64) -> bool:
    """Whether a body has this token. token: as in Tokens.ids"""
    for at in range(tokens.counts[0]):  # noqa: SIM110
        if tokens.ids[at] == token:
            return True
    return False


@kernel(callee=True)
def _pair(chars: NDArray[np.uint32], at: int) -> np.uint64:
    return (np.uint64(chars[at]) << np.uint64(32)) | np.uint64(chars[at + 1])


@kernel(callee=True)
def _pair_cell(pairs: NDArray[np.uint64], key: np.uint64) -> int:
    cell = np.int64((key * GOLDEN) >> np.uint64(54))
    while pairs[cell] != np.uint64(0) and pairs[cell] != key:
        cell = (cell + 1) & (_PAIR_CELLS - 1)
    return cell
