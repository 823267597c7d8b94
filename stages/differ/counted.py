"""What words around a number say of it: a man / 2 men, three / three more, part 2 / final part, 5 views."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.differ.align import are_few, facts_of
from twinsieve.stages.differ.dashes import is_second_with_dash
from twinsieve.stages.differ.forms import is_one_word
from twinsieve.stages.differ.number_values import Values, add_weak
from twinsieve.stages.differ.phrases import (
    AGENCY,
    COUNTER,
    DIGIT,
    LAST_PART,
    MAX_PHRASE,
    MORE,
    NUMERAL,
    ONE,
    PART,
    POWER,
    Phrases,
    find,
    hash_of,
)
from twinsieve.stages.differ.tokens import CHARACTER, MIX, NUMBER, WORD, Tokens, class_of
from twinsieve.stages.differ.workspace import Differing
from twinsieve.stages.kernel import ZERO, kernel

_LONGEST = MAX_PHRASE
"""Characters of the longest phrase of an unspaced script that is looked up."""
_NEAR = 3
_W = ord("w")
_OTHER = tuple(map(ord, "other"))
_COUNTERS = 2
_MORE_CHARACTERS = 4
"""Characters of the longest word of `more` in scripts without blanks."""
_EDITION_DIGITS = 2
_VALUED = DIGIT | NUMERAL


@kernel(callee=True)
def length_with(tokens: Tokens, position: int, end: int, role: int, phrases: Phrases) -> int:
    """Number of tokens of the longest phrase with a role from `position` on, up to `end`; 0 for none."""
    if position >= end or tokens.kinds[position] == WORD:
        return np.int64(position < end and tokens.facts[position] & role != 0)
    length = ZERO
    size = np.int64(1)
    while size <= _LONGEST and position + size <= end and tokens.kinds[position + size - 1] == CHARACTER:
        row = find(phrases, hash_of(tokens.chars, tokens.starts[position], tokens.starts[position + size]))
        if row >= 0 and np.int64(phrases.roles[row]) & role:
            length = size
        size += 1
    return length


@kernel(callee=True)
def is_valued(tokens: Tokens, position: int) -> bool:
    """Whether a token exists and writes a number."""
    return 0 <= position < tokens.counts[0] and tokens.facts[position] & _VALUED != 0


@kernel(callee=True, inlined=True)
def may_count_more(later: Tokens, earlier: Tokens, run: NDArray[np.int64]) -> bool:
    """Whether a few added characters stand near a number; else `counts_more` holds for no characters."""
    size, other_size = run[1] - run[0], run[3] - run[2]
    if size + other_size > _MORE_CHARACTERS or (size > 0 and other_size > 0):
        return False
    if size > 0:
        return later.kinds[run[0]] == CHARACTER and _is_near_number(later, run[0], run[1])
    return earlier.kinds[run[2]] == CHARACTER and _is_near_number(earlier, run[2], run[3])


@kernel(callee=True)
def _is_near_number(tokens: Tokens, first: int, end: int) -> bool:
    near = is_valued(tokens, first - 1) or is_valued(tokens, end)
    return near or is_valued(tokens, end + 1) or is_valued(tokens, end + 2) or is_valued(tokens, end + 3)


@kernel(callee=True)
def counts_more(tokens: Tokens, first: int, end: int, phrases: Phrases) -> bool:
    """Whether added tokens are one word such as more beside a number: three more, 3 cuerpos más."""
    if length_with(tokens, first, end, np.int64(MORE), phrases) != end - first or first == end:
        return False
    if is_valued(tokens, first - 1) or is_valued(tokens, end) or _counts_behind(tokens, end):
        return True
    return first > 1 and tokens.kinds[first - 1] == WORD and is_valued(tokens, first - 2)


@kernel(callee=True)
def _counts_behind(tokens: Tokens, position: int) -> bool:
    """Whether a number stands behind up to three more characters: 又有3人, 又发现3人."""
    for at in range(position, min(position + _NEAR + 1, tokens.counts[0])):
        if tokens.kinds[at] != CHARACTER:
            return tokens.kinds[at] == NUMBER and at > position
    return False


@kernel(callee=True)
def makes_many(
    number: int,
    tokens: Tokens,
    others: Tokens,
    later: bool,
    phrases: Phrases,
    runs: NDArray[np.int64],
    count: int,
) -> bool:
    """Whether a number was added right before a word that has another form in the other body.

    11 Indian policemen / Indian policeman. number: of the run that adds the number to `tokens`
    later: whether `tokens` are those of the later body
    """
    first, other = (0, 2) if later else (2, 0)
    run = runs[number]
    if run[first + 1] - run[first] != 1 or tokens.kinds[run[first]] != NUMBER or number + 1 == count:
        return False
    then = runs[number + 1]
    if then[first] - run[first + 1] > _NEAR or then[1] == then[0] or then[3] == then[2]:
        return False
    a, b = then[first], then[other]
    words = tokens.kinds[a] == WORD and others.kinds[b] == WORD
    return words and tokens.ids[a] != others.ids[b] and is_one_word(tokens, a, others, b, phrases)


@kernel(callee=True)
def names_many(
    tokens: Tokens, first: int, end: int, others: Tokens, others_first: int, others_end: int, phrases: Phrases
) -> bool:
    """Whether a number stands before a word of which the other side, without a number, has another form.

    6 tourists / tourist
    """
    for position in range(first, end - 1):
        if tokens.kinds[position] != NUMBER or tokens.kinds[position + 1] != WORD:
            continue
        for other in range(others_first, others_end):
            is_word = others.kinds[other] == WORD and tokens.ids[position + 1] != others.ids[other]
            if is_word and is_one_word(tokens, position + 1, others, other, phrases):
                return True
    return False


@kernel(callee=True)
def numbers_a_part(tokens: Tokens, first: int, end: int, runs: int, phrases: Phrases) -> bool:
    """Whether tokens that were added at the end number a part of a series: part 2, 第2回, or (3) alone.

    runs: number of places in which the bodies differ
    """
    if end != tokens.counts[0] or first == 0:
        return False
    last = end - 1
    if end - first == 1 and tokens.kinds[first] == NUMBER:
        if _ends_part(tokens, first, phrases):
            return True
        return runs == 1 and _is_short_number(tokens, first, phrases)
    if end - first == 2 and length_with(tokens, first, last, np.int64(PART), phrases) == 1:
        return is_valued(tokens, last)
    return False


@kernel(callee=True)
def _ends_part(tokens: Tokens, end: int, phrases: Phrases) -> bool:
    """Whether a word such as part stands right before a token."""
    for size in range(1, min(_LONGEST, end) + 1):
        if length_with(tokens, end - size, end, np.int64(PART), phrases) == size:
            return True
    return False


@kernel(callee=True)
def _is_short_number(tokens: Tokens, position: int, phrases: Phrases) -> bool:
    first, end = tokens.starts[position], tokens.starts[position + 1]
    if end - first > _EDITION_DIGITS:
        return False
    for i in range(first, end):  # noqa: SIM110
        if not class_of(tokens.chars[i], phrases) & DIGIT:
            return False
    return True


@kernel(callee=True)
def are_other_parts(run: NDArray[np.int64], work: Differing, phrases: Phrases) -> bool:
    """Whether one side of a short run has a number and the other side says that this is the last part.

    第2回 / 最終回, part 2 / final part
    """
    later, earlier = work.later, work.earlier
    if not are_few(run):
        return False
    mine = facts_of(later, run[0], run[1]) & _VALUED != 0
    other = facts_of(earlier, run[2], run[3]) & _VALUED != 0
    if mine and not other:
        return _says_last(earlier, run[2], run[3], phrases)
    return other and not mine and _says_last(later, run[0], run[1], phrases)


@kernel(callee=True)
def _says_last(tokens: Tokens, first: int, end: int, phrases: Phrases) -> bool:
    """Whether tokens[first:end] hold a word such as final, with a part right behind it or before it."""
    for position in range(first, end):
        size = length_with(tokens, position, tokens.counts[0], np.int64(LAST_PART), phrases)
        if size > 0:
            behind = position + size
            if length_with(tokens, behind, tokens.counts[0], np.int64(PART), phrases) > 0:
                return True
            if _ends_part(tokens, position, phrases) or tokens.kinds[position] == CHARACTER:
                return True
    return False


@kernel(callee=True)
def add_ones(tokens: Tokens, first: int, end: int, phrases: Phrases, values: Values) -> None:
    """Add the number 1 of each word such as one in tokens[first:end], or that of a hundred, one million."""
    for position in range(first, end):
        if tokens.kinds[position] != WORD or not tokens.facts[position] & ONE:
            continue
        value, behind = np.int64(1), position + 1
        if behind < tokens.counts[0] and tokens.kinds[behind] == WORD and tokens.facts[behind] & POWER:
            for _ in range(phrases.number[find(phrases, tokens.ids[behind])]):
                value *= 10
        add_weak(values, value)


@kernel(callee=True)
def count_readers(run: NDArray[np.int64], phrases: Phrases, later: Tokens, earlier: Tokens) -> bool:
    """Whether both sides of a run count who is there or who has seen a message.

    w/ 5 others, and rows of counters at the end (12 likes 3 shares, 阅读 120 评论 5)
    """
    size, other_size = run[1] - run[0], run[3] - run[2]
    if size == 0 or other_size == 0 or not are_few(run):
        return False
    if size == 1 and other_size == 1 and has_others(later, run[0]) and has_others(earlier, run[2]):
        return True
    return counts_readers(later, run[0], phrases) and counts_readers(earlier, run[2], phrases)


@kernel(callee=True)
def counts_readers(tokens: Tokens, position: int, phrases: Phrases) -> bool:
    """Whether all from a token to the end is a row of two counters or more, or a label with its number."""
    end = tokens.counts[0]
    first = _counters_from(tokens, position, phrases)
    numbers = counters = ZERO
    at = first
    while at < end:
        if _is_count(tokens, at):
            numbers += 1
            at += 1
            continue
        size = length_with(tokens, at, end, np.int64(COUNTER), phrases)
        if size == 0:
            return False
        counters += 1
        at += size
    labelled = not _is_count(tokens, first) and _is_count(tokens, end - 1) and counters > 0
    return labelled or (numbers >= _COUNTERS and counters >= _COUNTERS)


@kernel(callee=True)
def _is_count(tokens: Tokens, position: int) -> bool:
    return tokens.kinds[position] == NUMBER or tokens.kinds[position] == MIX


@kernel(callee=True)
def _counters_from(tokens: Tokens, position: int, phrases: Phrases) -> int:
    """Where the row of counters and numbers begins that a token belongs to."""
    first = position
    while first > 0:
        if _is_count(tokens, first - 1):
            first -= 1
            continue
        before = first
        for size in range(1, min(_LONGEST, first) + 1):
            if length_with(tokens, first - size, first, np.int64(COUNTER), phrases) == size:
                before = first - size
        if before == first:
            return first
        first = before
    return first


@kernel(callee=True)
def counts_headlines(tokens: Tokens, position: int) -> bool:
    """Whether a token is the number between a mark and a dash: UPDATE 2-Oil, the same headline again."""
    return is_second_with_dash(tokens, position) and tokens.facts[0] & AGENCY != 0


@kernel(callee=True)
def has_others(tokens: Tokens, position: int) -> bool:
    """Whether a number stands between w/ and others, as in check-ins."""
    if position == 0 or position + 1 >= tokens.counts[0]:
        return False
    before, behind = tokens.starts[position - 1], tokens.starts[position + 1]
    is_with = tokens.starts[position] - before == 1 and tokens.chars[before] == _W
    length = tokens.starts[position + 2] - behind
    if not is_with or length < len(_OTHER) or length > len(_OTHER) + 1:
        return False
    for k in range(len(_OTHER)):  # noqa: SIM110
        if tokens.chars[behind + k] != _OTHER[k]:
            return False
    return True
