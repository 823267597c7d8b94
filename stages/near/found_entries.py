"""The bucket entries that the look-ups of a row find: each once, with how many look-ups found it.

An entry that a single look-up finds is most likely of another text that only shares a common phrase. So more
of its signature must agree than of an entry that many look-ups find (`window.lengths.signature_limits`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.intrinsics import GOLDEN
from twinsieve.stages.kernel import kernel

FOUND_LINES = 4
"""Rows whose found entries are known at the same time."""


class FoundEntries(NamedTuple):
    """Working memory: row r in line r % FOUND_LINES.

    kept: int64[FOUND_LINES, most], kept indices; bits: uint8[FOUND_LINES, most], differing bits of their
        signatures; codes: uint8[FOUND_LINES, most], their length codes
    often: uint8[FOUND_LINES, most], 0 for an entry that one look-up found, else 1
    counts: int64[FOUND_LINES], how many there are
    cells: uint64[2**k], hash table of the row that is looked up now: its number and the place in its line
    number: uint64[1], of that row, counted since the beginning, so that cells need no clearing
    """

    kept: NDArray[np.int64]
    bits: NDArray[np.uint8]
    codes: NDArray[np.uint8]
    often: NDArray[np.uint8]
    counts: NDArray[np.int64]
    cells: NDArray[np.uint64]
    number: NDArray[np.uint64]


def new_found_entries(most: int) -> FoundEntries:
    """Working memory. most: greatest number of entries that the look-ups of a row can find"""
    cells = 2 << max(1, most).bit_length()
    return FoundEntries(
        np.zeros((FOUND_LINES, most), np.int64),
        np.zeros((FOUND_LINES, most), np.uint8),
        np.zeros((FOUND_LINES, most), np.uint8),
        np.zeros((FOUND_LINES, most), np.uint8),
        np.zeros(FOUND_LINES, np.int64),
        np.zeros(cells, np.uint64),
        np.zeros(1, np.uint64),
    )


@kernel(callee=True, inlined=True)
def begin_row(found: FoundEntries, line: int) -> None:
    """The next entries are those of another row."""
    found.counts[line] = 0
    found.number[0] += np.uint64(1)


@kernel(callee=True, inlined=True)
def add_found(found: FoundEntries, line: int, kept_index: int, code: int, bits: int) -> None:
    """Note an entry that a look-up found. code, bits: its length code, and differing bits of its signature"""
    mask = np.uint64(len(found.cells) - 1)
    row = found.number[0] << np.uint64(32)
    cell = ((np.uint64(kept_index) * GOLDEN) >> np.uint64(40)) & mask
    while found.cells[cell] >> np.uint64(32) == row >> np.uint64(32):
        place = np.int64(found.cells[cell] & np.uint64(0xFFFFFFFF))
        if found.kept[line, place] == kept_index:
            found.often[line, place] = 1
            return
        cell = (cell + np.uint64(1)) & mask
    place = found.counts[line]
    found.cells[cell] = row | np.uint64(place)
    found.kept[line, place] = kept_index
    found.bits[line, place] = bits
    found.codes[line, place] = code
    found.often[line, place] = 0
    found.counts[line] = place + 1


@kernel(callee=True, inlined=True)
def keep_allowed(found: FoundEntries, line: int, limits: NDArray[np.int8], code: int) -> np.int64:
    """Leave those entries that the limits allow, in their order. returns: how many are left

    limits: `window.lengths.signature_limits`; code: length code of the row
    """
    left = np.int64(0)
    for place in range(found.counts[line]):
        limit = limits[found.often[line, place], code, found.codes[line, place]]
        if np.int64(found.bits[line, place]) <= np.int64(limit):
            found.kept[line, left] = found.kept[line, place]
            left += 1
    found.counts[line] = left
    return left
