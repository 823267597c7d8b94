"""Clusters that tests may harm: the memory broker by its faults, a real one by killing, freezing and cutting."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Protocol

from tests.broker.cluster import Cluster
from tests.broker.stranger import admin, delete_topics
from tests.broker.worlds import KafkaWorld, MemoryWorld, World, fresh, until
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.ports import Broker
from twinsieve.pipeline.broker.records import Partition

_BATCH_HEAD_BYTES = 12
"""Offset and length of a record batch; the length counts from there on."""


class HarmedWorld(World, Protocol):
    """A world in which things go wrong on purpose; `close` makes them good."""

    def patient_broker(self) -> Broker:
        """One whose writes wait for as long as a node may take to start."""

    def topic(self) -> tuple[Partition, Partition]:
        """Two partitions of a new topic, without replicas, that can lose their leaders one by one."""

    def lose_leader(self, partition: Partition) -> None:
        """The partition has no leader until `find_leaders`."""

    def find_leaders(self) -> None:
        """Every partition has a leader again."""

    def delay_writes(self, partition: Partition) -> None:
        """What is sent to the partition is written only after `find_leaders`."""

    def truncate(self, partition: Partition, end: int) -> None:
        """The partition loses its records from `end` on; each was appended in a batch of its own."""

    def delete(self, topic: str) -> None:
        """Delete a topic, and wait until that is known."""

    def pass_time(self, seconds: float) -> None:
        """Let so much time pass."""


class HarmedMemory(MemoryWorld):
    """The memory broker and its faults."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster.request_timeout_s = 8.0
        self.cluster.transaction_timeout_s = 6.0
        self.cluster.faults.append_failure = self._failure
        self._late = False

    def _failure(self, waiting: int) -> int | None:
        """Of messages that wait in vain, half get through."""
        oldest_s = min(each.since_s for each in self.cluster.in_flight)
        overdue = self.cluster.clock.monotonic_s() - oldest_s >= self.cluster.request_timeout_s
        return (waiting + 1) // 2 if self._late and overdue else None

    def patient_broker(self) -> Broker:
        return self.broker()

    def topic(self) -> tuple[Partition, Partition]:
        name = fresh()
        self.cluster.create(NewTopic(name, 2))
        return Partition(name, 0), Partition(name, 1)

    def lose_leader(self, partition: Partition) -> None:
        self.cluster.faults.leaderless.add(partition)

    def find_leaders(self) -> None:
        for partition in self.cluster.faults.leaderless:
            self.cluster.log(partition).elect()
        self.cluster.faults.leaderless.clear()

    def delay_writes(self, partition: Partition) -> None:
        self._late = True
        self.lose_leader(partition)

    def truncate(self, partition: Partition, end: int) -> None:
        self.cluster.log(partition).truncate(end)

    def delete(self, topic: str) -> None:
        self.cluster.delete(topic)

    def pass_time(self, seconds: float) -> None:
        self.cluster.clock.sleep(seconds)


class HarmedKafka(KafkaWorld):
    """Three real brokers; what is harmed lives on one of them, without replicas."""

    def __init__(self, cluster: Cluster) -> None:
        times = {"request_timeout": "8s", "transaction_timeout": "6s"}
        super().__init__(cluster.bootstrap, **times)
        self._cluster = cluster
        self._raw = admin(cluster.bootstrap)
        self._dead: set[int] = set()
        self._frozen: set[int] = set()

    def patient_broker(self) -> Broker:
        return self.broker(request_timeout="90s")

    def _leaders(self, topic: str) -> dict[int, int]:
        known = self._raw.list_topics(topic, timeout=10).topics[topic].partitions
        return {number: partition.leader for number, partition in known.items()}

    def topic(self) -> tuple[Partition, Partition]:
        name = ""

        def led_by_two() -> bool:
            # A node that has just been restarted may not be given partitions yet.
            nonlocal name
            name = fresh()
            self.broker().admin().create_topic(NewTopic(name, 2, 1))
            return len(set(self._leaders(name).values()) - {-1}) == 2

        until(led_by_two)
        return Partition(name, 0), Partition(name, 1)

    def _node(self, partition: Partition) -> int:
        """The place of its leader in the cluster's list."""
        return until(lambda: max(0, self._leaders(partition.topic)[partition.number])) - 1

    def _without_leader(self, partition: Partition) -> None:
        # The others name a dead node as leader until its session ends.
        until(lambda: self._leaders(partition.topic)[partition.number] < 0)

    def lose_leader(self, partition: Partition) -> None:
        number = self._node(partition)
        self._dead.add(number)
        self._cluster.nodes[number].kill()
        self._without_leader(partition)

    def find_leaders(self) -> None:
        for number in self._frozen:
            self._cluster.nodes[number].thaw()
        for number in self._dead:
            self._cluster.nodes[number].start()
        for number in self._dead:
            self._cluster.nodes[number].wait_ready()
        self._dead.clear()
        self._frozen.clear()

    def delay_writes(self, partition: Partition) -> None:
        number = self._node(partition)
        self._frozen.add(number)
        self._cluster.nodes[number].freeze()

    def truncate(self, partition: Partition, end: int) -> None:
        number = self._node(partition)
        self._dead.add(number)
        self._cluster.nodes[number].kill()
        folder = self._cluster.folder / f"node{number + 1}" / "data" / f"{partition.topic}-{partition.number}"
        _cut(folder / f"{0:020d}.log", end)
        self.find_leaders()
        until(lambda: self._leaders(partition.topic)[partition.number] > 0)

    def delete(self, topic: str) -> None:
        delete_topics(self._cluster.bootstrap, topic)
        topics = self.broker().admin().topics
        until(lambda: topics([topic])[topic] is None)

    def pass_time(self, seconds: float) -> None:
        time.sleep(seconds)

    def close(self) -> None:
        self.find_leaders()
        super().close()


def _cut(segment: Path, batches: int) -> None:
    """Keep the first `batches` of a segment file."""
    with open(segment, "r+b") as file:
        at = 0
        for _ in range(batches):
            file.seek(at + 8)
            at += _BATCH_HEAD_BYTES + int.from_bytes(file.read(4), "big")
        file.truncate(at)
