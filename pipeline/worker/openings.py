"""Where a worker's sessions begin: what is committed, and what the topics hold."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from twinsieve.pipeline.basics.pauses import Pauses
from twinsieve.pipeline.basics.states import Machine
from twinsieve.pipeline.broker.admin import TopicInfo
from twinsieve.pipeline.broker.clocks import BrokerClock
from twinsieve.pipeline.broker.committed_offsets import committed_offsets
from twinsieve.pipeline.broker.mark import Mark, name_topic, read_mark
from twinsieve.pipeline.broker.ports import Clock, GroupConsumer, TransactionalProducer
from twinsieve.pipeline.broker.records import NO_EPOCH, Committed, Membership, Partition
from twinsieve.pipeline.worker.config import WorkerConfig
from twinsieve.pipeline.worker.session import SESSION_WAYS, UNBOUNDED, Session, SessionPhase
from twinsieve.pipeline.worker.topics import WorkerTopics
from twinsieve.stages.errors import StateError

NewSession = Callable[[], int]
"""A random session number, never 0 and never used before."""


_HELD_BACK_MS = 300_000
"""Producers keep messages this long for a partition without a leader (librdkafka's default; Java's is
shorter). When the partition has a leader again, they write messages with old timestamps."""


_DOUBT_MS = 86_400_000
"""A clock that was never compared with the broker's may be wrong by hours (a time zone, or more)."""


class TopicStart(NamedTuple):
    """State of an input topic when the app began with it under `input.start: latest`.

    partitions, since_ms: how many it had then, and when that was; 0 where neither is recorded
    """

    partitions: int
    since_ms: int


@dataclass(frozen=True, slots=True)
class Opening:
    """Where a new session begins, and what its start block says.

    mark: what the session has emitted when it begins, at the mark's end
    certified: the committed offset names this very topic
    commits: whether to commit the mark before the session begins, so that another one that takes its place
        begins there too
    is_first: it skips the messages so far, as the group has no offset for any partition of the topic
    """

    mark: Mark
    certified: bool
    emitted_from: int
    emitted_to: int
    beginning: int
    stable_end: int
    trimmed: int = 0
    commits: bool = False
    is_first: bool = False

    @property
    def passes_over(self) -> bool:
        """Whether messages below the first may be judged and not emitted: the session reports at once
        then."""
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
    """Where the session of a partition begins.

    committed, fresh: at least one of them
    fresh: where to begin in a partition for which the index has not accepted a session yet
    is_first: as in `Opening`
    raises: StateError for a topic that was created again, one that ends before the committed offset, and one
        that retention has trimmed beyond it (`trimmed: stop`)
    """
    topic_id = name_topic(info)
    old_mark = read_mark(committed.metadata) if committed is not None else None
    first = committed.offset if committed is not None else beginning
    if old_mark is not None and old_mark.topic_id != topic_id:
        raise StateError(
            f"{partition}: the topic was deleted and created again since offset {first} was "
            "committed; `twinsieve reset` says where to begin in the new one"
        )
    first = fresh.end if fresh is not None else first
    if first > stable_end:
        raise StateError(
            f"{partition}: ends at {stable_end}, before the committed offset {first}: it lost messages "
            "or was created again; `twinsieve reset` says where to begin"
        )
    lost = max(0, beginning - first)
    if lost and config.trimmed == "stop":
        raise StateError(
            f"{partition}: retention took {lost} messages from {first} on that were never judged; "
            "set input.trimmed to continue, or restore them"
        )
    first = max(first, beginning)
    if fresh is not None:
        mark = fresh._replace(first=first, end=first)
        new = config.start == "latest" and mark.committed() != committed
        return Opening(mark, False, first, first, beginning, stable_end, lost, commits=new, is_first=is_first)
    certified = old_mark is not None
    mark = old_mark if old_mark is not None else Mark(topic_id, first, first)
    emitted_from, emitted_to = (mark.first, mark.end) if certified else (first, first)
    chain = emitted_from if emitted_to == first else first
    # Where retention took the message there is nothing to begin from; a mark says nothing of an offset that
    # another tool has moved.
    is_mark_current = beginning <= mark.read <= first == mark.end
    read, epoch = (mark.read, mark.epoch) if is_mark_current else (0, NO_EPOCH)
    partitions = mark.partitions or (info.partitions if config.start == "latest" else 0)
    mark = Mark(topic_id, chain, first, partitions, mark.since_ms, read=read, epoch=epoch)
    return Opening(mark, certified, emitted_from, emitted_to, beginning, stable_end, lost)


def truncated(partition: Partition, why: object) -> StateError:
    """The error for a partition whose messages are no longer those that were read."""
    return StateError(
        f"{partition}: it lost messages that were read, and new ones take their offsets; restore it, or "
        f"start a new app (`twinsieve reset` continues without the new ones at those offsets): {why}"
    )


@dataclass(frozen=True, slots=True)
class Openings:
    """Plans new sessions.

    broker_clock: as far as it is known; clock: of this process
    """

    consumer: GroupConsumer
    transactor: TransactionalProducer
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
        """New sessions and where they begin, in order of partitions; for the other partitions the reason why
        they have to wait.

        infos: their topics as they are now; unanswered: partitions whose last session had no answer
        raises: AbortableError when the broker cannot tell; StateError as `plan_opening`
        """
        committed = committed_offsets(self.consumer, self.transactor, membership, partitions)
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
                # What was asked before is in the log still: nothing more until an index answers, and then
                # little at first.
                window=self.config.poll_messages if was_unanswered else UNBOUNDED,
                trimmed=opening.trimmed,
                undated_s=now_s if opening.is_first and self._is_undated(committed[partition]) else None,
            )
            planned.append((session, opening))
        return planned, waiting

    def _behind_open_transactions(
        self, committed: Mapping[Partition, Committed | None], stable_end: Mapping[Partition, int]
    ) -> dict[Partition, str]:
        """Partitions with a committed offset (of another tool) above a transaction that is still open, and
        why they wait. An offset above the end of the partition itself means that records were lost."""
        ahead = [
            part for part, entry in committed.items() if entry is not None and entry.offset > stable_end[part]
        ]
        ends = self.topics.ends(ahead) if ahead else {}
        return {
            part: f"offset {entry.offset} is committed, and a transaction of its producers is open from "
            f"{stable_end[part]} on; it begins when that ends"
            for part in ahead
            if (entry := committed[part]) is not None and entry.offset <= ends[part]
        }

    def unplaced(
        self, partitions: Collection[Partition], infos: Mapping[str, TopicInfo], membership: Membership
    ) -> dict[Partition, Committed]:
        """What to commit for partitions that the app sees for the first time and that cannot begin now: when
        that was. What their producers hold back meanwhile is for this app.

        raises: AbortableError when the broker cannot tell
        """
        if self.config.start != "latest" or not partitions:
            return {}
        committed = committed_offsets(self.consumer, self.transactor, membership, partitions)
        topic_starts = self._topic_starts(committed, infos, membership)
        marks = {}
        for partition, entry in committed.items():
            info, topic = infos[partition.topic], topic_starts.get(partition.topic)
            if entry is None and (topic is None or partition.number < topic.partitions):
                mark = Mark(name_topic(info), 0, 0, fresh=True, placed=False)
                marks[partition] = self._first_seen(mark, info, topic).committed()
        return marks

    def date(self, sessions: Iterable[Session]) -> None:
        """Correct when the app began with the topics of these sessions, once the broker's clock is known."""
        for session in sessions:
            now_ms = self.broker_clock.now_ms() if session.undated_s is not None else None
            if session.undated_s is not None and now_ms is not None:
                session.date(now_ms - round(1000 * (self.clock.monotonic_s() - session.undated_s)))

    def _is_undated(self, committed: Committed | None) -> bool:
        """Whether the time of a session's mark is of this moment, and in doubt."""
        return committed is None and self.broker_clock.now_ms() is None

    def _now_ms(self) -> int:
        """The time by the broker's clock, or long enough ago where that is not known."""
        now_ms = self.broker_clock.now_ms()
        return self.clock.now_ms() - _DOUBT_MS if now_ms is None else now_ms

    def _first_seen(self, mark: Mark, info: TopicInfo, topic: TopicStart | None) -> Mark:
        """The mark, and when the app began with its topic: now, unless the group knows it."""
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
        """Where partitions begin in which the index has let no session begin yet.

        At the beginning, or, under `input.start: latest`:
        - The group knows no partition of the topic: where an earlier try was to begin, else at the end.
        - It was added to a topic that the group knows: at its beginning, for what is written there is for
          this app. So does a partition for which the time when the app began with the topic is unknown.
        - Else at the first message from the time on at which the app began with the topic.
        """
        is_latest = self.config.start == "latest"
        places: dict[Partition, int] = {}
        times_ms: dict[Partition, int] = {}
        marks: dict[Partition, Mark] = {}
        for partition, entry in committed.items():
            mark = read_mark(entry.metadata) if entry is not None else None
            if entry is not None and (mark is None or not mark.fresh):
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
            # The end of a partition may lie behind open transactions; readers wait before them.
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
        """What the group knows of the topics of these partitions that have no place yet, under `latest`."""
        if self.config.start != "latest":
            return {}
        new = {partition.topic for partition, entry in committed.items() if entry is None or _is_fresh(entry)}
        return {name: self._topic_start(infos[name], membership) for name in sorted(new)}

    def _topic_start(self, info: TopicInfo, membership: Membership) -> TopicStart | None:
        """What the marks beside its committed offsets say, those that the index has agreed to; None where
        there are none."""
        topic = None
        for number in range(info.partitions):
            partition = Partition(info.name, number)
            entry = committed_offsets(self.consumer, self.transactor, membership, [partition])[partition]
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
"""A partition that needs another one without a leader is tried again after this time."""
_RESYNCED = Pauses(first_s=0.05, longest_s=5.0)


class OpeningQueue:
    """Which partitions to open next.

    Partitions that never failed are opened together. One that could not be opened is tried alone from then
    on, after pauses that grow, so that it holds up no other.

    leaderless: those that need a partition without a leader
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due_s: dict[Partition, float] = {}
        self._pauses_s: dict[Partition, float] = {}
        """Of those that could not be opened: the last pause."""
        self._resync_s = 0.0
        """The last pause of all."""
        self._paused_until_s = 0.0
        self.leaderless: set[Partition] = set()

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._due_s)

    def __len__(self) -> int:
        return len(self._due_s)

    def add(self, partitions: Collection[Partition]) -> None:
        """Open these now, or when the pause of an earlier failure is over."""
        now_s = self._clock.monotonic_s()
        for partition in partitions:
            self._due_s.setdefault(partition, now_s)

    def replace(self, partitions: Collection[Partition]) -> None:
        """Open these and no others; forget earlier failures."""
        self._due_s.clear()
        self._pauses_s.clear()
        self.leaderless.clear()
        self.add(partitions)

    def due(self, ours: Collection[Partition]) -> list[Partition]:
        """Those of ours to open in this round, in order."""
        now_s = self._clock.monotonic_s()
        if now_s < self._paused_until_s:
            return []
        due = [part for part in self._due_s if part in ours and self._due_s[part] <= now_s]
        together = sorted(part for part in due if part not in self._pauses_s)
        return together or sorted(due, key=lambda part: (self._due_s[part], part))[:1]

    def pause(self) -> None:
        """Open nothing for a while, for all sessions failed at once; longer each time until `recovered`."""
        self._resync_s = _RESYNCED.after(self._resync_s)
        self._paused_until_s = self._clock.monotonic_s() + self._resync_s

    def recovered(self) -> None:
        """Begin again with the shortest pause, for something was emitted."""
        self._resync_s = 0.0

    def postpone(self, partitions: Collection[Partition]) -> None:
        """Try these later, for they could not be opened."""
        for partition in partitions:
            self._pauses_s[partition] = _FAILED.after(self._pauses_s.get(partition, 0.0))
            self.delay([partition], self._pauses_s[partition])

    def await_leaders(self, partitions: Collection[Partition], able: Collection[Partition]) -> None:
        """Note that all of these but the able ones need a partition without a leader."""
        self.leaderless = self.leaderless.union(partitions).difference(able)

    def delay(self, partitions: Collection[Partition], seconds: float = _LEADER_S) -> None:
        """Open these later, without counting it as a failure."""
        due_s = self._clock.monotonic_s() + seconds
        self._due_s.update(dict.fromkeys(partitions, due_s))

    def opened(self, partition: Partition) -> None:
        """Forget the partition, for it has a session."""
        self._due_s.pop(partition, None)
        self._pauses_s.pop(partition, None)
