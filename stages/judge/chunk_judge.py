"""`ChunkJudge`: judges one chunk at a time, with both stages.

It owns the ring, the candidate index, the working memory and the threads; the kernels `propose` and `decide`
contain the logic. The caller passes the Bloom filter or the trie hits with each chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

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
from twinsieve.stages.differ.word_lists import phrases_of
from twinsieve.stages.errors import UsageError
from twinsieve.stages.exact.bloom_kernel import Bloom, new_bloom
from twinsieve.stages.exact.bloom_sizing import BloomSizing
from twinsieve.stages.judge import params
from twinsieve.stages.judge.decide import Workspace, decide
from twinsieve.stages.judge.filling import Filling
from twinsieve.stages.judge.kept_rows import new_kept_rows
from twinsieve.stages.judge.params import (
    ExactIndex,
    JudgeParams,
    Outcome,
    SealedCopies,
    TrieHits,
    new_sealed_copies,
)
from twinsieve.stages.judge.sealed_copies import find_copies, mark_copies
from twinsieve.stages.judge.sealed_details import write_sealed_detail
from twinsieve.stages.near.hamming import (
    link_kept,
    masks_of,
    new_chains,
    no_chains,
    propose_bits,
    table_bytes,
)
from twinsieve.stages.near.matches import MATCHES_PER_ROW, NO_MATCH, new_matches
from twinsieve.stages.near.propose import CandidateParams, NearIndex, max_matches, propose
from twinsieve.stages.near.signatures import link_all, new_part_chains, part_chain_bytes
from twinsieve.stages.near.verify import VerifyParams, new_scratch
from twinsieve.stages.window.buckets import (
    Buckets,
    entry_count,
    insert_kept,
    new_look_ups,
)
from twinsieve.stages.window.chunk import CHUNK_ROWS, EXACT_CHUNK_ROWS, SHARED_CHUNK_ROWS, Chunk
from twinsieve.stages.window.chunk import rows as part_of_chunk
from twinsieve.stages.window.lengths import reach_of, signature_limits
from twinsieve.stages.window.record import record_type
from twinsieve.stages.window.ring import GRANULE, SKETCH_UNITS, TALLY_UNITS, Ring, RingUse, keep_all
from twinsieve.stages.window.segments import SealedSegment, Segment, Segments, SegmentShape
from twinsieve.stages.window.soundness import check_links
from twinsieve.stages.window.tags import TagIndex

_NEAR_CODES = {
    "none": params.NEAR_NONE,
    "text": params.NEAR_TEXT,
    "hamming": params.NEAR_HAMMING,
    "signatures": params.NEAR_SIGNATURES,
}
_EXACT_CODES = {"none": params.EXACT_NONE, "bloom": params.EXACT_BLOOM, "trie": params.EXACT_TRIE}

_WORTH_THREADS = 1024
"""Least number of rows for which threads are used. With fewer rows, waking the threads takes more time than
they save."""


def ring_use(config: SieveConfig) -> RingUse:
    """The optional columns of the ring that this configuration needs."""
    return RingUse(
        text=config.near.method == "text",
        ids=config.near.same_id == "pass",
        scopes=config.scoped,
        simhashes=config.near.method == "hamming",
        second_simhashes=len(config.near.distances_by_field) > 1,
        parts=config.near.parts if config.near.method == "signatures" else 0,
    )


def chunk_rows(config: SieveConfig) -> int:
    """The most rows of a chunk under this configuration."""
    if config.near.method == "none":
        return EXACT_CHUNK_ROWS
    return SHARED_CHUNK_ROWS if config.near.shards > 1 else CHUNK_ROWS


class ChunkJudge:
    """Judges the chunks of one configuration: compares them with the kept messages in its ring.

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
        self._text = near.method == "text"
        self._by_parts = near.method == "signatures"
        self._scan = near.method in ("text", "hamming") and near.candidates == "scan"
        self._indexed = self._text and not self._scan
        self.segments = Segments(
            SegmentShape(
                window,
                near.segment,
                near.memory,
                ring_use(config),
                indexed=self._indexed,
                layout=config.layout,
                load=near.bucket_load,
            )
        )
        self.chains = new_chains(near) if near.method == "hamming" else no_chains()
        self.part_chains = new_part_chains(*((self.ring.capacity, near.parts) if self._by_parts else (1, 1)))
        # For entries without bits of their keys, and with them.
        limits = [signature_limits(near.similarity, keyed=keyed) for keyed in (False, True)]
        self._candidates = [
            CandidateParams(each, reach_of(each), window, _limit(near.window.age_ms), int(self._scan))
            for each in limits
        ]
        self._verify = VerifyParams(
            near.similarity,
            near.differences,
            int(near.same_id == "pass"),
            int(config.scoped),
            near.share,
        )
        self._params = JudgeParams(
            near=_NEAR_CODES[near.method],
            exact=_EXACT_CODES[config.exact.method],
            exact_messages=config.exact.window.messages,
            exact_age=_limit(config.exact.window.age_ms),
            near_messages=window,
            near_age=_limit(near.window.age_ms),
            max_ahead=config.time.max_ahead_ms,
            late_judge=int(config.time.late == "judge"),
            late_after=config.time.late_after_ms,
            compare_text=int(config.key_is_text and self._text),
            keeps=1,
        )
        self._kept = new_kept_rows(chunk_rows(config))
        self._first_kept = 0
        self._scans = self._scan or near.method == "hamming"
        buckets = self.buckets
        self._probes = probes = buckets.bands + (buckets.tables << buckets.weak) if self._indexed else 0
        self._most = max_matches(probes, window, self._scans)
        # Without a near stage no row has matches, and chunks are larger.
        self._rows = min(chunk_rows(config), SHARED_CHUNK_ROWS)
        self._room = self._rows * MATCHES_PER_ROW
        self._matches = new_matches(0, 0)
        self._make_room()
        self._apart = np.full(chunk_rows(config), -1, np.int64)
        phrases = phrases_of(near.words)
        self._scratch = [new_scratch(phrases, probes) for _ in range(max(1, near.shards))]
        self._threads = ThreadPoolExecutor(near.shards - 1) if near.shards > 1 else None

    def judge(
        self,
        chunk: Chunk,
        exact: ExactIndex,
        outcome: Outcome,
        *,
        recorded: bool,
        keeps: bool = True,
        meanwhile: Callable[[], None] | None = None,
    ) -> None:
        """Write the verdicts on a chunk to `outcome`, and add its kept rows to the state.

        recorded: `outcome` already has all verdicts, so no candidates are searched
        keeps: False to add no row to the state; then the rows must not have times
        meanwhile: as in `BatchSieve.judge`
        """
        self.segments.use_files()
        if self.segments.seal_if_full():
            self._make_room()
        characters = int(chunk.starts[-1] - chunk.starts[0])
        self.ring.reserve(min(characters, STORED_LENGTH * len(chunk.lengths)), len(chunk.lengths))
        if self._indexed:
            self.segments.open.table.reserve(self.ring.kept, len(chunk.lengths))
        self._kept.counts[0], self._first_kept = 0, self.ring.kept
        if meanwhile is not None:
            meanwhile()
        sealed, copies = self.segments.sealed, new_sealed_copies(0)
        if recorded or not self.segments.size:
            # An empty index has no matches, and reading its pages would take memory.
            self._matches.heads[:] = NO_MATCH
        elif self._text or self._params.near == params.NEAR_HAMMING:
            if sealed and self._params.exact != params.EXACT_NONE:
                copies = new_sealed_copies(len(chunk.lengths))
            self._propose(chunk, copies)
        work = Workspace(self._matches, self._room, len(sealed), self._apart, self._scratch[0], self._kept)
        exact = exact._replace(sealed=copies)
        index = self._index(self.segments.open)
        judge_params = self._params._replace(keeps=int(keeps))
        row = decide(chunk, index, exact, judge_params, work, outcome, 0)
        while row < len(chunk.lengths):
            self._propose_row(chunk, row, index)
            row = decide(chunk, index, exact, judge_params, work, outcome, row)
        self._link(chunk)
        self.segments.open.note_positions(chunk.positions[self.kept_rows()[0]])
        self._write_details(chunk, outcome)
        self.segments.drop_passed()

    @property
    def ring(self) -> Ring:
        """The ring that gets the kept messages: of the open segment."""
        return self.segments.open.ring

    @property
    def buckets(self) -> Buckets:
        """The candidate index of the open segment, as kernels take it."""
        return self.segments.open.table.buckets

    def _index(self, segment: Segment) -> NearIndex:
        ring = segment.ring
        # Slots of an open ring that wraps are taken by newer messages as the chunk is judged; phase two
        # checks for that. Of a sealed ring, what lies below the oldest message may be of another time.
        return NearIndex(
            ring.first if ring.end is None else ring.oldest,
            ring.kept,
            ring.columns,
            segment.table.buckets,
            self.chains,
            self.part_chains,
            self._candidates[segment.table.buckets.keyed],
            self._verify,
        )

    def _make_room(self) -> None:
        """Make room for the proposals of a chunk, and behind it for those of one row in all segments."""
        most = self._most + 1 if self._scans else (self._most + 1) * len(self.segments.all)
        room = self._room + most
        if room > len(self._matches.kept):
            self._matches = new_matches(self._rows, room)

    @property
    def _has_tables(self) -> bool:
        return self._params.near == params.NEAR_HAMMING and not self._scan

    def count_pushed_out(self, bands: int) -> int:
        """Read the next bands of the candidate index (`window.pushed_out`). returns: the last whole count"""
        return self.segments.count_pushed_out(bands) if self._indexed else 0

    def kept_rows(self) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """(kept rows of the last chunk, their kept indices). The next chunk overwrites these arrays."""
        count = int(self._kept.counts[0])
        return self._kept.rows[:count], np.arange(self._first_kept, self._first_kept + count)

    def _propose(self, chunk: Chunk, copies: SealedCopies) -> None:
        """Phase one: look for copies in the sealed segments, then for matches in all segments."""
        rows, room = len(chunk.lengths), self._room
        shards = len(self._scratch)
        open_index = self._index(self.segments.open)
        indices = [*map(self._index, self._searched()), open_index]

        def propose_shard(shard: int) -> None:
            low, high = rows * shard // shards, rows * (shard + 1) // shards
            place, end = room * shard // shards, room * (shard + 1) // shards
            scratch = self._scratch[shard]
            if not self._text:
                propose_bits(low, high, chunk, open_index, scratch, self._matches, place, end)
                return
            if len(copies.kept):
                for segment in reversed(self.segments.sealed):
                    ring = segment.ring
                    find_copies(low, high, chunk, ring.columns, ring.kept, self._params.compare_text, copies)
            mark_copies(low, high, chunk, open_index.ring, self._params, copies, self._matches)
            for index in indices:
                place = propose(low, high, chunk, index, scratch, self._matches, place, end)

        self._on_threads(propose_shard, rows)

    def _searched(self) -> list[Segment]:
        """The sealed segments with messages inside the window."""
        age, stream_time = self._params.near_age, self.segments.stream_time
        if age < 0 or stream_time == NO_TIME:
            return self.segments.sealed
        return [
            segment
            for segment in self.segments.sealed
            if segment.newest_time == NO_TIME or stream_time - segment.newest_time <= age
        ]

    def _propose_row(self, chunk: Chunk, row: int, open_index: NearIndex) -> None:
        """Phase one for one row that needs matches after all, in the room behind that of the others."""
        place, end = self._room, len(self._matches.kept)
        self._matches.heads[row] = NO_MATCH
        for index in [*map(self._index, self._searched()), open_index]:
            place = propose(row, row + 1, chunk, index, self._scratch[0], self._matches, place, end)

    def _write_details(self, chunk: Chunk, outcome: Outcome) -> None:
        """Show what differs from entries in sealed segments; phase two has only the open one."""
        if not outcome.details.shape[2] or not self.segments.sealed:
            return
        rows = np.flatnonzero(self._apart >= 0)
        for row in rows.tolist():
            kept_index = int(self._apart[row])
            ring = next(s.ring for s in self.segments.sealed if s.ring.first <= kept_index < s.ring.kept)
            write_sealed_detail(chunk, row, ring.columns, kept_index, self._verify, self._scratch[0], outcome)
        self._apart[rows] = -1

    def add_segment(self, sealed: SealedSegment) -> None:
        """Add a saved segment whose messages come next, in a restore."""
        self.segments.add_mapped(sealed)
        self._make_room()

    def keep_again(self, chunks: Iterable[Chunk]) -> None:
        """Keep all rows of these chunks again, in the order in which another sieve kept them.

        chunks: as `judge.kept_messages.as_chunk` makes them; their times are stream times
        Threads fill the candidate index while the next chunks are moved into the ring.
        """
        with Filling(self._insert_again, self._index_tables) as filling:
            for chunk in self._cut(chunks, filling.finish):
                count, first = len(chunk.lengths), self.ring.kept
                self.ring.reserve(int(chunk.starts[-1] - chunk.starts[0]), count)
                keep_all(self.ring.columns, chunk)
                self.segments.open.note_positions(chunk.positions)
                table = self.segments.open.table
                if self._indexed:
                    table.reserve(first, count)
                if self._has_index:
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
    def _has_index(self) -> bool:
        """Whether kept messages are inserted into a candidate index."""
        return self._params.near != params.NEAR_NONE and not self._by_parts and not self._scan

    @property
    def _index_tables(self) -> int:
        return self.buckets.bands + self.buckets.tables if self._text else len(self.chains.masks)

    def _insert_again(self, chunk: Chunk, kept_index: int, first_table: int, end_table: int) -> None:
        """Insert all rows of a chunk into some tables of the candidate index. kept_index: of its first row"""
        count = len(chunk.lengths)
        rows, kept = np.arange(count, dtype=np.int32), np.arange(kept_index, kept_index + count)
        if self._text:
            look_ups = new_look_ups(self._probes)
            insert_kept(chunk, rows, kept, count, first_table, end_table, self.buckets, look_ups)
        else:
            link_kept(chunk, rows, kept, count, first_table, end_table, self.chains)

    def _link(self, chunk: Chunk) -> None:
        """Insert the kept rows of a chunk into the tables of the method hamming. (`decide` fills buckets.)"""
        rows, kept = self.kept_rows()
        if len(rows) == 0 or not self._has_tables:
            return
        shards, tables = len(self._scratch), self._index_tables

        def link(shard: int) -> None:
            low, high = tables * shard // shards, tables * (shard + 1) // shards
            link_kept(chunk, rows, kept, len(rows), low, high, self.chains)

        self._on_threads(link, len(rows))

    def _on_threads(self, work: Any, size: int) -> None:
        """Call `work` for each shard, on threads if `size` rows are worth it. The result is the same."""
        if self._threads is None or size < _WORTH_THREADS:
            for shard in range(len(self._scratch)):
                work(shard)
        else:
            others = [self._threads.submit(work, shard) for shard in range(1, len(self._scratch))]
            try:
                work(0)
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
        index += sum(a.nbytes for a in self.part_chains) if self._by_parts else 0
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
        if self._by_parts:
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


def check_words(words: str) -> None:
    """Check a user's lists of words (`NearConfig.words`). raises: UsageError if they cannot be used"""
    phrases_of(words)


def no_bloom() -> Bloom:
    """A placeholder for kernels if the exact method is not bloom."""
    return new_bloom(BloomSizing(1, 1, 1, 0.5, 1, 1, messages=1, age_ms=-1, span_ms=-1))


def no_trie_hits() -> TrieHits:
    """A placeholder for kernels if the exact method is not trie."""
    none = np.zeros(0, np.int64)
    return TrieHits(np.zeros(0, np.bool_), none, none, none)


def _limit(age_ms: int | None) -> int:
    return -1 if age_ms is None else age_ms
