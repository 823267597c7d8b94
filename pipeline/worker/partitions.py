"""The topics of a worker: their partitions, leaders, ids and end offsets."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from twinsieve.pipeline.basics.pauses import Pauses
from twinsieve.pipeline.broker.admin import Admin, TopicInfo
from twinsieve.pipeline.broker.mark import name_topic
from twinsieve.pipeline.broker.ports import Clock, PartitionReader
from twinsieve.pipeline.broker.records import AbortableError, BrokerError, Partition
from twinsieve.pipeline.worker.session import Session
from twinsieve.stages.errors import StateError


class WorkerTopics:
    """Descriptions of topics by name, requested from the broker when needed.

    notices: receives a line when partitions lose their leaders, and when they have leaders again
    """

    def __init__(self, admin: Admin, notices: list[str]) -> None:
        self._admin = admin
        self._notices = notices
        self._infos: dict[str, TopicInfo] = {}

    def refresh(self, names: Collection[str]) -> dict[str, TopicInfo | None]:
        """Current descriptions of these topics, None for a topic that does not exist. raises: BrokerError"""
        infos = self._admin.topics(names)
        before = self._leaderless()
        self._infos.update({name: info for name, info in infos.items() if info is not None})
        after = self._leaderless()
        self._tell("no leader; work that needs it waits until it has one", after - before)
        self._tell("has a leader again", before - after)
        return infos

    def fetch(self, names: Collection[str]) -> dict[str, TopicInfo]:
        """Current descriptions of these topics. raises: AbortableError if one does not exist"""
        infos = self.refresh(names)
        missing = sorted(name for name, info in infos.items() if info is None)
        if missing:
            raise AbortableError(f"topic {', '.join(missing)} does not exist; create it")
        return {name: info for name, info in infos.items() if info is not None}

    def led(self, *partitions: Partition) -> bool:
        """Whether all of these partitions had a leader at the last fetch of their topics."""
        infos = self._infos
        return not any(
            partition.topic in infos and partition.number in infos[partition.topic].leaderless
            for partition in partitions
        )

    def reply(self, verdicts: str, partition: Partition) -> Partition:
        """Partition of the verdicts topic for the answers to an input partition. It depends on the number of
        partitions that the verdicts topic had at the last fetch, and that number may change."""
        return Partition(verdicts, partition.number % max(1, self._infos[verdicts].partitions))

    def leaderless(self, names: Collection[str]) -> dict[str, frozenset[int]]:
        """Partition numbers without a leader at the last fetch, by topic; only topics that have some."""
        leaderless = {name: self._infos[name].leaderless for name in names if name in self._infos}
        return {name: numbers for name, numbers in leaderless.items() if numbers}

    def _leaderless(self) -> set[Partition]:
        return {Partition(name, number) for name, info in self._infos.items() for number in info.leaderless}

    def _tell(self, what: str, partitions: Collection[Partition]) -> None:
        if partitions:
            self._notices.append(f"{', '.join(map(str, sorted(partitions)))}: {what}")

    def ends(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """End offset of each partition, after open transactions too. raises: AbortableError if no broker
        answers"""
        try:
            return self._admin.end_offsets(partitions)
        except BrokerError as error:
            raise AbortableError(str(error)) from error

    def offsets_at(self, times_ms: Mapping[Partition, int]) -> dict[Partition, int]:
        """For each partition the first offset with that timestamp or a later one, else its end. raises: as
        `ends`"""
        try:
            return self._admin.offsets_at(times_ms)
        except BrokerError as error:
            raise AbortableError(str(error)) from error

    def partitions(self, names: Collection[str]) -> dict[str, int]:
        """Number of partitions of every topic fetched so far; topics in `names` that are missing are fetched
        first. raises: as `fetch`"""
        missing = set(names) - self._infos.keys()
        if missing:
            self.fetch(missing)
        return {name: info.partitions for name, info in self._infos.items()}

    def check_ids(self, sessions: Collection[Session], others: Collection[str] = ()) -> None:
        """Check that the sessions' topics are still the same topics as when the sessions began.

        others: names of topics that must exist, too
        raises: StateError if a topic was deleted and created again; AbortableError if one is deleted
        """
        infos = self.fetch({session.partition.topic for session in sessions}.union(others))
        for session in sessions:
            partition: Partition = session.partition
            if session.mark.topic_id != name_topic(infos[partition.topic]):
                raise StateError(
                    f"{partition}: the topic was deleted and created again; set the offset to begin at in "
                    "the new one with `twinsieve reset`"
                )


_UNANSWERED = Pauses(first_s=60.0, longest_s=480.0)


class EndOffsets:
    """Queries the end offsets of the partitions whose leader answers.

    A query that includes a partition without a leader takes the client's timeout (2 s) and then fails for all
    its partitions. After such a failure each partition is queried alone, and one that fails again is not
    queried for a minute, then longer. Each call of `of` meets one failure at most.
    """

    def __init__(self, consumer: PartitionReader, clock: Clock) -> None:
        self._consumer = consumer
        self._clock = clock
        self._alone: dict[Partition, tuple[float, float]] = {}
        """For each partition that is queried alone: the time of the next query, and the last pause."""

    def of(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """End offset of each partition whose leader answers; the others are left out."""
        self._alone = {partition: due for partition, due in self._alone.items() if partition in partitions}
        together = [partition for partition in partitions if partition not in self._alone]
        try:
            ends = self._consumer.end_offsets(together) if together else {}
        except AbortableError:
            self._alone.update(dict.fromkeys(together, (self._clock.monotonic_s(), 0.0)))
            if len(together) == 1:
                self._postpone(together[0])
            return {}
        now_s = self._clock.monotonic_s()
        for partition in sorted(self._alone, key=self._alone.__getitem__):
            if self._alone[partition][0] > now_s:
                break
            try:
                ends |= self._consumer.end_offsets([partition])
            except AbortableError:
                self._postpone(partition)
                break
            del self._alone[partition]
        return ends

    def query_again(self, partition: Partition) -> None:
        """Query this partition in the next call of `of`: records have come from it, so it has a leader."""
        if partition in self._alone:
            self._alone[partition] = (self._clock.monotonic_s(), self._alone[partition][1])

    def _postpone(self, partition: Partition) -> None:
        pause_s = _UNANSWERED.after(self._alone[partition][1])
        self._alone[partition] = (self._clock.monotonic_s() + pause_s, pause_s)
