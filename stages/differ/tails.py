"""Compares the numbers and negations in the tails of two long bodies, after their stored heads.

For a body with more than STORED_LENGTH characters, a *tally* of the whole body is stored: the sum of the
hashes of its numbers, and the number of its negations. The tally of its head, up to the end of the
alignment, can be computed and subtracted; the rest is the tally of the tail. A tally carries the version of
its lists: tallies of two versions are not compared, nor one of another version than that of the lists that
judge. A tally does not depend on the order, so a moved paragraph makes no difference, and neither does an
edit in the heads. Only numbers written in digits count, because "one" and 一 have many other uses.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import STORED_LENGTH, Bodies
from twinsieve.stages.differ.negations import negations
from twinsieve.stages.differ.number_values import Values, new_values, read_digits
from twinsieve.stages.differ.phrases import DIGIT, LAUGHS, NEGATES, NUMERAL, Phrases
from twinsieve.stages.differ.tokens import NUMBER, Tokens, new_tokens, tokenize
from twinsieve.stages.differ.word_lists import phrases_of
from twinsieve.stages.differ.workspace import Differing
from twinsieve.stages.intrinsics import mix64
from twinsieve.stages.kernel import ZERO, kernel

_PIECE = 4096
"""Number of characters of a body that are read at once, as a piece."""
_CALM = 16
"""A piece ends in the middle of this many tokens without number and negation. No phrase is longer than half
of them, so the end of a piece cuts no negation in two."""
_COUNT_SHIFT, _VERSION_SHIFT = np.uint64(56), np.uint64(48)
_NUMBERS = np.uint64((1 << 48) - 1)
_ALIKE_SHARE, _ALIKE_LEAST = 50, 8
"""Tails are about equally long if their lengths differ by at most 1/50 or by at most 8 characters."""


def fill_tallies(bodies: Bodies, tallies: NDArray[np.uint64]) -> None:
    """Write the tally of each near row with more than STORED_LENGTH characters, by the built-in lists.

    tallies: uint64[n], highest byte: number of negations modulo 256; next byte: version of the lists; the
        other bytes: sum of number hashes. Of the shorter near rows the signs
    """
    short = ~bodies.exact_only & (bodies.body_lengths <= STORED_LENGTH)
    tallies[short] = bodies.signs[short]
    long = np.flatnonzero(~bodies.exact_only & (bodies.body_lengths > STORED_LENGTH))
    if len(long):
        bodies = bodies.for_kernels()
        columns = (bodies.chars, bodies.word_starts, bodies.starts, bodies.body_lengths)
        _fill(*columns, long, phrases_of(), new_tokens(_PIECE), new_values(), tallies)


@kernel
def _fill(
    chars: NDArray[np.uint32],
    word_starts: NDArray[np.uint8],
    starts: NDArray[np.int64],
    lengths: NDArray[np.int32],
    rows: NDArray[np.int64],
    phrases: Phrases,
    tokens: Tokens,
    values: Values,
    tallies: NDArray[np.uint64],
) -> None:
    for row in rows:
        start, end = starts[row], starts[row] + lengths[row]
        tally = np.uint64(0)
        while start < end:
            size = min(np.int64(_PIECE), end - start)
            for j in range(size):
                tokens.chars[j] = chars[start + j]
            for j in range(size):
                tokens.word_starts[j] = word_starts[start + j]
            cut = start + size < end
            tokenize(tokens, size, cut, phrases)
            stop = _calm_end(tokens) if cut else tokens.counts[0]
            tally = _sum(tally, _tally(tokens, stop, phrases, values))
            read = tokens.starts[stop]
            start += read if read > 0 and cut else size
        tallies[row] = tally | (phrases.version[0] << _VERSION_SHIFT)


@kernel(callee=True)
def _calm_end(tokens: Tokens) -> int:
    """Where to end a piece: the last place at which no number or negation can be cut; else its last token."""
    calm = ZERO
    for position in range(tokens.counts[0] - 1, -1, -1):
        calm = ZERO if tokens.facts[position] & (DIGIT | NUMERAL | NEGATES | LAUGHS) else calm + 1
        if calm == _CALM:
            return position + _CALM // 2
    return tokens.counts[0]


@kernel(callee=True)
def _tally(tokens: Tokens, end: int, phrases: Phrases, values: Values) -> np.uint64:
    """The tally of tokens[0:end]."""
    numbers = np.uint64(0)
    position = ZERO
    while position < end:
        if tokens.kinds[position] < NUMBER:
            position += 1
            continue
        values.counts[0] = values.counts[1] = 0
        position = read_digits(tokens, position, end, ZERO, phrases, values)
        for k in range(values.counts[0]):
            numbers += mix64(values.values[k])
    count = np.uint64(negations(tokens, ZERO, end, phrases))
    return (count << _COUNT_SHIFT) | (numbers & _NUMBERS)


@kernel(callee=True)
def _sum(tally: np.uint64, other_tally: np.uint64) -> np.uint64:
    """The sum of two tallies, without a version: the numbers of negations and the sums of hashes."""
    count = (tally >> _COUNT_SHIFT) + (other_tally >> _COUNT_SHIFT)
    return (count << _COUNT_SHIFT) | ((tally + other_tally) & _NUMBERS)


@kernel(callee=True)
def _version(tally: np.uint64) -> np.uint64:
    return (tally >> _VERSION_SHIFT) & np.uint64(0xFF)


@kernel(callee=True)
def tails_differ(
    length: int,
    tally: np.uint64,
    other_length: int,
    other_tally: np.uint64,
    phrases: Phrases,
    work: Differing,
) -> bool:
    """Whether the parts after the aligned heads are about equally long, but have other numbers or negations.

    length, tally: of the whole later body; other_length, other_tally: of the whole earlier body
    work: as `difference` left it, with the tokens of both heads and their alignment
    """
    version = phrases.version[0]
    if _version(tally) != version or _version(other_tally) != version:
        return False
    end, other_end = work.alignment.ends[0], work.alignment.ends[1]
    behind = length - work.later.starts[end]
    other_behind = other_length - work.earlier.starts[other_end]
    longer = max(behind, other_behind)
    if abs(behind - other_behind) > max(_ALIKE_LEAST, longer // _ALIKE_SHARE):
        return False
    head = _tally(work.later, end, phrases, work.values)
    other_head = _tally(work.earlier, other_end, phrases, work.other_values)
    return _sum(tally, other_head) != _sum(other_tally, head)
