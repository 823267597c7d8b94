"""The rules of the category `amount`: they limit how much two bodies may differ."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import Differences
from twinsieve.stages.differ.align import NO_RUN, VALUED, facts_of, is_inside
from twinsieve.stages.differ.content import holds_token, may_be_a_name, points_of, says_something
from twinsieve.stages.differ.counted import add_ones, count_readers
from twinsieve.stages.differ.dashes import is_date_part
from twinsieve.stages.differ.endings import other_ending
from twinsieve.stages.differ.forms import has_form, is_one_word, letters_in_common
from twinsieve.stages.differ.greetings import closes
from twinsieve.stages.differ.items import another_item, is_in_another_script
from twinsieve.stages.differ.names import are_short_names, character_points
from twinsieve.stages.differ.number_values import (
    PLAINLY,
    holds_all,
    read_in_all_ways,
    read_values,
    writes_one_string,
)
from twinsieve.stages.differ.phrases import NUMERAL, ONE, POWER, Phrases
from twinsieve.stages.differ.roman import is_its_roman_number
from twinsieve.stages.differ.rules import Rule
from twinsieve.stages.differ.said import says_more
from twinsieve.stages.differ.tokens import CHARACTER, WORD, Tokens
from twinsieve.stages.differ.workspace import Differing
from twinsieve.stages.differ.writings import is_one_phrase
from twinsieve.stages.intrinsics import cell_of
from twinsieve.stages.kernel import NO, YES, ZERO, kernel

_NONE = int(Rule.NONE)
_REPLACED, _BOTH_SAY_MORE = int(Rule.REPLACED), int(Rule.BOTH_SAY_MORE)
_LONG_REPLACEMENT, _IN_ITS_PLACE = int(Rule.LONG_REPLACEMENT), int(Rule.IN_ITS_PLACE)
_OWN_WORDS, _ADDED_INSIDE = int(Rule.OWN_WORDS), int(Rule.ADDED_INSIDE)
_WORD_ADDED = int(Rule.WORD_ADDED)
_CHARACTER = 2
"""Points of one character of an unspaced script. Points are the weights of tokens (`Tokens.points`)."""
_SPELLING_TOKENS = 12
_NAME_TOKENS = 2
_ALL = 1000


class Sums(NamedTuple):
    """What the rules measure of a pair, in points; a `…_run` is the number of the run with that value.

    shared: points of common tokens; replaced: points of all replacements, each with its smaller side
    only: points of all tokens in runs, of the body with fewer such points
    longest: points of the longest replacement
    place: the same, but only of characters of unspaced scripts, and not of a replacement at the end
    name: the same of words that say something and have no other form on the other side
    places: number of runs without those that say nothing more: spellings, light words and closings at an end
    inside: points of the longest run that only one body has and that touches no end
    added: the same, but only of words that say something
    own_run: run of the later body with the most new pairs of characters above the limit, or NO_RUN
    """

    shared: int
    replaced: int
    only: int
    longest: int
    longest_run: int
    place: int
    place_run: int
    name: int
    name_run: int
    places: int
    inside: int
    inside_run: int
    added: int
    added_run: int
    own_run: int


@kernel(callee=True, inlined=True)
def measured(shorter: int, limits: Differences, phrases: Phrases, work: Differing) -> tuple[int, int]:
    """(the first amount rule whose limit is exceeded, or NONE; number of the run that decides, or NO_RUN)

    shorter: characters of the shorter body
    """
    sums = _sums(limits, phrases, work)
    short = shorter < limits.short
    most = limits.replaced_short if short else limits.replaced
    if sums.replaced * 1000 > most * (sums.replaced + sums.shared):
        return np.int64(_REPLACED), sums.longest_run
    if short and sums.only * 1000 > limits.only_short * (sums.only + sums.shared):
        return np.int64(_BOTH_SAY_MORE), np.int64(NO_RUN)
    runs = work.alignment.count[0]
    few = limits.each > 0 and shorter < 2 * limits.short and runs <= limits.name_places
    if few and _letters_of_each(phrases, work) >= limits.each:
        return np.int64(_BOTH_SAY_MORE), np.int64(NO_RUN)
    if sums.longest > _CHARACTER * limits.longest:
        return np.int64(_LONG_REPLACEMENT), sums.longest_run
    if limits.in_place > 0 and runs <= limits.places and sums.place >= _CHARACTER * limits.in_place:
        return np.int64(_IN_ITS_PLACE), sums.place_run
    if (
        limits.in_place > 0
        and sums.places <= limits.name_places
        and sums.name >= _CHARACTER * limits.in_place
    ):
        return np.int64(_IN_ITS_PLACE), sums.name_run
    if limits.in_place > 0:
        ending = other_ending(phrases, work)
        if ending != NO_RUN:
            return np.int64(_IN_ITS_PLACE), ending
        if is_in_another_script(work):
            return np.int64(_IN_ITS_PLACE), ZERO
    item_run = another_item(short, limits, work)
    if item_run != NO_RUN:
        return np.int64(_IN_ITS_PLACE), item_run
    if sums.own_run != NO_RUN:
        return np.int64(_OWN_WORDS), sums.own_run
    if limits.own_share < _ALL:
        own, longest_own = _own_points(phrases, work)
        if own * 1000 > limits.own_share * (own + sums.shared):
            return np.int64(_OWN_WORDS), longest_own
    if sums.inside > _CHARACTER * limits.inside:
        return np.int64(_ADDED_INSIDE), sums.inside_run
    if short and sums.added > _CHARACTER * limits.added_short:
        return np.int64(_WORD_ADDED), sums.added_run
    more = says_more(shorter, limits, phrases, work)
    if more != NO_RUN:
        return np.int64(_WORD_ADDED), more
    return np.int64(_NONE), np.int64(NO_RUN)


@kernel(callee=True, inlined=True)
def _sums(limits: Differences, phrases: Phrases, work: Differing) -> Sums:
    later, earlier, runs = work.later, work.earlier, work.alignment.runs
    shared = replaced = only = other_only = longest = place = places = inside = added = ZERO
    longest_run = place_run = inside_run = added_run = own_run = np.int64(NO_RUN)
    most_own = np.int64(limits.own)
    counted = ZERO
    for number in range(work.alignment.count[0]):
        run = runs[number]
        shared += points_of(later, counted, run[0])
        counted = run[1]
        points, other_points = _paired_points(run, phrases, work)
        only += points
        other_only += other_points
        both = min(points, other_points) if run[1] > run[0] and run[3] > run[2] else ZERO
        replaced += both
        if both > longest:
            longest, longest_run = both, np.int64(number)
        if run[1] < later.counts[0] and run[3] < earlier.counts[0]:
            in_place = min(
                character_points(later, run[0], run[1], phrases),
                character_points(earlier, run[2], run[3], phrases),
            )
            in_place = in_place if both > 0 else ZERO
            if in_place > place:
                place, place_run = in_place, np.int64(number)
        places += not _adds_nothing(run, points + other_points, phrases, work)
        alone = max(points, other_points) if run[1] == run[0] or run[3] == run[2] else ZERO
        if alone > inside and is_inside(run, later, earlier):
            inside, inside_run = alone, np.int64(number)
        if alone > added and is_inside(run, later, earlier):
            said = _said_points(later, run[0], run[1]) + _said_points(earlier, run[2], run[3])
            if said > added:
                added, added_run = said, np.int64(number)
        if later.starts[run[1]] - later.starts[run[0]] > most_own:
            new = _new_pairs(run, work)
            if new > most_own:
                most_own, own_run = new, np.int64(number)
    shared += points_of(later, counted, later.counts[0])
    name, name_run = ZERO, np.int64(NO_RUN)
    if places <= limits.name_places:
        name, name_run = _name_in_place(places, limits, phrases, work)
    less = min(only, other_only)
    return Sums(
        shared,
        replaced,
        less,
        longest,
        longest_run,
        place,
        place_run,
        name,
        name_run,
        places,
        inside,
        inside_run,
        added,
        added_run,
        own_run,
    )


@kernel(callee=True)
def _adds_nothing(run: NDArray[np.int64], points: int, phrases: Phrases, work: Differing) -> bool:
    """Whether a run is a word in two spellings, or light words or a closing (Thanks! Regards, Theo) that one
    body has more at an end. points: of both sides"""
    later, earlier = work.later, work.earlier
    if run[1] > run[0] and run[3] > run[2]:
        return points == 0
    if is_inside(run, later, earlier):
        return False
    tokens, first, end = (later, run[0], run[1]) if run[1] > run[0] else (earlier, run[2], run[3])
    if end == tokens.counts[0] and closes(tokens, first, phrases):
        return True
    for position in range(first, end):  # noqa: SIM110
        if may_be_a_name(tokens, position):
            return False
    return True


@kernel(callee=True)
def _name_in_place(places: int, limits: Differences, phrases: Phrases, work: Differing) -> tuple[int, int]:
    """(points of the longest replacement before the end by other words that say something, its run)

    Beside runs that add nothing, only `_are_other_names` count.
    """
    later, earlier, alignment = work.later, work.earlier, work.alignment
    most, most_run = ZERO, np.int64(NO_RUN)
    for number in range(alignment.count[0]):
        run = alignment.runs[number]
        size, other_size = run[1] - run[0], run[3] - run[2]
        if size == 0 or other_size == 0 or run[1] == later.counts[0] or run[3] == earlier.counts[0]:
            continue
        if places < alignment.count[0] and not _are_other_names(run, phrases, work):
            continue
        if min(_paired_points(run, phrases, work)) == 0:
            continue
        points = _name_points(run, phrases, work)
        if points == 0 and are_short_names(run, later, earlier):
            points = np.int64(_CHARACTER * limits.in_place)
        if points > most:
            most, most_run = points, np.int64(number)
    return most, most_run


@kernel(callee=True)
def _are_other_names(run: NDArray[np.int64], phrases: Phrases, work: Differing) -> bool:
    """Whether a few words stand in the place of a few others, and all of them say something.

    With a light word among them they may say the same (leave / have left). And they begin with other letters:
    who makes one typing error makes two, seldom in a first letter (hand / hnad).
    source: Yannakoudakis, Fawthrop 1983, "The rules of spelling errors"
    """
    later, earlier = work.later, work.earlier
    if max(run[1] - run[0], run[3] - run[2]) > _NAME_TOKENS:
        return False
    for position in range(run[0], run[1]):
        if not says_something(later, position):
            return False
    for position in range(run[2], run[3]):
        if not says_something(earlier, position):
            return False
    return letters_in_common(later, run[0], earlier, run[2], phrases) == 0


@kernel(callee=True)
def _said_points(tokens: Tokens, first: int, end: int) -> int:
    """Points of the words in tokens[first:end] that say something."""
    total = ZERO
    for position in range(first, end):
        total += tokens.points[position] if says_something(tokens, position) else 0
    return total


@kernel(callee=True)
def _name_points(run: NDArray[np.int64], phrases: Phrases, work: Differing) -> int:
    """The smaller side's points of words that say something and have no other form on the other side."""
    later, earlier = work.later, work.earlier
    number = _say_one_number(run, phrases, work)
    return min(
        _points_of_names(later, run[0], run[1], earlier, run[2], run[3], number, phrases),
        _points_of_names(earlier, run[2], run[3], later, run[0], run[1], number, phrases),
    )


@kernel(callee=True)
def _points_of_names(
    tokens: Tokens, first: int, end: int, others: Tokens, others_first: int, others_end: int, number: bool,
    phrases: Phrases,
) -> int:  # fmt: skip
    """Points of the words in tokens[first:end] that say something and are no word of the others.

    number: whether the others hold the same number, so that its word says nothing more
    """
    points = ZERO
    for a in range(first, end):
        if says_something(tokens, a) and not (number and tokens.facts[a] & NUMERAL):
            twin = has_form(tokens, a, others, others_first, others_end, phrases)
            points += ZERO if twin else tokens.points[a]
    return points


@kernel(callee=True)
def _own_points(phrases: Phrases, work: Differing) -> tuple[int, int]:
    """(points of the later body's words that say something and have no form in the earlier body, number of
    the run with the most of them)"""
    later, earlier = work.later, work.earlier
    total = most = ZERO
    longest = np.int64(NO_RUN)
    for number in range(work.alignment.count[0]):
        run = work.alignment.runs[number]
        points = _points_of_names(later, run[0], run[1], earlier, ZERO, earlier.counts[0], NO, phrases)
        total += points
        if points > most:
            most, longest = points, np.int64(number)
    return total, longest


@kernel(callee=True)
def _letters_of_each(phrases: Phrases, work: Differing) -> int:
    """Letters of the words that say something and that the other body lacks; the smaller number of both."""
    letters = other = ZERO
    later, earlier = work.later, work.earlier
    for number in range(work.alignment.count[0]):
        run = work.alignment.runs[number]
        letters += _own_letters(later, run[0], run[1], earlier, phrases)
        other += _own_letters(earlier, run[2], run[3], later, phrases)
    return min(letters, other)


@kernel(callee=True)
def _own_letters(tokens: Tokens, first: int, end: int, others: Tokens, phrases: Phrases) -> int:
    """Letters of the words in tokens[first:end] that say something and have no form among the others."""
    letters = ZERO
    for a in range(first, end):
        if says_something(tokens, a):
            twin = has_form(tokens, a, others, ZERO, others.counts[0], phrases)
            letters += ZERO if twin else tokens.starts[a + 1] - tokens.starts[a]
    return letters


@kernel(callee=True)
def _valued_points(tokens: Tokens, first: int, end: int) -> int:
    """Points of the tokens in tokens[first:end] that write a number: digits, numerals, million."""
    total = ZERO
    for position in range(first, end):
        total += tokens.points[position] if tokens.facts[position] & (VALUED | POWER) else 0
    return total


@kernel(callee=True)
def _say_one_number(run: NDArray[np.int64], phrases: Phrases, work: Differing) -> bool:
    """Whether both sides of a run hold the same numbers, written differently."""
    mine, other = work.values, work.other_values
    later, earlier = work.later, work.earlier
    facts, other_facts = facts_of(later, run[0], run[1]), facts_of(earlier, run[2], run[3])
    if (
        facts & (VALUED | ONE) == 0
        or other_facts & (VALUED | ONE) == 0
        or (facts | other_facts) & VALUED == 0
    ):
        return False
    read_values(later, run[0], run[1], phrases, mine, np.int64(PLAINLY))
    read_values(earlier, run[2], run[3], phrases, other, np.int64(PLAINLY))
    if mine.counts[0] == 0:
        add_ones(later, run[0], run[1], phrases, mine)
    if other.counts[0] == 0:
        add_ones(earlier, run[2], run[3], phrases, other)
    if mine.counts[0] == other.counts[0] and holds_all(mine, other, YES):
        return True
    read_in_all_ways(later, earlier, run, phrases, mine, other)
    return mine.counts[0] == other.counts[0] and holds_all(mine, other, YES)


@kernel(callee=True)
def _is_one_writing(run: NDArray[np.int64], work: Differing) -> bool:
    """Whether both sides of a run have the same words but for numbers and the parts of a date: 3月5日, 03/05.

    Only for a run whose sides hold the same numbers (`_say_one_number`).
    """
    later, earlier = work.later, work.earlier
    a, b = run[0], run[2]
    while True:
        while a < run[1] and _is_of_number(later, a):
            a += 1
        while b < run[3] and _is_of_number(earlier, b):
            b += 1
        if a == run[1] or b == run[3]:
            return bool(a == run[1] and b == run[3])
        if later.ids[a] != earlier.ids[b]:
            return False
        a += 1
        b += 1


@kernel(callee=True)
def _is_of_number(tokens: Tokens, position: int) -> bool:
    """Whether a token writes a number, or stands between the numbers of a date."""
    if tokens.facts[position] & (VALUED | POWER):
        return True
    if tokens.kinds[position] != CHARACTER:
        return False
    return is_date_part(tokens.chars[tokens.starts[position]])


@kernel(callee=True, inlined=True)
def _paired_points(run: NDArray[np.int64], phrases: Phrases, work: Differing) -> tuple[int, int]:
    """(points of the later side, of the earlier side) of a run, without words in two spellings or forms and
    without numbers that are the same in another form."""
    later, earlier = work.later, work.earlier
    points, other = points_of(later, run[0], run[1]), points_of(earlier, run[2], run[3])
    size, other_size = run[1] - run[0], run[3] - run[2]
    if size == 0 or other_size == 0:
        return points, other
    if is_one_phrase(run, later, earlier, phrases):
        return ZERO, ZERO
    if facts_of(later, run[0], run[1]) & VALUED and count_readers(run, phrases, later, earlier):
        return ZERO, ZERO
    if writes_one_string(run, phrases, later, earlier) or is_its_roman_number(run, phrases, later, earlier):
        return ZERO, ZERO
    if _say_one_number(run, phrases, work):
        if _is_one_writing(run, work):
            return ZERO, ZERO
        points -= _valued_points(later, run[0], run[1])
        other -= _valued_points(earlier, run[2], run[3])
    if size <= _SPELLING_TOKENS and other_size <= _SPELLING_TOKENS:
        taken = ZERO
        for a in range(run[0], run[1]):
            # `is_one_word` asks this too, for each of the other tokens.
            if later.kinds[a] != WORD:
                continue
            for b in range(run[2], run[3]):
                free = earlier.kinds[b] == WORD and (taken >> (b - run[2])) & 1 == 0
                if free and is_one_word(later, a, earlier, b, phrases):
                    points -= later.points[a]
                    other -= earlier.points[b]
                    taken |= np.int64(1) << (b - run[2])
                    break
    return max(points, ZERO), max(other, ZERO)


@kernel(callee=True)
def _new_pairs(run: NDArray[np.int64], work: Differing) -> int:
    """How many pairs of neighbouring characters in the later side of a run are nowhere in the earlier body.

    A word that the earlier body lacks counts with its number of letters instead, because nearly all pairs of
    letters occur in any long text.
    """
    pairs, earlier, later = work.pairs, work.earlier, work.later
    pairs[:] = 0
    for k in range(earlier.starts[earlier.counts[0]] - 1):
        key = _pair(earlier.chars, k)
        pairs[cell_of(pairs, key)] = key
    new = ZERO
    last = later.starts[run[1]] - 1
    for position in range(run[0], run[1]):
        first, end = later.starts[position], later.starts[position + 1]
        if later.kinds[position] == WORD:
            new += ZERO if holds_token(earlier, later.ids[position]) else end - first
            continue
        for k in range(first, min(end, last)):
            key = _pair(later.chars, k)
            new += pairs[cell_of(pairs, key)] != key
    return new


@kernel(callee=True)
def _pair(chars: NDArray[np.uint32], position: int) -> np.uint64:
    return (np.uint64(chars[position]) << np.uint64(32)) | np.uint64(chars[position + 1])
