"""Where a worker's sessions begin: what is committed, and what the topics hold."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from twinsieve.pipeline.committed_offsets import committed_offsets
from twinsieve.pipeline.ports import Clock, GroupConsumer, Membership, Partition, TopicInfo, Transactor
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
    """Plans new sessions."""

    def __init__(
        self,
        consumer: GroupConsumer,
        transactor: Transactor,
        clock: Clock,
        config: WorkerConfig,
        new_session: NewSession,
    ) -> None:
        self._consumer = consumer
        self._transactor = transactor
        self._clock = clock
        self._config = config
        self._new_session = new_session

    def plan(
        self, partitions: Collection[Partition], infos: Mapping[str, TopicInfo], membership: Membership
    ) -> list[tuple[Session, Opening]]:
        """A new session for each partition, in order, and what it begins from.

        infos: their topics as they are now
        raises: AbortableError when the broker cannot tell; StateError as `plan_opening`
        """
        committed = committed_offsets(self._consumer, self._transactor, membership, partitions)
        beginning = self._consumer.beginning_offsets(partitions)
        stable_end = self._consumer.end_offsets(partitions)
        now_s = self._clock.monotonic_s()
        new = {at.topic for at in partitions if committed[at] is None and self._config.start == "latest"}
        known = {name: self._known_partitions(infos[name], membership) for name in sorted(new)}
        planned = []
        for partition in sorted(partitions):
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
            session = Session(
                partition, opening.topic_id, self._new_session(), opening.fresh, opening.chain,
                opening.first, opening.first, opening.first, now_s, active_s=now_s,
                partitions=opening.partitions, trimmed=opening.trimmed,
            )  # fmt: skip
            planned.append((session, opening))
        return planned

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
