"""Phase two of judging a chunk: row after row, in order, exact stage first, then near.

The only place where verdicts are made and state moves on. A row first advances stream time, then is judged
against the kept messages of its windows: those of earlier chunks by the proposals of phase one, those of this
chunk by `Local`. The answer is the one that judging each message alone would give, whatever the chunk size.
"""

from __future__ import annotations

import numpy as np

from twinsieve.stages.contract import NO_LEADER, NO_TIME, Flag, Kind
from twinsieve.stages.exact.bloom_kernel import (
    GENERATION_FIRST_TIME,
    GENERATION_NEWEST_TIME,
    Bloom,
    bloom_expire,
    bloom_insert,
    bloom_prefetch,
)
from twinsieve.stages.intrinsics import popcount
from twinsieve.stages.judge.decide_exact import bloom_time, judge_exact
from twinsieve.stages.judge.local import NONE, Local, add_kept, cell_of
from twinsieve.stages.judge.policy import (
    EXACT_BLOOM,
    EXACT_NONE,
    NEAR_HAMMING,
    NEAR_NONE,
    NEAR_TEXT,
    UNJUDGED,
    UNJUDGED_NEAR,
    Outcome,
    Policy,
    Sealed,
)
from twinsieve.stages.kernel import kernel
from twinsieve.stages.near.buckets import INDEX_MASK, WAYS, Buckets, bucket_of
from twinsieve.stages.near.hamming import Chains, compare_bits, propose_row_bits
from twinsieve.stages.near.propose import Matches, Search, in_window, propose_row
from twinsieve.stages.near.verify import BLOCKED, ESTIMATED, Rules, Scratch, compare, first_meeting
from twinsieve.stages.window.chunk import Chunk
from twinsieve.stages.window.ring import FIRST_TIME, KEPT, STREAM_TIME, RingColumns, keep
from twinsieve.stages.window.tags import tag_prefetch

_UNIQUE, _NEAR = int(Kind.UNIQUE), int(Kind.NEAR)
_LATE = int(Flag.LATE)

_PREFETCH_ROWS = 8


@kernel
def decide(
    chunk: Chunk,
    ring: RingColumns,
    bloom: Bloom,
    sealed: Sealed,
    buckets: Buckets,
    chains: Chains,
    search: Search,
    rules: Rules,
    policy: Policy,
    matches: Matches,
    spare: Matches,
    scratch: Scratch,
    local: Local,
    outcome: Outcome,
) -> None:
    """Write a verdict for each row into `outcome`; put what is kept into ring and Bloom filter.

    `local` lists the kept rows, which the caller inserts into the index after the chunk.
    spare: room for the matches of one row that phase one left out
    """
    scratch.pattern_row[0] = -1
    scratch.seen[:] = 0
    before = ring.counters[KEPT]
    mask = len(ring.tag_slots) - 1
    rows = len(chunk.lengths)
    for row in range(rows):
        if row + _PREFETCH_ROWS < rows:
            ahead = row + _PREFETCH_ROWS
            tag_prefetch(ring.tag_slots, mask, chunk.digests[ahead, 0])
            if policy.exact == EXACT_BLOOM:
                bloom_prefetch(bloom, chunk.digests[ahead, 0], chunk.digests[ahead, 1])
        late = _advance(chunk, row, ring, bloom, policy)
        if policy.exact == EXACT_BLOOM:
            # For rows that were judged elsewhere too: the state then is that of who judged them.
            bloom_expire(bloom, ring.counters[KEPT], bloom_time(ring))
        if outcome.kinds[row] >= UNJUDGED_NEAR:
            judged_exact = policy.exact != EXACT_NONE and outcome.kinds[row] == UNJUDGED
            outcome.kinds[row] = _UNIQUE
            outcome.flags[row] = 0
            outcome.leaders[row] = NO_LEADER
            outcome.matched[row] = 0
            outcome.compared[row] = 0
            if judged_exact:
                judge_exact(chunk, row, ring, bloom, sealed, policy, outcome)
            judged_near = policy.near != NEAR_NONE and chunk.probes[row] > 0
            if outcome.kinds[row] == _UNIQUE and judged_near:
                _judge_near(
                    chunk,
                    row,
                    before,
                    ring,
                    buckets,
                    chains,
                    search,
                    rules,
                    policy,
                    matches,
                    spare,
                    scratch,
                    local,
                    outcome,
                )
            if outcome.kinds[row] == _UNIQUE and late and policy.late_judge:
                outcome.flags[row] |= _LATE
        if outcome.kinds[row] != _UNIQUE or outcome.flags[row] & _LATE:
            continue
        kept_index = ring.counters[KEPT]
        keep(ring, chunk, row)
        indexed = policy.near == NEAR_TEXT and not search.scan
        add_kept(local, chunk, row, kept_index, buckets, indexed)
        if policy.exact == EXACT_BLOOM:
            digest = chunk.digests[row]
            bloom_insert(bloom, digest[0], digest[1], kept_index, bloom_time(ring))


@kernel(callee=True)
def _advance(chunk: Chunk, row: int, ring: RingColumns, bloom: Bloom, policy: Policy) -> bool:
    """Whether the row is late; stream time has moved on."""
    counters = ring.counters
    time = chunk.times[row]
    if time == NO_TIME:
        return False
    arrival = chunk.arrivals[row]
    if arrival != NO_TIME:
        time = min(time, arrival + policy.max_ahead)
    if counters[STREAM_TIME] == NO_TIME:
        counters[STREAM_TIME] = time
        counters[FIRST_TIME] = time
        # What was kept before any time was known counts as kept now.
        for generation in range(len(bloom.generations)):
            bloom.generations[generation, GENERATION_FIRST_TIME] = time
            bloom.generations[generation, GENERATION_NEWEST_TIME] = time
    late = counters[STREAM_TIME] - time > policy.late_after
    counters[STREAM_TIME] = max(counters[STREAM_TIME], time)
    return late


@kernel(callee=True)
def _judge_near(
    chunk: Chunk,
    row: int,
    before: int,
    ring: RingColumns,
    buckets: Buckets,
    chains: Chains,
    search: Search,
    rules: Rules,
    policy: Policy,
    matches: Matches,
    spare: Matches,
    scratch: Scratch,
    local: Local,
    outcome: Outcome,
) -> None:
    best_kept, best_matched, best_compared, best_status = np.int64(-1), np.int64(0), np.int64(1), np.int64(0)
    blocked = np.int64(0)
    found = matches
    count = np.int64(matches.counts[row])
    first = np.int64(matches.starts[row])
    if count < 0:
        found = spare
        first = np.int64(0)  # a literal as an argument would compile both searches once more
        room = len(spare.kept)
        if policy.near == NEAR_HAMMING:
            count = propose_row_bits(
                chunk, row, ring, chains, search.near_age, rules, scratch.seen, spare, first, room
            )
        else:
            count = propose_row(chunk, row, before, ring, buckets, search, rules, scratch, spare, first, room)
    index_only = policy.near == NEAR_TEXT and not search.scan
    for at in range(first, first + count):
        kept_index = found.kept[at]
        if not in_window(ring, kept_index, policy.near_messages, policy.near_age):
            continue
        if index_only and not _still_visible(chunk, row, kept_index, buckets, local):
            continue
        status = np.int64(found.status[at])
        if status & BLOCKED:
            blocked |= status & BLOCKED
            continue
        matched, compared = np.int64(found.matched[at]), np.int64(found.compared[at])
        if _better(matched, compared, kept_index, best_matched, best_compared, best_kept):
            best_kept, best_matched, best_compared, best_status = kept_index, matched, compared, status
    # Entries kept in this chunk: all of them where there are no buckets, else those this row's buckets show.
    looks = np.int64(chunk.probes[row]) if index_only else np.int64(1)
    tables = buckets.bands + buckets.tables
    for probe in range(looks):
        node = np.int64(NONE)
        if index_only:
            cell = cell_of(local, bucket_of(chunk, row, probe, buckets))
            if local.keys[cell] != NONE:
                node = np.int64(local.heads[cell])
            left = WAYS
        else:
            node = local.counts[0] - 1
            left = local.counts[0]
        while node != NONE and left > 0:
            left -= 1
            number = node
            if index_only:
                number = node // tables
                node = np.int64(local.next[node])
            else:
                node -= 1
            kept_index = local.kept_indices[number]
            other = np.int64(local.kept_rows[number])
            if index_only:
                limit = search.limits[chunk.codes[row], chunk.codes[other]]
                differing = np.int64(popcount(chunk.signatures[row] ^ chunk.signatures[other]))
                if differing > limit or not first_meeting(scratch.seen, row, kept_index):
                    continue
            if not in_window(ring, kept_index, policy.near_messages, policy.near_age):
                continue
            slot = kept_index % len(ring.positions)
            if ring.lengths[slot] <= 0:
                continue
            if policy.near == NEAR_HAMMING:
                # Among earlier chunks the tables show nothing without a fingerprint; here we look ourselves.
                if not chunk.has_simhash[other]:
                    continue
                status, matched, compared = compare_bits(chunk, row, ring, slot, chains, rules)
            else:
                status, matched, compared = compare(chunk, row, ring, slot, rules, scratch)
            if status == 0:
                continue
            if status & BLOCKED:
                blocked |= status & BLOCKED
                continue
            if _better(matched, compared, kept_index, best_matched, best_compared, best_kept):
                best_kept, best_matched, best_compared, best_status = kept_index, matched, compared, status
    if best_kept < 0:
        outcome.flags[row] = blocked
        return
    outcome.kinds[row] = _NEAR
    outcome.flags[row] = best_status & ESTIMATED
    outcome.leaders[row] = ring.positions[best_kept % len(ring.positions)]
    outcome.matched[row] = best_matched
    outcome.compared[row] = best_compared


@kernel(callee=True)
def _better(
    matched: int, compared: int, kept_index: int, best_matched: int, best_compared: int, best_kept: int
) -> bool:
    """Higher similarity, then older."""
    left, right = matched * best_compared, best_matched * compared
    return left > right or (left == right and best_kept >= 0 and kept_index < best_kept)


@kernel(callee=True)
def _still_visible(chunk: Chunk, row: int, kept_index: int, buckets: Buckets, local: Local) -> bool:
    """Whether an entry from before the chunk would still stand in one of the row's buckets now."""
    for probe in range(chunk.probes[row]):
        start = bucket_of(chunk, row, np.int64(probe), buckets)
        cell = cell_of(local, start)
        pushed = np.int64(0) if local.keys[cell] == NONE else np.int64(local.sizes[cell])
        for way in range(WAYS - pushed):
            entry = buckets.entries[start + way]
            if entry == np.uint64(0):
                break
            if np.int64(entry & np.uint64(INDEX_MASK)) == kept_index & INDEX_MASK:
                return True
    return False
