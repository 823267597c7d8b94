"""Where a worker's sessions begin: what is committed, and what the topics hold."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from twinsieve.pipeline.broker.committed_offsets import committed_offsets
from twinsieve.pipeline.broker.mark import name_topic, read_mark
from twinsieve.pipeline.broker.ports import (
    Clock,
    Committed,
    GroupConsumer,
    Membership,
    Partition,
    TopicInfo,
    Transactor,
)
from twinsieve.pipeline.worker.config import WorkerConfig
from twinsieve.pipeline.worker.session import (
    NewSession,
    Opening,
    Session,
    first_phase,
    plan_opening,
)


class Openings:
    """Plans new sessions.

    ends: of partitions, behind open transactions too; AbortableError when the broker cannot tell
    """

    def __init__(
        self,
        consumer: GroupConsumer,
        transactor: Transactor,
        clock: Clock,
        config: WorkerConfig,
        new_session: NewSession,
        ends: Callable[[Collection[Partition]], Mapping[Partition, int]],
    ) -> None:
        self._consumer = consumer
        self._transactor = transactor
        self._clock = clock
        self._config = config
        self._new_session = new_session
        self._ends = ends

    def plan(
        self,
        partitions: Collection[Partition],
        infos: Mapping[str, TopicInfo],
        membership: Membership,
        unanswered: Collection[Partition],
    ) -> tuple[list[tuple[Session, Opening]], dict[Partition, str]]:
        """A new session for each partition that can begin one, in order, and what it begins from; of the
        others what they wait for.

        infos: their topics as they are now; unanswered: partitions whose last session had no answer
        raises: AbortableError when the broker cannot tell; StateError as `plan_opening`
        """
        committed = committed_offsets(self._consumer, self._transactor, membership, partitions)
        beginning = self._consumer.beginning_offsets(partitions)
        stable_end = self._consumer.end_offsets(partitions)
        waiting = self._behind_open_transactions(committed, stable_end)
        now_s = self._clock.monotonic_s()
        new = {at.topic for at in partitions if committed[at] is None and self._config.start == "latest"}
        known = {name: self._known_partitions(infos[name], membership) for name in sorted(new)}
        planned = []
        for partition in sorted(set(partitions) - waiting.keys()):
            opening = plan_opening(
                partition,
                infos[partition.topic],
                committed[partition],
                beginning[partition],
                stable_end[partition],
                start=self._config.start,
                trimmed=self._config.trimmed,
                known_partitions=known.get(partition.topic),
            )
            told = opening.first - opening.passes_over
            phase = first_phase(fresh=opening.fresh, unanswered=partition in unanswered)
            session = Session(
                partition, opening.topic_id, self._new_session(), phase, opening.chain,
                opening.first, opening.first, told, now_s, active_s=now_s,
                partitions=opening.partitions, trimmed=opening.trimmed,
                read=opening.read, epoch=opening.epoch,
            )  # fmt: skip
            planned.append((session, opening))
        return planned, waiting

    def _behind_open_transactions(
        self, committed: Mapping[Partition, Committed | None], stable_end: Mapping[Partition, int]
    ) -> dict[Partition, str]:
        """Partitions where another tool has committed behind a transaction that is still open. An offset
        behind even that end was lost, or the topic is another one."""
        ahead = [at for at, held in committed.items() if held is not None and held.offset > stable_end[at]]
        ends = self._ends(ahead) if ahead else {}
        return {
            at: f"offset {held.offset} is committed, and a transaction of its producers is open from "
            f"{stable_end[at]} on; it begins when that ends"
            for at in ahead
            if (held := committed[at]) is not None and held.offset <= ends[at]
        }

    def _known_partitions(self, info: TopicInfo, membership: Membership) -> int | None:
        """As `plan_opening`, by the marks beside the offsets of all partitions of a topic."""
        found = None
        for number in range(info.partitions):
            at = Partition(info.name, number)
            held = committed_offsets(self._consumer, self._transactor, membership, [at])[at]
            mark = read_mark(held.metadata) if held is not None else None
            if mark is not None and mark.topic_id == name_topic(info) and mark.partitions:
                return mark.partitions
            found = 0 if held is not None else found
        return found


_FIRST_S = 0.1
_MAX_S = 60.0


class Waiting:
    """Which partitions to open next.

    Those that never failed are opened together. Whoever could not be opened is tried alone from then on, and
    ever less often: one partition that nobody can be asked about holds up no other.

    >>> from tests.memory.broker import ManualClock
    >>> clock, one, two = ManualClock(), Partition("posts", 0), Partition("posts", 1)
    >>> waiting = Waiting(clock)
    >>> waiting.add([one, two])
    >>> waiting.due({one, two}) == [one, two]
    True
    >>> waiting.postpone([one, two])
    >>> clock.sleep(1.0)
    >>> waiting.due({one, two}) == [one]
    True
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due_s: dict[Partition, float] = {}
        self._failures: dict[Partition, int] = {}

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._due_s)

    def __len__(self) -> int:
        return len(self._due_s)

    def add(self, partitions: Collection[Partition]) -> None:
        """These are to be opened now, or when the pause of an earlier failure is over."""
        now_s = self._clock.monotonic_s()
        for partition in partitions:
            self._due_s.setdefault(partition, now_s)

    def replace(self, partitions: Collection[Partition]) -> None:
        """These and no others are to be opened; earlier failures are forgotten."""
        self._due_s.clear()
        self._failures.clear()
        self.add(partitions)

    def due(self, ours: Collection[Partition]) -> list[Partition]:
        """Those of ours to open in this round, in order."""
        now_s = self._clock.monotonic_s()
        due = [at for at in self._due_s if at in ours and self._due_s[at] <= now_s]
        together = sorted(at for at in due if at not in self._failures)
        return together or sorted(due, key=lambda at: (self._due_s[at], at))[:1]

    def postpone(self, partitions: Collection[Partition]) -> None:
        """These could not be opened."""
        now_s = self._clock.monotonic_s()
        for partition in partitions:
            failures = self._failures.get(partition, 0)
            self._failures[partition] = min(failures + 1, 20)
            self._due_s[partition] = now_s + min(_MAX_S, _FIRST_S * 2**failures)

    def hold(self, partitions: Collection[Partition], seconds: float) -> None:
        """These need a partition without a leader; whether it has one again is a cheap question."""
        now_s = self._clock.monotonic_s()
        for partition in partitions:
            self._due_s[partition] = now_s + seconds

    def opened(self, partition: Partition) -> None:
        """It has a session."""
        self._due_s.pop(partition, None)
        self._failures.pop(partition, None)
