"""`TagIndex`: finds the ring slot of the newest kept message with a tag (the first half of a digest).

It is a hash table of ring slots with open addressing. The tags stay in the column of the ring, so the table
takes only 4 bytes a cell. It contains exactly the tags of all messages in the ring.

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

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.errors import UsageError
from twinsieve.stages.intrinsics import GOLDEN, prefetch
from twinsieve.stages.kernel import kernel
from twinsieve.stages.memory_pages import zeros

_EMPTY = 0

_FIRST_CELLS = 1 << 14
"""Most cells of a new table. It grows with its entries, because to clear the memory of a full one takes
milliseconds."""

_MAX_CAPACITY = 2**30
"""Greatest capacity of a ring: slots are int32, and the table has up to four times as many cells."""

_PREFETCHED = 8
"""Tags that a hint covers; few runs of entries in the table are longer."""

_HALF = np.uint64(32)


class TagIndex:
    """The table for a ring of `capacity` slots.

    slots: int32[cells], the complement of a ring slot (~slot), or 0 for an empty cell. So a new table is all
        zeros. cells: a power of two, at least 1.5 × the number of entries
    mask: cells - 1
    raises: UsageError unless 1 <= capacity <= 2 ** 30
    """

    slots: NDArray[np.int32]
    mask: int

    def __init__(self, capacity: int) -> None:
        self._use(min(_cells_for(capacity), _FIRST_CELLS))

    def _use(self, cells: int) -> None:
        self.slots = zeros(cells, np.int32, small_bytes=4 * _FIRST_CELLS)
        self.mask = cells - 1

    @staticmethod
    def bytes_for(capacity: int) -> int:
        """Bytes of the table for a full ring of `capacity` slots."""
        return 4 * _cells_for(capacity)

    def reserve(self, tags: NDArray[np.uint64], oldest: int, count: int, more: int) -> bool:
        """Make room for entries. returns: whether `slots` is another array now; its content is the same

        tags, oldest, count: as in `rebuild`, of the entries in the table; more: most entries to add
        """
        cells = _cells_for(max(1, min(len(tags), count + more)))
        if cells <= len(self.slots):
            return False
        self._fill(cells, tags, oldest, count)
        return True

    def rebuild(self, tags: NDArray[np.uint64], oldest: int, count: int) -> None:
        """Fill the empty table with `count` ring slots from slot `oldest` on, for a ring that was loaded.

        tags: uint64[capacity], the column of the ring
        """
        self._fill(max(len(self.slots), _cells_for(max(1, count))), tags, oldest, count)

    def _fill(self, cells: int, tags: NDArray[np.uint64], oldest: int, count: int) -> None:
        """Use a new table with these entries. tags, oldest, count: as in `rebuild`"""
        self._use(cells)
        _insert_ring(self.slots, self.mask, tags, oldest, count)


def _cells_for(capacity: int) -> int:
    if not 1 <= capacity <= _MAX_CAPACITY:
        raise UsageError(f"ring capacity is {capacity}; a tag index serves 1..{_MAX_CAPACITY} slots")
    return 1 << (capacity + capacity // 2).bit_length()


@kernel(callee=True, inlined=True)
def _home(mask: int, tag: np.uint64) -> np.int64:
    # Use both halves of the tag, so that tags with equal low (or high) bits still go to different cells.
    return np.int64(((tag ^ (tag >> _HALF)) * GOLDEN) >> _HALF) & mask


@kernel(callee=True, inlined=True)
def _cell_of(slots: NDArray[np.int32], mask: int, tags: NDArray[np.uint64], tag: np.uint64) -> np.int64:
    """The cell with the entry of this tag, or else the empty cell in which to insert it."""
    cell = _home(mask, tag)
    while True:
        slot = ~np.int64(slots[cell])
        if slot < 0 or tags[slot] == tag:
            return cell
        cell = (cell + 1) & mask


@kernel(inlined=True)
def tag_prefetch(slots: NDArray[np.int32], mask: int, tag: np.uint64) -> None:
    """Prefetch the cache line of the table in which this tag is searched. It changes nothing."""
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

    slots, mask: of a TagIndex; tags: uint64[capacity], the column of the ring; nothing is changed
    """
    return ~np.int64(slots[_cell_of(slots, mask, tags, tag)])


@kernel
def tag_find_all(
    slots: NDArray[np.int32], tags: NDArray[np.uint64], wanted: NDArray[np.uint64], found: NDArray[np.int64]
) -> None:
    """Write the ring slot of the newest entry with each of the tags `wanted` to `found`, or -1."""
    for i in range(len(wanted)):
        found[i] = tag_find(slots, len(slots) - 1, tags, wanted[i])


@kernel(inlined=True)
def tag_insert(
    slots: NDArray[np.int32], mask: int, tags: NDArray[np.uint64], tag: np.uint64, slot: int
) -> None:
    """Insert `slot` as the newest entry of this tag, in place of an older one.

    Before it, call `tag_remove` for the entry that was in the slot, then write the tag to the column of the
    ring at `slot`.
    """
    slots[_cell_of(slots, mask, tags, tag)] = ~slot


@kernel(inlined=True)
def tag_remove(
    slots: NDArray[np.int32], mask: int, tags: NDArray[np.uint64], tag: np.uint64, slot: int
) -> bool:
    """Remove the entry of `slot`. returns: whether the table had one

    Call it before the ring overwrites `slot`. If a newer entry has the same tag, the table holds the newer
    one, and nothing changes. The removal leaves no marker for a deleted cell; instead, entries in the cells
    after it move up.

    source: Knuth, The Art of Computer Programming 3, section 6.4, algorithm R
    """
    # Search for the slot and not for the tag: reading the tags of the cells on the way would cost a cache
    # miss for each cell.
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
        # An entry may move into the hole only if the hole is not before the cell where its search starts.
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
