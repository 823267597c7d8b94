"""The exact stage for one row: the segments, the open one first, then the messages that left the window."""

from __future__ import annotations

import numpy as np

from twinsieve.stages.contract import NO_TIME, Flag, Kind
from twinsieve.stages.exact.bloom_kernel import PLACE_LINES, bloom_oldest_hit
from twinsieve.stages.judge.params import EXACT_TRIE, ExactIndex, JudgeParams, Outcome
from twinsieve.stages.kernel import kernel
from twinsieve.stages.near.propose import in_window, is_inside
from twinsieve.stages.near.verify import same_text
from twinsieve.stages.window.chunk import Chunk
from twinsieve.stages.window.ring import FIRST_TIME, KEPT, OLDEST, STREAM_TIME, RingColumns
from twinsieve.stages.window.tags import tag_find

_EXACT = int(Kind.EXACT)
_UNCONFIRMED = int(Flag.UNCONFIRMED)


@kernel(callee=True, inlined=True)
def bloom_time(ring: RingColumns) -> np.int64:
    """Stream time for the Bloom filter: 0 before the first message with a time."""
    time = ring.counters[STREAM_TIME]
    return np.int64(0) if time == NO_TIME else time


@kernel(callee=True, inlined=True)
def judge_exact(
    chunk: Chunk,
    row: int,
    ring: RingColumns,
    exact: ExactIndex,
    params: JudgeParams,
    outcome: Outcome,
) -> None:
    """Set the verdict exact in `outcome` if a kept message inside the exact window has the row's key.

    A hit in the near window has the same tag, and is confirmed by its text if that is stored. For messages
    that left this window, a hit of the trie or the Bloom filter decides. `decide` has expired Bloom
    generations before.
    """
    counters = ring.counters
    first = max(counters[KEPT] - params.near_messages, counters[OLDEST])
    slot = tag_find(ring.tag_slots, len(ring.tag_slots) - 1, ring.tags, chunk.digests[row, 0])
    newest = counters[KEPT] - 1
    kept_index = newest - ((newest - slot) % len(ring.positions))
    if slot >= 0 and kept_index >= first:
        inside = in_window(ring, kept_index, params.exact_messages, params.exact_age)
        if inside and (not params.compare_text or same_text(chunk, row, ring, slot)):
            outcome.kinds[row] = _EXACT
            outcome.leaders[row] = ring.positions[slot]
        return
    sealed = exact.sealed
    if len(sealed.kept) > 0 and sealed.kept[row] >= first:
        inside = is_inside(
            counters, sealed.kept[row], sealed.times[row], params.exact_messages, params.exact_age
        )
        if inside and sealed.same[row]:
            outcome.kinds[row] = _EXACT
            outcome.leaders[row] = sealed.positions[row]
        return
    if params.exact == EXACT_TRIE:
        trie_hits = exact.trie_hits
        if trie_hits.is_hit[row] and counters[KEPT] - trie_hits.kept[row] <= params.exact_messages:
            time = trie_hits.times[row]
            if time == NO_TIME:
                time = counters[FIRST_TIME]
            stream = counters[STREAM_TIME]
            if params.exact_age < 0 or stream == NO_TIME or stream - time <= params.exact_age:
                outcome.kinds[row] = _EXACT
                outcome.leaders[row] = trie_hits.leaders[row]
        return
    hit = bloom_oldest_hit(exact.bloom, row & (PLACE_LINES - 1))
    # If the window still holds all messages of the generation, it has no such message: the hit is false.
    if 0 <= hit < first:
        outcome.kinds[row] = _EXACT
        outcome.flags[row] = _UNCONFIRMED
