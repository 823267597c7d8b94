"""Alignment of two token sequences: finds the runs in which they differ.

A *run* is a place between two common tokens: tokens of the later body that replace tokens of the earlier one,
or tokens that only one body has. The rows of a bit-parallel LCS are stored; a walk back through them finds
one longest common subsequence, and the runs are what it leaves out.
source: Hyyrö 2004, "Bit-parallel LCS-length computation revisited"
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import STORED_LENGTH
from twinsieve.stages.differ.phrases import DIGIT, LIGHT, NEGATES, NUMERAL
from twinsieve.stages.differ.tokens import CHARACTER, WORD, Tokens, have_equal_chars
from twinsieve.stages.intrinsics import cell_of
from twinsieve.stages.kernel import ZERO, kernel

_CELLS = 1024
_WORDS = STORED_LENGTH // 64
_SHORT_WORD = 3
"""A word of at most this many letters between two runs is a weak token, like a single character (`_join`)."""
_NAME_CHARACTERS = 3
_FIRST_HAN, _LAST_HAN = np.uint32(0x4E00), np.uint32(0x9FFF)
NO_RUN = -1
VALUED = DIGIT | NUMERAL
"""Facts of a token that has a numeric value."""
_FEW = 4
"""Single words decide only in a run with at most this many tokens on each side."""


class Alignment(NamedTuple):
    """The runs of a pair, and the memory to find them; for one thread.

    runs: int64[STORED_LENGTH + 1, 4], first token and end (exclusive) of a run in the later body, then the
        same in the earlier body
    count: int64[1], number of runs
    ends: int64[2], number of aligned tokens of the later and of the earlier body. If a body is cut, tokens
        after the last common one are not aligned, because their counterparts may be in the missing part
    keys: uint64[_CELLS], hash table of token ids, 0 for an empty cell
    masks: uint64[_CELLS, _WORDS], positions of the token of a cell in the later body, as bits
    used: int64[STORED_LENGTH + 1], the cells in use
    rows: uint64[STORED_LENGTH + 2, _WORDS], rows of the bit-parallel LCS
    """

    runs: NDArray[np.int64]
    count: NDArray[np.int64]
    ends: NDArray[np.int64]
    keys: NDArray[np.uint64]
    masks: NDArray[np.uint64]
    used: NDArray[np.int64]
    rows: NDArray[np.uint64]


def new_alignment() -> Alignment:
    """New memory for one thread."""
    return Alignment(
        np.zeros((STORED_LENGTH + 1, 4), np.int64),
        np.zeros(1, np.int64),
        np.zeros(2, np.int64),
        np.zeros(_CELLS, np.uint64),
        np.zeros((_CELLS, _WORDS), np.uint64),
        np.zeros(STORED_LENGTH + 1, np.int64),
        np.zeros((STORED_LENGTH + 2, _WORDS), np.uint64),
    )


@kernel(callee=True)
def _fill_rows(later: Tokens, earlier: Tokens, head: int, a: int, b: int, alignment: Alignment) -> None:
    """Compute the rows of the bit-parallel LCS of two token sequences.

    head: number of equal tokens at the beginning of both bodies, which are skipped
    a, b: number of tokens after them, of the later and of the earlier body
    """
    keys, masks, rows = alignment.keys, alignment.masks, alignment.rows
    words = (a + 63) >> 6
    used = ZERO
    for i in range(a):
        cell = cell_of(keys, later.ids[head + i])
        if keys[cell] == np.uint64(0):
            keys[cell] = later.ids[head + i]
            alignment.used[used] = cell
            used += 1
            for word in range(words):
                masks[cell, word] = np.uint64(0)
        masks[cell, i >> 6] |= np.uint64(1) << np.uint64(i & 63)
    for word in range(words):
        rows[0, word] = ~np.uint64(0)
    for j in range(b):
        cell = cell_of(keys, earlier.ids[head + j])
        is_shared = keys[cell] != np.uint64(0)
        carry = np.uint64(0)
        for word in range(words):
            row = rows[j, word]
            if not is_shared:
                rows[j + 1, word] = row
                continue
            hits = row & masks[cell, word]
            total = row + hits
            carried = total + carry
            carry = np.uint64(total < row) | np.uint64(carried < total)
            rows[j + 1, word] = carried | (row - hits)
    for number in range(used):
        keys[alignment.used[number]] = np.uint64(0)


@kernel(callee=True)
def _is_free(rows: NDArray[np.uint64], j: int, i: int) -> bool:
    """Whether token i of the later body does not lengthen the LCS with j tokens of the earlier body."""
    return (rows[j, i >> 6] >> np.uint64(i & 63)) & np.uint64(1) != np.uint64(0)


@kernel(callee=True)
def _walk_back(head: int, a: int, b: int, alignment: Alignment) -> int:
    """Write the runs, the last one first. returns: number of runs"""
    rows, runs = alignment.rows, alignment.runs
    count = ZERO
    i, j, end_a, end_b = a, b, a, b
    while i > 0 and j > 0:
        if _is_free(rows, j, i - 1):
            i -= 1
        elif j > 1 and not _is_free(rows, j - 1, i - 1):
            j -= 1
        else:
            i -= 1
            j -= 1
            if end_a > i + 1 or end_b > j + 1:
                runs[count, 0], runs[count, 1] = head + i + 1, head + end_a
                runs[count, 2], runs[count, 3] = head + j + 1, head + end_b
                count += 1
            end_a, end_b = i, j
    if end_a > 0 or end_b > 0:
        runs[count, 0], runs[count, 1] = head, head + end_a
        runs[count, 2], runs[count, 3] = head, head + end_b
        count += 1
    return count


@kernel(callee=True)
def align(later: Tokens, earlier: Tokens, alignment: Alignment) -> None:
    """Write the runs in which the bodies differ to `alignment`, in order.

    If a body is cut, the tokens after the last common one form no run, because the rest of the body is not
    known.
    """
    n, m = later.counts[0], earlier.counts[0]
    head = ZERO
    while head < n and head < m and later.ids[head] == earlier.ids[head]:
        head += 1
    tail = ZERO
    cut = later.counts[1] != 0 or earlier.counts[1] != 0
    if not cut:
        while tail < min(n, m) - head and later.ids[n - 1 - tail] == earlier.ids[m - 1 - tail]:
            tail += 1
    a, b = n - head - tail, m - head - tail
    runs = alignment.runs
    count = ZERO
    if a > 0 and b > 0:
        _fill_rows(later, earlier, head, a, b, alignment)
        count = _walk_back(head, a, b, alignment)
        for low in range(count >> 1):
            for side in range(4):
                high = count - 1 - low
                runs[low, side], runs[high, side] = runs[high, side], runs[low, side]
    elif a > 0 or b > 0:
        runs[0, 0], runs[0, 1], runs[0, 2], runs[0, 3] = head, head + a, head, head + b
        count += 1
    alignment.ends[0], alignment.ends[1] = n, m
    if cut and count > 0 and (runs[count - 1, 1] == n or runs[count - 1, 3] == m):
        count -= 1
        alignment.ends[0], alignment.ends[1] = runs[count, 0], runs[count, 2]
    alignment.count[0] = _join(later, earlier, runs, count)


@kernel(callee=True)
def _join(later: Tokens, earlier: Tokens, runs: NDArray[np.int64], count: int) -> int:
    """Join runs that only one weak common token separates, and drop runs that differ only in blanks.

    If a name or clause was replaced, one character or short word in it may be equal by chance
    (安康农大 / 保康林大). Then the runs on both sides of it are one replacement. But one of the two runs must
    be a replacement: an added run next to a deleted one is mostly a word that moved or has little meaning.
    Two short names of Han characters are the exception (中南 / 南昌, 岡山 / 静岡).
    returns: number of runs
    """
    kept = ZERO
    for number in range(count):
        a0, a1, b0, b1 = runs[number, 0], runs[number, 1], runs[number, 2], runs[number, 3]
        if kept > 0:
            p = kept - 1
            lone = a0 - runs[p, 1] == 1 and _is_weak(later, runs[p, 1])
            replaces = (a1 > a0 and b1 > b0) or (runs[p, 1] > runs[p, 0] and runs[p, 3] > runs[p, 2])
            swaps = (a1 > a0) != (runs[p, 1] > runs[p, 0])
            if lone and (replaces or (swaps and _are_names(later, runs[p, 0], a1, earlier, runs[p, 2], b1))):
                runs[p, 1], runs[p, 3] = a1, b1
                continue
        runs[kept, 0], runs[kept, 1], runs[kept, 2], runs[kept, 3] = a0, a1, b0, b1
        kept += 1
    count, kept = kept, ZERO
    for number in range(count):
        if not _same_letters(later, earlier, runs, number):
            for side in range(4):
                runs[kept, side] = runs[number, side]
            kept += 1
    return kept


@kernel(callee=True)
def _are_names(later: Tokens, a0: int, a1: int, earlier: Tokens, b0: int, b1: int) -> bool:
    """Whether later[a0:a1] and earlier[b0:b1] are two short names that share a character, and not one in
    another order."""
    if max(a1 - a0, b1 - b0) > _NAME_CHARACTERS or not (
        _are_of_names(later, a0, a1) and _are_of_names(earlier, b0, b1)
    ):
        return False
    if a1 - a0 != b1 - b0:
        return True
    for a in range(a0, a1):
        balance = ZERO
        for k in range(a1 - a0):
            balance += later.ids[a0 + k] == later.ids[a]
            balance -= earlier.ids[b0 + k] == later.ids[a]
        if balance != 0:
            return True
    return False


@kernel(callee=True)
def _are_of_names(tokens: Tokens, first: int, end: int) -> bool:
    """Whether all tokens are Han characters that may stand in a name: not light, no negation begins."""
    for position in range(first, end):
        if not is_han(tokens, position) or tokens.facts[position] & (LIGHT | NEGATES):
            return False
    return True


@kernel(callee=True)
def is_han(tokens: Tokens, position: int) -> bool:
    """Whether a token is a Han character."""
    char = tokens.chars[tokens.starts[position]]
    return tokens.kinds[position] == CHARACTER and _FIRST_HAN <= char <= _LAST_HAN


@kernel(callee=True)
def _is_weak(tokens: Tokens, position: int) -> bool:
    length = tokens.starts[position + 1] - tokens.starts[position]
    kind = tokens.kinds[position]
    return kind == CHARACTER or (kind == WORD and length <= _SHORT_WORD)


@kernel(callee=True)
def _same_letters(later: Tokens, earlier: Tokens, runs: NDArray[np.int64], number: int) -> bool:
    a, b = later.starts[runs[number, 0]], earlier.starts[runs[number, 2]]
    length = later.starts[runs[number, 1]] - a
    if length != earlier.starts[runs[number, 3]] - b:
        return False
    return have_equal_chars(later, a, earlier, b, length)


@kernel(callee=True)
def facts_of(tokens: Tokens, first: int, end: int) -> int:
    """The facts of all tokens[first:end] together (bitwise or)."""
    facts = ZERO
    for at in range(first, end):
        facts |= tokens.facts[at]
    return facts


@kernel(callee=True)
def are_few(run: NDArray[np.int64]) -> bool:
    """Whether both sides of a run have so few tokens that single words decide."""
    return run[1] - run[0] <= _FEW and run[3] - run[2] <= _FEW


@kernel(callee=True)
def is_inside(run: NDArray[np.int64], later: Tokens, earlier: Tokens) -> bool:
    """Whether a run touches neither end of either body."""
    if run[0] == 0 or run[2] == 0:
        return False
    return run[1] < later.counts[0] and run[3] < earlier.counts[0]
