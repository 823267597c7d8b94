"""The matches of rows in one segment, under the method text: by its buckets, or by a scan of all its entries.

Matches are proposals. Phase two (`decide`) goes through the rows in order and checks each proposal again: is
the entry still inside the window, and would it still be in its bucket if the rows before had been judged one
by one?
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import NO_TIME
from twinsieve.stages.intrinsics import first_lane, prefetch
from twinsieve.stages.kernel import ZERO, kernel
from twinsieve.stages.near.found_entries import FOUND_LINES, add_found, begin_row, keep_allowed
from twinsieve.stages.near.matches import NOT_PROPOSED, Matches, add_match
from twinsieve.stages.near.verify import (
    Scratch,
    VerifyParams,
    begin,
    compare,
    compare_texts,
    may_be_alike,
)
from twinsieve.stages.window.buckets import (
    INDEX_MASK,
    LOOK_UP_LINES,
    WAYS,
    Buckets,
    code_of,
    differing_bits,
    entry_at,
    find_buckets,
    possible_entries,
    prefetch_lists,
    read_bucket,
)
from twinsieve.stages.window.chains import Chains, PartChains
from twinsieve.stages.window.chunk import Chunk
from twinsieve.stages.window.ring import GRANULE, RingColumns

PREFETCH_ROWS = 12
"""The buckets of a row are looked up, and prefetched, this many rows ahead; fewer than LOOK_UP_LINES."""
_LISTS_AHEAD = 6
"""The same for the entries of a sparse index, whose heads come first."""
_RECORDS_AHEAD, _TEXTS_AHEAD = 2, 1
"""The same for the records and the texts of what the buckets name; fewer than FOUND_LINES."""


class CandidateParams(NamedTuple):
    """How candidates are found.

    limits: int8[2, 256, 256], allowed signature bits (`window.lengths.signature_limits`)
    reach: uint64[256, 3], what is possible within these limits (`window.lengths.reach_of`)
    scan: 1 to compare each row with all entries instead of those in its buckets
    bits: 1 to compare SimHashes (method hamming)
    compare_text: 1 if a copy is confirmed by its stored text
    """

    limits: NDArray[np.int8]
    reach: NDArray[np.uint64]
    scan: int
    bits: int
    compare_text: int


class Begin(NamedTuple):
    """Where a window begins when a chunk does.

    kept: kept index of its oldest message; time: its least time in ms, NO_TIME for no limit
    """

    kept: int
    time: int


class NearIndex(NamedTuple):
    """One segment, its candidate index and the rules of comparison: all that a look-up reads beside the rows.

    begin: of the near window in this segment; no older entry is compared
    before: kept index behind the last entry that is compared; of the open segment, where the chunk began
    exact: begin of the exact window
    buckets: index of the method text; chains: index of the method hamming; part_chains: index of the method
        signatures; unused ones are placeholders
    """

    begin: Begin
    before: int
    exact: Begin
    ring: RingColumns
    buckets: Buckets
    chains: Chains
    part_chains: PartChains
    candidates: CandidateParams
    verify: VerifyParams


def max_matches(probes: int, window: int, scan: bool) -> int:
    """Greatest number of matches of one row. probes: its look-ups"""
    return window if scan else probes * WAYS


@kernel(callee=True, inlined=True)
def is_within(begin: Begin, kept_index: int, time: int) -> bool:
    """Whether a message was inside the window when the chunk began. time: in ms, or NO_TIME

    A message without a time counts as inside: phase two knows since when it counts.
    """
    return kept_index >= begin.kept and (time >= begin.time or time == NO_TIME)


@kernel(callee=True, inlined=True)
def kept_message(ring: RingColumns, kept_index: int) -> tuple[int, int, int]:
    """(kept index, position, time) of an entry, as `add_match` takes them."""
    slot = kept_index % len(ring.positions)
    return np.int64(kept_index), np.int64(ring.positions[slot]), np.int64(ring.times[slot])


@kernel(callee=True, inlined=True)
def _find_entries(chunk: Chunk, row: int, index: NearIndex, scratch: Scratch) -> None:
    """Write the entries in the buckets of a row whose keys, lengths and signatures allow them to be alike.

    The memory that `_leave_possible` reads of them is prefetched: each entry lies somewhere else, and a read
    of it takes longer than its comparison.
    """
    ring, buckets, look_ups, found = index.ring, index.buckets, scratch.look_ups, scratch.found
    capacity = len(ring.positions)
    code, line = chunk.codes[row], row & (FOUND_LINES - 1)
    looked_up = row & (LOOK_UP_LINES - 1)
    newest = index.before - 1
    begin_row(found, line)
    for probe in range(chunk.probes[row]):
        start, wanted = look_ups.starts[looked_up, probe], look_ups.wanted[looked_up, probe]
        if not read_bucket(buckets, start, look_ups.listed):
            continue
        ways = possible_entries(buckets, start, look_ups.listed, wanted, index.candidates.reach, code)
        while ways:
            entry = entry_at(buckets, start, look_ups.listed, first_lane(ways))
            ways &= ways - np.uint64(1)
            # The entry holds the low bits of a kept index. Take the newest index below `before` with these
            # bits: if the entry is stale, this index is too old for the window.
            kept_index = newest - ((newest - np.int64(entry & np.uint64(INDEX_MASK))) & INDEX_MASK)
            if kept_index >= index.begin.kept:
                add_found(found, line, kept_index, code_of(entry), differing_bits(entry, wanted))
    for number in range(keep_allowed(found, line, index.candidates.limits, code)):
        # The whole record: its fields share one cache line.
        prefetch(ring.bags, found.kept[line, number] % capacity)


@kernel(callee=True, inlined=True)
def _leave_possible(chunk: Chunk, row: int, index: NearIndex, scratch: Scratch) -> None:
    """Leave those of the found entries that are inside the window and may be alike; prefetch their texts."""
    ring, found = index.ring, scratch.found
    capacity = len(ring.positions)
    line = row & (FOUND_LINES - 1)
    left = ZERO
    for number in range(found.counts[line]):
        kept_index = found.kept[line, number]
        slot = kept_index % capacity
        if (
            is_within(index.begin, kept_index, ring.times[slot])
            and ring.lengths[slot] > 0
            and may_be_alike(chunk, row, ring, slot, index.verify)
        ):
            found.kept[line, left] = kept_index
            left += 1
            prefetch(ring.texts, np.int64(ring.offsets[slot]) * GRANULE)
    found.counts[line] = left


@kernel(callee=True, inlined=True)
def _compare_found(
    chunk: Chunk, row: int, index: NearIndex, scratch: Scratch, matches: Matches, place: int, end: int
) -> int:
    """Compare a row with the entries that are left, and add the matches to `matches`, from `place` on.

    returns: place of the next match; NOT_PROPOSED if the room up to `end` is too small, and then the row is
        NOT_PROPOSED
    """
    ring, found = index.ring, scratch.found
    line = row & (FOUND_LINES - 1)
    for number in range(found.counts[line]):
        kept_index = found.kept[line, number]
        compared_as = compare_texts(chunk, row, ring, kept_index % len(ring.positions), index.verify, scratch)
        place = add_match(matches, row, place, end, kept_message(ring, kept_index), compared_as)
        if place == NOT_PROPOSED:
            return NOT_PROPOSED
    return place


@kernel(callee=True)
def _scan_row(
    chunk: Chunk, row: int, index: NearIndex, scratch: Scratch, matches: Matches, place: int, end: int
) -> int:
    """Compare a row with all entries inside the window. returns: as `_compare_found`"""
    ring = index.ring
    for kept_index in range(index.begin.kept, index.before):
        slot = kept_index % len(ring.positions)
        if ring.lengths[slot] <= 0 or not is_within(index.begin, kept_index, ring.times[slot]):
            continue
        compared_as = compare(chunk, row, ring, slot, index.verify, scratch)
        place = add_match(matches, row, place, end, kept_message(ring, kept_index), compared_as)
        if place == NOT_PROPOSED:
            return NOT_PROPOSED
    return place


@kernel(callee=True)
def propose(
    low: int,
    high: int,
    chunk: Chunk,
    index: NearIndex,
    scratch: Scratch,
    matches: Matches,
    place: int,
    end: int,
) -> int:
    """Add the matches of rows low to high (exclusive) to `matches`; skip NOT_PROPOSED rows.

    place, end: the room in `matches`
    returns: place of the next match. A row for which there was no room is NOT_PROPOSED
    """
    begin(scratch)
    if index.candidates.scan:
        for row in range(low, high):
            if _is_searched(chunk, row, matches):
                following = _scan_row(chunk, row, index, scratch, matches, place, end)
                place = place if following == NOT_PROPOSED else following
        return place
    for row in range(low - PREFETCH_ROWS, high):
        ahead, listed = row + PREFETCH_ROWS, row + _LISTS_AHEAD
        found, possible = row + _RECORDS_AHEAD, row + _TEXTS_AHEAD
        if ahead < high and _is_searched(chunk, ahead, matches):
            find_buckets(chunk, ahead, index.buckets, scratch.look_ups)
        if low <= listed < high and _is_searched(chunk, listed, matches):
            prefetch_lists(chunk, listed, index.buckets, scratch.look_ups)
        if low <= found < high and _is_searched(chunk, found, matches):
            _find_entries(chunk, found, index, scratch)
        if low <= possible < high and _is_searched(chunk, possible, matches):
            _leave_possible(chunk, possible, index, scratch)
        if low <= row and _is_searched(chunk, row, matches):
            following = _compare_found(chunk, row, index, scratch, matches, place, end)
            place = place if following == NOT_PROPOSED else following
    return place


@kernel(callee=True, inlined=True)
def _is_searched(chunk: Chunk, row: int, matches: Matches) -> bool:
    return chunk.probes[row] > 0 and matches.heads[row] != NOT_PROPOSED
