"""Where a worker's sessions begin: what is committed, and what the topics hold."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from twinsieve.pipeline.committed_offsets import committed_offsets
from twinsieve.pipeline.ports import (
    Clock,
    Committed,
    GroupConsumer,
    Membership,
    Partition,
    TopicInfo,
    Transactor,
)
from twinsieve.pipeline.worker_config import WorkerConfig
from twinsieve.pipeline.worker_sessions import (
    NewSession,
    Opening,
    Session,
    name_topic,
    plan_opening,
    read_mark,
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
        self, partitions: Collection[Partition], infos: Mapping[str, TopicInfo], membership: Membership
    ) -> tuple[list[tuple[Session, Opening]], dict[Partition, str]]:
        """A new session for each partition that can begin one, in order, and what it begins from; of the
        others what they wait for.

        infos: their topics as they are now
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
            session = Session(
                partition, opening.topic_id, self._new_session(), opening.fresh, opening.chain,
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
