"""Batches of a producer of the memory broker: a topic's limit is on them, as in Kafka, not on messages alone."""

from __future__ import annotations

from collections.abc import Collection

from tests.memory.cluster import MemoryCluster
from twinsieve.pipeline.broker.records import AbortableError, Messages, Partition

_BATCH_BYTES = 256 << 10


class Batches:
    """What one producer puts together: messages that are sent at once, up to what all its topics took when it
    was made, or when one of them refused a batch."""

    def __init__(self, cluster: MemoryCluster, topics: Collection[str]) -> None:
        self._cluster = cluster
        self._topics = set(topics)
        self._most_bytes = self._taken()

    def _taken(self) -> int:
        known = [self._cluster.topics[name] for name in self._topics if name in self._cluster.topics]
        return min([_BATCH_BYTES, *(topic.max_message_bytes for topic in known)])

    def check(self, partition: Partition, messages: Messages) -> None:
        """Check that the partition takes these messages as they are put together. raises: AbortableError"""
        limit = self._cluster.topics[partition.topic].max_message_bytes
        held = 0
        for key, value in zip(messages.keys, messages.values, strict=True):
            size = len(key or b"") + len(value or b"")
            held = held + size if held + size <= self._most_bytes else size
            if held > limit:
                self._topics.add(partition.topic)
                self._most_bytes = self._taken()
                raise AbortableError(f"{partition}: MSG_SIZE_TOO_LARGE: a batch of more than {limit} bytes")
