"""The kept messages of the near window, as one open segment and sealed ones.

A window of at most `segment` messages is one ring that wraps. A larger window is cut into segments of that
size: segment n holds the kept messages [n * segment, (n + 1) * segment). The open one gets new messages; when
it is full it is sealed and never changes again. A sealed segment goes as a whole when the window has passed
it. Entries of its buckets number the messages within 24 bits, so the window may be larger than that.

After a load with a window of another size, segments in files may have other ranges.

Somebody else can write a sealed segment to a file and give its arrays back as maps of that file
(`Segments.seal_into`). The segment then uses these, and its own memory is free. Only what each look-up reads
(`HOT`) stays in memory, as long as there is enough (`NearConfig.memory`): memory has large pages, and maps of
files have not. A segment that somebody else looks rows up in (`Segments.answered`) needs none of it.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from functools import cached_property
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import MAX_RING, MAX_SEGMENT, NO_TIME, BandLayout
from twinsieve.stages.errors import NEW_STATE, DamagedError, StateError
from twinsieve.stages.memory_pages import zeros
from twinsieve.stages.window.bucket_table import BucketTable
from twinsieve.stages.window.buckets import entry_count
from twinsieve.stages.window.pushed_out import PushedOut
from twinsieve.stages.window.ring import (
    FIRST_TIME,
    HEAD,
    KEPT,
    OLDEST,
    STREAM_TIME,
    Ring,
    RingUse,
    new_counters,
    ring_capacity,
)
from twinsieve.stages.window.soundness import (
    check_arena,
    check_counters,
    check_like,
    check_range,
    check_slots,
    check_texts,
)

_ID_BYTES = 16
_OPEN = -1
"""Value of a segment's end in a saved state: it was open."""


_ASSIGNED = 1 << 16
"""Messages whose memory is assigned in advance. If fewer are kept, some 30 MB are taken in vain at most."""

Arrays = dict[str, NDArray[Any]]
"""The memory of a sealed segment by name."""

HOT = frozenset({"buckets", "tag_slots", "tags"})
"""The arrays of a segment that every look-up reads. The others are read for candidates only."""


class SealedSegment(NamedTuple):
    """A sealed segment as another process could read it.

    first, end: its kept indices, `end` exclusive; messages: how many it was made for
    arrays: records, columns, texts, tags and buckets, not copied; they never change
    hot_stay: whether the sieve goes on to use its own memory for the hot arrays, as long as that is enough
    """

    first: int
    end: int
    messages: int
    arrays: Arrays
    hot_stay: bool = False


class SegmentId(NamedTuple):
    """Says which sealed segment it is, whoever built it: equal messages in equal order.

    first, end: its kept indices, `end` exclusive; messages: how many it was made for
    digest: 16 bytes, of the positions and times of its messages
    """

    first: int
    end: int
    messages: int
    digest: bytes


IntoFile = Callable[[SealedSegment], Future[Arrays] | None]
"""Begins to write a sealed segment to a file. Result: its arrays as private maps of the file; None: not now,
ask again."""


class InMemory(NamedTuple):
    """The part of a near window that is in memory because it is in no file.

    sealed: number of its sealed segments; bytes: of these and of the open one
    next_bytes: what one more segment takes; room: most messages that are kept before that one begins
    """

    sealed: int
    bytes: int
    next_bytes: int
    room: int


class Segment:
    """A ring and the buckets that find its messages.

    messages: how many it was made for; the number of buckets depends on it
    positions: int64[2], smallest and greatest position of its messages
    is_mapped: it uses a file; came_from_file: it never was in memory alone, and has all messages of that file
    """

    def __init__(self, ring: Ring, table: BucketTable, messages: int) -> None:
        self.ring = ring
        self.table = table
        self.messages = messages
        self.positions = np.array([np.iinfo(np.int64).max, np.iinfo(np.int64).min])
        self.pushed_out = PushedOut()
        self.is_mapped = False
        self.came_from_file = False
        self._mapping: Future[Arrays] | None = None
        self._spare: Arrays = {}
        """Arrays of its file in place of which it uses memory."""

    @property
    def is_sealed(self) -> bool:
        """Whether it gets no more messages."""
        return self.ring.end is not None

    @cached_property
    def id(self) -> SegmentId:
        """Which segment it is, once it is sealed. Reads the positions and times of all its messages."""
        ring = self.ring
        first = self.first
        slots = np.arange(first, ring.kept, dtype=np.int64) % ring.capacity
        digest = blake2b(digest_size=_ID_BYTES, person=b"twinsieve-part")
        for column in (ring.columns.positions, ring.columns.times):
            digest.update(column[slots].astype("<i8", copy=False).tobytes())
        return SegmentId(first, ring.kept, self.messages, digest.digest())

    @property
    def first(self) -> int:
        """Kept index of its first message. A window that began inside the segment, or was enlarged, does not
        hold those before. One that came from a file begins with that file, wherever the window begins: so all
        processes that use the file call the segment the same."""
        if self.came_from_file:
            return self.ring.first
        return max(self.ring.first, int(self.ring.columns.counters[OLDEST]))

    def note_positions(self, positions: NDArray[np.int64]) -> None:
        """Note the positions of messages that the segment got."""
        if len(positions):
            low, high = self.positions
            self.positions[:] = min(low, positions.min()), max(high, positions.max())

    def may_hold(self, positions: NDArray[np.int64]) -> bool:
        """Whether the segment can hold a message with one of these positions."""
        low, high = self.positions
        return bool(((positions >= low) & (positions <= high)).any())

    def into_file(self, write: IntoFile, *, hot_stay: bool) -> bool:
        """Begin to write this sealed segment to a file, unless it lies in one or is being written. returns:
        False if it is not taken now

        hot_stay: as in `SealedSegment`
        """
        if self.is_mapped or self._mapping is not None:
            return True
        ring = self.ring
        buckets = self.table.buckets
        arrays = ring.arrays() | {
            "buckets": buckets.entries,
            "keyed": np.array([buckets.keyed]),
            "positions": self.positions,
        }
        self._mapping = write(SealedSegment(self.first, ring.kept, self.messages, arrays, hot_stay))
        return self._mapping is not None

    def give_up_file(self) -> None:
        """The segment is dropped: do not write it if that has not begun."""
        if self._mapping is not None:
            self._mapping.cancel()

    def wait_for_file(self) -> None:
        """Wait until the file is written, or cannot be, if one is being written."""
        if self._mapping is not None:
            wait([self._mapping])

    def use_file(self) -> None:
        """Use the file from now on, if it is written. If it cannot be written, the segment stays in memory;
        who writes it reports that."""
        mapping = self._mapping
        if mapping is not None and mapping.done():
            self._mapping = None
            if not mapping.cancelled() and mapping.exception() is None:
                self.map(mapping.result())

    def map(self, arrays: Arrays) -> None:
        """Use these arrays, which must be those of `into_file`, but go on to use own memory for the hot ones
        until `give_up_memory`."""
        self.positions = arrays["positions"]
        self.table.set_keyed(int(arrays["keyed"][0]))
        self._use({name: array for name, array in arrays.items() if name not in HOT})
        self._spare = {name: arrays[name] for name in HOT}
        self.is_mapped = True

    def check(self, arrays: Arrays) -> None:
        """Check arrays of a file before `map`: kernels take them unchecked. raises: DamagedError

        Each is read once, but for buckets, tags and hashes, of which any value is harmless
        """
        own = self.ring.arrays() | {"buckets": np.broadcast_to(np.uint64(0), self.table.count)}
        own |= {"keyed": np.zeros(1, np.int64), "positions": self.positions}
        if own.keys() != arrays.keys():
            raise DamagedError(f"it has the arrays {sorted(arrays)}")
        for name in own.keys() - {"texts", "tag_slots"}:
            check_like(name, arrays[name], own[name])
        if arrays["keyed"][0] not in (0, 1):
            raise DamagedError(f"keyed is {arrays['keyed'][0]}")
        check_slots(arrays["tag_slots"], self.ring.capacity)
        records, texts = arrays["records"], arrays["texts"]
        check_texts(records, texts)
        low, high = arrays["positions"]
        for part in self.ring.held(records["position"]):
            if part.min(initial=high) < low or part.max(initial=low) > high:
                raise DamagedError("positions of kept messages are outside of their range")

    def give_up_memory(self) -> None:
        """Use the file for the hot arrays too."""
        spare, self._spare = self._spare, {}
        self._use(spare)

    def use_memory(self) -> None:
        """Use copies of the hot arrays, in large pages of memory."""
        mapped = {"buckets": self.table.buckets.entries, **self.ring.arrays()}
        spare = {name: mapped[name] for name in HOT}
        for name, array in spare.items():
            copy = zeros(len(array), array.dtype, small_bytes=0)
            copy[:] = array
            self._use({name: copy})
        self._spare = spare

    def _use(self, arrays: Arrays) -> None:
        self.ring.map(arrays)
        if "buckets" in arrays:
            self.table.map(arrays["buckets"])

    @property
    def bytes_used(self) -> int:
        """Bytes of ring and buckets, in memory and in a file."""
        return self.ring.bytes_used + self.table.bytes_used

    @property
    def bytes_hot(self) -> int:
        """Bytes of the arrays that look-ups read."""
        ring = self.ring.columns
        return int(ring.tags.nbytes + ring.tag_slots.nbytes) + self.table.bytes_used

    @property
    def holds_memory(self) -> bool:
        """Whether the hot arrays are in memory although the segment lies in a file."""
        return bool(self._spare)

    @property
    def bytes_in_memory(self) -> int:
        """Those of `bytes_used` that are memory and no map of a file."""
        if not self.is_mapped:
            return self.bytes_used
        return self.bytes_hot if self.holds_memory else 0

    @property
    def newest_time(self) -> int:
        """When its newest message was kept, in ms, or NO_TIME. The segment must not be empty."""
        return int(self.ring.columns.times[(self.ring.kept - 1) % self.ring.capacity])

    def count_pushed_out(self, bands: int) -> bool:
        """Read the next bands (`window.pushed_out`). returns: whether the count is whole"""
        ring = self.ring
        return self.pushed_out.count(ring.columns, self.table.buckets, bands, ring.oldest, ring.kept)


class SegmentShape:
    """What all segments of a window have in common.

    window: messages of the near window; segment: most messages of a segment, for texts
    memory: as in `NearConfig`; use: columns of the rings
    indexed: whether messages are found by buckets; layout, load: of these buckets
    """

    def __init__(
        self,
        window: int,
        segment: int,
        memory: int,
        use: RingUse,
        *,
        indexed: bool,
        layout: BandLayout,
        load: float,
    ) -> None:
        self.window = window
        self.memory = memory
        self.is_cut = use.text and window > segment
        self.messages = segment if self.is_cut else window
        self.use = use
        self._indexed = indexed
        self._layout = layout
        self._load = load

    def new(self, counters: NDArray[np.int64], first: int, messages: int) -> Segment:
        """An empty segment for `messages` messages, the first of which has the kept index `first`."""
        ring = Ring(self.window, messages, self.use, counters, first)
        return Segment(
            ring, BucketTable(self._layout, messages if self._indexed else 1, self._load), messages
        )

    def mapped(self, counters: NDArray[np.int64], sealed: SealedSegment) -> Segment:
        """A sealed segment that uses these arrays of a file. counters: as for `new`. raises: DamagedError"""
        if {type(number) for number in sealed[:3]} != {int} or sealed.first == sealed.end:
            raise DamagedError(f"a segment for {sealed.messages!r} has {sealed.first!r} to {sealed.end!r}")
        check_range(sealed.first, sealed.end, sealed.messages, MAX_SEGMENT)
        # Before memory is taken: the file has to be as large as it says.
        if len(sealed.arrays.get("records", ())) != ring_capacity(sealed.messages):
            raise DamagedError(f"a segment for {sealed.messages} messages has other records")
        segment = self.new(counters, sealed.first, sealed.messages)
        segment.ring.end = sealed.end
        segment.came_from_file = True
        segment.check(sealed.arrays)
        segment.map(sealed.arrays)
        segment.give_up_memory()
        return segment

    def entries(self, messages: int) -> int:
        """Number of entries of the buckets of a segment for this many messages."""
        return entry_count(self._layout, messages if self._indexed else 1, self._load)


class Segments:
    """The segments of one near window, oldest first; the last one is open."""

    def __init__(self, shape: SegmentShape) -> None:
        self._shape = shape
        self.counters = new_counters()
        self.sealed: list[Segment] = []
        self.open = shape.new(self.counters, 0, shape.messages)
        self.forgotten = np.zeros(0, np.int64)
        """Kept indices of the messages in the window that lead no more, ascending."""
        self.answered: frozenset[SegmentId] = frozenset()
        """Sealed segments in which somebody else looks rows up: no memory is held for them."""
        self._into_file: IntoFile | None = None
        self._counted = 0
        self._pushed_out = 0

    def seal_into(self, write: IntoFile | None) -> None:
        """From now on, write sealed segments to files; None: keep them in memory."""
        self._into_file = write
        self._write_sealed()

    def _write_sealed(self) -> None:
        """Begin to write the sealed segments that lie in no file, the oldest first, as many as are taken."""
        if self._into_file is None:
            return
        for segment in self.sealed:
            if not segment.into_file(self._into_file, hot_stay=self._shape.memory > 0):
                return

    def use_files(self) -> None:
        """Use the files of sealed segments that were written meanwhile, and begin to write again what could
        not be written. Give up memory that is not needed."""
        for segment in self.sealed:
            segment.use_file()
        self._write_sealed()
        self._stay_within_memory()

    def in_memory(self) -> InMemory:
        """What is in memory because it is in no file, after `use_files`."""
        self.use_files()
        sealed = [segment.bytes_used for segment in self.sealed if not segment.is_mapped]
        opened = self.open.bytes_used
        full = max((segment.bytes_used for segment in self.sealed), default=opened)
        return InMemory(
            len(sealed), sum(sealed) + opened, max(full, opened), 0 if self.is_full else self.room
        )

    def wait_for_files(self) -> None:
        """Wait until all sealed segments but the newest are written, or cannot be, and use their files."""
        for segment in self.sealed[:-1]:
            segment.wait_for_file()
        self.use_files()

    def _stay_within_memory(self) -> None:
        """Give up memory of segments that lie in files: of those that are answered for, then of the oldest,
        until the rest is few enough."""
        for segment in self.sealed:
            if segment.holds_memory and self._is_answered(segment):
                segment.give_up_memory()
        holding = [segment for segment in self.sealed if segment.holds_memory]
        while holding and self.bytes_used > self._shape.memory:
            holding.pop(0).give_up_memory()

    def _is_answered(self, segment: Segment) -> bool:
        # Reading the id of a segment reads its columns; without answers nobody needs it.
        return bool(self.answered) and segment.id in self.answered

    def next_to_hold(self) -> Segment | None:
        """The newest segment in a file that nobody answers for and for whose hot arrays there is memory, also
        when the open segment is full; None if there is none. Then call `Segment.use_memory`."""
        full = max((segment.bytes_used for segment in self.sealed), default=0)
        room = self._shape.memory - max(full, self.open.bytes_used)
        for segment in reversed(self.sealed):
            if segment.is_mapped and self._is_answered(segment):
                continue
            room -= segment.bytes_hot if segment.is_mapped else segment.bytes_used
            if room < 0:
                return None
            if segment.is_mapped and not segment.holds_memory:
                return segment
        return None

    def fill_memory(self) -> None:
        """Hold hot arrays of sealed segments in memory, the newest first, as far as the memory is enough."""
        while (segment := self.next_to_hold()) is not None:
            segment.use_memory()

    def add_mapped(self, sealed: SealedSegment) -> None:
        """Add a sealed segment whose messages come next; the open segment must be empty.

        raises: DamagedError
        """
        segment = self._shape.mapped(self.counters, sealed)
        self.sealed.append(segment)
        self.counters[KEPT] = sealed.end
        self.open = self._shape.new(self.counters, sealed.end, self._shape.messages)

    @property
    def all(self) -> list[Segment]:
        """All segments, oldest first."""
        return [*self.sealed, self.open]

    @property
    def kept(self) -> int:
        """Messages kept since the beginning."""
        return int(self.counters[KEPT])

    @property
    def window(self) -> int:
        """Messages of a full window."""
        return self._shape.window

    @property
    def size(self) -> int:
        """Messages that the window holds now."""
        return min(self.kept - int(self.counters[OLDEST]), self.window)

    @property
    def room(self) -> int:
        """Most rows of the next chunk: each may be kept, and all must fit into one segment."""
        if not self._shape.is_cut:
            return self.window + 2**30
        return self._end_of_open - self.kept or self._shape.messages

    @property
    def _end_of_open(self) -> int:
        """The kept index at which the open segment is full."""
        messages = self._shape.messages
        return (self.open.ring.first // messages + 1) * messages

    @property
    def oldest_time(self) -> int:
        """When the oldest message of the window was kept, in ms; NO_TIME if none was or none has a time."""
        time = NO_TIME
        for segment in self.all:
            if segment.ring.size:
                time = int(segment.ring.columns.times[segment.ring.oldest % segment.ring.capacity])
                break
        return int(self.counters[FIRST_TIME]) if time == NO_TIME else time

    @property
    def stream_time(self) -> int:
        """Stream time in ms, or NO_TIME."""
        return int(self.counters[STREAM_TIME])

    @property
    def bytes_used(self) -> int:
        """Bytes of all rings and buckets in memory."""
        return sum(segment.bytes_in_memory for segment in self.all)

    @property
    def bytes_mapped(self) -> int:
        """Bytes of the rings and buckets that are maps of files."""
        return sum(segment.bytes_used - segment.bytes_in_memory for segment in self.sealed)

    def first_kept_after(self, messages: int) -> int:
        """The smallest kept index that is still in the window when that many more messages are kept."""
        return max(int(self.counters[OLDEST]), self.kept + messages - self.window)

    @property
    def is_full(self) -> bool:
        """Whether the open segment must be sealed before the next message."""
        return self._shape.is_cut and self.kept >= self._end_of_open

    def seal_if_full(self) -> bool:
        """If the open segment is full, seal it and begin a new one. returns: whether it was full"""
        if not self.is_full:
            return False
        self.open.ring.trim()
        self._seal()
        return True

    def _seal(self) -> None:
        self.open.ring.seal()
        self.open.table.fill()
        self.sealed.append(self.open)
        self._write_sealed()
        self.open = self._shape.new(self.counters, self.kept, self._shape.messages)

    def drop_passed(self) -> None:
        """Drop the sealed segments that the window has passed, by number of messages."""
        while self.sealed and not self.sealed[0].ring.size:
            self.sealed.pop(0).give_up_file()
            self._counted = max(0, self._counted - 1)

    def forget(self, positions: NDArray[np.int64]) -> None:
        """Note that the messages with these positions lead no more. Segments do not change."""
        held = self.forgotten[self.forgotten >= self.kept - self.size]
        # The records of a segment are not read where it cannot hold one of the messages.
        found = [segment.ring.find(positions) for segment in self.all if segment.may_hold(positions)]
        self.forgotten = np.unique(np.concatenate([held, *found]))

    def begin_at(self, kept_index: int) -> None:
        """Let this empty window begin with the message of this number."""
        self.counters[[KEPT, OLDEST]] = kept_index
        if self._shape.is_cut:
            messages = self._shape.messages
            self.open = self._shape.new(self.counters, kept_index // messages * messages, messages)

    def resume(self, counters: NDArray[np.int64]) -> None:
        """Take over stream time from the counters of the window that this one was restored from."""
        self.counters[[STREAM_TIME, FIRST_TIME]] = counters[[STREAM_TIME, FIRST_TIME]]

    def expect(self, messages: int) -> None:
        """Make room in advance for this many more messages whose texts are as long as those before."""
        if self._shape.is_cut:
            messages = min(messages, self._end_of_open - self.kept)
        self.open.ring.expect(messages)
        self.open.table.expect(self.kept, messages)

    def assign(self, messages: int) -> None:
        """Have the system assign memory for this many more messages now: a table if they will need one, and
        the rest for the first ones of them."""
        messages = min(messages, self.room)
        self.open.table.expect(self.kept, messages)
        soon = min(messages, _ASSIGNED)
        self.open.ring.assign(soon)
        self.open.table.assign(self.kept, soon)

    def leaders_of(self, tags: NDArray[np.uint64]) -> dict[int, int]:
        """By tag: position of its newest message, for those of `tags` that are in the window."""
        leaders: dict[int, int] = {}
        for segment in self.all:
            leaders |= segment.ring.leaders_of(tags)
        return leaders

    def count_pushed_out(self, bands: int) -> int:
        """Read the next bands of a segment (`window.pushed_out`), one segment after the other.

        bands: how many to read; of all segments if it is the number of all bands
        returns: how many messages the last whole count of all segments found; 0 before it
        """
        segments = self.all
        if bands >= self.open.table.buckets.bands:
            for segment in segments:
                while not segment.count_pushed_out(bands):
                    pass
            self._counted = len(segments)
        elif segments[min(self._counted, len(segments) - 1)].count_pushed_out(bands):
            self._counted += 1
        if self._counted >= len(segments):
            self._counted = 0
            self._pushed_out = sum(segment.pushed_out.messages for segment in segments)
        return self._pushed_out

    def to_sections(self) -> dict[str, NDArray[Any]]:
        """The state by name: `counters`, `window`, and `segment.N.…` of each segment, the oldest first."""
        sections: dict[str, NDArray[Any]] = {"counters": self.counters, "window": np.array([self.window])}
        for number, segment in enumerate(self.all):
            ring = segment.ring
            table, end = segment.table, _OPEN if ring.end is None else ring.end
            place = np.array([ring.first, end, segment.messages, table.buckets.keyed])
            parts = ring.to_sections() | {"buckets": table.entries(), "place": place}
            sections |= {f"segment.{number}.{name}": part for name, part in parts.items()}
        return sections

    def restore(self, sections: dict[str, NDArray[Any]]) -> None:
        """Load what `to_sections` returned into this empty window. raises: DamagedError; StateError for a
        window of another size"""
        before, (*sealed, last) = int(sections["window"][0]), _saved_segments(sections)
        check_counters(sections["counters"], before)
        if before != self.window:
            raise StateError(
                f"it has the memory of a near window of {before} messages, the configuration says "
                f"{self.window}; set near.window.messages as it was, or {NEW_STATE}"
            )
        self.counters[:] = sections["counters"]
        head = int(self.counters[HEAD])
        self.sealed = [self._restored(parts, head) for parts in sealed]
        self.open = self._restored(last, head)
        if self.open.messages != self._shape.messages or (sealed and not self._shape.use.text):
            raise DamagedError(f"a window of {before} messages has a segment for {self.open.messages}")
        self.counters[HEAD] = head
        self.drop_passed()

    def _restored(self, parts: dict[str, NDArray[Any]], head: int) -> Segment:
        """A saved segment. head: as in its counters. raises: DamagedError"""
        first, end, before, keyed = parts["place"].tolist()
        # Before memory is taken: the saved arrays have to be as large as they say.
        if (
            not 1 <= before <= MAX_RING
            or len(parts["records"]) != ring_capacity(before)
            or keyed not in (0, 1)
        ):
            raise DamagedError(f"a segment for {before} messages has {len(parts['records'])} records")
        check_like("buckets", parts["buckets"], np.broadcast_to(np.uint64(0), self._shape.entries(before)))
        segment = self._shape.new(self.counters, first, before)
        ring = segment.ring
        if end != _OPEN:
            ring.end = end
        check_range(ring.oldest, ring.kept, len(parts["records"]), MAX_RING)
        if not self._shape.use.text:
            check_like("texts", parts["texts"], ring.columns.texts)
        ring.restore(parts)
        if self._shape.use.text:
            check_texts(ring.records, ring.columns.texts)
            if ring.end is None:
                check_arena(ring.records[ring.live_slots()], ring.columns.texts, head)
        segment.table.set_keyed(keyed)
        segment.table.restore(parts["buckets"])
        if ring.end is not None:
            segment.table.fill()
        segment.note_positions(ring.columns.positions[ring.live_slots()])
        return segment


def _saved_segments(sections: dict[str, NDArray[Any]]) -> list[dict[str, NDArray[Any]]]:
    """The sections of each saved segment by their short names, the oldest segment first."""
    segments: list[dict[str, NDArray[Any]]] = []
    while f"segment.{len(segments)}.place" in sections:
        prefix = f"segment.{len(segments)}."
        segments.append(
            {name[len(prefix) :]: part for name, part in sections.items() if name.startswith(prefix)}
        )
    return segments
