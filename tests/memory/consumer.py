"""The group consumer of the memory broker."""

from __future__ import annotations

from collections.abc import Collection

from tests.memory.clients import MemoryReader
from tests.memory.clocks import Clocks
from tests.memory.cluster import MemoryCluster
from tests.memory.groups import MemoryMembership
from tests.memory.lock import CLUSTER_LOCK, one_at_a_time, waits
from twinsieve.pipeline.broker.ports import Hook
from twinsieve.pipeline.broker.records import (
    NO_EPOCH,
    AbortableError,
    Committed,
    FatalError,
    Partition,
    PollResult,
    UnstableError,
)


@one_at_a_time
class MemoryConsumer:
    """Polling is its heartbeat: one that stands still is expired by the clock."""

    def __init__(
        self,
        cluster: MemoryCluster,
        hook: Hook,
        clocks: Clocks,
        group: str,
        topics: tuple[str, ...],
        instance: str | None,
    ) -> None:
        self._cluster = cluster
        self._hook = hook
        self._group = cluster.group(group)
        self._topics = topics
        self._instance = instance
        self._reader = MemoryReader(cluster, hook, clocks, "consumer")
        self._member_id = self._join()
        self._generation = -1
        self._assignment: frozenset[Partition] = frozenset()
        self._epoch = 0
        self._asked = False

    def _join(self) -> str:
        now_s = self._cluster.clock.monotonic_s()
        return self._group.join(self._topics, self._instance, now_s).member_id

    @waits
    def poll(self, timeout_s: float, max_records: int) -> PollResult:
        with CLUSTER_LOCK:
            self._heartbeat()
        self._asked = False
        records = self._reader.poll(timeout_s, max_records)
        with CLUSTER_LOCK:
            if self._heartbeat():
                records = []
        membership = MemoryMembership(self._generation, self._group.name, self._member_id, self._instance)
        return PollResult(membership, self._assignment, self._epoch, records)

    def prefetch(self) -> bool:
        was_asked, self._asked = self._asked, True
        return was_asked or not self._cluster.faults.fetches_late

    def _heartbeat(self) -> bool:
        """Whether a rebalance came to light."""
        if not self._cluster.reachable:
            return False
        member = self._group.members.get(self._member_id)
        if member is not None:
            member.seen_s = self._cluster.clock.monotonic_s()
        self._cluster.tick()
        if member is None:
            if self._instance and any(m.instance == self._instance for m in self._group.members.values()):
                raise FatalError(
                    f"group {self._group.name}: another process is member {self._instance!r} now", fenced=True
                )
            self._member_id = self._join()
        if self._generation == self._group.generation:
            return False
        self._generation = self._group.generation
        self._assignment = self._group.assignment(self._member_id, self._cluster.partition_counts())
        self._epoch += 1
        self._reader.assign(())
        self._reader.assign(self._assignment)
        return True

    def committed(self, partitions: Collection[Partition]) -> dict[Partition, Committed | None]:
        self._hook("consumer.committed")
        if not self._cluster.reachable:
            raise AbortableError("committed: the broker does not answer")
        self._cluster.tick()
        for partition in partitions:
            if (self._group.name, partition) in self._cluster.unstable_offsets():
                raise UnstableError(f"{partition}: its offset is being committed by an open transaction")
        return {partition: self._group.offsets.get(partition) for partition in partitions}

    def seek(self, partition: Partition, offset: int, epoch: int = NO_EPOCH) -> None:
        self._reader.seek(partition, offset, epoch)

    def position(self, partition: Partition) -> int:
        return self._reader.position(partition)

    def pause(self, partitions: Collection[Partition]) -> None:
        self._reader.pause(partitions)

    def resume(self, partitions: Collection[Partition]) -> None:
        self._reader.resume(partitions)

    @waits
    def beginning_offsets(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        return self._reader.beginning_offsets(partitions)

    @waits
    def end_offsets(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        return self._reader.end_offsets(partitions)

    def close(self) -> None:
        """A static member stays until its session times out."""
        self._reader.close()
        if self._instance is None:
            self._group.leave(self._member_id)

    def leave(self) -> None:
        self._hook("consumer.leave")
        self.close()
        if self._cluster.reachable and len(self._group.members) > 1:
            self._group.leave(self._member_id)
