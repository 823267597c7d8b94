"""Phase one of judging a chunk: find the matches of each row among the messages kept before the chunk.

It changes no state, so that several threads can share the rows. Its matches are proposals. Phase two
(`decide`) goes through the rows in order and checks each proposal again: is the entry still inside the
window, and would it still be in its bucket if the rows before had been judged one by one?
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import NO_TIME
from twinsieve.stages.intrinsics import popcount, prefetch
from twinsieve.stages.kernel import ZERO, kernel
from twinsieve.stages.near.verify import (
    Scratch,
    VerifyParams,
    begin,
    compare,
    compare_texts,
    first_meeting,
    may_be_alike,
)
from twinsieve.stages.window.buckets import INDEX_BITS, INDEX_MASK, WAYS, Buckets, bucket_of
from twinsieve.stages.window.chains import Chains, PartChains
from twinsieve.stages.window.chunk import Chunk
from twinsieve.stages.window.ring import FIRST_TIME, GRANULE, KEPT, OLDEST, STREAM_TIME, RingColumns
from twinsieve.stages.window.tags import tag_find

NOT_PROPOSED = -1
PREFETCH_ROWS = 12
"""The cache lines of a row's buckets are prefetched this many rows ahead."""

MATCHES_PER_ROW = 16
"""Average room for the matches of a row. If a shard's room is full, phase two searches for the other rows."""


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

    buckets: index of the method text; chains: index of the method hamming; part_chains: index of the method
        signatures; unused ones are placeholders
    """

    ring: RingColumns
    buckets: Buckets
    chains: Chains
    part_chains: PartChains
    candidates: CandidateParams
    verify: VerifyParams


class Matches(NamedTuple):
    """Matches of n rows; the matches of a row are the counts[row] places from starts[row] on.

    starts, counts: int32[n]; a count is NOT_PROPOSED if nobody searched for the row
    kept: int64[room], kept index of the matching entry
    matched, compared: int32[room]; status: uint8[room]; all three as `verify.compare` returns them
    """

    starts: NDArray[np.int32]
    counts: NDArray[np.int32]
    kept: NDArray[np.int64]
    matched: NDArray[np.int32]
    compared: NDArray[np.int32]
    status: NDArray[np.uint8]


def new_matches(rows: int, room: int) -> Matches:
    """Empty memory. rows: number of rows; room: number of matches of all rows together"""
    return Matches(
        np.zeros(rows, np.int32),
        np.full(rows, NOT_PROPOSED, np.int32),
        np.zeros(room, np.int64),
        np.zeros(room, np.int32),
        np.zeros(room, np.int32),
        np.zeros(room, np.uint8),
    )


def max_matches(buckets: Buckets, window: int, scan: bool) -> int:
    """Greatest number of matches of one row. `first_meeting` may forget an entry, so one may count twice."""
    probes = buckets.bands + (buckets.tables << buckets.weak)
    return window if scan else probes * WAYS


@kernel(callee=True, inlined=True)
def in_window(ring: RingColumns, kept_index: int, messages: int, age: int) -> bool:
    """Whether an entry of the ring is inside a window.

    kept_index: of an entry whose slot no newer entry has taken yet
    messages: window in kept messages; age: window in ms, -1 for no limit
    """
    counters = ring.counters
    if counters[KEPT] - kept_index > messages or kept_index < counters[OLDEST]:
        return False
    if age < 0 or counters[STREAM_TIME] == NO_TIME:
        return True
    time = ring.times[kept_index % len(ring.times)]
    if time == NO_TIME:
        time = counters[FIRST_TIME]
    return counters[STREAM_TIME] - time <= age


@kernel(callee=True)
def add_match(
    matches: Matches, place: int, end: int, kept_index: int, compared_as: tuple[int, int, int]
) -> int:
    """Write a match at `place`, unless its status is 0.

    compared_as: (status, matched, compared) as `compare` returns them
    returns: place of the next match, or NOT_PROPOSED if there is no room before `end`
    """
    status, matched, compared = compared_as
    if status == 0:
        return place
    if place >= end:
        return NOT_PROPOSED
    matches.kept[place] = kept_index
    matches.matched[place] = matched
    matches.compared[place] = compared
    matches.status[place] = status
    return place + 1


@kernel(callee=True)
def propose_row(
    chunk: Chunk,
    row: int,
    before: int,
    index: NearIndex,
    scratch: Scratch,
    matches: Matches,
    first: int,
    end: int,
) -> int:
    """Write the matches of one row to `matches` from place `first` on.

    before: kept index at which the chunk began; only entries below it are compared
    returns: the number of matches, or NOT_PROPOSED if the room up to `end` is too small
    """
    ring = index.ring
    place = first
    if index.candidates.scan:
        for kept_index in range(
            max(ring.counters[OLDEST], ring.counters[KEPT] - index.candidates.near_messages), before
        ):
            place = _consider(chunk, row, kept_index, index, scratch, matches, place, end)
            if place == NOT_PROPOSED:
                return NOT_PROPOSED
        return place - first
    found = _candidates(chunk, row, before, index, scratch)
    left = _possible(chunk, row, found, index, scratch)
    for number in range(left):
        kept_index = scratch.candidates[number]
        slot = kept_index % len(ring.positions)
        compared_as = compare_texts(chunk, row, ring, slot, index.verify, scratch)
        place = add_match(matches, place, end, kept_index, compared_as)
        if place == NOT_PROPOSED:
            return NOT_PROPOSED
    return place - first


@kernel(callee=True, inlined=True)
def _candidates(chunk: Chunk, row: int, before: int, index: NearIndex, scratch: Scratch) -> int:
    """Write the entries in the buckets of a row whose lengths and signatures allow them to be alike.

    The memory that `_possible` reads of them is prefetched: each entry lies somewhere else, and a read of it
    takes longer than its comparison.
    returns: how many stand in scratch.candidates
    """
    ring, buckets = index.ring, index.buckets
    capacity = len(ring.positions)
    code = chunk.codes[row]
    signature = chunk.signatures[row]
    newest = before - 1
    found = ZERO
    for probe in range(chunk.probes[row]):
        start = bucket_of(chunk, row, np.int64(probe), buckets)
        for way in range(WAYS):
            entry = buckets.entries[start + way]
            if entry == np.uint64(0):
                break
            limit = index.candidates.limits[code, (entry >> np.uint64(INDEX_BITS)) & np.uint64(255)]
            if np.int64(popcount(np.uint32(entry >> np.uint64(32)) ^ signature)) > limit:
                continue
            # The entry holds the low bits of a kept index. Take the newest index below `before` with these
            # bits: if the entry is stale, this index is too old for the window.
            kept_index = newest - ((newest - np.int64(entry & np.uint64(INDEX_MASK))) & INDEX_MASK)
            if not first_meeting(scratch.seen, row, kept_index):
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
    """Compare a row with one entry and write the match, if it is one.

    returns: place of the next match, or NOT_PROPOSED if there is no room before `end`
    """
    ring, limits = index.ring, index.candidates
    if not in_window(ring, kept_index, limits.near_messages, limits.near_age):
        return place
    slot = kept_index % len(ring.positions)
    if ring.lengths[slot] <= 0:
        return place
    return add_match(matches, place, end, kept_index, compare(chunk, row, ring, slot, index.verify, scratch))


@kernel
def propose(
    low: int,
    high: int,
    chunk: Chunk,
    index: NearIndex,
    scratch: Scratch,
    matches: Matches,
    first: int,
    end: int,
) -> None:
    """Write the matches of rows low to high (exclusive) into `matches`.

    first, end: the places in `matches` that belong to this shard
    A row whose digest tag is in the ring stays NOT_PROPOSED: it is nearly always an exact copy, for which
    phase two needs no matches.
    """
    ring, buckets = index.ring, index.buckets
    begin(scratch)
    before = ring.counters[KEPT]
    mask = len(ring.tag_slots) - 1
    place = first
    for row in range(low, high):
        if row + PREFETCH_ROWS < high and not index.candidates.scan:
            for probe in range(chunk.probes[row + PREFETCH_ROWS]):
                prefetch(buckets.entries, bucket_of(chunk, row + PREFETCH_ROWS, np.int64(probe), buckets))
        matches.starts[row] = place
        if chunk.probes[row] == 0:
            matches.counts[row] = 0
            continue
        matches.counts[row] = NOT_PROPOSED
        if tag_find(ring.tag_slots, mask, ring.tags, chunk.digests[row, 0]) >= 0:
            continue
        count = propose_row(chunk, row, before, index, scratch, matches, place, end)
        matches.counts[row] = count
        if count > 0:
            place += count
