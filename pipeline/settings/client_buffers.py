"""Memory of the Kafka client for records that are fetched and not polled, or sent and not acknowledged."""

from __future__ import annotations

from twinsieve.pipeline.settings.model import KafkaSettings

QUEUE_BYTES = 64 << 20
"""The most bytes in the queue of a producer; a single larger message is alone in it."""
POLL_BYTES = 16 << 20
"""A poll ends after the batch with which it has this number of unpacked bytes."""
ASIDE_BYTES = 2 << 20
"""The most bytes of an unpacked batch that is kept for a paused partition. A larger batch is dropped and
fetched again."""
_PARTITION_BYTES = 4 << 20
_KEPT_PART = 8


def partition_bytes(kafka: KafkaSettings) -> int:
    """The most bytes of one partition in one answer to a fetch; a single batch may be larger."""
    return max(_PARTITION_BYTES, kafka.message_bytes)


def arena_bytes(kafka: KafkaSettings) -> int:
    """The most bytes that a process keeps for the messages of the next polls."""
    return kafka.pending_bytes // _KEPT_PART


def queue_bytes(kafka: KafkaSettings) -> int:
    """The most bytes in the queue of a producer."""
    return max(QUEUE_BYTES, kafka.message_bytes)


def largest_batch(kafka: KafkaSettings) -> int:
    """The most bytes of one unpacked batch."""
    return max(kafka.max_unpacked_bytes, kafka.message_bytes)


def polled_bytes(kafka: KafkaSettings) -> int:
    """The most bytes of the messages of one poll, which may exceed POLL_BYTES by one batch."""
    return POLL_BYTES + largest_batch(kafka)


def fetched_bytes(kafka: KafkaSettings, partitions: int, *, own: bool = False) -> int:
    """The most bytes that a consumer has fetched from one broker and that are not polled yet.

    own: whether the topics are internal topics, whose batches are not packed

    kafka-python fetches a partition again only after all that it holds of it was polled. So it holds one
    answer's share of each partition, packed. It unpacks one batch at a time, which for a moment takes twice
    the batch's size, and keeps one small unpacked batch for each paused partition.
    """
    batch = kafka.message_bytes if own else largest_batch(kafka)
    return partitions * (partition_bytes(kafka) + ASIDE_BYTES) + 2 * batch
