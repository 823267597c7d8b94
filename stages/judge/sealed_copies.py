"""Exact copies of a chunk's rows in the sealed segments, looked up before the chunk is judged.

Sealed segments never change, so what is found is true for the whole chunk. Phase two then checks whether the
message is still inside the windows.
"""

from __future__ import annotations

from twinsieve.stages.judge.params import EXACT_NONE, JudgeParams, SealedCopies
from twinsieve.stages.kernel import kernel
from twinsieve.stages.near.matches import NO_MATCH, NOT_PROPOSED, Matches
from twinsieve.stages.near.propose import in_window, is_inside
from twinsieve.stages.near.verify import same_text
from twinsieve.stages.window.chunk import Chunk
from twinsieve.stages.window.ring import KEPT, RingColumns
from twinsieve.stages.window.tags import tag_find, tag_prefetch, tag_prefetch_run

_PREFETCH_ROWS = 8


@kernel(callee=True, inlined=True)
def _prefetch_tags(chunk: Chunk, row: int, low: int, high: int, ring: RingColumns) -> None:
    """Prefetch in two steps what `tag_find` will read for rows behind this one, of rows low to high
    (exclusive). The first row to call it for is low - 2 * _PREFETCH_ROWS."""
    mask = len(ring.tag_slots) - 1
    near, far = row + _PREFETCH_ROWS, row + 2 * _PREFETCH_ROWS
    if far < high:
        tag_prefetch(ring.tag_slots, mask, chunk.digests[far, 0])
    if low <= near < high:
        tag_prefetch_run(ring.tag_slots, mask, ring.tags, chunk.digests[near, 0])


@kernel
def find_copies(
    low: int,
    high: int,
    chunk: Chunk,
    ring: RingColumns,
    end: int,
    compare_text: int,
    copies: SealedCopies,
) -> None:
    """Look up rows low to high (exclusive) that have no copy yet. Call it for the newest segment first.

    ring, end: a sealed segment and the kept index behind its newest message
    compare_text: 1 if a hit is confirmed by its text
    """
    mask = len(ring.tag_slots) - 1
    for row in range(low - 2 * _PREFETCH_ROWS, high):
        _prefetch_tags(chunk, row, low, high, ring)
        if row < low or copies.kept[row] >= 0:
            continue
        slot = tag_find(ring.tag_slots, mask, ring.tags, chunk.digests[row, 0])
        if slot >= 0:
            copies.kept[row] = end - 1 - ((end - 1 - slot) % len(ring.positions))
            copies.positions[row] = ring.positions[slot]
            copies.times[row] = ring.times[slot]
            copies.same[row] = not compare_text or same_text(chunk, row, ring, slot)


@kernel
def mark_copies(
    low: int,
    high: int,
    chunk: Chunk,
    ring: RingColumns,
    params: JudgeParams,
    copies: SealedCopies,
    matches: Matches,
) -> None:
    """Begin the lists of matches of rows low to high (exclusive).

    A row with the digest tag of a message inside the exact window becomes NOT_PROPOSED: it is nearly always
    an exact copy, for which phase two needs no matches. ring: of the open segment
    """
    mask, newest = len(ring.tag_slots) - 1, ring.counters[KEPT] - 1
    for row in range(low - 2 * _PREFETCH_ROWS, high):
        _prefetch_tags(chunk, row, low, high, ring)
        if row < low:
            continue
        matches.heads[row] = NO_MATCH
        if params.exact == EXACT_NONE or chunk.probes[row] == 0:
            continue
        slot = tag_find(ring.tag_slots, mask, ring.tags, chunk.digests[row, 0])
        if slot >= 0:
            kept_index = newest - ((newest - slot) % len(ring.positions))
            is_copy = in_window(ring, kept_index, params.exact_messages, params.exact_age)
        elif len(copies.kept) > 0 and copies.kept[row] >= 0:
            is_copy = is_inside(
                ring.counters, copies.kept[row], copies.times[row], params.exact_messages, params.exact_age
            )
        else:
            is_copy = False
        if is_copy:
            matches.heads[row] = NOT_PROPOSED
