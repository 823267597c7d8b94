"""The appender of the memory broker: written at once, or as late and as incomplete as its faults say."""

from __future__ import annotations

from collections.abc import Callable, Collection

from tests.memory.batches import Batches
from tests.memory.clocks import Clocks
from tests.memory.cluster import MemoryCluster
from tests.memory.in_flight import InFlight
from tests.memory.lock import CLUSTER_LOCK, one_at_a_time, waits
from twinsieve.pipeline.broker.ports import Hook
from twinsieve.pipeline.broker.records import AbortableError, Messages, Partition

_STEP_S = 0.1


@one_at_a_time
class MemoryIdempotentProducer:
    def __init__(
        self, cluster: MemoryCluster, hook: Hook, clocks: Clocks, topics: Collection[str] = ()
    ) -> None:
        self._batches = Batches(cluster, topics)
        self._cluster = cluster
        self._hook = hook
        self._clocks = clocks
        self._in_flight = InFlight(clocks)

    def append(self, partition: Partition, messages: Messages) -> None:
        self._hook("appender.append.before")
        messages = self._clocks.stamped(messages)
        self._cluster.require_rights(partition.topic)
        self._cluster.check(partition, messages)
        self._batches.check(partition, messages)
        self._cluster.hand_over(
            self._in_flight, partition, messages, latency_s=self._cluster.faults.append_latency_s
        )
        self._hook("appender.append.after")

    @waits
    def confirm(self, timeout_s: float) -> int:
        """Time passes only while something waits."""
        self._hook("appender.confirm")
        deadline_s = self._cluster.clock.monotonic_s() + timeout_s
        while self._unacknowledged() and self._cluster.clock.monotonic_s() < deadline_s:
            self._cluster.clock.sleep(min(_STEP_S, timeout_s))
        with CLUSTER_LOCK:
            waiting = len(self._in_flight)
            return self._judge(waiting) if waiting else 0

    def _unacknowledged(self) -> int:
        with CLUSTER_LOCK:
            self._cluster.deliver()
            return len(self._in_flight)

    def _judge(self, waiting: int) -> int:
        """The number that waits on. raises: AbortableError when they are given up"""
        kept = self._cluster.faults.append_failure(waiting)
        waited_s = self._cluster.clock.monotonic_s() - self._in_flight.since_s
        if kept is None and waited_s < self._cluster.request_timeout_s:
            return waiting
        # What the broker has received it writes, whether or not anybody still waits for it.
        self._in_flight.cut(kept or 0)
        self._in_flight = InFlight(self._clocks)
        raise AbortableError(
            f"append: {waiting} messages were not acknowledged; reading again from the committed offsets"
        )

    def lose(self, keep: Callable[[int], int]) -> None:
        """The process dies: of the messages on their way only the first `keep(number)` arrive."""
        self._in_flight.cut(keep(len(self._in_flight)))

    def close(self) -> None:
        """What is on its way arrives."""
