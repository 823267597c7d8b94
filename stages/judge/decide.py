"""Phase two of judging a chunk: for each row in order the exact stage, then the near stage.

Only this module makes verdicts and changes the state. A row first advances stream time. Then it is compared
with the kept messages inside the windows; of a row that is ahead of stream time, they end at its own time.
Phase one has looked up its copies and matches among the messages kept before this chunk; messages that lead
no more are skipped here. A kept message is put into its buckets at once, so that the rows after it find it
there, and so that it pushes older entries out. The verdicts are the same as if each message was judged alone,
whatever the size of a chunk.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from twinsieve.stages.contract import NO_LEADER, NO_TIME, Flag, Kind
from twinsieve.stages.differ.rules import HAS_PLACE
from twinsieve.stages.exact.bloom_kernel import (
    CURSOR_LIVE,
    CURSOR_OLDEST,
    GENERATION_FIRST_TIME,
    GENERATION_NEWEST_TIME,
    PLACE_LINES,
    Bloom,
    bloom_expire,
    bloom_insert,
    bloom_prefetch,
    find_places,
)
from twinsieve.stages.intrinsics import first_lane
from twinsieve.stages.judge.decide_exact import bloom_time, in_window, is_inside, judge_exact
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
    Workspace,
)
from twinsieve.stages.kernel import ZERO, kernel
from twinsieve.stages.near.found_entries import FOUND_LINES, add_found, begin_row, keep_allowed
from twinsieve.stages.near.hamming import compare_bits
from twinsieve.stages.near.matches import NOT_PROPOSED, Matches, is_forgotten
from twinsieve.stages.near.propose import NearIndex
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
    VerifyParams,
    begin,
    compare,
    first_meeting,
    write_detail,
)
from twinsieve.stages.window.buckets import (
    INDEX_MASK,
    LOOK_UP_LINES,
    code_of,
    differing_bits,
    entries_of,
    entry_at,
    find_buckets,
    insert_found,
    may_be_newer,
    newer_entries,
    possible_entries,
    read_bucket,
)
from twinsieve.stages.window.chunk import Chunk
from twinsieve.stages.window.ring import FIRST_TIME, KEPT, OLDEST, STREAM_TIME, RingColumns, keep
from twinsieve.stages.window.tags import tag_prefetch, tag_prefetch_run

_UNIQUE, _NEAR = int(Kind.UNIQUE), int(Kind.NEAR)
_LATE, _NO_FEATURES, _CUT_SHORT = int(Flag.LATE), int(Flag.NO_FEATURES), int(Flag.CUT_SHORT)

_PREFETCH_ROWS = 8
_BUCKETS_AHEAD = 2
"""Rows by which the buckets of a row are prefetched before it is judged. They are dozens, as many lines as a
core fetches at a time; phase one had them in the cache before."""


class BestMatch(NamedTuple):
    """Results of comparing one row so far: the best match, and the most similar entry that a rule kept apart.

    kept, position: kept index of the best match, -1 for none, and its position
    matched, compared, status: its result of `compare`
    reason: number of the rule that kept the row apart from the latter, 0 if there is no such entry
    apart_matched, apart_compared, apart_kept, apart_position: result, kept index and position of that entry
    """

    kept: int
    position: int
    matched: int
    compared: int
    status: int
    reason: int
    apart_matched: int
    apart_compared: int
    apart_kept: int
    apart_position: int


_NOTHING_FOUND = BestMatch(ZERO - 1, ZERO, ZERO, ZERO + 1, ZERO, ZERO, ZERO, ZERO + 1, ZERO - 1, ZERO)


@kernel
def decide(
    chunk: Chunk,
    index: NearIndex,
    exact: ExactIndex,
    params: JudgeParams,
    work: Workspace,
    outcome: Outcome,
    first: int,
) -> int:
    """Write the verdicts on the rows from `first` on to `outcome`; add kept rows to ring and Bloom filter.

    index: of the open segment
    returns: number of rows, or the number of a row that needs matches which were not searched. Look it up,
        then call `decide` again from that row on
    """
    ring, bloom = index.ring, exact.bloom
    begin(work.scratch)
    rows = len(chunk.lengths)
    has_buckets = _has_buckets(index, params)
    for row in range(first - 2 * _PREFETCH_ROWS, rows):
        _prefetch(chunk, row, ring, bloom, params)
        ahead = row + _BUCKETS_AHEAD
        if has_buckets and first <= ahead < rows and not _is_copy(ahead, work.matches):
            find_buckets(chunk, ahead, index.buckets, work.scratch.look_ups)
        if row < first:
            continue
        looks_up = has_buckets and _is_copy(row, work.matches)
        late, ahead = _advance(chunk, row, ring, bloom, params)
        if params.exact == EXACT_BLOOM:
            # Also for rows with recorded verdicts, so that the state becomes the same as in the sieve that
            # judged them.
            bloom_expire(bloom, ring.counters[KEPT], bloom_time(ring))
        if outcome.kinds[row] >= UNJUDGED_NEAR:
            moment = _moment(ring, bloom)
            if ahead != NO_TIME:
                _go_ahead(ahead, ring, bloom, params)
            unjudged = outcome.kinds[row]
            judged_exact = params.exact != EXACT_NONE and unjudged == UNJUDGED
            outcome.kinds[row] = _UNIQUE
            outcome.flags[row] = 0
            outcome.leaders[row] = NO_LEADER
            outcome.reasons[row] = 0
            outcome.apart_from[row] = NO_LEADER
            outcome.matched[row] = 0
            outcome.compared[row] = 0
            if judged_exact:
                judge_exact(chunk, row, ring, exact, params, work, outcome)
            if outcome.kinds[row] == _UNIQUE and params.near != NEAR_NONE and chunk.probes[row] > 0:
                if params.near != NEAR_SIGNATURES and work.matches.heads[row] == NOT_PROPOSED:
                    # All that was done for the row so far can be done again.
                    outcome.kinds[row] = unjudged
                    _go_back(moment, ring, bloom)
                    return row
                if _has_features(chunk, row, index, params):
                    if looks_up:
                        looks_up = False
                        find_buckets(chunk, row, index.buckets, work.scratch.look_ups)
                    _judge_near(chunk, row, index, params, work, outcome)
                else:
                    outcome.flags[row] = _NO_FEATURES
            if ahead != NO_TIME:
                _go_back(moment, ring, bloom)
            if outcome.kinds[row] == _UNIQUE and late and params.late_judge:
                outcome.flags[row] |= _LATE
        if outcome.kinds[row] != _UNIQUE or outcome.flags[row] & _LATE or not params.keeps:
            continue
        kept_index = ring.counters[KEPT]
        keep(ring, chunk, row)
        if params.near == NEAR_SIGNATURES:
            link_parts(index.part_chains, ring, kept_index)
        work.kept.rows[work.kept.counts[0]] = row
        work.kept.counts[0] += 1
        if has_buckets:
            if looks_up:
                find_buckets(chunk, row, index.buckets, work.scratch.look_ups)
            probes, code = chunk.probes[row], chunk.codes[row]
            insert_found(row, probes, kept_index, code, index.buckets, work.scratch.look_ups)
        if params.exact == EXACT_BLOOM:
            bloom_insert(bloom, row & (PLACE_LINES - 1), kept_index, bloom_time(ring))
    return rows


@kernel(callee=True, inlined=True)
def _prefetch(chunk: Chunk, row: int, ring: RingColumns, bloom: Bloom, params: JudgeParams) -> None:
    """Prefetch in two steps what the exact stage will read for rows behind this one.

    Changes no verdict, but `find_places` must have seen a row before it is judged: so this begins at row
    -2 × _PREFETCH_ROWS, and PLACE_LINES is larger than _PREFETCH_ROWS.
    """
    mask, capacity, kept = len(ring.tag_slots) - 1, len(ring.positions), ring.counters[KEPT]
    is_full = kept - ring.counters[OLDEST] >= capacity
    near, far = row + _PREFETCH_ROWS, row + 2 * _PREFETCH_ROWS
    if 0 <= far < len(chunk.lengths):
        tag_prefetch(ring.tag_slots, mask, chunk.digests[far, 0])
        if is_full:
            tag_prefetch(ring.tag_slots, mask, ring.tags[(kept + 2 * _PREFETCH_ROWS) % capacity])
    if 0 <= near < len(chunk.lengths):
        tag_prefetch_run(ring.tag_slots, mask, ring.tags, chunk.digests[near, 0])
        if is_full:
            tag_prefetch_run(ring.tag_slots, mask, ring.tags, ring.tags[(kept + _PREFETCH_ROWS) % capacity])
        if params.exact == EXACT_BLOOM:
            line = near & (PLACE_LINES - 1)
            find_places(bloom, chunk.digests[near, 0], chunk.digests[near, 1], line)
            bloom_prefetch(bloom, line)


@kernel(callee=True, inlined=True)
def _has_features(chunk: Chunk, row: int, index: NearIndex, params: JudgeParams) -> bool:
    """Whether the row has what the method compares."""
    if params.near == NEAR_HAMMING:
        return bool(chunk.has_simhash[row])
    if params.near == NEAR_SIGNATURES:
        return bool(chunk.part_hashes[row, index.verify.share - 1] != np.uint64(0))
    return True


@kernel(callee=True, inlined=True)
def _has_buckets(index: NearIndex, params: JudgeParams) -> bool:
    return params.near == NEAR_TEXT and not index.candidates.scan


@kernel(callee=True, inlined=True)
def _is_copy(row: int, matches: Matches) -> bool:
    """Whether the look-up takes a row for an exact copy. Such rows are hardly ever kept."""
    return matches.heads[row] == NOT_PROPOSED


@kernel(callee=True, inlined=True)
def _advance(
    chunk: Chunk, row: int, ring: RingColumns, bloom: Bloom, params: JudgeParams
) -> tuple[bool, np.int64]:
    """Advance stream time by the time of a row, or to the stream time that the caller has decided.

    returns: whether the row is late; its time if the caller left it ahead of stream time, else NO_TIME
    """
    counters = ring.counters
    time = chunk.times[row]
    if time == NO_TIME:
        return False, np.int64(NO_TIME)
    arrival = chunk.arrivals[row]
    if arrival != NO_TIME:
        time = min(time, arrival + params.max_ahead)
    moved = time if chunk.streams[row] == NO_TIME else chunk.streams[row]
    if counters[STREAM_TIME] == NO_TIME:
        counters[STREAM_TIME] = moved
        counters[FIRST_TIME] = moved
        # This is the first message with a time. Messages kept before it count as kept at this time.
        for generation in range(len(bloom.generations)):
            bloom.generations[generation, GENERATION_FIRST_TIME] = moved
            bloom.generations[generation, GENERATION_NEWEST_TIME] = moved
    counters[STREAM_TIME] = max(counters[STREAM_TIME], moved)
    if time > counters[STREAM_TIME]:
        return True, np.int64(time)
    return counters[STREAM_TIME] - time > params.late_after, np.int64(NO_TIME)


class _Moment(NamedTuple):
    """Stream time, and which generations of the Bloom filter are live (`CURSOR_OLDEST`, `CURSOR_LIVE`)."""

    stream_time: int
    oldest: int
    live: int


@kernel(callee=True, inlined=True)
def _moment(ring: RingColumns, bloom: Bloom) -> _Moment:
    return _Moment(ring.counters[STREAM_TIME], bloom.cursor[CURSOR_OLDEST], bloom.cursor[CURSOR_LIVE])


@kernel(callee=True, inlined=True)
def _go_ahead(time: int, ring: RingColumns, bloom: Bloom, params: JudgeParams) -> None:
    """Let the windows end at the time of a row that is ahead of stream time, until `_go_back`.

    The row then matches nothing that is too old for its own time. Nothing may be kept meanwhile, because a
    new generation of the Bloom filter could take the place of one that expires only for this row.
    """
    ring.counters[STREAM_TIME] = time
    if params.exact == EXACT_BLOOM:
        bloom_expire(bloom, ring.counters[KEPT], time)


@kernel(callee=True, inlined=True)
def _go_back(moment: _Moment, ring: RingColumns, bloom: Bloom) -> None:
    ring.counters[STREAM_TIME] = moment.stream_time
    bloom.cursor[CURSOR_OLDEST], bloom.cursor[CURSOR_LIVE] = moment.oldest, moment.live


@kernel(callee=True, inlined=True)
def _judge_near(
    chunk: Chunk,
    row: int,
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
        best = _best_of_matches(chunk, row, index, params, work)
        best = _best_of_chunk(chunk, row, index, params, work, best)
    if best.kept < 0:
        outcome.reasons[row] = best.reason
        if best.reason:
            outcome.apart_from[row] = best.apart_position
            if outcome.details.shape[2] > 0 and HAS_PLACE[best.reason]:
                if best.apart_kept < index.begin.kept:
                    work.apart[row] = best.apart_kept
                else:
                    slot = best.apart_kept % len(index.ring.positions)
                    limits, detail = index.verify.limits, outcome.details[row]
                    write_detail(chunk, row, index.ring, slot, limits, work.scratch, detail)
        return
    outcome.kinds[row] = _NEAR
    outcome.flags[row] |= best.status & ESTIMATED
    outcome.leaders[row] = best.position
    outcome.matched[row] = best.matched
    outcome.compared[row] = best.compared


@kernel(callee=True, inlined=True)
def _best_of_matches(
    chunk: Chunk, row: int, index: NearIndex, params: JudgeParams, work: Workspace
) -> BestMatch:
    """The best match of a row among the entries kept before the chunk."""
    best = _NOTHING_FOUND
    matches = work.matches
    has_buckets = _has_buckets(index, params)
    number = np.int64(matches.heads[row])
    while number >= 0:
        kept_index, time = matches.kept[number], matches.times[number]
        # Nothing pushes an entry of a sealed segment out of its bucket.
        if (
            is_inside(index.ring.counters, kept_index, time, params.near_messages, params.near_age)
            and not is_forgotten(work.forgotten, kept_index)
            and (
                not has_buckets
                or kept_index < index.begin.kept
                or _still_found(chunk, row, kept_index, index, work.scratch)
            )
        ):
            compared_as = (
                np.int64(matches.status[number]),
                np.int64(matches.matched[number]),
                np.int64(matches.compared[number]),
            )
            best = _better(best, kept_index, matches.positions[number], compared_as)
        number = np.int64(matches.next[number])
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
            inside = inside and not is_forgotten(work.forgotten, kept_index)
            if inside and first_meeting(work.scratch.seen, row, kept_index):
                slot = kept_index % capacity
                compared_as = compare_parts(chunk, row, ring, slot, index.verify)
                best = _better(best, kept_index, ring.positions[slot], compared_as)
            link = next_link(chains, ring, link)
            kept_index = kept_of(ring, link)
    return best, chains_cut >= index.verify.share


@kernel(callee=True, inlined=True)
def _best_of_chunk(
    chunk: Chunk, row: int, index: NearIndex, params: JudgeParams, work: Workspace, best: BestMatch
) -> BestMatch:
    """`best`, or a better match among the entries kept in this chunk.

    With buckets, only entries in the row's buckets are compared; without buckets, all entries.
    """
    newest = index.ring.counters[KEPT] - 1
    if not _has_buckets(index, params):
        for kept_index in range(newest, index.before - 1, -1):
            best = _meet(chunk, row, kept_index, index, params, work, best)
        return best
    if newest < index.before:
        return best
    buckets, code, look_ups = index.buckets, chunk.codes[row], work.scratch.look_ups
    found, line = work.scratch.found, row & (FOUND_LINES - 1)
    looked_up = row & (LOOK_UP_LINES - 1)
    begin_row(found, line)
    for probe in range(chunk.probes[row]):
        start, wanted = look_ups.starts[looked_up, probe], look_ups.wanted[looked_up, probe]
        if not may_be_newer(buckets, start, index.before):
            continue
        if not read_bucket(buckets, start, look_ups.listed):
            continue
        ways = newer_entries(buckets, start, look_ups.listed, index.before, newest)
        if ways:
            ways &= possible_entries(buckets, start, look_ups.listed, wanted, index.candidates.reach, code)
        while ways:
            entry = entry_at(buckets, start, look_ups.listed, first_lane(ways))
            ways &= ways - np.uint64(1)
            kept_index = newest - ((newest - np.int64(entry & np.uint64(INDEX_MASK))) & INDEX_MASK)
            add_found(found, line, kept_index, code_of(entry), differing_bits(entry, wanted))
    for number in range(keep_allowed(found, line, index.candidates.limits, code)):
        best = _meet(chunk, row, found.kept[line, number], index, params, work, best)
    return best


@kernel(callee=True)
def _meet(
    chunk: Chunk,
    row: int,
    kept_index: int,
    index: NearIndex,
    params: JudgeParams,
    work: Workspace,
    best: BestMatch,
) -> BestMatch:
    """`best`, or the row of this chunk that was kept with this kept index, if it is a better match."""
    ring = index.ring
    if not in_window(ring, kept_index, params.near_messages, params.near_age):
        return best
    slot = kept_index % len(ring.positions)
    if ring.lengths[slot] <= 0:
        return best
    position = ring.positions[slot]
    if params.near != NEAR_HAMMING:
        compared_as = compare(chunk, row, ring, slot, index.verify, work.scratch)
        return _better(best, kept_index, position, compared_as)
    # The tables of hamming contain only rows with a SimHash. This scan of the chunk must skip the others too.
    if not chunk.has_simhash[work.kept.rows[kept_index - index.before]]:
        return best
    return _better(best, kept_index, position, compare_bits(chunk, row, index, slot))


@kernel(callee=True)
def _better(best: BestMatch, kept_index: int, position: int, compared_as: tuple[int, int, int]) -> BestMatch:
    """`best` with this match included: a match is better if it is more similar, or as similar and older.

    Of the entries that a rule keeps apart, the newest of the most alike counts: it is inside the window
    whenever the others are, so a segment need not name more than one (`near.answers`).
    compared_as: (status, matched, compared) as `compare` returns them
    """
    status, matched, compared = compared_as
    if status >> REASON_SHIFT:
        left, right = matched * best.apart_compared, best.apart_matched * compared
        if left > right or (left == right and kept_index > best.apart_kept):
            return BestMatch(
                best.kept, best.position, best.matched, best.compared, best.status,
                np.int64(status >> REASON_SHIFT), matched, compared, kept_index, position,
            )  # fmt: skip
        return best
    left, right = matched * best.compared, best.matched * compared
    older = best.kept >= 0 and kept_index < best.kept
    if status != 0 and (left > right or (left == right and older)):
        return BestMatch(
            kept_index, position, matched, compared, status,
            best.reason, best.apart_matched, best.apart_compared, best.apart_kept, best.apart_position,
        )  # fmt: skip
    return best


@kernel(callee=True)
def _still_found(chunk: Chunk, row: int, kept_index: int, index: NearIndex, scratch: Scratch) -> bool:
    """Whether the row's look-ups still find an entry from before the chunk, and as often as its signature
    needs: rows kept in the chunk may have pushed it out of some buckets."""
    if index.ring.counters[KEPT] == index.before:
        return True
    buckets, look_ups, line = index.buckets, scratch.look_ups, row & (LOOK_UP_LINES - 1)
    times, bits, code = ZERO, ZERO, ZERO
    for probe in range(chunk.probes[row]):
        start, wanted = look_ups.starts[line, probe], look_ups.wanted[line, probe]
        if not read_bucket(buckets, start, look_ups.listed):
            continue
        ways = entries_of(buckets, start, look_ups.listed, wanted, kept_index)
        if ways:
            entry = entry_at(buckets, start, look_ups.listed, first_lane(ways))
            times, bits, code = times + 1, differing_bits(entry, wanted), code_of(entry)
            if times > 1:
                break
    return times > 0 and bits <= index.candidates.limits[min(times, 2) - 1, chunk.codes[row], code]


@kernel
def write_sealed_detail(
    chunk: Chunk,
    row: int,
    ring: RingColumns,
    kept_index: int,
    rules: VerifyParams,
    scratch: Scratch,
    outcome: Outcome,
) -> None:
    """Write what differs between a row and the entry that a rule kept it apart from. ring: of the entry's
    segment"""
    slot = kept_index % len(ring.positions)
    write_detail(chunk, row, ring, slot, rules.limits, scratch, outcome.details[row])
