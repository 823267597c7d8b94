"""`ChunkJudge`: judges one chunk at a time, with both stages.

It owns the ring, the candidate index, the working memory and the threads; the kernels `propose` and `decide`
contain the logic. The caller passes the Bloom filter or the trie hits with each chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import MAX_PARTS, STORED_LENGTH, SieveConfig, largest_window
from twinsieve.stages.differ.word_lists import phrases_of
from twinsieve.stages.errors import UsageError
from twinsieve.stages.exact.bloom_kernel import Bloom, new_bloom
from twinsieve.stages.exact.bloom_sizing import BloomSizing
from twinsieve.stages.judge import params
from twinsieve.stages.judge.chunk_index import clear, filled_buckets, new_chunk_index
from twinsieve.stages.judge.decide import Workspace, decide
from twinsieve.stages.judge.params import ExactIndex, JudgeParams, Outcome, TrieHits
from twinsieve.stages.near.hamming import (
    link_kept,
    masks_of,
    new_chains,
    no_chains,
    propose_bits,
    table_bytes,
)
from twinsieve.stages.near.propose import (
    MATCHES_PER_ROW,
    CandidateParams,
    NearIndex,
    max_matches,
    new_matches,
    propose,
)
from twinsieve.stages.near.signatures import link_all, new_part_chains, part_chain_bytes
from twinsieve.stages.near.verify import VerifyParams, new_scratch
from twinsieve.stages.window.bucket_table import BucketTable
from twinsieve.stages.window.buckets import Buckets, entry_count, insert_kept, own_buckets
from twinsieve.stages.window.chunk import CHUNK_ROWS, EXACT_CHUNK_ROWS, Chunk
from twinsieve.stages.window.lengths import signature_limits
from twinsieve.stages.window.pushed_out import PushedOut
from twinsieve.stages.window.record import record_type
from twinsieve.stages.window.resize import resize_chains
from twinsieve.stages.window.ring import GRANULE, SKETCH_UNITS, TALLY_UNITS, Ring, RingUse, keep_all
from twinsieve.stages.window.tags import TagIndex

_NEAR_CODES = {
    "none": params.NEAR_NONE,
    "text": params.NEAR_TEXT,
    "hamming": params.NEAR_HAMMING,
    "signatures": params.NEAR_SIGNATURES,
}
_EXACT_CODES = {"none": params.EXACT_NONE, "bloom": params.EXACT_BLOOM, "trie": params.EXACT_TRIE}

_WORTH_THREADS = 256
"""Least number of rows for which threads are used. With fewer rows, waking the threads (some 50 µs each)
takes more time than they save."""


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
    return EXACT_CHUNK_ROWS if config.near.method == "none" else CHUNK_ROWS


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
        if near.method == "signatures" and not 1 <= near.share <= near.parts <= MAX_PARTS:
            raise UsageError(
                f"near.signature: {near.share} shared of {near.parts} hashes; use at most {MAX_PARTS}, and "
                "share no more than these"
            )
        self._config = config
        self._text = near.method == "text"
        self._by_parts = near.method == "signatures"
        self._scan = near.method in ("text", "hamming") and near.candidates == "scan"
        self.ring = Ring(window, ring_use(config))
        indexed = self._text and not self._scan
        self._table = BucketTable(config.layout, window if indexed else 1, near.bucket_load)
        self.chains = new_chains(near) if near.method == "hamming" else no_chains()
        self.part_chains = new_part_chains(*((self.ring.capacity, near.parts) if self._by_parts else (1, 1)))
        self._candidates = CandidateParams(
            signature_limits(near.similarity), window, _limit(near.window.age_ms), int(self._scan)
        )
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
        )
        tables = config.layout.bands + config.layout.tables if self._text else 0
        self._kept = new_chunk_index(chunk_rows(config), tables)
        scans = self._scan or near.method == "hamming"
        most = max_matches(self.buckets, window, scans)
        self._spare = new_matches(1, most + 1)
        self._matches = new_matches(CHUNK_ROWS, CHUNK_ROWS * MATCHES_PER_ROW)
        phrases = phrases_of(near.words)
        self._scratch = [new_scratch(phrases, 0 if scans else most) for _ in range(max(1, near.shards))]
        self._threads = ThreadPoolExecutor(near.shards) if near.shards > 1 else None
        self._pushed_out = PushedOut()

    def judge(
        self,
        chunk: Chunk,
        exact: ExactIndex,
        outcome: Outcome,
        *,
        recorded: bool,
        meanwhile: Callable[[], None] | None = None,
    ) -> None:
        """Write the verdicts on a chunk to `outcome`, and add its kept rows to the state.

        recorded: `outcome` already has all verdicts, so no candidates are searched
        meanwhile: as in `BatchSieve.judge`
        """
        characters = int(chunk.starts[-1] - chunk.starts[0])
        self.ring.reserve(min(characters, STORED_LENGTH * len(chunk.lengths)), len(chunk.lengths))
        clear(self._kept)
        if meanwhile is not None:
            meanwhile()
        if recorded or not self.ring.size:
            # An empty index has no matches, and reading its pages would take memory.
            self._matches.counts[:] = 0
        elif self._text or self._params.near == params.NEAR_HAMMING:
            self._propose(chunk)
        work = Workspace(self._matches, self._spare, self._scratch[0], self._kept)
        decide(chunk, self._index, exact, self._params, work, outcome)
        self._insert(chunk)

    @property
    def _index(self) -> NearIndex:
        return NearIndex(
            self.ring.columns, self.buckets, self.chains, self.part_chains, self._candidates, self._verify
        )

    @property
    def _has_tables(self) -> bool:
        return self._params.near == params.NEAR_HAMMING and not self._scan

    @property
    def buckets(self) -> Buckets:
        """The candidate index, as kernels take it."""
        return self._table.buckets

    def count_pushed_out(self, bands: int) -> int:
        """Read the next bands of the candidate index (`window.pushed_out`). returns: the last whole count"""
        if self._text and not self._scan:
            self._pushed_out.count(self.ring.columns, self.buckets, bands)
        return self._pushed_out.messages

    def kept_rows(self) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """(kept rows of the last chunk, their kept indices). The next chunk overwrites these arrays."""
        count = int(self._kept.counts[0])
        return self._kept.kept_rows[:count], self._kept.kept_indices[:count]

    def _propose(self, chunk: Chunk) -> None:
        rows = len(chunk.lengths)
        room = len(self._matches.kept)
        shards = len(self._scratch)
        index = self._index
        kernel = propose if self._text else propose_bits

        def propose_shard(shard: int) -> None:
            low, high = rows * shard // shards, rows * (shard + 1) // shards
            first, end = room * shard // shards, room * (shard + 1) // shards
            kernel(low, high, chunk, index, self._scratch[shard], self._matches, first, end)

        self._on_threads(propose_shard, rows)

    def keep_again(self, chunks: Iterable[Chunk]) -> None:
        """Keep all rows of these chunks again, in the order in which another sieve kept them.

        chunks: as `judge.kept_messages.as_chunk` makes them; their times are stream times
        Threads fill the candidate index with a chunk while the next one is moved into the ring.
        """
        with ThreadPoolExecutor() as threads:
            inserting: list[Future[None]] = []
            for chunk in chunks:
                count, first = len(chunk.lengths), self.ring.kept
                self.ring.reserve(int(chunk.starts[-1]), count)
                keep_all(self.ring.columns, chunk)
                for each in inserting:
                    each.result()
                rows, kept = np.arange(count, dtype=np.int32), np.arange(first, first + count)
                inserting = self._begin_inserting(chunk, rows, kept, threads)
            for each in inserting:
                each.result()

    def _own_buckets(self, chunk: Chunk) -> NDArray[np.int64]:
        found = np.zeros(len(chunk.probes) * (self.buckets.bands + self.buckets.tables), np.int64)
        return found[: own_buckets(chunk, self.buckets, found)]

    def _begin_inserting(
        self, chunk: Chunk, rows: NDArray[np.int32], kept: NDArray[np.int64], threads: Executor
    ) -> list[Future[None]]:
        """Let threads insert kept rows into the candidate index. rows, kept: row and kept index of each"""
        if not self._has_index:
            return []
        if self._text:
            self._table.reserve(lambda: self._own_buckets(chunk))
        insert = self._inserter(chunk, rows, kept)
        tables = self._index_tables
        return [threads.submit(insert, table, table + 1) for table in range(tables)]

    @property
    def _has_index(self) -> bool:
        """Whether kept messages are inserted into a candidate index."""
        return self._params.near != params.NEAR_NONE and not self._by_parts and not self._scan

    @property
    def _index_tables(self) -> int:
        return self.buckets.bands + self.buckets.tables if self._text else len(self.chains.masks)

    def _inserter(
        self, chunk: Chunk, rows: NDArray[np.int32], kept: NDArray[np.int64]
    ) -> Callable[[int, int], None]:
        """A function that inserts kept rows into the tables of the candidate index from one to another."""
        buckets, chains, count = self.buckets, self.chains, len(rows)

        def insert(low: int, high: int) -> None:
            if self._text:
                insert_kept(chunk, rows, kept, count, low, high, buckets)
            else:
                link_kept(chunk, rows, kept, count, low, high, chains)

        return insert

    def _insert(self, chunk: Chunk) -> None:
        rows, kept = self.kept_rows()
        if len(rows) == 0 or not self._has_index:
            return
        if self._text:
            self._table.reserve(lambda: filled_buckets(self._kept))
        insert = self._inserter(chunk, rows, kept)
        shards, tables = len(self._scratch), self._index_tables
        self._on_threads(
            lambda shard: insert(tables * shard // shards, tables * (shard + 1) // shards), len(rows)
        )

    def _on_threads(self, work: Any, size: int) -> None:
        """Call `work` for each shard, on threads if `size` rows are worth it. The result is the same."""
        if self._threads is None or size < _WORTH_THREADS:
            for shard in range(len(self._scratch)):
                work(shard)
        else:
            # list() waits for all shards, and raises the error of a shard that failed.
            list(self._threads.map(work, range(len(self._scratch))))

    @property
    def bytes_used(self) -> int:
        """Bytes of ring and index."""
        index = sum(a.nbytes for a in self.chains) if self._has_tables else 0
        index += sum(a.nbytes for a in self.part_chains) if self._by_parts else 0
        return self.ring.bytes_used + self.buckets.entries.nbytes + index

    def to_sections(self) -> dict[str, NDArray[Any]]:
        """All arrays of the state that verdicts depend on, by name."""
        sections: dict[str, NDArray[Any]] = {**self.ring.to_sections(), "buckets": self.buckets.entries}
        if self._has_tables:
            sections |= {"chains.heads": self.chains.heads, "chains.next": self.chains.next}
        return sections

    def restore(self, sections: dict[str, NDArray[Any]]) -> None:
        """Load the arrays of `to_sections`. The parameters must be the same, but the window may differ."""
        self.ring.restore(sections)
        kept, size = self.ring.kept, self.ring.size
        self._table.restore(sections["buckets"], int(sections["ring.window"][0]), kept, size)
        if self._has_tables:
            heads, links = sections["chains.heads"], sections["chains.next"]
            self.chains = resize_chains(heads, links, self.chains, kept, size)
        self.link_parts()

    def link_parts(self) -> None:
        """Rebuild the index of the method signatures from the ring, after a restore."""
        if self._by_parts:
            link_all(self.part_chains, self.ring.columns)


def near_bytes(config: SieveConfig) -> dict[str, int]:
    """Greatest number of bytes of each part, if the window is full and each text has the greatest length."""
    near, use = config.near, ring_use(config)
    window = near.window.messages
    simhashes = use.simhashes + use.second_simhashes
    row = record_type(use.text, use.simhashes or use.parts > 0).itemsize
    row += 8 * (1 + use.ids + use.scopes + simhashes + use.parts)
    parts = {"ring": window * row, "tags": TagIndex.bytes_for(window)}
    if use.text:
        parts["texts"] = window * (
            2 * (STORED_LENGTH + SKETCH_UNITS + STORED_LENGTH // 16 + TALLY_UNITS + GRANULE)
        )
    if use.text and near.candidates == "index":
        parts["buckets"] = 8 * entry_count(config.layout, window, near.bucket_load)
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
