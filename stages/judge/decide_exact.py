"""The exact stage's word on one row: the ring first, then what is older than the ring."""

from __future__ import annotations

import numpy as np

from twinsieve.stages.contract import NO_TIME, Flag, Kind
from twinsieve.stages.exact.bloom_kernel import PLACE_LINES, bloom_oldest_hit
from twinsieve.stages.judge.params import EXACT_TRIE, ExactIndex, JudgeParams, Outcome
from twinsieve.stages.kernel import kernel
from twinsieve.stages.near.propose import in_window
from twinsieve.stages.near.verify import same_text
from twinsieve.stages.window.chunk import Chunk
from twinsieve.stages.window.ring import FIRST_TIME, KEPT, OLDEST, STREAM_TIME, RingColumns
from twinsieve.stages.window.tags import tag_find

_EXACT = int(Kind.EXACT)
_UNCONFIRMED = int(Flag.UNCONFIRMED)


@kernel(callee=True, inlined=True)
def bloom_time(ring: RingColumns) -> np.int64:
    """Stream time as the Bloom generations count it: 0 as long as none is known."""
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
    """Mark the row exact in `outcome` if a kept message inside the exact window has its key.

    A hit in the ring is confirmed by its tag, and by its text where that is stored; what is older than the
    ring is the trie's answer, or the Bloom filter's word. What has left the window has expired before.
    """
    counters = ring.counters
    capacity = len(ring.positions)
    slot = tag_find(ring.tag_slots, len(ring.tag_slots) - 1, ring.tags, chunk.digests[row, 0])
    if slot >= 0:
        newest = counters[KEPT] - 1
        kept_index = newest - ((newest - slot) % capacity)
        inside = in_window(ring, kept_index, params.exact_messages, params.exact_age)
        if inside and (not params.compare_text or same_text(chunk, row, ring, slot)):
            outcome.kinds[row] = _EXACT
            outcome.leaders[row] = ring.positions[slot]
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
    # A generation that the ring still holds whole would have been confirmed above: the hit is false.
    if 0 <= hit < max(counters[KEPT] - capacity, counters[OLDEST]):
        outcome.kinds[row] = _EXACT
        outcome.flags[row] = _UNCONFIRMED
