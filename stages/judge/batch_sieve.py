"""`BatchSieve.judge(batch) -> Verdicts`: for each row in log order the exact stage, then the near stage.

Verdicts depend only on the configuration and the ordered input. The batch size, the number of threads, and a
save and load between batches do not change them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import astuple, replace
from functools import cached_property, partial
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
from twinsieve.stages.errors import DamagedError, SieveError, UsageError
from twinsieve.stages.exact.bloom import BloomGenerations
from twinsieve.stages.exact.forgotten import Forgotten
from twinsieve.stages.exact.runs import gone
from twinsieve.stages.exact.sections import SavedSections, Sections
from twinsieve.stages.exact.trie import TrieTiers
from twinsieve.stages.judge import params
from twinsieve.stages.judge.decide import decide
from twinsieve.stages.judge.frozen import Frozen, SavedParts
from twinsieve.stages.judge.kept_messages import KeptMessages, as_chunk, check_kept, kept_messages
from twinsieve.stages.judge.near_rules import compares_texts
from twinsieve.stages.judge.near_window import (
    IN_MEMORY,
    NearWindow,
    chunk_rows,
    near_bytes,
    segment_count,
)
from twinsieve.stages.judge.params import (
    UNJUDGED,
    UNJUDGED_NEAR,
    ExactIndex,
    JudgeParams,
    KeptRows,
    Outcome,
    TrieHits,
    Workspace,
    no_bloom,
    no_trie_hits,
)
from twinsieve.stages.judge.rules_digest import RULES_BYTES, rules_digest
from twinsieve.stages.judge.state_bytes import read_state
from twinsieve.stages.near.answers import NO_ANSWERS, Answer, lies_in, part_of
from twinsieve.stages.near.hamming import blocks_of
from twinsieve.stages.window.chunk import Chunk, rows, whole_batch
from twinsieve.stages.window.segments import InMemory, IntoFile, SealedSegment, SegmentId
from twinsieve.stages.window.soundness import check_numbers

_MEMORY = "near"
"""What names of parts that hold the memory of the near stage begin with."""

_NEAR_CODES = {
    "none": params.NEAR_NONE,
    "text": params.NEAR_TEXT,
    "hamming": params.NEAR_HAMMING,
    "signatures": params.NEAR_SIGNATURES,
}
_EXACT_CODES = {"none": params.EXACT_NONE, "bloom": params.EXACT_BLOOM, "trie": params.EXACT_TRIE}


class BatchSieve:
    """Decides on batches of fingerprints, chunk by chunk. (The public `Sieve` takes texts.)

    near: the messages kept before, which looks the rows of a chunk up; `decide` judges them by what it found
    raises: UsageError for a configuration with an invalid window, layout or error rate
    """

    def __init__(self, config: SieveConfig) -> None:
        if not 0 < config.near.similarity <= 10_000:
            raise UsageError(f"near.similarity is {config.near.similarity} of 10,000; use 1..10,000")
        self.config = config
        self.near = NearWindow(config)
        exact = config.exact
        self._filters = BloomGenerations(exact.window, exact.error_rate) if exact.method == "bloom" else None
        self._bloom = self._filters.bloom if self._filters else no_bloom()
        self._tiers = TrieTiers(exact.window) if exact.method == "trie" else None
        self._forgotten = Forgotten()
        self._judged_by: str | None = ""
        """`judged_by`; None if this sieve judged last."""
        self.on_kept: Callable[[int, KeptMessages], None] | None = None
        """Called after each chunk with what was kept, and with the number of its first message. Messages that
        the near window has passed by then are left out."""
        # The trie gets the kept rows of a chunk only after the chunk. Until then the ring must hold all of
        # them, so a chunk is not longer than the ring.
        rows = chunk_rows(config)
        self._chunk_rows = min(rows, config.near.window.messages) if self._tiers is not None else rows
        self._params = _judge_params(config)
        self._kept = KeptRows(np.zeros(rows, np.int32), np.zeros(1, np.int64))
        self._first_kept = 0
        self._apart = np.full(rows, -1, np.int64)

    @cached_property
    def rules(self) -> str:
        """`rules_digest` of this sieve."""
        return rules_digest(self.config.near)

    @property
    def judged_by(self) -> str:
        """`rules` of the sieve that judged last; empty if that is unknown, or if nothing was judged. Whoever
        calls `apply` sets it."""
        return self.rules if self._judged_by is None else self._judged_by

    @judged_by.setter
    def judged_by(self, rules: str) -> None:
        self._judged_by = rules

    @property
    def other_rules(self) -> str:
        """`judged_by` if these are not the rules of this sieve; else empty."""
        before = self._judged_by
        return before if before and before != self.rules else ""

    def judge(
        self,
        batch: Batch,
        meanwhile: Callable[[], None] | None = None,
        answers: Mapping[SegmentId, Answer] = NO_ANSWERS,
    ) -> Verdicts:
        """The verdict on each row. The kept rows are added to the state.

        batch: readable messages only, in log order, with fingerprints of this configuration's scheme
        meanwhile: called once, right before the long kernels begin, which do not need the interpreter (GIL).
            Work that it starts in another thread then runs beside them. Not called for an empty batch
        answers: of sealed segments, to the question of this configuration (`NearRules.question`), for these
            rows. They change no verdict: in the other segments the rows are looked up here
        """
        verdicts = self._judged(batch, keeps=True, meanwhile=meanwhile, answers=answers)
        self._judged_by = None
        return verdicts

    def query(self, batch: Batch) -> Verdicts:
        """The verdict that `judge` would return for each row if that row alone came next, without a time.

        No row is added to the state, so later verdicts are as if this call had not been made.
        batch: as for `judge`; its times are not read
        """
        return self._judged(replace(batch, times_ms=np.full(len(batch), NO_TIME)), keeps=False)

    def sealed_ids(self) -> list[SegmentId]:
        """The sealed segments of the near window, oldest first."""
        return [segment.id for segment in self.near.segments.sealed]

    def fitting(self, answers: Mapping[SegmentId, Answer]) -> dict[SegmentId, Answer]:
        """Those of these answers that can be of sealed segments of this sieve: their positions lead to
        messages that the caller knows. None of segments that the window has passed, or that are unknown."""
        found = {}
        for each in self.near.segments.sealed if answers else ():
            answer = answers.get(each.id)
            if answer is not None and lies_in(answer, each.first, each.ring.kept, each.positions):
                found[each.id] = answer
        return found

    def hold(self, answered: Collection[SegmentId]) -> Callable[[], None] | None:
        """Give up memory of the sealed segments in which somebody else looks rows up.

        answered: those segments
        returns: a call that takes another segment into memory, for any thread; None if there is no such
            segment in a file, or not enough memory (`NearConfig.memory`). It raises MemoryError
        """
        segments = self.near.segments
        segments.answered = frozenset(answered)
        segments.use_files()
        segment = segments.next_to_hold()
        return None if segment is None else segment.use_memory

    def in_memory(self) -> InMemory:
        """The part of the near window that is in memory because it is in no file."""
        return self.near.segments.in_memory()

    def take_answered(self) -> tuple[int, int]:
        """Rows times segments that were answered, and how many of them were looked up all the same, since the
        last call."""
        near = self.near
        taken, near.answered_rows, near.left_rows = (near.answered_rows, near.left_rows), 0, 0
        return taken

    def time_look_ups(self, now_s: Callable[[], float]) -> None:
        """From now on, take the time of look-ups by this clock."""
        self.near.now_s = now_s

    def take_look_ups(self) -> list[tuple[SegmentId | None, int, float]]:
        """In which segments rows were looked up since the last call, how many, and for how many seconds; None
        is the open segment."""
        taken, self.near.look_ups = self.near.look_ups, []
        return taken

    @cached_property
    def question(self) -> bytes:
        """What this sieve asks of a segment (`NearRules.question`)."""
        return self.near.question()

    def _judged(
        self,
        batch: Batch,
        *,
        keeps: bool,
        meanwhile: Callable[[], None] | None = None,
        answers: Mapping[SegmentId, Answer] = NO_ANSWERS,
    ) -> Verdicts:
        verdicts = Verdicts.blank(len(batch), fill={"kinds": UNJUDGED})
        outcome = _outcome(verdicts, DETAIL_LENGTH if self.config.near.details else 0)
        self._run(batch, outcome, recorded=False, keeps=keeps, meanwhile=meanwhile, answers=answers)
        if self.config.near.method in ("hamming", "signatures"):
            near = verdicts.kinds == Kind.NEAR
            if self.config.near.method == "hamming":
                verdicts.distances[near] = verdicts.compared[near] - verdicts.matched[near]
            else:
                verdicts.shared[near] = verdicts.matched[near]
            verdicts.matched[:] = 0
            verdicts.compared[:] = 0
        verdicts.details, verdicts.detail_rows = _pooled(outcome.details)
        return verdicts

    def apply(self, batch: Batch, verdicts: Verdicts) -> None:
        """Update the state as if `judge` had returned these verdicts for the batch. Nothing is compared.

        verdicts: recorded verdicts on the rows of `batch`; only `kinds` and `flags` are read
        raises: UsageError for a verdict other than unique, exact and near
        """
        outcome = _outcome(verdicts.for_kernels(), 0)
        if len(outcome.kinds) and int(outcome.kinds.max()) > Kind.NEAR:
            raise UsageError("only unique, exact and near rows can be applied; leave the others out")
        self._run(batch, outcome, recorded=True)

    def forget(self, positions: NDArray[np.int64], tags: NDArray[np.uint64]) -> None:
        """Forget kept messages at these positions as leaders, so that their next copies are judged as new.

        Call it once for messages that were kept but never reached the output. If a copy was kept after such a
        message and is still in the ring, that copy stays a leader. Otherwise the copy is forgotten too, and
        the next copy is kept.
        tags: uint64[n], the first halves of the messages' digests, with their scopes mixed in
        """
        near, exact = self.near.segments, self.config.exact
        near.forget(positions)
        if exact.method == "none":
            return
        # A forgotten message may have a later copy that was also kept. That copy stays the leader of this
        # text, so the tag of the text is not forgotten.
        leaders, forgotten = near.leaders_of(tags), set(positions.tolist())
        pairs = zip(positions.tolist(), tags.tolist(), strict=True)
        tags = np.array(
            [tag for position, tag in pairs if leaders.get(tag, position) in forgotten], np.uint64
        )
        sizing = self._filters.sizing if self._filters is not None else None
        capacity, span_ms = (sizing.capacity, max(0, sizing.span_ms)) if sizing is not None else (0, 0)
        kept, stream_time = near.kept, near.stream_time
        age_ms = None if exact.window.age_ms is None else exact.window.age_ms + span_ms
        self._forgotten.expire(kept, exact.window.messages + capacity, stream_time, age_ms)
        self._forgotten.add(tags, kept, stream_time)

    def _run(
        self,
        batch: Batch,
        outcome: Outcome,
        *,
        recorded: bool,
        keeps: bool = True,
        meanwhile: Callable[[], None] | None = None,
        answers: Mapping[SegmentId, Answer] = NO_ANSWERS,
    ) -> None:
        whole = whole_batch(batch, self.config.layout, self.config.scoped)
        if self.config.near.method == "hamming":
            # The ring then marks rows without a SimHash, so that a scan does not compare their zeros.
            whole = whole._replace(lengths=np.where(whole.has_simhash, whole.lengths, np.int32(0)))
        low = 0
        while low < len(batch):
            high = min(low + min(self._chunk_rows, self.near.segments.room), len(batch))
            if len(self._forgotten):
                # Cut the chunk also if its verdicts are given already: the cuts decide which entries the trie
                # drops, and the state must become that of the sieve that made the verdicts.
                tags = whole.digests[low:high, 0]
                high = low + self._forgotten.until_one_repeats(tags)
                if not recorded:
                    outcome.kinds[low:high][self._forgotten.holds(tags[: high - low])] = UNJUDGED_NEAR
            chunk = rows(whole, low, high)
            part = Outcome._make(column[low:high] for column in outcome)
            found = answers
            if high - low < len(batch):
                found = {segment: part_of(answer, low, high) for segment, answer in answers.items()}
            self._judge_chunk(chunk, part, recorded, keeps, meanwhile if low == 0 else None, found)
            self._seal(chunk)
            self._hand_out(chunk)
            if len(self._forgotten):
                self._forgotten.lead_again(chunk.digests[self._kept_rows()[0], 0])
            low = high

    def _judge_chunk(
        self,
        chunk: Chunk,
        outcome: Outcome,
        recorded: bool,
        keeps: bool,
        meanwhile: Callable[[], None] | None,
        answers: Mapping[SegmentId, Answer],
    ) -> None:
        """Write the verdicts on a chunk to `outcome`, and add its kept rows to the state.

        recorded: `outcome` already has all verdicts, so nothing is looked up
        keeps: False to add no row to the state; then the rows must not have times
        """
        near = self.near
        exact = self._exact_index(chunk)
        near.begin_chunk(chunk)
        self._kept.counts[0], self._first_kept = 0, near.segments.kept
        if meanwhile is not None:
            meanwhile()
        if not recorded:
            near.look_up(chunk, answers)
        index, settings = near.index(near.segments.open), self._params._replace(keeps=int(keeps))
        forgotten = near.segments.forgotten
        work = Workspace(near.matches, near.copies, forgotten, self._apart, near.scratch[0], self._kept)
        row = decide(chunk, index, exact, settings, work, outcome, 0)
        while row < len(chunk.lengths):
            near.look_up_row(chunk, row)
            row = decide(chunk, index, exact, settings, work, outcome, row)
        if self.config.near.details:
            near.write_details(chunk, self._apart, outcome)
        near.end_chunk(chunk, *self._kept_rows())

    def _kept_rows(self) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """(kept rows of the last chunk, their kept indices)"""
        count = int(self._kept.counts[0])
        return self._kept.rows[:count], np.arange(self._first_kept, self._first_kept + count)

    def _exact_index(self, chunk: Chunk) -> ExactIndex:
        if self._tiers is None:
            return ExactIndex(self._bloom, no_trie_hits())
        # What the window still holds when the chunk ends is found in its segments.
        before = self.near.segments.first_kept_after(len(chunk.lengths))
        return ExactIndex(self._bloom, TrieHits(*self._tiers.find(chunk.digests, before)))

    def _hand_out(self, chunk: Chunk) -> None:
        if self.on_kept is None:
            return
        ring = self.near.ring
        rows, kept_indices = self._kept_rows()
        held = kept_indices >= ring.kept - ring.window
        rows, kept_indices = rows[held], kept_indices[held]
        if len(rows):
            times = ring.columns.times[kept_indices % ring.capacity]
            by_text = self.config.near.method == "text"
            messages = kept_messages(chunk, rows, times, self.config.layout, text=by_text)
            self.on_kept(int(kept_indices[0]), messages)

    def _seal(self, chunk: Chunk) -> None:
        kept_rows, kept_indices = self._kept_rows()
        if self._filters is not None and self.on_kept is not None and len(kept_rows):
            self._filters.note(int(kept_indices[0]), chunk.digests[kept_rows])
        if self._tiers is None:
            return
        ring = self.near.ring
        times = ring.columns.times[kept_indices % ring.capacity]
        self._tiers.add(chunk.digests[kept_rows], chunk.positions[kept_rows], kept_indices, times)
        stream_time = self.stats().stream_time_ms
        self._tiers.expire(ring.kept, NO_TIME if stream_time is None else stream_time)

    def expect(self, messages: int) -> None:
        """Take memory for this many more kept messages at once, so that judging does not wait for it."""
        self.near.segments.assign(messages)
        if self._filters is not None:
            self._filters.assign()

    def stats(self) -> SieveStats:
        """How full the sieve is now."""
        near = self.near.segments
        stream_time, oldest_time = near.stream_time, near.oldest_time
        exact = self._filters if self._filters is not None else self._tiers
        return SieveStats(
            kept=near.kept,
            held=near.size,
            capacity=near.window,
            stream_time_ms=None if stream_time == NO_TIME else stream_time,
            oldest_time_ms=None if oldest_time == NO_TIME else oldest_time,
            bytes_used=self.near.bytes_used + (exact.bytes_used if exact is not None else 0),
            bytes_mapped=near.bytes_mapped,
            segments=len(near.all),
        )

    def positions(self) -> tuple[int, int]:
        """Smallest and greatest position of the messages that may be leaders; (0, -1) without one."""
        ranges = [segment.positions.tolist() for segment in self.near.segments.all]
        ranges += self._tiers.positions() if self._tiers is not None else []
        held = [(low, high) for low, high in ranges if low <= high]
        return min((low for low, _ in held), default=0), max((high for _, high in held), default=-1)

    def pushed_out(self, bands: int) -> int:
        """How many messages of the near window the candidate index hardly finds any more.

        Newer messages took their places in the buckets (`stages.window.pushed_out`); 0 without such an index.
        bands: how many bands of the index this call reads, `BandLayout.bands` for all. A count is whole when
            all were read; a call before that returns the last whole count
        """
        return self.near.count_pushed_out(bands)

    def freeze(self, have: Collection[str] = (), memory_at: int | None = None) -> Frozen:
        """The state as it is now, without the messages that were handed to `on_kept`.

        It takes milliseconds: only what is small is copied.
        have: names of parts that were written to files. Of the exact stage only what is not in them is new;
            with none, the newest Bloom generation is copied
        memory_at: with a part that holds the memory of the near stage, as it was when this many messages were
            kept, in place of the messages before. If that is now, the part has to be read before the next
            call of `judge` or `apply`; an earlier one has to be in `have`, and is left out when the window
            has passed it
        """
        sections, parts = self._exact_state(have)
        sections |= self._near_state()
        oldest, kept = sections["near.range"].tolist()
        if memory_at is not None and memory_at > oldest:
            oldest, name = memory_at, f"{_MEMORY}-{memory_at}"
            sections["part.near"] = np.frombuffer(name.encode(), np.uint8)
            parts[name] = self.near.to_sections if memory_at == kept else partial(gone, name)
        return Frozen(self.config.scheme_id, state_parameters(self.config), sections, parts, oldest, kept)

    def _near_state(self) -> Sections:
        """The small sections of the near stage, as copies.

        near.range: (number of the oldest kept message in the ring, number of the next one)
        near.counters: as in the ring; near.forgotten: numbers of messages that lead no more
        near.rules: the bytes of `judged_by`
        """
        near = self.near.segments
        return {
            "near.range": np.array([near.kept - near.size, near.kept]),
            "near.counters": near.counters.copy(),
            "near.forgotten": near.forgotten.copy(),
            "near.rules": np.frombuffer(bytes.fromhex(self.judged_by), np.uint8),
        }

    def _exact_state(self, have: Collection[str] = ()) -> tuple[Sections, dict[str, Callable[[], Sections]]]:
        """(small sections of the exact stage; its parts by name). The former name the latter. have: as in
        `freeze`"""
        sections: Sections = {}
        parts: dict[str, Callable[[], Sections]] = {}
        for prefix, stage in self._exact_parts():
            if stage is None:
                continue
            frozen = stage.freeze(have)
            sections |= {f"{prefix}.{name}": array for name, array in frozen.sections.items()}
            for place, part in frozen.parts.items():
                sections[f"part.{prefix}.{place}"] = np.frombuffer(part.name.encode(), np.uint8)
                parts[part.name] = part.read
        return sections, parts

    def seal_into(self, write: IntoFile | None) -> None:
        """From now on, write sealed segments of the near window to files and use these; None: keep them in
        memory. Segments that are sealed already and in no file are written too."""
        self.near.segments.seal_into(write)

    def _exact_parts(self) -> list[tuple[str, BloomGenerations | TrieTiers | Forgotten | None]]:
        return [("bloom", self._filters), ("trie", self._tiers), ("forgotten", self._forgotten)]

    @classmethod
    def load(
        cls,
        stream: BinaryIO,
        config: SieveConfig,
        *,
        parts: SavedParts,
        forget_exact: bool = False,
        seal_into: IntoFile | None = None,
        fills_memory: bool = True,
    ) -> BatchSieve:
        """The saved sieve. The configuration must have the same methods, exact window and scheme.

        The rules and the near window may be other ones; they apply from the next message on.
        stream: what `Frozen.write` wrote; parts: the rest
        forget_exact: the settings of the exact stage may differ too, and the exact stage begins empty
        seal_into: as for the method of this name; segments that become full in the restore are written too
        fills_memory: hold sealed segments in memory at once, as far as it is enough; False: as `hold` says
        raises: StateError, which says what differs or is damaged, and what to do
        """
        parameters = state_parameters(config)
        if forget_exact:
            parameters = {name: value for name, value in parameters.items() if name not in _OF_EXACT}
        sieve = cls(config)
        try:
            sections = read_state(stream, config.scheme_id, parameters, most_bytes(config))
            sieve._restore_near(sections, parts, seal_into)
            if fills_memory:
                sieve.near.segments.fill_memory()
            if not forget_exact:
                sieve._restore_exact(sections, parts)
        except SieveError:
            raise
        except Exception as error:
            # Arrays of another type or shape than ours may raise anything.
            raise DamagedError(
                f"state does not hold what it should ({type(error).__name__}: {error})"
            ) from error
        return sieve

    def _restore_near(self, sections: Sections, parts: SavedParts, seal_into: IntoFile | None) -> None:
        near = self.near
        oldest, kept = sections["near.range"].tolist()
        counters, forgotten = sections["near.counters"], sections["near.forgotten"]
        # States that were saved before there was such a digest have none.
        rules = sections.get("near.rules", np.empty(0, np.uint8))
        if rules.dtype != np.uint8 or rules.shape not in ((0,), (RULES_BYTES,)):
            raise DamagedError(f"near.rules is {rules.dtype}{list(rules.shape)}")
        self.judged_by = rules.tobytes().hex()
        check_numbers(oldest, kept, counters)
        if forgotten.ndim != 1 or forgotten.dtype.kind not in "iu":
            raise DamagedError(f"near.forgotten is {forgotten.dtype}{list(forgotten.shape)}")
        segments = near.segments
        oldest = max(oldest, kept - segments.window)
        if "part.near" in sections:
            near.restore(parts.sections(sections["part.near"].tobytes().decode()))
        else:
            segments.begin_at(oldest)
            self._add_segments(parts.segments(), oldest, kept)
        segments.seal_into(seal_into)
        near.keep_again(self._chunks_to_keep(parts.kept_messages(), kept))
        if segments.kept != kept:
            raise DamagedError(f"kept messages {segments.kept} to {kept} are missing")
        segments.resume(counters)
        segments.forgotten = np.unique(forgotten.astype(np.int64))
        near.link_parts()

    def _add_segments(self, sealed: Iterable[SealedSegment], oldest: int, end: int) -> None:
        """Add saved segments to the window that begins with the message of number `oldest`."""
        near = self.near.segments
        for segment in sealed:
            if segment.end <= oldest:
                continue  # the window is smaller now
            is_next = segment.first <= oldest < segment.end or segment.first == near.kept
            if not is_next or segment.end > end:
                raise DamagedError(
                    f"the segment of kept messages {segment.first} to {segment.end} is at a wrong place"
                )
            self.near.add_segment(segment)

    def _chunks_to_keep(self, runs: Iterable[tuple[int, KeptMessages]], end: int) -> Iterator[Chunk]:
        """What of these runs comes after the kept messages in the ring, without the messages from number
        `end` on."""
        near = self.near.segments
        for first, messages in runs:
            low, high = max(0, near.kept - first), min(len(messages), end - first)
            if low >= high:
                continue
            if first + low != near.kept:
                raise DamagedError(f"kept messages {near.kept} to {first} are missing")
            held = messages.slice(low, high)
            check_kept(held, self.config.layout, text=self.config.near.method == "text")
            yield as_chunk(held, self.config.layout)
            near.expect(end - near.kept)

    def _restore_exact(self, sections: Sections, parts: SavedParts) -> None:
        exact, known = self.config.exact, -1
        named = {
            name.removeprefix("part."): partial(parts.sections, array.tobytes().decode())
            for name, array in sections.items()
            if name.startswith("part.")
        }
        saved = SavedSections(sections, named)
        if self._filters is not None:
            self._filters = BloomGenerations.from_sections(
                saved.within("bloom"), exact.window, exact.error_rate
            )
            self._bloom = self._filters.bloom
            known = self._filters.newest_kept
        if self._tiers is not None:
            self._tiers = TrieTiers.from_sections(saved.within("trie"), exact.window)
            known = self._tiers.kept_count - 1
        if known >= self.near.segments.kept:
            raise DamagedError(f"the exact stage knows message {known}, which was not kept yet")
        self._forgotten = Forgotten.from_sections(saved.within("forgotten"))


def worst_case_bytes(config: SieveConfig) -> dict[str, int]:
    """Bytes of each part in memory if all windows are full of the longest texts. Nothing is allocated.

    Sealed segments lie in files (`mapped_bytes`). raises: UsageError
    """
    segments = segment_count(config)
    parts = near_bytes(config, min(IN_MEMORY, segments))
    mapped = max(0, segments - IN_MEMORY)
    hot = near_bytes(config, mapped)
    # The column of tags, which look-ups read too, counts to the ring there.
    tags = hot["tags"] + 8 * mapped * config.near.segment
    room = min(config.near.memory - sum(parts.values()), hot.get("buckets", 0) + tags)
    if room > 0:
        parts["sealed segments in memory"] = room
    exact = config.exact
    if exact.method == "bloom":
        parts["bloom"] = BloomGenerations.bytes_for(exact.window, exact.error_rate)
    if exact.method == "trie":
        parts["trie"] = TrieTiers.bytes_for(exact.window)
    return parts


def most_bytes(config: SieveConfig) -> int:
    """The most bytes that a saved part of a sieve of this configuration may have.

    A forged one of a few packed kilobytes could claim any number.
    A window may have been larger when it was saved: up to eight times as large, or a gigabyte.
    raises: UsageError
    """
    return max(1 << 30, 8 * sum(worst_case_bytes(config).values()))


def mapped_bytes(config: SieveConfig) -> int:
    """Bytes of the files of sealed segments if the near window is full of the longest texts."""
    sealed = segment_count(config) - 1
    return sum(near_bytes(config, sealed).values()) if sealed else 0


def _judge_params(config: SieveConfig) -> JudgeParams:
    near, exact, time = config.near, config.exact, config.time
    return JudgeParams(
        near=_NEAR_CODES[near.method],
        exact=_EXACT_CODES[exact.method],
        exact_messages=exact.window.messages,
        exact_age=-1 if exact.window.age_ms is None else exact.window.age_ms,
        near_messages=near.window.messages,
        near_age=-1 if near.window.age_ms is None else near.window.age_ms,
        max_ahead=time.max_ahead_ms,
        late_judge=int(time.late == "judge"),
        late_after=time.late_after_ms,
        compare_text=compares_texts(config),
        keeps=1,
    )


def _outcome(verdicts: Verdicts, room: int) -> Outcome:
    """The columns of the verdicts, for kernels to fill. room: characters of a detail, 0 for no details"""
    columns = {name: getattr(verdicts, name) for name in Outcome._fields if name != "details"}
    return Outcome(**columns, details=np.zeros((len(verdicts), 2, room), np.uint32))


def _pooled(details: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
    """(details of the rows that have some, place of each row in them or -1)

    details: uint32[n, 2, room], zeros for a row without details
    """
    has_details = details.any(axis=(1, 2))
    pool = details[has_details] if has_details.any() else np.zeros((0, 2, DETAIL_LENGTH), np.uint32)
    return pool, places_of(has_details).astype(np.int32)


def memory_in(parts: Iterable[str]) -> int | None:
    """How many messages were kept when the memory of the near stage became a part, if one of these names is
    that of such a part; else None. raises: ValueError for a name that is none"""
    found = [name for name in parts if name.startswith(f"{_MEMORY}-")]
    return int(found[0].partition("-")[2]) if found else None


_OF_EXACT = frozenset({"exact.method", "exact.window.messages", "exact.window.age_ms", "exact.error_rate"})


def state_parameters(config: SieveConfig) -> dict[str, Any]:
    """The settings on which shape and meaning of the saved arrays depend."""
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
        "layout": list(astuple(layout)),
    }
    if near.method == "text":
        parameters["near.segment"] = near.segment
    if near.method == "hamming":
        if near.candidates == "index":
            parameters["near.blocks"] = blocks_of(near)
        if near.distances_by_field:
            parameters["near.distances_by_field"] = list(near.distances_by_field)
        else:
            parameters["near.distances"] = [list(step) for step in near.distances]
    if near.method == "signatures":
        parameters["near.signature.parts"] = near.parts
    return parameters
