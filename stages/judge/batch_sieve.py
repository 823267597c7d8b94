"""`BatchSieve.judge(batch) -> Verdicts`: the exact stage, then the near stage, row by row in log order.

Verdicts are a pure function of configuration and ordered input; batch size, shards, and a save and load
in between change nothing.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.columns import places_of
from twinsieve.stages.contract import (
    DETAIL_LENGTH,
    NO_TIME,
    Batch,
    Kind,
    SieveConfig,
    SieveStats,
    Verdicts,
)
from twinsieve.stages.errors import NEW_STATE, StateError, UsageError
from twinsieve.stages.exact.bloom import BloomGenerations
from twinsieve.stages.exact.forgotten import Forgotten
from twinsieve.stages.exact.sections import Sections
from twinsieve.stages.exact.trie import TrieTiers
from twinsieve.stages.judge.chunk_judge import ChunkJudge, chunk_rows, near_bytes, no_bloom, no_trie_hits
from twinsieve.stages.judge.params import UNJUDGED, UNJUDGED_NEAR, ExactIndex, Outcome, TrieHits
from twinsieve.stages.judge.state import read_state, write_state
from twinsieve.stages.near.hamming import FINGERPRINT_BITS, blocks_of
from twinsieve.stages.window.chunk import Chunk, rows, whole_batch
from twinsieve.stages.window.ring import FIRST_TIME, STREAM_TIME


class BatchSieve:
    """Judges batches of fingerprints against the messages it kept; the public `Sieve` gives it texts.

    raises: UsageError for a configuration that cannot be kept (windows, layouts, error rates)
    """

    def __init__(self, config: SieveConfig) -> None:
        if not 0 < config.near.similarity <= 10_000:
            raise UsageError(f"near.similarity is {config.near.similarity} of 10,000; use 1..10,000")
        self.config = config
        self._chunk_judge = ChunkJudge(config)
        exact = config.exact
        self._filters = BloomGenerations(exact.window, exact.error_rate) if exact.method == "bloom" else None
        self._bloom = self._filters.bloom if self._filters else no_bloom()
        self._tiers = TrieTiers(exact.window) if exact.method == "trie" else None
        self._forgotten = Forgotten()
        # The trie gets a chunk's rows after the chunk; until then the ring must hold them.
        rows = chunk_rows(config)
        self._chunk_rows = min(rows, config.near.window.messages) if self._tiers is not None else rows

    def judge(self, batch: Batch) -> Verdicts:
        """A verdict for each row; the state has moved past the batch.

        batch: readable messages only, in log order, of this configuration's fingerprint scheme
        """
        verdicts = Verdicts.blank(len(batch), fill={"kinds": UNJUDGED})
        outcome = _outcome(verdicts, DETAIL_LENGTH if self.config.near.details else 0)
        self._run(batch, outcome, recorded=False)
        if self.config.near.method == "hamming":
            near = verdicts.kinds == Kind.NEAR
            verdicts.distances[near] = FINGERPRINT_BITS - verdicts.matched[near]
            verdicts.matched[:] = 0
            verdicts.compared[:] = 0
        verdicts.details, verdicts.detail_rows = _pooled(outcome.details)
        return verdicts

    def apply(self, batch: Batch, verdicts: Verdicts) -> None:
        """Bring the state to where judging with these verdicts would have left it; judges nothing.

        verdicts: recorded decisions for the rows of `batch`; `kinds` and `flags` are read
        """
        outcome = _outcome(verdicts.for_kernels(), 0)
        if len(outcome.kinds) and int(outcome.kinds.max()) > Kind.NEAR:
            raise UsageError("only unique, exact and near rows can be applied; leave the others out")
        self._run(batch, outcome, recorded=True)

    def forget(self, positions: NDArray[np.int64], tags: NDArray[np.uint64]) -> None:
        """Let kept messages at these positions no longer lead: the next copy of one is judged as new.

        Called once, for messages that were kept and never came out. A copy kept since then still leads if
        the ring holds it; else it is forgotten too, and the next copy is kept.
        tags: uint64[n], the first halves of their digests, salted with their scope
        """
        near, exact = self._chunk_judge, self.config.exact
        near.ring.forget(positions)
        if exact.method == "none":
            return
        # The same text may have been kept again since; that copy still leads.
        leaders, forgotten = near.ring.leaders_of(tags), set(positions.tolist())
        pairs = zip(positions.tolist(), tags.tolist(), strict=True)
        tags = np.array(
            [tag for position, tag in pairs if leaders.get(tag, position) in forgotten], np.uint64
        )
        sizing = self._filters.sizing if self._filters is not None else None
        capacity, span_ms = (sizing.capacity, max(0, sizing.span_ms)) if sizing is not None else (0, 0)
        kept, stream_time = near.ring.kept, int(near.ring.columns.counters[STREAM_TIME])
        age_ms = None if exact.window.age_ms is None else exact.window.age_ms + span_ms
        self._forgotten.expire(kept, exact.window.messages + capacity, stream_time, age_ms)
        self._forgotten.add(tags, kept, stream_time)

    def _run(self, batch: Batch, outcome: Outcome, *, recorded: bool) -> None:
        whole = whole_batch(batch, self.config.layout, self.config.scoped)
        low = 0
        while low < len(batch):
            high = min(low + self._chunk_rows, len(batch))
            if len(self._forgotten):
                # The same parts where nothing is judged: what the trie drops depends on them.
                tags = whole.digests[low:high, 0]
                high = low + self._forgotten.until_one_repeats(tags)
                if not recorded:
                    outcome.kinds[low:high][self._forgotten.holds(tags[: high - low])] = UNJUDGED_NEAR
            chunk = rows(whole, low, high)
            part = Outcome._make(column[low:high] for column in outcome)
            self._chunk_judge.judge(chunk, self._exact_index(chunk), part, recorded=recorded)
            self._seal(chunk)
            if len(self._forgotten):
                self._forgotten.lead_again(chunk.digests[self._chunk_judge.kept_rows()[0], 0])
            low = high

    def _exact_index(self, chunk: Chunk) -> ExactIndex:
        if self._tiers is None:
            return ExactIndex(self._bloom, no_trie_hits())
        # What the ring still holds when the chunk ends, it finds by itself.
        before = self._chunk_judge.ring.first_kept_after(len(chunk.lengths))
        return ExactIndex(self._bloom, TrieHits(*self._tiers.find(chunk.digests, before)))

    def _seal(self, chunk: Chunk) -> None:
        if self._tiers is None:
            return
        kept_rows, kept_indices = self._chunk_judge.kept_rows()
        ring = self._chunk_judge.ring
        times = ring.columns.times[kept_indices % ring.capacity]
        self._tiers.add(chunk.digests[kept_rows], chunk.positions[kept_rows], kept_indices, times)
        stream_time = self.stats().stream_time_ms
        self._tiers.expire(ring.kept, NO_TIME if stream_time is None else stream_time)

    def stats(self) -> SieveStats:
        """How full the sieve is now."""
        ring = self._chunk_judge.ring
        stream_time = int(ring.columns.counters[STREAM_TIME])
        oldest_time = int(ring.columns.times[ring.oldest_slot]) if ring.size else NO_TIME
        if oldest_time == NO_TIME:
            oldest_time = int(ring.columns.counters[FIRST_TIME])
        exact = self._filters if self._filters is not None else self._tiers
        return SieveStats(
            kept=ring.kept,
            held=ring.size,
            capacity=ring.capacity,
            stream_time_ms=None if stream_time == NO_TIME else stream_time,
            oldest_time_ms=None if oldest_time == NO_TIME else oldest_time,
            bytes_used=self._chunk_judge.bytes_used + (exact.bytes_used if exact is not None else 0),
        )

    def save(self, stream: BinaryIO) -> None:
        """Write everything that a verdict depends on to the stream."""
        sections = self._chunk_judge.to_sections() | self._exact_sections()
        write_state(stream, self.config.scheme_id, _parameters(self.config), sections)

    def freeze(self) -> Callable[[BinaryIO], None]:
        """`save` of the state as it is now, to be called later, from any thread, while the sieve judges more.

        Costs a copy of the state (`stats().bytes_used` bytes) for as long as it is held.
        """
        sections = {name: array.copy() for name, array in self._chunk_judge.to_sections().items()}
        sections |= self._exact_sections()
        config = self.config
        return lambda stream: write_state(stream, config.scheme_id, _parameters(config), sections)

    def _exact_parts(self) -> list[tuple[str, BloomGenerations | TrieTiers | Forgotten | None]]:
        return [("bloom", self._filters), ("trie", self._tiers), ("forgotten", self._forgotten)]

    def _exact_sections(self) -> Sections:
        """Copies, so that they change no more."""
        return {
            f"{prefix}.{name}": array
            for prefix, part in self._exact_parts()
            if part is not None
            for name, array in part.to_sections().items()
        }

    @classmethod
    def load(cls, stream: BinaryIO, config: SieveConfig, *, forget_exact: bool = False) -> BatchSieve:
        """The sieve that was saved, under a configuration of the same methods, exact window and scheme.

        Similarity, guards and the near window may differ: they hold from the next message on.
        forget_exact: the exact stage may differ too, and begins empty
        raises: StateError, saying what differs or is damaged and what to do
        """
        parameters = _parameters(config)
        if forget_exact:
            parameters = {name: value for name, value in parameters.items() if name not in _OF_EXACT}
        sections = read_state(stream, config.scheme_id, parameters)
        sieve = cls(config)
        try:
            sieve._chunk_judge.restore(sections)
            if not forget_exact:
                sieve._restore_exact(sections)
        except (KeyError, ValueError) as error:
            raise StateError(f"state does not hold what it should ({error}); {NEW_STATE}") from error
        return sieve

    def _restore_exact(self, sections: Sections) -> None:
        exact = self.config.exact
        if self._filters is not None:
            self._filters = BloomGenerations.from_sections(
                _part(sections, "bloom"), exact.window, exact.error_rate
            )
            self._bloom = self._filters.bloom
        if self._tiers is not None:
            self._tiers = TrieTiers.from_sections(_part(sections, "trie"), exact.window)
        self._forgotten = Forgotten.from_sections(_part(sections, "forgotten"))

    def to_bytes(self) -> bytes:
        """The saved state as bytes."""
        stream = io.BytesIO()
        self.save(stream)
        return stream.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes, config: SieveConfig) -> BatchSieve:
        """The sieve from `to_bytes`. raises: StateError"""
        return cls.load(io.BytesIO(data), config)


def worst_case_bytes(config: SieveConfig) -> dict[str, int]:
    """Bytes by part when all windows are full of the longest texts; none of them is allocated.

    raises: UsageError
    """
    parts = near_bytes(config)
    exact = config.exact
    if exact.method == "bloom":
        parts["bloom"] = BloomGenerations.bytes_for(exact.window, exact.error_rate)
    if exact.method == "trie":
        parts["trie"] = TrieTiers.bytes_for(exact.window)
    return parts


def _outcome(verdicts: Verdicts, room: int) -> Outcome:
    """The columns of the verdicts for kernels to fill, and room for details of that many characters."""
    columns = {name: getattr(verdicts, name) for name in Outcome._fields if name != "details"}
    return Outcome(**columns, details=np.zeros((len(verdicts), 2, room), np.uint32))


def _pooled(details: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
    """The pool of the rows that have details, and the place of each row in it.

    details: uint32[n, 2, room], zeros where there are none
    """
    has_details = details.any(axis=(1, 2))
    pool = details[has_details] if has_details.any() else np.zeros((0, 2, DETAIL_LENGTH), np.uint32)
    return pool, places_of(has_details).astype(np.int32)


def _part(sections: Sections, prefix: str) -> Sections:
    start = len(prefix) + 1
    return {name[start:]: array for name, array in sections.items() if name.startswith(prefix + ".")}


_OF_EXACT = frozenset({"exact.method", "exact.window.messages", "exact.window.age_ms", "exact.error_rate"})


def _parameters(config: SieveConfig) -> dict[str, Any]:
    """What the arrays' shapes and meaning depend on."""
    near, exact, layout = config.near, config.exact, config.layout
    parameters: dict[str, Any] = {
        "exact.method": exact.method,
        "exact.window.messages": exact.window.messages,
        "exact.window.age_ms": exact.window.age_ms,
        "exact.error_rate": exact.error_rate,
        "near.method": near.method,
        "near.candidates": near.candidates,
        "near.bucket_load": near.bucket_load,
        "near.same_id": near.same_id,
        "scope": config.scoped,
        "layout": [
            layout.bands,
            layout.rows,
            layout.tables,
            layout.key_bits,
            layout.weak,
            layout.simhash_from,
            *([] if layout.grams == "chars" else [layout.grams]),
        ],
    }
    if near.method == "hamming":
        parameters["near.blocks"] = blocks_of(near)
        parameters["near.distances"] = [list(step) for step in near.distances]
    return parameters
