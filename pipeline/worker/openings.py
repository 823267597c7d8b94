"""Chooses the offset at which each session of a worker begins, from the committed offsets and the topics."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from twinsieve.pipeline.basics.pauses import Pauses
from twinsieve.pipeline.basics.state_machine import Machine
from twinsieve.pipeline.broker.admin import Admin, TopicInfo
from twinsieve.pipeline.broker.clocks import BrokerClock
from twinsieve.pipeline.broker.committed_offsets import Recorded, recorded_offsets
from twinsieve.pipeline.broker.mark import Mark, name_topic, read_mark
from twinsieve.pipeline.broker.ports import Clock, GroupConsumer, TransactionalProducer
from twinsieve.pipeline.broker.records import NO_EPOCH, Committed, Membership, Partition
from twinsieve.pipeline.worker.config import WorkerConfig
from twinsieve.pipeline.worker.partitions import WorkerTopics
from twinsieve.pipeline.worker.session import SESSION_WAYS, UNBOUNDED, Session, SessionPhase
from twinsieve.stages.errors import StateError

NewSession = Callable[[], int]
"""Returns a random session number, never 0 and never used before."""


_HELD_BACK_MS = 300_000
"""Producers keep messages for up to this time if a partition has no leader (librdkafka's default; Java's is
shorter). When the partition has a leader again, they write messages with old timestamps."""


_DOUBT_MS = 86_400_000
"""Assumed error of a clock that was never compared with the broker's: it may be wrong by hours (a time zone,
or more)."""


class TopicStart(NamedTuple):
    """State of an input topic when the app began with it under `input.start: latest`.

    partitions: number of partitions at that time; since_ms: that time; both are 0 if they are not recorded
    """

    partitions: int
    since_ms: int


@dataclass(frozen=True, slots=True)
class Opening:
    """The offset at which a new session begins, and the contents of its start block.

    mark: which offsets were emitted before the session; the session begins at the mark's end
    emitted_from, emitted_to, beginning, stable_end: see `Block`
    trimmed: number of offsets that retention deleted before they were judged
    commits: what to commit before the session begins: its starting offset, so that a session that replaces
        this one begins there too, or the offset on record in place of one that somebody else has committed
    is_first: the session skips the existing messages, because the group has no offset for any partition of
        the topic
    foreign: the offset that somebody else has committed, and the one on record; None if nobody has
    """

    mark: Mark
    emitted_from: int
    emitted_to: int
    beginning: int
    stable_end: int
    trimmed: int = 0
    commits: Committed | None = None
    is_first: bool = False
    foreign: Recorded | None = None

    @property
    def passes_over(self) -> bool:
        """Whether messages before the session's first offset may have been judged but not emitted. If so, the
        session sends a report at once."""
        return not self.mark.fresh and not self.emitted_from < self.emitted_to == self.mark.end


def plan_opening(
    partition: Partition,
    info: TopicInfo,
    committed: Committed | None,
    beginning: int,
    stable_end: int,
    config: WorkerConfig,
    fresh: Mark | None = None,
    *,
    is_first: bool = False,
) -> Opening:
    """The opening for a session of this partition.

    committed: the offset on record, with its mark
    fresh: mark with the offset to begin at, for a partition in which the index has not accepted a session
        yet; at least one of the two is not None
    is_first: as in `Opening`
    raises: StateError if the topic was created again, if it ends before the committed offset, or if retention
        deleted messages after that offset (under `trimmed: stop`)
    """
    topic_id = name_topic(info)
    old_mark = read_mark(committed.metadata) if committed is not None else None
    first = committed.offset if committed is not None else beginning
    if old_mark is not None and old_mark.topic_id != topic_id:
        raise StateError(
            f"{partition}: the topic was deleted and created again since offset {first} was "
            "committed; set the offset to begin at in the new one with `twinsieve reset`"
        )
    first = fresh.end if fresh is not None else first
    if first > stable_end:
        raise StateError(
            f"{partition}: ends at {stable_end}, before the committed offset {first}: it lost messages "
            "or was created again; set the offset to begin at with `twinsieve reset`"
        )
    lost = max(0, beginning - first)
    if lost and config.trimmed == "stop":
        raise StateError(
            f"{partition}: retention deleted {lost} messages from {first} on before they were judged; "
            "to go on without them set input.trimmed: continue, or restore them"
        )
    first = max(first, beginning)
    if fresh is not None:
        mark = fresh._replace(first=first, end=first)
        new = config.start == "latest" and mark.committed() != committed
        commits = mark.committed() if new else None
        return Opening(mark, first, first, beginning, stable_end, lost, commits, is_first)
    assert old_mark is not None, "an offset without a mark is not on record"
    mark = old_mark
    chain = mark.first if mark.end == first else first
    # Use `read` and `epoch` of the mark only if retention has not deleted messages beyond `read`, and if
    # `reset` has not moved the committed offset since the mark was written.
    is_mark_current = beginning <= mark.read <= first == mark.end
    read, epoch = (mark.read, mark.epoch) if is_mark_current else (0, NO_EPOCH)
    partitions = mark.partitions or (info.partitions if config.start == "latest" else 0)
    begun = Mark(topic_id, chain, first, partitions, mark.since_ms, read=read, epoch=epoch, reset=mark.reset)
    return Opening(begun, mark.first, mark.end, beginning, stable_end, lost)


def truncated(partition: Partition, why: object) -> StateError:
    """The error for a partition whose messages are no longer those that were read."""
    return StateError(
        f"{partition}: messages that were read are gone, and new ones have their offsets; restore the topic, "
        f"or start a new app (or skip the new ones at those offsets with `twinsieve reset`): {why}"
    )


@dataclass(frozen=True, slots=True)
class Openings:
    """Plans new sessions.

    broker_clock: the broker's clock, which may be unknown; clock: the clock of this process
    """

    consumer: GroupConsumer
    transactor: TransactionalProducer
    admin: Admin
    topics: WorkerTopics
    clock: Clock
    broker_clock: BrokerClock
    config: WorkerConfig
    new_session: NewSession

    def plan(
        self,
        partitions: Collection[Partition],
        infos: Mapping[str, TopicInfo],
        membership: Membership,
        unanswered: Collection[Partition],
    ) -> tuple[list[tuple[Session, Opening]], dict[Partition, str]]:
        """New sessions with their openings, sorted by partition; and for each partition that has to wait, the
        reason.

        infos: current descriptions of the topics; unanswered: partitions whose last session got no answer
        raises: AbortableError when the broker cannot tell; StateError as `plan_opening`
        """
        recorded = self._recorded(partitions, membership)
        committed = {partition: entry.committed for partition, entry in recorded.items()}
        beginning = self.consumer.beginning_offsets(partitions)
        stable_end = self.consumer.end_offsets(partitions)
        waiting = self._behind_open_transactions(committed, stable_end)
        now_s = self.clock.monotonic_s()
        topic_starts = self._topic_starts(committed, infos, membership)
        fresh = self._fresh_marks(committed, infos, topic_starts, beginning, stable_end)
        planned = []
        for partition in sorted(set(partitions) - waiting.keys()):
            opening = plan_opening(
                partition,
                infos[partition.topic],
                committed[partition],
                beginning[partition],
                stable_end[partition],
                self.config,
                fresh.get(partition),
                is_first=self.config.start == "latest" and topic_starts.get(partition.topic) is None,
            )
            entry = recorded[partition]
            if entry.is_foreign or not entry.has_record:
                # Also a new order of `reset`, so that it stays if somebody else moves the offset now.
                commits = opening.commits or committed[partition]
                opening = replace(opening, commits=commits, foreign=entry if entry.is_foreign else None)
            was_unanswered = partition in unanswered
            phase = SessionPhase.PROBING if was_unanswered else SessionPhase.READING
            session = Session(
                partition,
                self.new_session(),
                self.topics.reply(self.config.verdicts, partition),
                Machine(SESSION_WAYS, SessionPhase.OPENING if opening.mark.fresh else phase),
                opening.mark,
                covered=opening.mark.end,
                reported=opening.mark.end - opening.passes_over,
                asked_s=now_s,
                active_s=now_s,
                # The blocks of an unanswered session are still in the log. So send no rows until an index
                # answers, and then few rows at first.
                window=self.config.poll_messages if was_unanswered else UNBOUNDED,
                trimmed=opening.trimmed,
                undated_s=now_s if opening.is_first and self._is_undated(committed[partition]) else None,
            )
            planned.append((session, opening))
        return planned, waiting

    def _behind_open_transactions(
        self, committed: Mapping[Partition, Committed | None], stable_end: Mapping[Partition, int]
    ) -> dict[Partition, str]:
        """Partitions that wait because another tool committed an offset after the beginning of a transaction
        that is still open; each with the reason as text. A partition with a committed offset after its end
        is left out: it has lost records."""
        ahead = [
            part for part, entry in committed.items() if entry is not None and entry.offset > stable_end[part]
        ]
        ends = self.topics.ends(ahead) if ahead else {}
        return {
            part: f"offset {entry.offset} is committed, and a transaction of its producers is open from "
            f"{stable_end[part]} on; the partition waits until that transaction ends"
            for part in ahead
            if (entry := committed[part]) is not None and entry.offset <= ends[part]
        }

    def unplaced(
        self, partitions: Collection[Partition], infos: Mapping[str, TopicInfo], membership: Membership
    ) -> dict[Partition, Committed]:
        """Marks to commit for partitions that are new to the app and in which no session can begin now.

        A mark records the current time. The session that begins later also reads the messages that producers
        held back until then, because the app was already waiting for them.

        raises: AbortableError when the broker cannot tell
        """
        if self.config.start != "latest" or not partitions:
            return {}
        recorded = self._recorded(partitions, membership)
        committed = {partition: entry.committed for partition, entry in recorded.items()}
        topic_starts = self._topic_starts(committed, infos, membership)
        marks = {}
        for partition, entry in committed.items():
            info, topic = infos[partition.topic], topic_starts.get(partition.topic)
            if entry is None and (topic is None or partition.number < topic.partitions):
                mark = Mark(name_topic(info), 0, 0, fresh=True, placed=False)
                marks[partition] = self._first_seen(mark, info, topic).committed()
        return marks

    def _recorded(
        self, partitions: Collection[Partition], membership: Membership
    ) -> dict[Partition, Recorded]:
        clients = self.consumer, self.transactor, membership
        return recorded_offsets(*clients, partitions, self.admin, self.config.record)

    def date(self, sessions: Iterable[Session]) -> None:
        """Correct the recorded time at which the app began with the topics of these sessions, once the
        broker's clock is known."""
        for session in sessions:
            now_ms = self.broker_clock.now_ms() if session.undated_s is not None else None
            if session.undated_s is not None and now_ms is not None:
                session.date(now_ms - round(1000 * (self.clock.monotonic_s() - session.undated_s)))

    def _is_undated(self, committed: Committed | None) -> bool:
        """Whether the mark of a new session takes the current time although the broker's clock is unknown."""
        return committed is None and self.broker_clock.now_ms() is None

    def _now_ms(self) -> int:
        """The time by the broker's clock. While that is unknown, a time that is early enough: the local clock
        minus one day."""
        now_ms = self.broker_clock.now_ms()
        return self.clock.now_ms() - _DOUBT_MS if now_ms is None else now_ms

    def _first_seen(self, mark: Mark, info: TopicInfo, topic: TopicStart | None) -> Mark:
        """The mark, completed with the time at which the app began with its topic, and the topic's number of
        partitions at that time. Values that are not recorded anywhere are the current ones."""
        topic = topic or TopicStart(mark.partitions or info.partitions, mark.since_ms or self._now_ms())
        return mark._replace(partitions=topic.partitions, since_ms=topic.since_ms)

    def _fresh_marks(
        self,
        committed: Mapping[Partition, Committed | None],
        infos: Mapping[str, TopicInfo],
        topic_starts: Mapping[str, TopicStart | None],
        beginning: Mapping[Partition, int],
        stable_end: Mapping[Partition, int],
    ) -> dict[Partition, Mark]:
        """Marks with the starting offset, for partitions in which the index has not accepted a session yet.

        They begin at the partition's beginning. Under `input.start: latest` the first rule that holds counts;
        if the mark already has a starting offset, the earlier of the two offsets counts:
        - If the partition was added to a topic for which the group has an offset: at its beginning, because
          all its messages are for this app. Also at its beginning, if no mark records when the app began
          with that topic.
        - If the partition was seen before and could not begin then: at the first message from `_HELD_BACK_MS`
          before the app began with the topic.
        - If the group has an offset for any partition of the topic: at the first message since the app began
          with the topic.
        - Else at the end, or, if an earlier attempt chose a starting offset, at that offset.
        """
        is_latest = self.config.start == "latest"
        places: dict[Partition, int] = {}
        times_ms: dict[Partition, int] = {}
        marks: dict[Partition, Mark] = {}
        for partition, entry in committed.items():
            mark = read_mark(entry.metadata) if entry is not None else None
            if mark is not None and not mark.fresh:
                continue
            info, topic = infos[partition.topic], topic_starts.get(partition.topic)
            mark = mark or Mark(name_topic(info), 0, 0, fresh=True, placed=False)
            waited = entry is not None and not mark.placed
            if not is_latest:
                marks[partition] = Mark(mark.topic_id, 0, 0, fresh=True)
                places[partition] = beginning[partition]
                continue
            marks[partition] = self._first_seen(mark, info, topic)
            since_ms = marks[partition].since_ms
            if topic is not None and (partition.number >= topic.partitions or not since_ms):
                places[partition] = beginning[partition]
                continue
            if mark.placed:
                places[partition] = mark.end
            elif topic is None and not waited:
                places[partition] = stable_end[partition]
            if topic is not None or waited:
                times_ms[partition] = max(0, since_ms - (_HELD_BACK_MS if waited else 0))
        for partition, offset in (self.topics.offsets_at(times_ms) if times_ms else {}).items():
            # If there is no such message, this offset is the partition's end. It may lie after open
            # transactions, but readers wait before those.
            offset = max(beginning[partition], min(offset, stable_end[partition]))
            places[partition] = min(offset, places.get(partition, offset))
        return {
            partition: mark._replace(first=places[partition], end=places[partition], placed=True)
            for partition, mark in marks.items()
        }

    def _topic_starts(
        self,
        committed: Mapping[Partition, Committed | None],
        infos: Mapping[str, TopicInfo],
        membership: Membership,
    ) -> dict[str, TopicStart | None]:
        """Under `input.start: latest`: the `TopicStart` of each topic with a partition that has no starting
        offset accepted by the index."""
        if self.config.start != "latest":
            return {}
        new = {partition.topic for partition, entry in committed.items() if entry is None or _is_fresh(entry)}
        return {name: self._topic_start(infos[name], membership) for name in sorted(new)}

    def _topic_start(self, info: TopicInfo, membership: Membership) -> TopicStart | None:
        """When the app began with a topic, as recorded in the metadata (`Mark`) of the topic's committed
        offsets.

        None if the index has not accepted a starting offset in any partition of the topic. If it has accepted
        one, but no mark records the time, both fields are 0.
        """
        topic = None
        for number in range(info.partitions):
            partition = Partition(info.name, number)
            entry = self._recorded([partition], membership)[partition].committed
            if entry is None or _is_fresh(entry):
                continue
            mark = read_mark(entry.metadata)
            if mark is not None and mark.topic_id == name_topic(info) and mark.since_ms:
                return TopicStart(mark.partitions, mark.since_ms)
            topic = TopicStart(0, 0)
        return topic


def _is_fresh(committed: Committed) -> bool:
    mark = read_mark(committed.metadata)
    return mark is not None and mark.fresh


_FAILED = Pauses(first_s=0.1, longest_s=60.0)
_LEADER_S = 1.0
"""Seconds until the next attempt for an input partition that waits for a leader, see `OpeningQueue`."""
_RESYNCED = Pauses(first_s=0.05, longest_s=5.0)


class OpeningQueue:
    """Decides for which input partitions a session is opened next.

    Partitions that never failed are opened together. A partition that could not be opened is tried alone from
    then on, after pauses that grow, so that it delays no other partition.

    leaderless: input partitions that wait because one of these has no leader: the partition itself, the
        partition of the verdicts topic that receives its answers, or the log
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due_s: dict[Partition, float] = {}
        self._pauses_s: dict[Partition, float] = {}
        """The last pause of each partition that could not be opened."""
        self._resync_s = 0.0
        """The last pause that applied to all partitions, see `pause`."""
        self._paused_until_s = 0.0
        self.leaderless: set[Partition] = set()

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._due_s)

    def __len__(self) -> int:
        return len(self._due_s)

    def add(self, partitions: Collection[Partition]) -> None:
        """Queue these partitions: open them now, or at the end of the pause after an earlier failure."""
        now_s = self._clock.monotonic_s()
        for partition in partitions:
            self._due_s.setdefault(partition, now_s)

    def replace(self, partitions: Collection[Partition]) -> None:
        """Queue these partitions and no others; forget earlier failures."""
        self._due_s.clear()
        self._pauses_s.clear()
        self.leaderless.clear()
        self.add(partitions)

    def due(self, ours: Collection[Partition]) -> list[Partition]:
        """Partitions to open now, sorted. ours: the partitions assigned to this worker"""
        now_s = self._clock.monotonic_s()
        if now_s < self._paused_until_s:
            return []
        due = [part for part in self._due_s if part in ours and self._due_s[part] <= now_s]
        together = sorted(part for part in due if part not in self._pauses_s)
        return together or sorted(due, key=lambda part: (self._due_s[part], part))[:1]

    def pause(self) -> None:
        """Open nothing for a while, because all sessions failed at once. The pause grows each time until
        `recovered` is called."""
        self._resync_s = _RESYNCED.after(self._resync_s)
        self._paused_until_s = self._clock.monotonic_s() + self._resync_s

    def recovered(self) -> None:
        """Begin again with the shortest pause, because messages were emitted."""
        self._resync_s = 0.0

    def postpone(self, partitions: Collection[Partition]) -> None:
        """Try these partitions again later, because they could not be opened."""
        for partition in partitions:
            self._pauses_s[partition] = _FAILED.after(self._pauses_s.get(partition, 0.0))
            self.delay([partition], self._pauses_s[partition])

    def await_leaders(self, partitions: Collection[Partition], able: Collection[Partition]) -> None:
        """Update `leaderless`: of these partitions, those in `able` wait for no leader, the others do."""
        self.leaderless = self.leaderless.union(partitions).difference(able)

    def delay(self, partitions: Collection[Partition], seconds: float = _LEADER_S) -> None:
        """Open these partitions later; this does not count as a failure."""
        due_s = self._clock.monotonic_s() + seconds
        self._due_s.update(dict.fromkeys(partitions, due_s))

    def opened(self, partition: Partition) -> None:
        """Remove the partition from the queue, because it has a session now."""
        self._due_s.pop(partition, None)
        self._pauses_s.pop(partition, None)
