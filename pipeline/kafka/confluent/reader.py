"""The reader of chosen partitions, outside any group, on confluent-kafka."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

from confluent_kafka import KafkaException, TopicPartition

from twinsieve.pipeline.broker.records import NO_EPOCH, Partition, Records
from twinsieve.pipeline.kafka.broker import Access
from twinsieve.pipeline.kafka.confluent.options import ERRORS
from twinsieve.pipeline.kafka.confluent.reading import ConfluentConsumer

_LEADER_S = 0.5


class ConfluentReader(ConfluentConsumer):
    """`ports.Reader` on confluent-kafka. A partition is assigned to the consumer at its first `seek`."""

    def __init__(self, access: Access) -> None:
        # librdkafka needs a group id even for a consumer without a group. The consumer never joins this
        # group and never commits to it. But librdkafka looks up the group's coordinator, so the app's
        # permissions on groups must include this id.
        super().__init__(access, {"group.id": f"{access.options['client.id']}.reader"})
        self._wanted: set[Partition] = set()
        self._looked_up: set[str] = set()

    def assign(self, partitions: Collection[Partition]) -> None:
        self._wanted = set(partitions)
        removed = [partition for partition in self._live if partition not in self._wanted]
        if removed:
            self._consumer.incremental_unassign([TopicPartition(*partition) for partition in removed])
        for partition in removed:
            del self._live[partition]
        self._paused &= self._wanted
        self._stopped = {
            partition: error for partition, error in self._stopped.items() if partition in self._wanted
        }
        # Otherwise librdkafka looks up the partition leaders only at its next timer, up to a second later.
        for topic in {partition.topic for partition in self._wanted} - self._looked_up:
            with suppress(KafkaException):
                self._consumer.list_topics(topic, timeout=_LEADER_S)
                self._looked_up.add(topic)

    def seek(self, partition: Partition, offset: int, epoch: int = NO_EPOCH) -> None:
        if partition not in self._wanted:
            return
        if partition not in self._live:
            self._hand_over(partition, offset)
            self._last[partition] = offset, NO_EPOCH
            if epoch == NO_EPOCH:
                return
        self._seek(partition, offset, epoch)

    def _hand_over(self, partition: Partition, offset: int) -> None:
        target = TopicPartition(*partition, offset)
        with ERRORS.translating(f"seek {partition}"):
            if partition in self._live:
                self._consumer.incremental_unassign([target])
            self._consumer.incremental_assign([target])
            if partition in self._paused:
                self._consumer.pause([target])
        self._live[partition] = offset

    def poll(self, timeout_s: float, max_records: int) -> list[Records]:
        return self._fetched(timeout_s, max_records)

    def _owns(self, partition: Partition) -> bool:
        return partition in self._wanted

    def _restart(self, partition: Partition) -> None:
        self._hand_over(partition, self._live[partition])
