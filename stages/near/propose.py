"""Phase one of judging a chunk: find the matches of each row among the messages kept before the chunk.

It is called for each segment of the window and changes no state, so that several threads can share the rows.
Its matches are proposals. Phase two (`decide`) goes through the rows in order and checks each proposal again:
is the entry still inside the window, and would it still be in its bucket if the rows before had been judged
one by one?
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import NO_TIME
from twinsieve.stages.intrinsics import prefetch
from twinsieve.stages.kernel import ZERO, kernel
from twinsieve.stages.near.matches import NOT_PROPOSED, Matches, add_match
from twinsieve.stages.near.verify import (
    Scratch,
    VerifyParams,
    begin,
    compare,
    compare_texts,
    first_meeting,
    may_be_alike,
)
from twinsieve.stages.window.buckets import (
    INDEX_BITS,
    INDEX_MASK,
    LOOK_UP_LINES,
    WAYS,
    Buckets,
    differing_bits,
    find_buckets,
    has_key,
)
from twinsieve.stages.window.chains import Chains, PartChains
from twinsieve.stages.window.chunk import Chunk
from twinsieve.stages.window.ring import FIRST_TIME, GRANULE, KEPT, OLDEST, STREAM_TIME, RingColumns

PREFETCH_ROWS = 12
"""The buckets of a row are looked up, and prefetched, this many rows ahead; fewer than LOOK_UP_LINES."""


class CandidateParams(NamedTuple):
    """How candidates are found.

    limits: int8[256, 256], allowed signature bits by length codes (`window.lengths.signature_limits`)
    near_messages: number of the newest kept messages that are candidates
    near_age: greatest age of a candidate in ms, -1 for no limit
    scan: 1 to compare each row with all entries instead of those in its buckets
    """

    limits: NDArray[np.int8]
    near_messages: int
    near_age: int
    scan: int


class NearIndex(NamedTuple):
    """Kept messages, their candidate index and the rules of comparison, as kernels take them.

    first, before: kept indices: the index holds no entry below `first`, and no entry from `before` on is
        compared (for the open segment, the kept index at which the chunk began)
    buckets: index of the method text; chains: index of the method hamming; part_chains: index of the method
        signatures; unused ones are placeholders
    """

    first: int
    before: int

    ring: RingColumns
    buckets: Buckets
    chains: Chains
    part_chains: PartChains
    candidates: CandidateParams
    verify: VerifyParams


def max_matches(probes: int, window: int, scan: bool) -> int:
    """Greatest number of matches of one row. `first_meeting` may forget an entry, so one may count twice.

    probes: its look-ups
    """
    return window if scan else probes * WAYS


@kernel(callee=True, inlined=True)
def is_inside(counters: NDArray[np.int64], kept_index: int, time: int, messages: int, age: int) -> bool:
    """Whether a kept message is inside a window.

    counters: of the ring (`window.ring.KEPT`); time: when the message was kept, in ms, or NO_TIME
    messages: window in kept messages; age: window in ms, -1 for no limit
    """
    if counters[KEPT] - kept_index > messages or kept_index < counters[OLDEST]:
        return False
    if age < 0 or counters[STREAM_TIME] == NO_TIME:
        return True
    if time == NO_TIME:
        time = counters[FIRST_TIME]
    return counters[STREAM_TIME] - time <= age


@kernel(callee=True, inlined=True)
def in_window(ring: RingColumns, kept_index: int, messages: int, age: int) -> bool:
    """`is_inside` for an entry of the ring whose slot no newer entry has taken yet."""
    counters = ring.counters
    # Of an entry beyond the window by its number, the record is not read.
    if counters[KEPT] - kept_index > messages or kept_index < counters[OLDEST]:
        return False
    return age < 0 or is_inside(counters, kept_index, ring.times[kept_index % len(ring.times)], messages, age)


@kernel(callee=True, inlined=True)
def kept_message(ring: RingColumns, kept_index: int) -> tuple[int, int, int]:
    """(kept index, position, time) of an entry, as `add_match` takes them."""
    slot = kept_index % len(ring.positions)
    return np.int64(kept_index), np.int64(ring.positions[slot]), np.int64(ring.times[slot])


@kernel(callee=True)
def propose_row(
    chunk: Chunk,
    row: int,
    index: NearIndex,
    scratch: Scratch,
    matches: Matches,
    place: int,
    end: int,
) -> int:
    """Add the matches of one row to `matches`, from `place` on. Its look-ups stand in `scratch`.

    returns: place of the next match; NOT_PROPOSED if the room up to `end` is too small, and then the row is
        NOT_PROPOSED
    """
    ring = index.ring
    if index.candidates.scan:
        counters = ring.counters
        oldest = max(counters[OLDEST], counters[KEPT] - index.candidates.near_messages, index.first)
        for kept_index in range(oldest, index.before):
            place = _consider(chunk, row, kept_index, index, scratch, matches, place, end)
            if place == NOT_PROPOSED:
                return NOT_PROPOSED
        return place
    found = _candidates(chunk, row, index, scratch)
    left = _possible(chunk, row, found, index, scratch)
    for number in range(left):
        kept_index = scratch.candidates[number]
        slot = kept_index % len(ring.positions)
        compared_as = compare_texts(chunk, row, ring, slot, index.verify, scratch)
        place = add_match(matches, row, place, end, kept_message(ring, kept_index), compared_as)
        if place == NOT_PROPOSED:
            return NOT_PROPOSED
    return place


@kernel(callee=True, inlined=True)
def _candidates(chunk: Chunk, row: int, index: NearIndex, scratch: Scratch) -> int:
    """Write the entries in the buckets of a row whose keys, lengths and signatures allow them to be alike.

    The memory that `_possible` reads of them is prefetched: each entry lies somewhere else, and a read of it
    takes longer than its comparison.
    returns: how many stand in scratch.candidates
    """
    ring, buckets, look_ups = index.ring, index.buckets, scratch.look_ups
    capacity = len(ring.positions)
    code = chunk.codes[row]
    line = row & (LOOK_UP_LINES - 1)
    newest = index.before - 1
    found = ZERO
    for probe in range(chunk.probes[row]):
        start, wanted = look_ups.starts[line, probe], look_ups.wanted[line, probe]
        for way in range(WAYS):
            entry = buckets.entries[start + way]
            # An empty place may have the bits of this key; its length code is no length.
            if not has_key(entry, wanted, buckets):
                continue
            limit = index.candidates.limits[code, (entry >> np.uint64(INDEX_BITS)) & np.uint64(255)]
            if differing_bits(entry, wanted) > limit:
                continue
            # The entry holds the low bits of a kept index. Take the newest index below `before` with these
            # bits: if the entry is stale, this index is too old for the window.
            kept_index = newest - ((newest - np.int64(entry & np.uint64(INDEX_MASK))) & INDEX_MASK)
            if kept_index < index.first or not first_meeting(scratch.seen, row, kept_index):
                continue
            scratch.candidates[found] = kept_index
            found += 1
            slot = kept_index % capacity
            # The whole record: its fields share one cache line.
            prefetch(ring.bags, slot)
    return found


@kernel(callee=True, inlined=True)
def _possible(chunk: Chunk, row: int, found: int, index: NearIndex, scratch: Scratch) -> int:
    """Leave those of the first `found` candidates that are inside the window and may be alike.

    Their texts are prefetched.
    returns: how many are left
    """
    ring, limits = index.ring, index.candidates
    capacity = len(ring.positions)
    left = ZERO
    for number in range(found):
        kept_index = scratch.candidates[number]
        slot = kept_index % capacity
        if (
            in_window(ring, kept_index, limits.near_messages, limits.near_age)
            and ring.lengths[slot] > 0
            and may_be_alike(chunk, row, ring, slot, index.verify)
        ):
            scratch.candidates[left] = kept_index
            left += 1
            prefetch(ring.texts, np.int64(ring.offsets[slot]) * GRANULE)
    return left


@kernel(callee=True)
def _consider(
    chunk: Chunk,
    row: int,
    kept_index: int,
    index: NearIndex,
    scratch: Scratch,
    matches: Matches,
    place: int,
    end: int,
) -> int:
    """Compare a row with one entry and add the match, if it is one. returns: as `propose_row`"""
    ring, limits = index.ring, index.candidates
    if not in_window(ring, kept_index, limits.near_messages, limits.near_age):
        return place
    slot = kept_index % len(ring.positions)
    if ring.lengths[slot] <= 0:
        return place
    compared_as = compare(chunk, row, ring, slot, index.verify, scratch)
    return add_match(matches, row, place, end, kept_message(ring, kept_index), compared_as)


@kernel
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
    """Add the matches of rows low to high (exclusive) in one index to `matches`; skip NOT_PROPOSED rows.

    place, end: the room in `matches` that belongs to this shard
    returns: place of the next match. A row for which there was no room is NOT_PROPOSED
    """
    begin(scratch)
    for row in range(low - PREFETCH_ROWS, high):
        ahead = row + PREFETCH_ROWS
        if ahead < high and not index.candidates.scan and matches.heads[ahead] != NOT_PROPOSED:
            find_buckets(chunk, ahead, index.buckets, scratch.look_ups)
        if row < low or chunk.probes[row] == 0 or matches.heads[row] == NOT_PROPOSED:
            continue
        following = propose_row(chunk, row, index, scratch, matches, place, end)
        if following != NOT_PROPOSED:
            place = following
    return place
