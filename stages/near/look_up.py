"""The look-up: what one segment of the near window has for the rows of a chunk.

All segments go through it, the open one and the sealed ones. It reads nothing but its arguments, so what it
finds in a sealed segment, which never changes, is a function of the rows, the segment and the rules: it does
not matter who looks up, when, or how often. Messages that were forgotten are found too; phase two skips them.
"""

from __future__ import annotations

from twinsieve.stages.kernel import kernel
from twinsieve.stages.near.hamming import propose_bits
from twinsieve.stages.near.matches import NOT_PROPOSED, Copies, Matches
from twinsieve.stages.near.propose import NearIndex, is_within, propose
from twinsieve.stages.near.verify import Scratch, same_text
from twinsieve.stages.window.chunk import Chunk
from twinsieve.stages.window.tags import tag_find, tag_prefetch, tag_prefetch_run

_PREFETCH_ROWS = 8


@kernel
def look_up(
    low: int,
    high: int,
    chunk: Chunk,
    segment: NearIndex,
    scratch: Scratch,
    matches: Matches,
    copies: Copies,
    place: int,
    end: int,
) -> int:
    """Look rows low to high (exclusive) up in one segment; add what it has to `matches` and `copies`.

    Call it for the newest segment first, for a row has the newest copy. A row with a copy inside the exact
    window becomes NOT_PROPOSED, and its matches are not searched: it is nearly always an exact duplicate.
    segment: no argument beside `scratch`, `matches` and `copies` is written to
    copies: without rows if they are not wanted
    place, end: the room in `matches` for these rows
    returns: place of the next match. A row for which there was no room is NOT_PROPOSED
    """
    if len(copies.kept) > 0:
        _find_copies(low, high, chunk, segment, matches, copies)
    if segment.begin.kept >= segment.before:
        return place
    if segment.candidates.bits:
        return propose_bits(low, high, chunk, segment, scratch, matches, place, end)
    return propose(low, high, chunk, segment, scratch, matches, place, end)


@kernel(callee=True)
def _find_copies(
    low: int, high: int, chunk: Chunk, segment: NearIndex, matches: Matches, copies: Copies
) -> None:
    """The copies of the rows that have none yet."""
    ring, newest = segment.ring, segment.before - 1
    mask = len(ring.tag_slots) - 1
    for row in range(low - 2 * _PREFETCH_ROWS, high):
        soon, later = row + _PREFETCH_ROWS, row + 2 * _PREFETCH_ROWS
        if later < high:
            tag_prefetch(ring.tag_slots, mask, chunk.digests[later, 0])
        if low <= soon < high:
            tag_prefetch_run(ring.tag_slots, mask, ring.tags, chunk.digests[soon, 0])
        if row < low or copies.kept[row] >= 0:
            continue
        slot = tag_find(ring.tag_slots, mask, ring.tags, chunk.digests[row, 0])
        if slot < 0:
            continue
        kept_index, time = newest - ((newest - slot) % len(ring.positions)), ring.times[slot]
        copies.kept[row] = kept_index
        copies.positions[row] = ring.positions[slot]
        copies.times[row] = time
        copies.same[row] = not segment.candidates.compare_text or same_text(chunk, row, ring, slot)
        if chunk.probes[row] > 0 and is_within(segment.exact, kept_index, time):
            matches.heads[row] = NOT_PROPOSED
