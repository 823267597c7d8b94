"""Phase two of judging a chunk: for each row in order the exact stage, then the near stage.

Only this module makes verdicts and changes the state. A row first advances stream time. Then it is compared
with the kept messages inside the windows. Phase one has proposed matches among the messages kept before this
chunk; `ChunkIndex` finds the messages kept in this chunk. The verdicts are the same as if each message was
judged alone, whatever the size of a chunk.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from twinsieve.stages.contract import NO_LEADER, NO_TIME, Flag, Kind
from twinsieve.stages.differ.rules import HAS_PLACE
from twinsieve.stages.exact.bloom_kernel import (
    GENERATION_FIRST_TIME,
    GENERATION_NEWEST_TIME,
    Bloom,
    bloom_expire,
    bloom_insert,
    bloom_prefetch,
)
from twinsieve.stages.intrinsics import popcount
from twinsieve.stages.judge.chunk_index import NONE, ChunkIndex, add_kept, cell_of_bucket
from twinsieve.stages.judge.decide_exact import bloom_time, judge_exact
from twinsieve.stages.judge.params import (
    EXACT_BLOOM,
    EXACT_NONE,
    NEAR_HAMMING,
    NEAR_NONE,
    NEAR_SIGNATURES,
    NEAR_TEXT,
    UNJUDGED,
    UNJUDGED_NEAR,
    ExactIndex,
    JudgeParams,
    Outcome,
)
from twinsieve.stages.kernel import ZERO, kernel
from twinsieve.stages.near.hamming import compare_bits, propose_row_bits
from twinsieve.stages.near.propose import Matches, NearIndex, in_window, propose_row
from twinsieve.stages.near.signatures import (
    MAX_LINKS,
    compare_parts,
    first_link,
    kept_of,
    link_parts,
    next_link,
)
from twinsieve.stages.near.verify import (
    ESTIMATED,
    REASON_SHIFT,
    Scratch,
    begin,
    compare,
    first_meeting,
    write_detail,
)
from twinsieve.stages.window.buckets import INDEX_MASK, WAYS, Buckets, bucket_of
from twinsieve.stages.window.chunk import Chunk
from twinsieve.stages.window.ring import FIRST_TIME, KEPT, STREAM_TIME, RingColumns, keep
from twinsieve.stages.window.tags import tag_prefetch

_UNIQUE, _NEAR = int(Kind.UNIQUE), int(Kind.NEAR)
_LATE, _NO_FEATURES, _CUT_SHORT = int(Flag.LATE), int(Flag.NO_FEATURES), int(Flag.CUT_SHORT)

_PREFETCH_ROWS = 8


class Workspace(NamedTuple):
    """Memory of phase two for one chunk.

    matches: proposals of phase one; spare: room for the matches of one row for which phase one did not search
    kept: the rows kept in this chunk so far; the caller inserts them into the candidate index after the chunk
    """

    matches: Matches
    spare: Matches
    scratch: Scratch
    kept: ChunkIndex


class BestMatch(NamedTuple):
    """Results of comparing one row so far: the best match, and the most similar entry that a rule kept apart.

    kept: kept index of the best match, -1 for none; matched, compared, status: its result of `compare`
    reason: number of the rule that kept the row apart from the latter, 0 if there is no such entry
    apart_matched, apart_compared, apart_kept: result and kept index of that entry
    """

    kept: int
    matched: int
    compared: int
    status: int
    reason: int
    apart_matched: int
    apart_compared: int
    apart_kept: int


_NOTHING_FOUND = BestMatch(ZERO - 1, ZERO, ZERO + 1, ZERO, ZERO, ZERO, ZERO + 1, ZERO - 1)


@kernel
def decide(
    chunk: Chunk, index: NearIndex, exact: ExactIndex, params: JudgeParams, work: Workspace, outcome: Outcome
) -> None:
    """Write the verdict on each row to `outcome`, and add the kept rows to the ring and the Bloom filter."""
    ring, bloom = index.ring, exact.bloom
    begin(work.scratch)
    before = ring.counters[KEPT]
    mask = len(ring.tag_slots) - 1
    rows = len(chunk.lengths)
    for row in range(rows):
        if row + _PREFETCH_ROWS < rows:
            ahead = row + _PREFETCH_ROWS
            tag_prefetch(ring.tag_slots, mask, chunk.digests[ahead, 0])
            if params.exact == EXACT_BLOOM:
                bloom_prefetch(bloom, chunk.digests[ahead, 0], chunk.digests[ahead, 1])
        late = _advance(chunk, row, ring, bloom, params)
        if params.exact == EXACT_BLOOM:
            # Also for rows with recorded verdicts, so that the state becomes the same as in the sieve that
            # judged them.
            bloom_expire(bloom, ring.counters[KEPT], bloom_time(ring))
        if outcome.kinds[row] >= UNJUDGED_NEAR:
            judged_exact = params.exact != EXACT_NONE and outcome.kinds[row] == UNJUDGED
            outcome.kinds[row] = _UNIQUE
            outcome.flags[row] = 0
            outcome.leaders[row] = NO_LEADER
            outcome.reasons[row] = 0
            outcome.apart_from[row] = NO_LEADER
            outcome.matched[row] = 0
            outcome.compared[row] = 0
            if judged_exact:
                judge_exact(chunk, row, ring, exact, params, outcome)
            if outcome.kinds[row] == _UNIQUE and params.near != NEAR_NONE and chunk.probes[row] > 0:
                if _has_features(chunk, row, index, params):
                    _judge_near(chunk, row, before, index, params, work, outcome)
                else:
                    outcome.flags[row] = _NO_FEATURES
            if outcome.kinds[row] == _UNIQUE and late and params.late_judge:
                outcome.flags[row] |= _LATE
        if outcome.kinds[row] != _UNIQUE or outcome.flags[row] & _LATE:
            continue
        kept_index = ring.counters[KEPT]
        keep(ring, chunk, row)
        if params.near == NEAR_SIGNATURES:
            link_parts(index.part_chains, ring, kept_index)
        add_kept(work.kept, chunk, row, kept_index, index.buckets, _has_buckets(index, params))
        if params.exact == EXACT_BLOOM:
            bloom_insert(bloom, chunk.digests[row, 0], chunk.digests[row, 1], kept_index, bloom_time(ring))


@kernel(callee=True)
def _has_features(chunk: Chunk, row: int, index: NearIndex, params: JudgeParams) -> bool:
    """Whether the row has what the method compares."""
    if params.near == NEAR_HAMMING:
        return bool(chunk.has_simhash[row])
    if params.near == NEAR_SIGNATURES:
        return bool(chunk.part_hashes[row, index.verify.share - 1] != np.uint64(0))
    return True


@kernel(callee=True)
def _has_buckets(index: NearIndex, params: JudgeParams) -> bool:
    return params.near == NEAR_TEXT and not index.candidates.scan


@kernel(callee=True)
def _advance(chunk: Chunk, row: int, ring: RingColumns, bloom: Bloom, params: JudgeParams) -> bool:
    """Advance stream time by the time of a row. returns: whether the row is late"""
    counters = ring.counters
    time = chunk.times[row]
    if time == NO_TIME:
        return False
    arrival = chunk.arrivals[row]
    if arrival != NO_TIME:
        time = min(time, arrival + params.max_ahead)
    if counters[STREAM_TIME] == NO_TIME:
        counters[STREAM_TIME] = time
        counters[FIRST_TIME] = time
        # This is the first message with a time. Messages kept before it count as kept at this time.
        for generation in range(len(bloom.generations)):
            bloom.generations[generation, GENERATION_FIRST_TIME] = time
            bloom.generations[generation, GENERATION_NEWEST_TIME] = time
    late = counters[STREAM_TIME] - time > params.late_after
    counters[STREAM_TIME] = max(counters[STREAM_TIME], time)
    return late


@kernel(callee=True)
def _judge_near(
    chunk: Chunk,
    row: int,
    before: int,
    index: NearIndex,
    params: JudgeParams,
    work: Workspace,
    outcome: Outcome,
) -> None:
    """Set the verdict near in `outcome` if a kept message inside the near window is alike to the row."""
    if params.near == NEAR_SIGNATURES:
        best, cut_short = _best_by_parts(chunk, row, index, params, work)
        if cut_short:
            outcome.flags[row] = _CUT_SHORT
    else:
        best = _best_of_matches(chunk, row, before, index, params, work)
        best = _best_of_chunk(chunk, row, index, params, work, best)
    if best.kept < 0:
        outcome.reasons[row] = best.reason
        if best.reason:
            slot = best.apart_kept % len(index.ring.positions)
            outcome.apart_from[row] = index.ring.positions[slot]
            if outcome.details.shape[2] > 0 and HAS_PLACE[best.reason]:
                limits, detail = index.verify.limits, outcome.details[row]
                write_detail(chunk, row, index.ring, slot, limits, work.scratch, detail)
        return
    outcome.kinds[row] = _NEAR
    outcome.flags[row] |= best.status & ESTIMATED
    outcome.leaders[row] = index.ring.positions[best.kept % len(index.ring.positions)]
    outcome.matched[row] = best.matched
    outcome.compared[row] = best.compared


@kernel(callee=True)
def _best_of_matches(
    chunk: Chunk, row: int, before: int, index: NearIndex, params: JudgeParams, work: Workspace
) -> BestMatch:
    """The best match of a row among the entries kept before the chunk. before: kept index at its beginning"""
    best = _NOTHING_FOUND
    matches = work.matches
    count = np.int64(matches.counts[row])
    first = np.int64(matches.starts[row])
    if count < 0:
        matches = work.spare
        first = ZERO
        room = len(matches.kept)
        if params.near == NEAR_HAMMING:
            count = propose_row_bits(chunk, row, before, index, work.scratch, matches, first, room)
        else:
            count = propose_row(chunk, row, before, index, work.scratch, matches, first, room)
    has_buckets = _has_buckets(index, params)
    for number in range(first, first + count):
        kept_index = matches.kept[number]
        if not in_window(index.ring, kept_index, params.near_messages, params.near_age):
            continue
        if has_buckets and not _still_visible(chunk, row, kept_index, index.buckets, work.kept):
            continue
        status, matched, compared = matches.status[number], matches.matched[number], matches.compared[number]
        best = _better(best, kept_index, (np.int64(status), np.int64(matched), np.int64(compared)))
    return best


@kernel(callee=True)
def _best_by_parts(
    chunk: Chunk, row: int, index: NearIndex, params: JudgeParams, work: Workspace
) -> tuple[BestMatch, bool]:
    """The match that shares most part hashes, and whether older ones may have been left out."""
    best = _NOTHING_FOUND
    ring, chains = index.ring, index.part_chains
    capacity = len(ring.positions)
    chains_cut = ZERO
    for part in range(chunk.part_hashes.shape[1]):
        part_hash = chunk.part_hashes[row, part]
        if part_hash == np.uint64(0):
            break
        link = first_link(chains, part_hash)
        links = ZERO
        kept_index = kept_of(ring, link)
        while kept_index >= 0:
            if links == MAX_LINKS:
                chains_cut += 1
                break
            links += 1
            inside = in_window(ring, kept_index, params.near_messages, params.near_age)
            if inside and first_meeting(work.scratch.seen, row, kept_index):
                slot = kept_index % capacity
                best = _better(best, kept_index, compare_parts(chunk, row, ring, slot, index.verify))
            link = next_link(chains, ring, link)
            kept_index = kept_of(ring, link)
    return best, chains_cut >= index.verify.share


@kernel(callee=True)
def _best_of_chunk(
    chunk: Chunk, row: int, index: NearIndex, params: JudgeParams, work: Workspace, best: BestMatch
) -> BestMatch:
    """`best`, or a better match among the entries kept in this chunk.

    With buckets, only entries in the row's buckets are compared; without buckets, all entries.
    """
    kept, buckets = work.kept, index.buckets
    if not _has_buckets(index, params):
        for number in range(kept.counts[0] - 1, -1, -1):
            best = _meet(chunk, row, number, index, params, work, best)
        return best
    tables = buckets.bands + buckets.tables
    for probe in range(chunk.probes[row]):
        cell = cell_of_bucket(kept, bucket_of(chunk, row, np.int64(probe), buckets))
        if kept.keys[cell] == np.uint64(0):
            continue
        node = np.int64(kept.heads[cell])
        left = WAYS
        while node != NONE and left > 0:
            left -= 1
            number = node // tables
            node = np.int64(kept.next[node])
            other = kept.kept_rows[number]
            limit = index.candidates.limits[chunk.codes[row], chunk.codes[other]]
            differing = np.int64(popcount(chunk.signatures[row] ^ chunk.signatures[other]))
            if differing > limit or not first_meeting(work.scratch.seen, row, kept.kept_indices[number]):
                continue
            best = _meet(chunk, row, number, index, params, work, best)
    return best


@kernel(callee=True)
def _meet(
    chunk: Chunk,
    row: int,
    number: int,
    index: NearIndex,
    params: JudgeParams,
    work: Workspace,
    best: BestMatch,
) -> BestMatch:
    """`best`, or the row that was kept as number `number` of this chunk, if it is a better match."""
    ring, kept_index = index.ring, work.kept.kept_indices[number]
    if not in_window(ring, kept_index, params.near_messages, params.near_age):
        return best
    slot = kept_index % len(ring.positions)
    if ring.lengths[slot] <= 0:
        return best
    if params.near != NEAR_HAMMING:
        return _better(best, kept_index, compare(chunk, row, ring, slot, index.verify, work.scratch))
    # The tables of hamming contain only rows with a SimHash. This scan of the chunk must skip the others too.
    if not chunk.has_simhash[work.kept.kept_rows[number]]:
        return best
    return _better(best, kept_index, compare_bits(chunk, row, index, slot))


@kernel(callee=True)
def _better(best: BestMatch, kept_index: int, compared_as: tuple[int, int, int]) -> BestMatch:
    """`best` with this match included: a match is better if it is more similar, or as similar and older.

    compared_as: (status, matched, compared) as `compare` returns them
    """
    status, matched, compared = compared_as
    if status >> REASON_SHIFT:
        left, right = matched * best.apart_compared, best.apart_matched * compared
        older = best.apart_kept < 0 or kept_index < best.apart_kept
        if left > right or (left == right and older):
            return BestMatch(
                best.kept, best.matched, best.compared, best.status,
                np.int64(status >> REASON_SHIFT), matched, compared, kept_index,
            )  # fmt: skip
        return best
    left, right = matched * best.compared, best.matched * compared
    older = best.kept >= 0 and kept_index < best.kept
    if status != 0 and (left > right or (left == right and older)):
        return BestMatch(
            kept_index, matched, compared, status,
            best.reason, best.apart_matched, best.apart_compared, best.apart_kept,
        )  # fmt: skip
    return best


@kernel(callee=True)
def _still_visible(chunk: Chunk, row: int, kept_index: int, buckets: Buckets, kept: ChunkIndex) -> bool:
    """Whether an entry from before the chunk would be in one of the row's buckets if the rows kept in this
    chunk were already inserted."""
    for probe in range(chunk.probes[row]):
        start = bucket_of(chunk, row, np.int64(probe), buckets)
        cell = cell_of_bucket(kept, start)
        pushed = np.int64(0) if kept.keys[cell] == np.uint64(0) else np.int64(kept.sizes[cell])
        for way in range(WAYS - pushed):
            entry = buckets.entries[start + way]
            if entry == np.uint64(0):
                break
            if np.int64(entry & np.uint64(INDEX_MASK)) == kept_index & INDEX_MASK:
                return True
    return False
