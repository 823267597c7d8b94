"""`TagIndex`: which ring slot holds the newest kept message of a digest tag, or none.

An open-addressing table of ring slots. The tags themselves stay in the ring's column, so the table
costs 4 bytes a cell, and it never forgets: it holds exactly the tags of the messages in the ring.

>>> tags = np.array([7, 9, 7], dtype=np.uint64)
>>> index = TagIndex(3)
>>> for slot in range(3):
...     tag_insert(index.slots, index.mask, tags, tags[slot], slot)
>>> tag_find(index.slots, index.mask, tags, np.uint64(7))
2
>>> tag_remove(index.slots, index.mask, tags, np.uint64(7), 0)
False
>>> tag_find(index.slots, index.mask, tags, np.uint64(8))
-1
"""

from __future__ import annotations

import mmap

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.errors import UsageError
from twinsieve.stages.intrinsics import GOLDEN, prefetch
from twinsieve.stages.kernel import kernel
from twinsieve.stages.pages import zeros

_EMPTY = 0

_SMALL_SHARE = 8
"""The table moves when its entries, a small page each, would take this part of it."""

_MAX_CAPACITY = 2**30
"""Slots are int32, and the table is up to four times as long as the ring."""

_PREFETCHED = 8
"""Tags that a hint covers; few runs of entries in the table are longer."""

_HALF = np.uint64(32)


class TagIndex:
    """The table for a ring of `capacity` slots.

    slots: int32[cells], cells a power of two, at least 1.5 × capacity; the complement of a ring slot (~slot),
        or 0, so that a new table is zeros, and memory that is never written costs nothing
    mask: cells - 1
    raises: UsageError unless 1 <= capacity <= 2 ** 30
    """

    slots: NDArray[np.int32]
    mask: int

    def __init__(self, capacity: int) -> None:
        cells = _cells_for(capacity)
        self.slots = zeros(cells, np.int32, small_bytes=4 * cells)
        self.mask = cells - 1
        self._small = True

    @staticmethod
    def bytes_for(capacity: int) -> int:
        """Bytes the table of a ring of `capacity` slots takes."""
        return 4 * _cells_for(capacity)

    def reserve(self, count: int, more: int) -> bool:
        """Whether `slots` is another array now, of the same content: this many entries want large pages.

        count: entries in the table, at most; more: entries that may be added now
        """
        if not self._small or (count + more) * mmap.PAGESIZE * _SMALL_SHARE <= self.slots.nbytes:
            return False
        slots = zeros(len(self.slots), np.int32, small_bytes=0)
        if count:
            slots[:] = self.slots
        self.slots, self._small = slots, False
        return True

    def rebuild(self, tags: NDArray[np.uint64], oldest: int, count: int) -> None:
        """Hold the `count` ring slots that begin at `oldest`, in ring order; the table is empty before.

        tags: uint64[capacity], the ring's column; this is how a saved ring gets its table back
        """
        self.reserve(0, count)
        _insert_ring(self.slots, self.mask, tags, oldest, count)


def _cells_for(capacity: int) -> int:
    if not 1 <= capacity <= _MAX_CAPACITY:
        raise UsageError(f"ring capacity is {capacity}; a tag index serves 1..{_MAX_CAPACITY} slots")
    return 1 << (capacity + capacity // 2).bit_length()


@kernel(callee=True, inlined=True)
def _home(mask: int, tag: np.uint64) -> np.int64:
    # Both halves of the tag take part, so that tags with equal low (or high) bits still spread.
    return np.int64(((tag ^ (tag >> _HALF)) * GOLDEN) >> _HALF) & mask


@kernel(callee=True, inlined=True)
def _cell_of(slots: NDArray[np.int32], mask: int, tags: NDArray[np.uint64], tag: np.uint64) -> np.int64:
    """The cell of this tag: where its entry is, or where it would be put."""
    cell = _home(mask, tag)
    while True:
        slot = ~np.int64(slots[cell])
        if slot < 0 or tags[slot] == tag:
            return cell
        cell = (cell + 1) & mask


@kernel(inlined=True)
def tag_prefetch(slots: NDArray[np.int32], mask: int, tag: np.uint64) -> None:
    """Prefetch the table's line for this tag. A hint only."""
    prefetch(slots, _home(mask, tag))


@kernel(callee=True, inlined=True)
def tag_prefetch_run(slots: NDArray[np.int32], mask: int, tags: NDArray[np.uint64], tag: np.uint64) -> None:
    """Prefetch the tags that a search for this tag, or its removal, compares first. A hint only.

    Call `tag_prefetch` for the tag some rows earlier, because this reads the line of the table.
    """
    cell = _home(mask, tag)
    for _ in range(_PREFETCHED):
        slot = ~np.int64(slots[cell])
        if slot < 0:
            return
        prefetch(tags, slot)
        cell = (cell + 1) & mask


@kernel(inlined=True)
def tag_find(slots: NDArray[np.int32], mask: int, tags: NDArray[np.uint64], tag: np.uint64) -> np.int64:
    """The ring slot of the newest entry with this tag, or -1.

    slots, mask: a TagIndex; tags: uint64[capacity], the ring's column; nothing is changed
    """
    return ~np.int64(slots[_cell_of(slots, mask, tags, tag)])


@kernel(inlined=True)
def tag_insert(
    slots: NDArray[np.int32], mask: int, tags: NDArray[np.uint64], tag: np.uint64, slot: int
) -> None:
    """Let `tag_find` give `slot` for this tag; an older entry of the tag is replaced.

    The ring must hold the tag at `slot`, and what the slot held before must have been removed
    (`tag_remove` comes first, then the ring's column is overwritten).
    """
    slots[_cell_of(slots, mask, tags, tag)] = ~slot


@kernel(inlined=True)
def tag_remove(
    slots: NDArray[np.int32], mask: int, tags: NDArray[np.uint64], tag: np.uint64, slot: int
) -> bool:
    """Whether the slot was mapped; afterwards it is not.

    Call it before the ring overwrites `slot`. Where a newer entry with the same tag has taken the
    place, nothing happens: the newer one stays findable. Leaves no marker behind: later cells of
    the run move up.

    source: Knuth, The Art of Computer Programming 3, section 6.4, algorithm R
    """
    # By the slot, as a look at the tags of other cells on the way would cost a cache miss each.
    cell = _home(mask, tag)
    while ~np.int64(slots[cell]) != slot:
        if slots[cell] == _EMPTY:
            return False
        cell = (cell + 1) & mask
    hole = cell
    while True:
        cell = (cell + 1) & mask
        other = ~np.int64(slots[cell])
        if other < 0:
            break
        # An entry may fill the hole only if the hole is not before the cell where its search starts.
        if ((cell - _home(mask, tags[other])) & mask) >= ((cell - hole) & mask):
            slots[hole] = ~other
            hole = cell
    slots[hole] = _EMPTY
    return True


@kernel
def _insert_ring(
    slots: NDArray[np.int32], mask: int, tags: NDArray[np.uint64], oldest: int, count: int
) -> None:
    slot = oldest
    for _ in range(count):
        tag_insert(slots, mask, tags, tags[slot], slot)
        slot += 1
        if slot == len(tags):
            slot = 0
