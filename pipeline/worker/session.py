"""A worker's side of a session: where it stands in one input partition, and how it begins."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from typing import Literal

from twinsieve.pipeline.broker.mark import Mark, name_topic, read_mark
from twinsieve.pipeline.broker.ports import NO_EPOCH, Committed, Partition, Records, TopicInfo
from twinsieve.pipeline.wire.positions import MAX_OFFSETS, MAX_PARTITIONS, MAX_TOPICS
from twinsieve.pipeline.wire.ruling import Result, Ruling
from twinsieve.stages.dead_letter_reasons import Reason
from twinsieve.stages.errors import StateError
from twinsieve.stages.states import Machine


class SessionPhase(StrEnum):
    """What a session asks for; docs/DESIGN.md draws the ways."""

    OPENING = "opening"
    """no offset is committed yet: its start block alone, until the index has let it begin"""
    PROBING = "probing"
    """the session before had no answer: its start block alone, until an index answers"""
    READING = "reading"
    """every message of its partition, as many as `window` allows"""


SESSION_WAYS: dict[SessionPhase, set[SessionPhase]] = {
    SessionPhase.OPENING: {SessionPhase.READING},
    SessionPhase.PROBING: {SessionPhase.READING},
    SessionPhase.READING: set(),
}


def first_phase(*, fresh: bool, unanswered: bool) -> Machine[SessionPhase]:
    """How a session begins. fresh: no offset is committed; unanswered: the session before had no answer"""
    if fresh:
        return Machine(SESSION_WAYS, SessionPhase.OPENING)
    return Machine(SESSION_WAYS, SessionPhase.PROBING if unanswered else SessionPhase.READING)


@dataclass(slots=True)
class Asked:
    """One block that was sent: its range, and the originals of its rows.

    reasons: of rows that are unreadable; refused: of rows that the output does not take
    """

    first: int
    end: int
    records: Records
    reasons: dict[int, Reason] = field(default_factory=dict)
    tombstones: frozenset[int] = frozenset()
    bytes_held: int = 0
    refused: dict[int, Reason] = field(default_factory=dict)


@dataclass(slots=True)
class Session:
    """One run of asking for one partition.

    chain: emitted without gap from here to `emitted`; reported: how far the index has heard of that
    window: rows that may wait for answers; grows with each answer
    partitions: as in its mark; trimmed: offsets that retention took before it began, until that is committed
    settled: the index has answered, so that it knows the mark that this session began from
    covered: the next block's first offset; ready: answered blocks, the head of `pending`
    read, epoch: as in the mark, of the last message emitted
    """

    partition: Partition
    topic_id: bytes
    number: int
    phase: Machine[SessionPhase]
    chain: int
    emitted: int
    covered: int
    reported: int
    asked_s: float
    pending: deque[Asked] = field(default_factory=deque)
    ready: deque[tuple[Asked, Ruling]] = field(default_factory=deque)
    pending_rows: int = 0
    pending_bytes: int = 0
    active_s: float = 0.0
    settled: bool = False
    window: int = 1 << 62
    partitions: int = 0
    trimmed: int = 0
    read: int = 0
    epoch: int = NO_EPOCH

    @property
    def reads(self) -> bool:
        """Whether messages are asked for, beyond the start block."""
        return self.phase.now is SessionPhase.READING

    @property
    def fresh(self) -> bool:
        """Whether no offset is committed yet."""
        return self.phase.now is SessionPhase.OPENING

    @property
    def start(self) -> tuple[int, int]:
        """Where to begin reading, and the epoch of the message before that.

        Nothing that anybody may read lies between the last message emitted and the committed offset.
        """
        return (self.covered, NO_EPOCH) if self.epoch == NO_EPOCH else (self.read, self.epoch)

    def emitted_blocks(self, count: int) -> bool:
        """The first blocks that were answered are out; whether reading begins with that."""
        for _ in range(count):
            asked, _ = self.ready.popleft()
            self.pending.popleft()
            self.pending_rows -= len(asked.records)
            self.window += len(asked.records)
            self.pending_bytes -= asked.bytes_held
            self.emitted = asked.end
            self.read, self.epoch = self._read_with([asked])
        self.settled = True
        begins = not self.reads
        self.phase.go(SessionPhase.READING)
        return begins

    def _read_with(self, blocks: Iterable[Asked]) -> tuple[int, int]:
        """`read` and `epoch` once these blocks are out, too."""
        read, epoch = self.read, self.epoch
        for records in (asked.records for asked in blocks if len(asked.records)):
            read, epoch = records.offsets[-1] + 1, records.epochs[-1] if records.epochs else NO_EPOCH
        return read, epoch

    def mark(self, blocks: int = 0) -> Committed:
        """What to commit when the first `blocks` answered blocks are out."""
        out = [asked for asked, _ in islice(self.ready, blocks)]
        emitted = out[-1].end if out else self.emitted
        read, epoch = self._read_with(out)
        mark = Mark(self.topic_id, self.chain, emitted, self.partitions, read=read, epoch=epoch)
        return Committed(emitted, mark.text())


@dataclass(frozen=True, slots=True)
class Opening:
    """Where a new session begins, and what its start block says.

    partitions, read, epoch: as in the mark
    commits: what to commit before the session begins, so that another one that takes its place begins there
        too
    """

    topic_id: bytes
    fresh: bool
    certified: bool
    first: int
    chain: int
    emitted_from: int
    emitted_to: int
    beginning: int
    stable_end: int
    trimmed: int = 0
    partitions: int = 0
    commits: Committed | None = None
    read: int = 0
    epoch: int = NO_EPOCH

    @property
    def passes_over(self) -> bool:
        """Whether messages below `first` may have been judged and not emitted; the index is to know soon."""
        return not self.fresh and not self.emitted_from < self.emitted_to == self.first


def plan_opening(
    partition: Partition,
    info: TopicInfo,
    committed: Committed | None,
    beginning: int,
    stable_end: int,
    *,
    start: Literal["earliest", "latest"],
    trimmed: Literal["stop", "continue"],
    known_partitions: int | None = None,
) -> Opening:
    """Where the session of a partition begins.

    known_partitions: of an input without a committed offset: how many partitions its topic had when the group
        began with it, 0 if nobody noted that, None if the group does not know the topic
    raises: StateError for a topic that was created again, one that ends before the committed offset, and one
        that retention has trimmed beyond it (`trimmed: stop`)
    """
    topic_id = name_topic(info)
    counted = info.partitions if start == "latest" else 0
    if committed is None:
        # What is written to a partition that is added to a known topic is for this app.
        is_new = known_partitions is None or partition.number < known_partitions
        first = stable_end if start == "latest" and is_new else beginning
        counted = known_partitions or counted
        commits = Committed(first, Mark(topic_id, first, first, counted, fresh=True).text())
        return Opening(
            topic_id, True, False, first, first, first, first, beginning, stable_end,
            partitions=counted, commits=commits if start == "latest" else None,
        )  # fmt: skip
    mark = read_mark(committed.metadata)
    if mark is not None and mark.topic_id != topic_id:
        raise StateError(
            f"{partition}: the topic was deleted and created again since offset {committed.offset} was "
            "committed; `twinsieve reset` says where to begin in the new one"
        )
    first = committed.offset
    if first > stable_end:
        raise StateError(
            f"{partition}: ends at {stable_end}, before the committed offset {first}: it lost messages "
            "or was created again; `twinsieve reset` says where to begin"
        )
    lost = max(0, beginning - first)
    if lost and trimmed == "stop":
        raise StateError(
            f"{partition}: retention took {lost} messages from {first} on that were never judged; "
            "set input.trimmed to continue, or restore them"
        )
    first = max(first, beginning)
    fresh = mark is not None and mark.fresh
    emitted_from, emitted_to = (mark.first, mark.end) if mark is not None and not fresh else (first, first)
    chain = emitted_from if emitted_to == first else first
    # Where retention took the message there is nothing to begin from; a mark says nothing of an offset that
    # another tool has moved.
    known = mark is not None and beginning <= mark.read <= first == mark.end
    return Opening(
        topic_id, fresh, mark is not None and not fresh, first, chain, emitted_from, emitted_to, beginning,
        stable_end, lost, partitions=mark.partitions if mark is not None and mark.partitions else counted,
        read=mark.read if mark is not None and known else 0,
        epoch=mark.epoch if mark is not None and known else NO_EPOCH,
    )  # fmt: skip


def truncated(partition: Partition, why: object) -> StateError:
    """What the operator is to do about a partition whose messages are others than those that were read."""
    return StateError(
        f"{partition}: it lost messages that were read, and new ones take their offsets; restore it, or "
        f"start a new app (`twinsieve reset` goes on without the new ones at those offsets): {why}"
    )


class RefusedError(StateError):
    """The index refuses the session of a partition, in the words of `refusal`."""

    def __init__(self, message: str, partition: Partition) -> None:
        super().__init__(message)
        self.partition = partition


def refusal(partition: Partition, result: Result) -> RefusedError:
    """What the operator is to do about a refused session."""
    reset = "`twinsieve reset` says where to begin"
    advice = {
        Result.OFFSETS_MISSING: f"the group's offset is gone, but the app has been at work on it; {reset}",
        Result.RECREATED: f"another topic of its name was judged; this one was created again; {reset}",
        Result.SHORTENED: "it ends before what was judged: it lost messages, and new ones would take their "
        "offsets; restore it, or start a new app",
        Result.BEYOND: f"an app records {MAX_TOPICS} input topics (one created again counts anew) of "
        f"{MAX_PARTITIONS} partitions and {MAX_OFFSETS} offsets, and this is beyond; take the topic out of "
        "input.topics, or start a new app and seed it from the output",
    }
    return RefusedError(f"{partition}: {advice[result]}", partition)


NewSession = Callable[[], int]
"""A random session number, never 0 and never used before."""
