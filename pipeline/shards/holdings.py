"""The segments that a shard holds: named by the newest snapshot, copied, checked and mapped.

Whatever waits for a store runs in a thread beside the role, one call after the other: a store that hangs
stops no answer. That thread changes nothing here; the role takes its results over (`Holdings.step`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from twinsieve.pipeline.basics.pauses import Pauses
from twinsieve.pipeline.broker.ports import Clock
from twinsieve.pipeline.index.snapshot_store import SnapshotReader, SnapshotStore
from twinsieve.pipeline.saved import UnreadableError
from twinsieve.pipeline.saved.manifest import Holds, StateFile
from twinsieve.pipeline.saved.saved_files import SavedFiles
from twinsieve.pipeline.shards.config import Problem
from twinsieve.pipeline.shards.rendezvous import Span
from twinsieve.stages.errors import DamagedError, StateError
from twinsieve.stages.window.segments import SealedSegment, Segment, SegmentId

_LOOK_S = 3.0
"""Time between two looks at the names of the snapshots."""
_READ_AGAIN_S = 300.0
"""A manifest is read again after this time although its name is the same: another process may have written
it again."""
_AGAIN = Pauses(first_s=5.0, longest_s=300.0)
"""Pauses after which something that failed is tried again."""


@dataclass(slots=True)
class Held:
    """A segment that is mapped here.

    file: as the manifest names it; id: what answers call it
    unnamed_s: since when no snapshot names it; None: one does
    """

    file: StateFile
    segment: Segment
    id: SegmentId
    unnamed_s: float | None = None

    @property
    def span(self) -> Span:
        """The kept messages that it holds."""
        return Span(self.file.first, self.file.end)


class Wanted(NamedTuple):
    """The segments that a shard needs. answered: it answers for them; kept: it is next for them"""

    answered: frozenset[Span] = frozenset()
    kept: frozenset[Span] = frozenset()


class Seen(NamedTuple):
    """What a look at the store found. offsets: those of the snapshots; files: None if they are unchanged, or
    cannot be read; problems: why"""

    offsets: list[int]
    files: list[StateFile] | None
    problems: list[tuple[Problem, str]]


class _Failed(NamedTuple):
    """When something is tried again, the pause before, and the line about it that was told."""

    again_s: float
    pause_s: float
    line: str


class HeldSnapshots(NamedTuple):
    """Where the files of the segments are.

    store: the snapshots; log_id, scheme: those that a snapshot must have; scheme_id: that of files
    scratch: folder for copies, None for that of the system
    add: maps a segment (`SegmentReader.add`); called in another thread. raises: DamagedError
    """

    store: SnapshotStore
    log_id: bytes
    scheme: bytes
    scheme_id: str
    scratch: str | None
    add: Callable[[SealedSegment], Segment]

    def look(self, known: list[int] | None) -> Seen:
        """The files of segments that the newest snapshot names which can be used. known: offsets of the
        snapshots whose files are known"""
        try:
            offsets = self.store.kept_offsets(self.log_id)
        except StateError as error:
            return Seen([], None, [(Problem.STORE, str(error))])
        if offsets == known:
            return Seen(offsets, None, [])
        problems: list[tuple[Problem, str]] = []
        for found in self.store.read(self.log_id):
            if not isinstance(found, SnapshotReader):
                problems.append((Problem.MANIFEST if found.lasting else Problem.STORE, str(found)))
            elif (found.stamp.log_id, found.stamp.scheme) != (self.log_id, self.scheme):
                problems.append(
                    (Problem.MANIFEST, f"{found.name}: is of another log or fingerprint scheme; delete it")
                )
            else:
                segments = [file for file in found.files if file.holds is Holds.SEGMENT]
                return Seen(offsets, segments, problems)
        return Seen(offsets, [] if not offsets else None, problems)

    def fetch(self, file: StateFile) -> Held:
        """Copy the file of a segment, check and map it. raises: StateError"""
        with SavedFiles(self.store.storage, [file], self.scheme_id, scratch=self.scratch) as files:
            sealed = next(files.segments())
            with files.blamed(self.store.storage.shown(file.name)):
                segment = self.add(sealed)
        return Held(file, segment, segment.id)


class Holdings:
    """What a shard holds of the near window. All methods belong to the role's thread.

    background: makes the calls that may wait for a store, one after the other
    memory: bytes for the hot arrays of segments that are answered for
    grace_s: a segment that no snapshot names any more is kept for this long
    named: the segments of the newest snapshot, oldest first; None: not known yet
    held: the segments that are mapped here
    notices: lines for an operator; problems: counts by kind
    """

    def __init__(
        self, snapshots: HeldSnapshots, background: Executor, clock: Clock, memory: int, grace_s: float
    ) -> None:
        self._snapshots = snapshots
        self._background = background
        self._clock = clock
        self._memory = memory
        self._grace_s = grace_s
        self.named: dict[Span, StateFile] | None = None
        self.held: dict[Span, Held] = {}
        self.notices: list[str] = []
        self.problems: Counter[Problem] = Counter()
        self._wanted = Wanted()
        self._work: tuple[Future[object], Callable[[Future[object]], None]] | None = None
        self._offsets: list[int] | None = None
        self._look_s = self._read_s = clock.monotonic_s()
        self._failed: dict[Span, _Failed] = {}
        self._told: set[str] = set()
        """Lines about the store and its manifests that the last look led to."""
        self._too_large: set[Span] = set()
        """Segments for whose hot arrays there was no memory."""

    def step(self, wanted: Wanted) -> None:
        """Take the result of the thread's last call, drop what is not needed, and begin the next call."""
        self._wanted = wanted
        if self._work is not None and self._work[0].done():
            (done, take), self._work = self._work, None
            take(done)
        self._drop()
        if self._work is None:
            self._begin()

    def is_ready(self, span: Span) -> bool:
        """Whether answers for a segment come as fast as they can: it is here, and in memory if it fits."""
        held = self.held.get(span)
        return held is not None and (held.segment.holds_memory or not self._fits(held))

    @property
    def misses_snapshots(self) -> str:
        """The place that has no snapshot of the log; empty if it has one, or that is not known."""
        return self._snapshots.store.storage.address if self._offsets == [] else ""

    @property
    def is_fetching(self) -> bool:
        """Whether a segment that is answered for is on its way. One that cannot be read is not."""
        return self.named is None or any(
            not self.is_ready(span) and span not in self._failed
            for span in self._wanted.answered.intersection(self.named)
        )

    @property
    def waiting(self) -> list[str]:
        """Names of the files of segments that are answered for and not here."""
        named = self.named or {}
        return [file.name for span, file in named.items() if span in self._wanted.answered - self.held.keys()]

    @property
    def bytes_in_memory(self) -> int:
        """Bytes of hot arrays in memory."""
        return sum(held.segment.bytes_in_memory for held in self.held.values())

    def _fits(self, held: Held) -> bool:
        return (
            held.span not in self._too_large and self.bytes_in_memory + held.segment.bytes_hot <= self._memory
        )

    def _drop(self) -> None:
        now_s = self._clock.monotonic_s()
        needed = self._wanted.answered | self._wanted.kept
        named = self.named or {}
        for span, held in list(self.held.items()):
            if span in named:
                held.unnamed_s = None
            elif self.named is not None and held.unnamed_s is None:
                held.unnamed_s = now_s
            is_gone = held.unnamed_s is not None and now_s - held.unnamed_s >= self._grace_s
            if is_gone or (span in named and span not in needed):
                # A call for it may still run; its result is dropped then.
                del self.held[span]
            elif span not in self._wanted.answered and held.segment.holds_memory:
                held.segment.give_up_memory()
        self._failed = {span: failed for span, failed in self._failed.items() if span in needed}
        self._too_large &= self._wanted.answered

    def _begin(self) -> None:
        """Submit the next call, if there is one: a look, then what is answered for, the newest first."""
        now_s = self._clock.monotonic_s()
        if now_s >= self._look_s:
            is_old = now_s - self._read_s >= _READ_AGAIN_S or bool(self._failed)
            self._look_s = now_s + _LOOK_S
            known = None if is_old or self.named is None else self._offsets
            self._submit(partial(self._snapshots.look, known), self._looked)
            return
        named, wanted = self.named or {}, self._wanted
        newest = sorted(named, reverse=True)
        for span in [span for span in newest if span in wanted.answered]:
            if self._may_fetch(span, named[span]):
                self._fetch(span, named[span])
                return
            held = self.held.get(span)
            if held is not None and not held.segment.holds_memory and self._fits(held):
                self._submit(partial(held.segment.use_memory), partial(self._has_memory, span))
                return
        for span in newest:
            if span in wanted.kept and self._may_fetch(span, named[span]):
                self._fetch(span, named[span])
                return

    def _submit(self, call: Callable[[], object], take: Callable[[Future[object]], None]) -> None:
        self._work = self._background.submit(call), take

    def _may_fetch(self, span: Span, file: StateFile) -> bool:
        failed, held = self._failed.get(span), self.held.get(span)
        is_new = held is None or held.file.digest != file.digest
        return is_new and (failed is None or self._clock.monotonic_s() >= failed.again_s)

    def _fetch(self, span: Span, file: StateFile) -> None:
        self._submit(partial(self._snapshots.fetch, file), partial(self._fetched, span))

    def _looked(self, done: Future[object]) -> None:
        try:
            seen = done.result()
        except Exception as error:  # noqa: BLE001 (stores raise what they like beside OSError)
            kind = self._snapshots.store.storage.kind_of(error)
            seen = Seen([], None, [(Problem.STORE, f"{self._snapshots.store.storage.address}: {kind}")])
        assert isinstance(seen, Seen)
        for problem, line in seen.problems:
            self.problems[problem] += 1
            if line not in self._told:
                self.notices.append(f"{line}; the segments that are here are answered for, tried again later")
        if seen.problems or seen.files is not None:
            self._told = {line for _, line in seen.problems}
        if seen.files is not None:
            self.named = {Span(file.first, file.end): file for file in seen.files}
            self._read_s = self._clock.monotonic_s()
            # What could not be read stays unknown, so that the next look tries it again.
            self._offsets = seen.offsets if not seen.problems else None

    def _fetched(self, span: Span, done: Future[object]) -> None:
        try:
            held = done.result()
        except DamagedError as error:
            self._fail(span, Problem.SEGMENT, str(error))
        except UnreadableError as error:
            self._fail(span, Problem.SEGMENT if error.lasting else Problem.SPACE, str(error))
        except MemoryError as error:
            self._fail(span, Problem.SPACE, f"segment {span.first} to {span.end}: {error}")
        except Exception as error:  # noqa: BLE001 (stores raise what they like beside OSError)
            kind = self._snapshots.store.storage.kind_of(error)
            self._fail(span, Problem.STORE, f"{self._snapshots.store.storage.address}: {kind}")
        else:
            assert isinstance(held, Held)
            self._failed.pop(span, None)
            self.held[span] = held

    def _has_memory(self, span: Span, done: Future[object]) -> None:
        try:
            done.result()
        except MemoryError as error:
            self._too_large.add(span)
            self.problems[Problem.SPACE] += 1
            self.notices.append(
                f"segment {span.first} to {span.end} stays on disk ({error}); look-ups in it are slow; lower "
                "state.memory, or give the machine more memory"
            )

    def _fail(self, span: Span, problem: Problem, line: str) -> None:
        """Note that a segment cannot be had now; tell each line once."""
        self.problems[problem] += 1
        before = self._failed.get(span)
        if before is None or before.line != line:
            self.notices.append(f"{line}; the index looks up in this segment itself meanwhile")
        pause_s = _AGAIN.after(before.pause_s if before is not None else 0.0)
        self._failed[span] = _Failed(self._clock.monotonic_s() + pause_s, pause_s, line)
