"""`NearWindow`: the kept messages of the near window, and the look-up of a chunk's rows in them (phase one).

It owns the segments, the indexes, the working memory and the threads; the kernel `look_up` has the logic.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import (
    MAX_PARTS,
    MAX_SEGMENT,
    NO_TIME,
    STORED_LENGTH,
    SieveConfig,
    largest_window,
)
from twinsieve.stages.errors import UsageError
from twinsieve.stages.judge.decide import write_sealed_detail
from twinsieve.stages.judge.near_rules import NearRules, ring_use
from twinsieve.stages.judge.params import Outcome
from twinsieve.stages.near.answers import MOST_ENTRIES, Answer, add_answer
from twinsieve.stages.near.hamming import link_kept, masks_of, new_chains, no_chains, table_bytes
from twinsieve.stages.near.look_up import look_up
from twinsieve.stages.near.matches import MATCHES_PER_ROW, NO_MATCH, Copies, new_copies, new_matches
from twinsieve.stages.near.propose import Begin, NearIndex
from twinsieve.stages.near.signatures import link_all, new_part_chains, part_chain_bytes
from twinsieve.stages.near.verify import Scratch
from twinsieve.stages.window.buckets import Buckets, entry_count, insert_kept, new_look_ups
from twinsieve.stages.window.chunk import CHUNK_ROWS, EXACT_CHUNK_ROWS, SHARED_CHUNK_ROWS, Chunk
from twinsieve.stages.window.chunk import rows as part_of_chunk
from twinsieve.stages.window.record import record_type
from twinsieve.stages.window.ring import (
    GRANULE,
    KEPT,
    OLDEST,
    SKETCH_UNITS,
    STREAM_TIME,
    TALLY_UNITS,
    Ring,
    keep_all,
)
from twinsieve.stages.window.segments import SealedSegment, Segment, SegmentId, Segments
from twinsieve.stages.window.soundness import check_links
from twinsieve.stages.window.tags import TagIndex

_WORTH_THREADS = 1024
"""Least number of rows for which threads are used. With fewer rows, waking the threads takes more time than
they save."""

_FILLING_THREADS = 2
_CHUNKS_AHEAD = 16
"""Chunks that may wait for the threads. With fewer, a thread that is late keeps all others waiting."""

Insert = Callable[[Chunk, int, int, int], None]
"""Inserts the rows of a chunk: (chunk, kept index of its first row, first and end of the tables)."""

_NO_COPIES = new_copies(0)


def _no_clock() -> float:
    return 0.0


def chunk_rows(config: SieveConfig) -> int:
    """The most rows of a chunk under this configuration."""
    if config.near.method == "none":
        return EXACT_CHUNK_ROWS
    return SHARED_CHUNK_ROWS if config.near.threads > 1 else CHUNK_ROWS


class NearWindow:
    """The kept messages of the near window, their indexes, and the threads that look rows up in them.

    segments: the kept messages; chains, part_chains: indexes of the methods hamming and signatures
    matches, copies: what the last look-up found
    scratch: working memory of each thread
    raises: UsageError for an invalid window or layout
    """

    def __init__(self, config: SieveConfig) -> None:
        near = config.near
        window = near.window.messages
        largest = largest_window(near.method)
        if not 1 <= window <= largest:
            raise UsageError(f"near.window.messages is {window}; use 1..{largest}")
        if not 1 <= near.segment <= MAX_SEGMENT:
            raise UsageError(f"near.segment is {near.segment}; use 1..{MAX_SEGMENT}")
        if near.method == "signatures" and not 1 <= near.share <= near.parts <= MAX_PARTS:
            raise UsageError(
                f"near.signature: {near.share} shared of {near.parts} hashes; use at most {MAX_PARTS}, and "
                "share no more than these"
            )
        self._config = config
        self._method = near.method
        self._rules = rules = NearRules(config)
        self._indexed = rules.is_indexed
        self._has_tables = near.method == "hamming" and near.candidates != "scan"
        self.segments = Segments(rules.shape)
        self.chains = new_chains(near) if near.method == "hamming" else no_chains()
        by_parts = near.method == "signatures"
        self.part_chains = new_part_chains(*((self.ring.capacity, near.parts) if by_parts else (1, 1)))
        self._answers: Mapping[SegmentId, Answer] = {}
        self.answered_rows = self.left_rows = 0
        """Rows times segments that were answered, and those of them that were looked up here all the same."""
        self.now_s: Callable[[], float] | None = None
        """A clock, if the time of look-ups is wanted."""
        self.look_ups: list[tuple[SegmentId | None, int, float]] = []
        """Segments in which rows were looked up, how many, and the seconds of that; None: the open one."""
        rows = chunk_rows(config)
        # Without a near stage no row has matches, and chunks are larger.
        self._rows = min(rows, SHARED_CHUNK_ROWS)
        self._room = self._rows * MATCHES_PER_ROW
        self.matches = new_matches(0, 0)
        self._make_room()
        self.copies = new_copies(rows)
        self.scratch = [rules.scratch() for _ in range(max(1, near.threads))]
        self._threads = ThreadPoolExecutor(near.threads - 1) if near.threads > 1 else None

    @property
    def ring(self) -> Ring:
        """The ring that gets the kept messages: of the open segment."""
        return self.segments.open.ring

    @property
    def buckets(self) -> Buckets:
        """The candidate index of the open segment, as kernels take it."""
        return self.segments.open.table.buckets

    def begin_chunk(self, chunk: Chunk) -> None:
        """Make room for a chunk, each row of which may be kept. No look-up may be running."""
        self.segments.use_files()
        if self.segments.seal_if_full():
            self._make_room()
        rows, characters = len(chunk.lengths), int(chunk.starts[-1] - chunk.starts[0])
        self.ring.reserve(min(characters, STORED_LENGTH * rows), rows)
        if self._indexed:
            self.segments.open.table.reserve(self.ring.kept, rows)
        self.copies.kept[:] = -1
        self.matches.heads[:] = NO_MATCH

    def end_chunk(self, chunk: Chunk, rows: NDArray[np.int32], kept_indices: NDArray[np.int64]) -> None:
        """Note what was kept of a chunk, and drop what the window has passed. (`decide` fills the buckets.)

        rows: int32[n], the kept rows in order; kept_indices: int64[n]
        """
        if self._has_tables and len(rows):
            self._on_threads(
                partial(self._link, chunk, rows, kept_indices), len(rows), len(self.chains.masks)
            )
        self.segments.open.note_positions(chunk.positions[rows])
        self.segments.drop_passed()

    def _link(
        self, chunk: Chunk, rows: NDArray[np.int32], kept: NDArray[np.int64], _: int, low: int, high: int
    ) -> None:
        link_kept(chunk, rows, kept, len(rows), low, high, self.chains)

    def index(self, segment: Segment) -> NearIndex:
        """A segment as kernels take it."""
        ring, config = segment.ring, self._config
        counters = ring.columns.counters
        stream_time = int(counters[STREAM_TIME])
        near, exact = (
            _least_time(window.age_ms, stream_time) for window in (config.near.window, config.exact.window)
        )
        oldest = max(int(counters[OLDEST]), int(counters[KEPT]) - config.exact.window.messages)
        # Where all messages are too old, none is compared.
        passed = ring.end is not None and NO_TIME < segment.newest_time < near
        begin = Begin(ring.kept if passed else ring.oldest, near)
        index = self._rules.index(segment, begin, Begin(oldest, exact))
        return index._replace(chains=self.chains, part_chains=self.part_chains)

    def question(self) -> bytes:
        """`NearRules.question`."""
        return self._rules.question()

    def look_up(self, chunk: Chunk, answers: Mapping[SegmentId, Answer]) -> None:
        """Look all rows of a chunk up in all segments, on threads. `matches` and `copies` are the result.

        answers: for these rows, of sealed segments in which they need not be looked up any more
        """
        self._answers = answers
        if self._method not in ("text", "hamming") or not self.segments.size:
            # An empty index has no matches, and reading its pages would take memory. The method signatures
            # looks up as it decides: its chains have the messages of the chunk too.
            return
        indices = self._newest_first()
        copies = self.copies if self._config.exact.method != "none" else _NO_COPIES
        left = [0] * len(self.scratch)
        ends_s = [[0.0] * (len(indices) + 1) for _ in self.scratch]

        def work(thread: int, low: int, high: int) -> None:
            place, end = self._room * low // len(chunk.lengths), self._room * high // len(chunk.lengths)
            now_s = self.now_s or _no_clock
            ends_s[thread][0] = now_s()
            for number, (index, answer) in enumerate(indices, 1):
                place, alone = self._search(low, high, chunk, index, answer, thread, copies, place, end)
                left[thread] += alone
                ends_s[thread][number] = now_s()

        self._on_threads(work, len(chunk.lengths), len(chunk.lengths))
        if self.now_s is not None:
            self._note_look_ups(len(chunk.lengths), indices, ends_s)
        self.left_rows += sum(left)
        self.answered_rows += len(chunk.lengths) * sum(answer is not None for _, answer in indices)

    def _note_look_ups(
        self, rows: int, indices: Sequence[tuple[NearIndex, Answer | None]], ends_s: Sequence[Sequence[float]]
    ) -> None:
        """Note how long look-ups took. ends_s: of each thread, when it began, and when it was done with each
        of these segments"""
        all_of = max if self._uses_threads(rows) else sum
        for number, (segment, (_, answer)) in enumerate(
            zip(reversed(self.segments.all), indices, strict=True)
        ):
            if answer is None and rows:
                took_s = all_of(ends[number + 1] - ends[number] for ends in ends_s)
                self.look_ups.append((segment.id if segment.is_sealed else None, rows, took_s))

    def _search(
        self,
        low: int,
        high: int,
        chunk: Chunk,
        index: NearIndex,
        answer: Answer | None,
        thread: int,
        copies: Copies,
        place: int,
        end: int,
    ) -> tuple[int, int]:
        """Look some rows up in a segment, or take what it has answered. returns: as `_take`"""
        scratch = self.scratch[thread]
        if answer is None:
            return look_up(low, high, chunk, index, scratch, self.matches, copies, place, end), 0
        return self._take(low, high, chunk, index, answer, scratch, copies, place, end)

    def _take(
        self,
        low: int,
        high: int,
        chunk: Chunk,
        index: NearIndex,
        answer: Answer,
        scratch: Scratch,
        copies: Copies,
        place: int,
        end: int,
    ) -> tuple[int, int]:
        """Add what a segment answered for some rows. returns: place of the next match, and how many rows had
        to be looked up in the segment all the same"""
        own = np.zeros(high - low, np.int32)
        forgotten = self.segments.forgotten
        place, count = add_answer(
            low, high, chunk.probes, index.begin.kept, index.before, index.exact, answer, forgotten,
            self.matches, copies, own, place, end,
        )  # fmt: skip
        for row in own[:count].tolist():
            place = look_up(row, row + 1, chunk, index, scratch, self.matches, _NO_COPIES, place, end)
        return place, count

    def look_up_row(self, chunk: Chunk, row: int) -> None:
        """Search the matches of a row that looked like a copy and is none, or for which there was no room."""
        place, end = self._room, len(self.matches.kept)
        self.matches.heads[row] = NO_MATCH
        for index, answer in self._newest_first():
            place, _ = self._search(row, row + 1, chunk, index, answer, 0, _NO_COPIES, place, end)

    def _newest_first(self) -> list[tuple[NearIndex, Answer | None]]:
        """The segments as kernels take them, and what they have answered."""
        answers = self._answers
        return [
            (self.index(segment), answers.get(segment.id) if answers and segment.is_sealed else None)
            for segment in reversed(self.segments.all)
        ]

    def _make_room(self) -> None:
        """Make room for the matches of a chunk, and behind it for those of one row in all segments."""
        room = self._room + (max(self._rules.most, MOST_ENTRIES) + 1) * len(self.segments.all)
        if room > len(self.matches.kept):
            self.matches = new_matches(self._rows, room)

    def count_pushed_out(self, bands: int) -> int:
        """Read the next bands of the candidate index (`window.pushed_out`). returns: the last whole count"""
        return self.segments.count_pushed_out(bands) if self._indexed else 0

    def write_details(self, chunk: Chunk, apart: NDArray[np.int64], outcome: Outcome) -> None:
        """Write what differs from entries in sealed segments; phase two has only the open one.

        apart: as in `Workspace`; each entry becomes -1
        """
        for row in np.flatnonzero(apart >= 0).tolist():
            kept_index = int(apart[row])
            ring = next(s.ring for s in self.segments.sealed if s.ring.first <= kept_index < s.ring.kept)
            write_sealed_detail(
                chunk, row, ring.columns, kept_index, self._rules.verify, self.scratch[0], outcome
            )
            apart[row] = -1

    def add_segment(self, sealed: SealedSegment) -> None:
        """Add a saved segment whose messages come next, in a restore."""
        self.segments.add_mapped(sealed)
        self._make_room()

    def keep_again(self, chunks: Iterable[Chunk]) -> None:
        """Keep all rows of these chunks again, in the order in which another sieve kept them.

        chunks: as `judge.kept_messages.as_chunk` makes them; their times are stream times
        Threads fill the candidate index while the next chunks are moved into the ring.
        """
        with _Filling(self._insert_again, self._index_tables) as filling:
            for chunk in self._cut(chunks, filling.finish):
                count, first = len(chunk.lengths), self.ring.kept
                self.ring.reserve(int(chunk.starts[-1] - chunk.starts[0]), count)
                keep_all(self.ring.columns, chunk)
                self.segments.open.note_positions(chunk.positions)
                table = self.segments.open.table
                if self._indexed:
                    table.reserve(first, count)
                if self._indexed or self._has_tables:
                    filling.add(chunk, first)
                if table.is_sparse:
                    # Nothing may be inserted while it becomes a table.
                    filling.finish()
            filling.finish()

    def _cut(self, chunks: Iterable[Chunk], wait: Callable[[], None]) -> Iterator[Chunk]:
        """The chunks in parts for which the open segment has room; a full segment is sealed first.

        wait: returns when all messages of the open segment are in its buckets
        """
        for chunk in chunks:
            low = 0
            while low < len(chunk.lengths):
                if self.segments.is_full:
                    wait()
                    self.segments.seal_if_full()
                    self.segments.drop_passed()
                    self.segments.wait_for_files()
                    self._make_room()
                high = min(low + self.segments.room, len(chunk.lengths))
                yield part_of_chunk(chunk, low, high)
                low = high

    @property
    def _index_tables(self) -> int:
        return self.buckets.bands + self.buckets.tables if self._indexed else len(self.chains.masks)

    def _insert_again(self, chunk: Chunk, kept_index: int, first_table: int, end_table: int) -> None:
        """Insert all rows of a chunk into some tables of the candidate index. kept_index: of its first row"""
        count = len(chunk.lengths)
        rows, kept = np.arange(count, dtype=np.int32), np.arange(kept_index, kept_index + count)
        if self._indexed:
            look_ups = new_look_ups(self._rules.probes)
            insert_kept(chunk, rows, kept, count, first_table, end_table, self.buckets, look_ups)
        else:
            link_kept(chunk, rows, kept, count, first_table, end_table, self.chains)

    def _uses_threads(self, rows: int) -> bool:
        return self._threads is not None and rows >= _WORTH_THREADS

    def _on_threads(self, work: Callable[[int, int, int], None], rows: int, items: int) -> None:
        """Call `work(thread, low, high)` for the share of the items that each thread has.

        rows: if they are too few to be worth threads, one after the other; the result is the same
        """
        threads = len(self.scratch)
        shares = [(n, items * n // threads, items * (n + 1) // threads) for n in range(threads)]
        if self._threads is None or not self._uses_threads(rows):
            for share in shares:
                work(*share)
            return
        others = [self._threads.submit(work, *share) for share in shares[1:]]
        try:
            work(*shares[0])
        finally:
            # Nobody may go on while a thread still works on the chunk.
            for each in others:
                each.exception()
        for each in others:
            each.result()

    @property
    def bytes_used(self) -> int:
        """Bytes of rings and indexes."""
        index = sum(a.nbytes for a in self.chains) if self._has_tables else 0
        index += sum(a.nbytes for a in self.part_chains) if self._method == "signatures" else 0
        return self.segments.bytes_used + index

    def to_sections(self) -> dict[str, NDArray[Any]]:
        """All arrays of the state that verdicts depend on, by name."""
        sections = self.segments.to_sections()
        if self._has_tables:
            sections |= {"chains.heads": self.chains.heads, "chains.next": self.chains.next}
        return sections

    def restore(self, sections: dict[str, NDArray[Any]]) -> None:
        """Load the arrays of `to_sections`. The parameters and the window must be the same.

        raises: DamagedError; StateError for another window
        """
        self.segments.restore(sections)
        self._make_room()
        if self._has_tables:
            heads, links = sections["chains.heads"], sections["chains.next"]
            check_links(heads, links, self.chains, self.segments.kept)
            self.chains = self.chains._replace(heads=heads, next=links)

    def link_parts(self) -> None:
        """Rebuild the index of the method signatures from the ring, after a restore."""
        if self._method == "signatures":
            link_all(self.part_chains, self.ring.columns)


IN_MEMORY = 2
"""Segments in memory, where sealed ones lie in files: the open one, and one that is being written."""


def segment_count(config: SieveConfig) -> int:
    """Number of segments of a full near window."""
    near = config.near
    if near.method != "text" or near.window.messages <= near.segment:
        return 1
    # The oldest one and the open one are part of the window only.
    return -(-near.window.messages // near.segment) + 1


def near_bytes(config: SieveConfig, segments: int) -> dict[str, int]:
    """Greatest number of bytes of each part, if the window is full and each text has the greatest length.

    segments: how many of the segments count
    """
    near, use = config.near, ring_use(config)
    window = near.window.messages
    simhashes = use.simhashes + use.second_simhashes
    row = record_type(use.text, use.simhashes or use.parts > 0).itemsize
    row += 8 * (1 + use.ids + use.scopes + simhashes + use.parts)
    messages = min(window, near.segment) if use.text else window
    parts = {"ring": segments * messages * row, "tags": segments * TagIndex.bytes_for(messages)}
    if use.text:
        parts["texts"] = (
            segments
            * messages
            * (2 * (STORED_LENGTH + SKETCH_UNITS + STORED_LENGTH // 16 + TALLY_UNITS + GRANULE))
        )
    if use.text and near.candidates == "index":
        parts["buckets"] = segments * 8 * entry_count(config.layout, messages, near.bucket_load)
    if near.method == "hamming" and near.candidates == "index":
        parts["tables"] = table_bytes(len(masks_of(near)), window)
    if near.method == "signatures":
        parts["chains"] = part_chain_bytes(window, near.parts)
    return parts


def _least_time(age_ms: int | None, stream_time: int) -> int:
    """The least time inside a window of this age, or NO_TIME for no limit."""
    return NO_TIME if age_ms is None or stream_time == NO_TIME else stream_time - age_ms


class _Filling:
    """Threads that put kept messages into the candidate index, in a restore (a context manager).

    Each fills its part of the tables, in the order of keeping.

    insert: called from the threads, with one chunk after the other; tables: number of tables
    """

    def __init__(self, insert: Insert, tables: int) -> None:
        self._insert = insert
        self._parts = [*pairwise(tables * part // _FILLING_THREADS for part in range(_FILLING_THREADS + 1))]
        self._working: deque[list[Future[None]]] = deque()

    def __enter__(self) -> Self:
        with ExitStack() as undo:
            # One queue each, because the entries of a table must be inserted in order.
            self._threads = [undo.enter_context(ThreadPoolExecutor(1)) for _ in self._parts]
            self._ended = undo.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.close()

    def add(self, chunk: Chunk, kept_index: int) -> None:
        """Begin to insert the rows of a chunk. kept_index: of its first row; the others follow

        raises: what an insertion before raised
        """
        self._wait(_CHUNKS_AHEAD)
        self._working.append(
            [
                thread.submit(self._insert, chunk, kept_index, *part)
                for thread, part in zip(self._threads, self._parts, strict=True)
            ]
        )

    def finish(self) -> None:
        """Wait until all messages are in the index. raises: what an insertion raised"""
        self._wait(0)

    def _wait(self, chunks: int) -> None:
        while len(self._working) > chunks:
            for each in self._working.popleft():
                each.result()
