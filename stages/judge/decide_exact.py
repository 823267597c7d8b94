"""The exact stage for one row: the near window first, then the messages that left it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import NO_TIME, Flag, Kind
from twinsieve.stages.exact.bloom_kernel import PLACE_LINES, bloom_oldest_hit
from twinsieve.stages.judge.params import EXACT_TRIE, ExactIndex, JudgeParams, Outcome, Workspace
from twinsieve.stages.kernel import kernel
from twinsieve.stages.near.matches import is_forgotten
from twinsieve.stages.near.verify import same_text
from twinsieve.stages.window.chunk import Chunk
from twinsieve.stages.window.ring import FIRST_TIME, KEPT, OLDEST, STREAM_TIME, RingColumns
from twinsieve.stages.window.tags import tag_find

_EXACT = int(Kind.EXACT)
_UNCONFIRMED = int(Flag.UNCONFIRMED)


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
    work: Workspace,
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
    copies = work.copies
    if slot >= 0 and kept_index >= first:
        inside = in_window(ring, kept_index, params.exact_messages, params.exact_age)
        if inside and not is_forgotten(work.forgotten, kept_index):
            # The look-up compared the text, but not with a message that was kept in this chunk.
            looked_up = kept_index == copies.kept[row]
            if not params.compare_text or (
                copies.same[row] if looked_up else same_text(chunk, row, ring, slot)
            ):
                outcome.kinds[row] = _EXACT
                outcome.leaders[row] = ring.positions[slot]
        return
    kept_index = copies.kept[row]
    if kept_index >= first:
        inside = is_inside(counters, kept_index, copies.times[row], params.exact_messages, params.exact_age)
        if inside and copies.same[row] and not is_forgotten(work.forgotten, kept_index):
            outcome.kinds[row] = _EXACT
            outcome.leaders[row] = copies.positions[row]
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
