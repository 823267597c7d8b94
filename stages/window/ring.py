"""The ring of kept messages: records and columns with one row for each slot, and an arena for the texts.

Kept messages are numbered from 0: this number is the *kept index*. Message k is in slot k % capacity until
message k + capacity overwrites it. The record of a message is one cache line (`window.record`); kernels read
its fields as columns. The texts are in a circular arena of 16-bit units, in the same order. A
text with a character beyond the Basic Multilingual Plane takes two units for each character. After a text
follow its sketch, if it has one, then one bit a character for word starts, and then its tally, if the text is
not stored whole. The arena grows only between chunks, in place as long as it has not begun anew at its front.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import NO_TIME, SKETCH_FROM, STORED_LENGTH
from twinsieve.stages.intrinsics import flags_at
from twinsieve.stages.kernel import kernel
from twinsieve.stages.memory_pages import assign, zeros
from twinsieve.stages.window.chunk import Chunk
from twinsieve.stages.window.record import RECORD, record_type, words_of
from twinsieve.stages.window.tags import TagIndex, tag_find_all, tag_insert, tag_prefetch, tag_remove

GRANULE = 4
"""Units of a granule. A text begins at a whole granule, so 32-bit offsets are enough for 32 GiB of text."""

SKETCH_UNITS = 32
TALLY_UNITS = 4
NO_CARD = 0xFFFF

KEPT, HEAD, STREAM_TIME, FIRST_TIME, OLDEST = 0, 1, 2, 3, 4
"""Indices into `counters`. KEPT: messages kept so far. HEAD: granule at which the next text is stored.
STREAM_TIME: stream time in ms, or NO_TIME. FIRST_TIME: the first stream time; messages kept before it count
as kept at that time. OLDEST: the first kept index that the ring ever had (not 0 in a ring that was
enlarged)."""
_COUNTERS = 5

_SMALL_BYTES = 1 << 16
"""Bytes of each column in small pages (`stages/memory_pages.py`). Slots are filled in order, so a short run
writes only to these."""

_PREFETCHED_ROWS = 8
"""The cell of a row's tag is prefetched this many rows ahead."""

_MAX_TEXT_LENGTH = (2 * STORED_LENGTH + SKETCH_UNITS + STORED_LENGTH // 16 + TALLY_UNITS) // GRANULE


class RingUse(NamedTuple):
    """Which optional columns of the ring are in use."""

    text: bool
    ids: bool
    scopes: bool
    simhashes: bool
    second_simhashes: bool = False
    """messages have a SimHash of a second field"""
    parts: int = 0
    """part hashes of a message (method signatures)"""


class RingColumns(NamedTuple):
    """The columns of the ring, as kernels take them. N: capacity; a column that is not in use has a few rows.

    positions, times: int64[N]; offsets: uint32[N]; lengths: int32[N]; owns: uint16[N]; wides: uint8[N];
        signs: uint32[N]; bags: uint64[N, 4]: the fields of the records (`window.record`), one a record
    tags: uint64[N], first half of the digest; ids, scopes, simhashes, second_simhashes: uint64[N];
        part_hashes: uint64[N, H]
    texts: uint16[units], the arena; counters: int64[5], see KEPT; tag_slots: int32[cells], see `TagIndex`
    """

    positions: NDArray[np.int64]
    times: NDArray[np.int64]
    tags: NDArray[np.uint64]
    offsets: NDArray[np.uint32]
    lengths: NDArray[np.int32]
    owns: NDArray[np.uint16]
    wides: NDArray[np.uint8]
    signs: NDArray[np.uint32]
    bags: NDArray[np.uint64]
    ids: NDArray[np.uint64]
    scopes: NDArray[np.uint64]
    simhashes: NDArray[np.uint64]
    second_simhashes: NDArray[np.uint64]
    part_hashes: NDArray[np.uint64]
    texts: NDArray[np.uint16]
    counters: NDArray[np.int64]
    tag_slots: NDArray[np.int32]


_BY_SLOT = ("tags", "ids", "scopes", "simhashes", "second_simhashes", "part_hashes")
"""The columns that are arrays of their own, with one row for each slot."""

_FIELDS = {
    "positions": "position",
    "times": "time",
    "offsets": "offset",
    "lengths": "length",
    "owns": "own",
    "wides": "wide",
    "signs": "signs",
    "bags": "bag",
}
"""The columns that are fields of the records: field by column."""

_MIN_CAPACITY = 2
"""Numba has another array type for a column of a single record, so kernels would be compiled once more."""


def ring_capacity(window: int) -> int:
    """Slots of a ring for a window of this many messages."""
    return max(_MIN_CAPACITY, window)


def new_counters() -> NDArray[np.int64]:
    """The counters before the first message."""
    counters = np.zeros(_COUNTERS, np.int64)
    counters[STREAM_TIME] = counters[FIRST_TIME] = NO_TIME
    return counters


class Ring:
    """Owns the columns of one segment of the window, or of all of it.

    Kernels get `columns`, a new tuple after the arena or the tag table was replaced.
    window: how many of the newest kept messages count; capacity: slots, at least as many messages
    first: kept index of the first message that this ring got
    end: kept index behind its newest message if the ring is sealed; None as long as it gets messages
    """

    def __init__(
        self, window: int, messages: int, use: RingUse, counters: NDArray[np.int64], first: int = 0
    ) -> None:
        """An empty ring for `messages` messages. counters: shared by the rings of one window."""
        self.window = window
        self.capacity = capacity = ring_capacity(messages)
        self.use = use
        self.first = first
        self.end: int | None = None

        def column(dtype: Any, used: bool = True, width: int = 1) -> NDArray[Any]:
            return zeros((capacity if used else 1) * width, dtype, small_bytes=_SMALL_BYTES)

        self.records = column(record_type(use.text, use.simhashes or use.parts > 0))
        # Not `capacity` rows, by which kernels would take the columns to be in use.
        unused = np.zeros(_MIN_CAPACITY + (capacity == _MIN_CAPACITY), RECORD)
        used = frozenset(self.records.dtype.names or ())
        fields: dict[str, NDArray[Any]] = {
            name: (self.records if field in used else unused)[field] for name, field in _FIELDS.items()
        }
        self._tag_index = TagIndex(capacity)
        counters[HEAD] = 0
        self.columns = RingColumns(
            **fields,
            tags=column(np.uint64),
            ids=column(np.uint64, use.ids),
            scopes=column(np.uint64, use.scopes),
            simhashes=column(np.uint64, use.simhashes),
            second_simhashes=column(np.uint64, use.second_simhashes),
            part_hashes=column(np.uint64, use.parts > 0, max(1, use.parts)).reshape(-1, max(1, use.parts)),
            texts=np.zeros(4 * _MAX_TEXT_LENGTH * GRANULE, np.uint16),
            counters=counters,
            tag_slots=self._tag_index.slots,
        )
        # The arena is the front of this memory. Pages behind it are not assigned yet.
        self._reserved = self.columns.texts

    @property
    def kept(self) -> int:
        """Messages kept since the beginning, in all segments; of a sealed ring, until it was sealed."""
        return int(self.columns.counters[KEPT]) if self.end is None else self.end

    @property
    def oldest(self) -> int:
        """Kept index of the ring's oldest message that the window still holds; `kept` if there is none."""
        counters = self.columns.counters
        oldest = max(self.first, int(counters[OLDEST]), int(counters[KEPT]) - self.window)
        return min(oldest, self.kept)

    @property
    def size(self) -> int:
        """Number of messages of the ring that the window still holds."""
        return self.kept - self.oldest

    @property
    def bytes_used(self) -> int:
        """Bytes of records and columns, the arena included."""
        own = (column for name, column in self.columns._asdict().items() if name not in _FIELDS)
        return int(self.records.nbytes) + sum(int(column.nbytes) for column in own)

    def live_slots(self) -> NDArray[np.int64]:
        """int64[size]: slots of the messages that the window still holds, oldest first."""
        return np.arange(self.oldest, self.kept, dtype=np.int64) % self.capacity

    def held(self, column: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """The entries of a column for all messages of a sealed ring, also for those behind the window:
        those up to its last slot, and those behind its front."""
        low = self.first % self.capacity
        high = low + self.kept - self.first
        return column[low:high], column[: max(0, high - self.capacity)]

    def find(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64[m]: kept indices of the messages inside the window that have one of these positions."""
        return np.flatnonzero(np.isin(self.columns.positions[self.live_slots()], positions)) + self.oldest

    def leaders_of(self, tags: NDArray[np.uint64]) -> dict[int, int]:
        """By tag: position of its newest entry, for those of `tags` that are in the ring."""
        columns, newest = self.columns, self.kept - 1
        slots = np.full(len(tags), -1, np.int64)
        tag_find_all(columns.tag_slots, columns.tags, tags, slots)
        kept_indices = newest - (newest - slots) % self.capacity
        held = (slots >= 0) & (kept_indices >= self.oldest)
        return dict(zip(tags[held].tolist(), columns.positions[slots[held]].tolist(), strict=True))

    def seal(self) -> None:
        """Declare that the ring gets no more messages."""
        self.end = self.kept

    def trim(self) -> None:
        """Give back the room behind the texts, of a ring that never dropped a message."""
        units = int(self.columns.counters[HEAD]) * GRANULE
        # A view: pages that were never written take no memory.
        self.columns = self.columns._replace(texts=self.columns.texts[:units])

    def reserve(self, characters: int, messages: int) -> None:
        """Make room for `messages` more entries whose texts have `characters` characters together."""
        size = self.size
        if self._tag_index.reserve(self.columns.tags, self.oldest % self.capacity, size, messages):
            self.columns = self.columns._replace(tag_slots=self._tag_index.slots)
        if not self.use.text:
            return
        units = characters * 2 + characters // 16 + messages * (SKETCH_UNITS + 1 + TALLY_UNITS + GRANULE)
        needed = units // GRANULE + 2 * _MAX_TEXT_LENGTH
        granules = len(self.columns.texts) // GRANULE
        head = int(self.columns.counters[HEAD])
        tail = int(self.columns.offsets[self.oldest % self.capacity]) if size else head
        live = (head - tail) % granules
        if granules - live <= needed:
            self._grow(granules + max(granules // 16, needed), tail, live, size + messages)

    def expect(self, messages: int) -> None:
        """Make room in advance for this many more messages whose texts are as long as those in the ring."""
        if not (self.use.text and self.size and messages > 0):
            return
        size = len(self.columns.texts) // GRANULE
        tail = int(self.columns.offsets[self.oldest % self.capacity])
        live = (int(self.columns.counters[HEAD]) - tail) % size
        expected = live + live * messages // self.size
        if expected > size:
            self._grow(expected + expected // 64, tail, live, self.size + messages)

    def assign(self, messages: int) -> None:
        """Have the system assign the memory of this many more messages now, but not that of their texts."""
        # A ring that has begun anew at its front has all its memory.
        low = self.first % self.capacity + self.kept - self.first
        for column in (self.records, *(getattr(self.columns, name) for name in _BY_SLOT)):
            if len(column) == self.capacity:
                assign(column[low : low + messages])

    def _grow(self, new_size: int, tail: int, live: int, messages: int) -> None:
        """Give the arena a new size: in place, or moved to memory in which it will have room from now on.

        new_size, tail, live: in granules; the texts begin at `tail` and take `live`
        messages: how many have room in the new size
        """
        units = new_size * GRANULE
        begun_anew = tail + live > len(self.columns.texts) // GRANULE
        if begun_anew or units > len(self._reserved):
            self._move_texts(self._reserve_texts(units, messages), tail, live)
        self.columns = self.columns._replace(texts=self._reserved[:units])

    def _reserve_texts(self, units: int, messages: int) -> NDArray[np.uint16]:
        """Memory for texts of `units`, and for a full ring of such texts if the system grants that.

        messages: how many have room in `units`
        """
        most = min(self.capacity * _MAX_TEXT_LENGTH * GRANULE, units * self.capacity // max(1, messages))
        try:
            return zeros(max(units, most + most // 8), np.uint16, small_bytes=_SMALL_BYTES)
        except MemoryError:
            return zeros(units, np.uint16, small_bytes=_SMALL_BYTES)

    def _move_texts(self, texts: NDArray[np.uint16], tail: int, live: int) -> None:
        """Move the stored texts, in their order, to the front of other memory. tail, live: as in `_grow`"""
        old = self.columns.texts
        size = len(old) // GRANULE
        first = min(live, size - tail)
        texts[: first * GRANULE] = old[tail * GRANULE : (tail + first) * GRANULE]
        texts[first * GRANULE : live * GRANULE] = old[: (live - first) * GRANULE]
        slots = self.live_slots()
        offsets = self.columns.offsets
        offsets[slots] = (offsets[slots].astype(np.int64) - tail) % size
        self.columns.counters[HEAD] = live
        self._reserved = texts

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All memory of a sealed ring by name, not copied."""
        columns = {name: getattr(self.columns, name) for name in (*_BY_SLOT, "texts", "tag_slots")}
        return columns | {"records": self.records}

    def map(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Use those of these arrays of a sealed ring that it has, in place of its own ones."""
        own = {name: arrays[name] for name in (*_BY_SLOT, "texts", "tag_slots") if name in arrays}
        self.records = arrays.get("records", self.records)
        fields = {name: self.records[field] for name, field in _FIELDS.items()}
        self.columns = self.columns._replace(**fields, **own)
        self._reserved = self.columns.texts
        self._tag_index.slots = self.columns.tag_slots

    def to_sections(self) -> dict[str, NDArray[Any]]:
        """What a saved ring holds, by name, without the counters. The tag table is rebuilt at a load."""
        sections = {name: getattr(self.columns, name) for name in (*_BY_SLOT, "texts")}
        return sections | {"records": self.records}

    def restore(self, sections: dict[str, NDArray[Any]]) -> None:
        """Fill the empty ring from a saved one of its size with the same columns in use; the counters come
        first."""
        records = sections["records"].view(self.records.dtype)
        low = self.first % self.capacity
        # A ring that has begun anew at its front has a message in every slot.
        slots = slice(low, low + self.kept - self.first)
        if slots.stop > self.capacity:
            slots = slice(0, self.capacity)
        words_of(self.records)[slots] = words_of(records)[slots]
        for name in _BY_SLOT:
            column = getattr(self.columns, name)
            if len(column) == self.capacity:
                column[slots] = sections[name][slots]
        self.columns = self.columns._replace(texts=sections["texts"])
        self._reserved = self.columns.texts
        self._tag_index.rebuild(self.columns.tags, self.oldest % self.capacity, self.size)
        self.columns = self.columns._replace(tag_slots=self._tag_index.slots)


@kernel(callee=True, inlined=True)
def keep(ring: RingColumns, chunk: Chunk, row: int) -> int:
    """Store a row of a chunk as the newest entry of the ring. returns: its slot

    The time of the entry is stream time. `Ring.reserve` must have made room for its text.
    """
    counters = ring.counters
    kept = counters[KEPT]
    capacity = len(ring.positions)
    slot = kept % capacity
    mask = len(ring.tag_slots) - 1
    if kept - counters[OLDEST] >= capacity:
        tag_remove(ring.tag_slots, mask, ring.tags, ring.tags[slot], slot)
    ring.positions[slot] = chunk.positions[row]
    ring.times[slot] = counters[STREAM_TIME]
    ring.tags[slot] = chunk.digests[row, 0]
    tag_insert(ring.tag_slots, mask, ring.tags, ring.tags[slot], slot)
    if len(ring.lengths) == capacity:
        ring.lengths[slot] = chunk.lengths[row]
    if len(ring.ids) == capacity:
        ring.ids[slot] = chunk.ids[row]
    if len(ring.scopes) == capacity:
        ring.scopes[slot] = chunk.scopes[row]
    if len(ring.simhashes) == capacity:
        ring.simhashes[slot] = chunk.simhashes[row, 0]
    if len(ring.second_simhashes) == capacity:
        ring.second_simhashes[slot] = chunk.simhashes[row, 1]
    if len(ring.part_hashes) == capacity:
        for j in range(min(ring.part_hashes.shape[1], chunk.part_hashes.shape[1])):
            ring.part_hashes[slot, j] = chunk.part_hashes[row, j]
    if len(ring.offsets) == capacity:
        ring.owns[slot] = NO_CARD if chunk.owns[row] < 0 else min(chunk.owns[row], STORED_LENGTH)
        for j in range(4):
            ring.bags[slot, j] = chunk.bags[row, j]
        _store_text(ring, chunk, row, slot)
    counters[KEPT] = kept + 1
    return slot


@kernel
def keep_all(ring: RingColumns, chunk: Chunk) -> None:
    """Keep all rows of a chunk; the times of the chunk are stream times. `Ring.reserve` comes before it."""
    mask = len(ring.tag_slots) - 1
    for row in range(len(chunk.lengths)):
        ahead = row + _PREFETCHED_ROWS
        if ahead < len(chunk.lengths):
            tag_prefetch(ring.tag_slots, mask, chunk.digests[ahead, 0])
        ring.counters[STREAM_TIME] = chunk.times[row]
        keep(ring, chunk, row)


@kernel(callee=True, inlined=True)
def pack_flags(flags: NDArray[np.uint8], bits: NDArray[np.uint16]) -> None:
    """Write n flags as bits: flag j is bit j & 15 of bits[j >> 4]. bits: uint16[(n + 15) // 16]"""
    whole = len(flags) >> 4
    for unit in range(whole):
        bits[unit] = flags_at(flags, 16 * unit)
    if whole < len(bits):
        rest = np.uint16(0)
        for j in range(16 * whole, len(flags)):
            rest |= np.uint16(flags[j] != 0) << np.uint16(j & 15)
        bits[whole] = rest


@kernel(callee=True)
def _store_text(ring: RingColumns, chunk: Chunk, row: int, slot: int) -> None:
    start = chunk.starts[row]
    stored = min(chunk.starts[row + 1] - start, STORED_LENGTH)
    # Use slices, because the compiler makes vector instructions of loops over them.
    chars = chunk.chars[start : start + stored]
    above = np.uint32(0)
    for j in range(stored):
        above |= chars[j]
    wide = above > np.uint32(0xFFFF)
    sketch = chunk.sketch_rows[row] if chunk.lengths[row] >= SKETCH_FROM else -1
    units = stored * 2 if wide else stored
    words = units + SKETCH_UNITS if sketch >= 0 else units
    tally = words + ((stored + 15) >> 4)
    total = tally + TALLY_UNITS if chunk.lengths[row] > STORED_LENGTH else tally
    granules = (total + GRANULE - 1) // GRANULE
    head = ring.counters[HEAD]
    if (head + granules) * GRANULE > len(ring.texts):
        head = 0
    ring.counters[HEAD] = head + granules
    ring.offsets[slot] = head
    ring.wides[slot] = wide
    ring.signs[slot] = chunk.tallies[row] if chunk.lengths[row] <= STORED_LENGTH else 0
    unit = head * GRANULE
    texts = ring.texts
    written = texts[unit : unit + units]
    if wide:
        for j in range(stored):
            written[2 * j] = chars[j] & np.uint32(0xFFFF)
            written[2 * j + 1] = chars[j] >> np.uint32(16)
    else:
        for j in range(stored):
            written[j] = chars[j]
    if sketch >= 0:
        for j in range(SKETCH_UNITS):
            low = np.uint16(chunk.sketches[sketch, 2 * j])
            texts[unit + units + j] = low | (np.uint16(chunk.sketches[sketch, 2 * j + 1]) << np.uint16(8))
    pack_flags(chunk.word_starts[start : start + stored], texts[unit + words : unit + tally])
    for j in range(total - tally):
        texts[unit + tally + j] = np.uint16((chunk.tallies[row] >> np.uint64(16 * j)) & np.uint64(0xFFFF))


@kernel(callee=True)
def word_start_at(ring: RingColumns, slot: int) -> int:
    """Index into `texts` of the word starts of a stored text.

    From there on, character j has bit j & 15 of unit j >> 4.
    """
    stored = min(np.int64(abs(ring.lengths[slot])), STORED_LENGTH)
    unit = np.int64(ring.offsets[slot]) * GRANULE + (stored * 2 if ring.wides[slot] else stored)
    return unit + SKETCH_UNITS if ring.lengths[slot] >= SKETCH_FROM else unit


@kernel(callee=True)
def tally_of(ring: RingColumns, slot: int) -> np.uint64:
    """The tally of an entry. Its body must be longer than STORED_LENGTH."""
    unit = word_start_at(ring, slot) + STORED_LENGTH // 16
    tally = np.uint64(0)
    for j in range(TALLY_UNITS):
        tally |= np.uint64(ring.texts[unit + j]) << np.uint64(16 * j)
    return tally
