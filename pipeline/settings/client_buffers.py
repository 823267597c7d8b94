"""How much the clients may hold of what was fetched and not polled, or was sent and not acknowledged."""

from __future__ import annotations

from twinsieve.pipeline.settings.model import KafkaSettings

QUEUE_BYTES = 64 << 20
"""What a producer may hold; with confluent at least two of the largest messages."""
POLL_BYTES = 16 << 20
"""A poll ends behind the batch with which it has that much, unpacked."""
ASIDE_BYTES = 2 << 20
"""Of an unpacked batch that kafka-python keeps for a paused partition; a larger one is fetched again."""
PREFETCH_BYTES = 64 << 20
"""What a consumer of confluent may hold before it stops to fetch; kafka-python has no such bound."""
RESPONSE_BYTES = 50 << 20
"""Of one answer to a fetch, with both clients; one batch may be larger."""
_PARTITION_BYTES = 4 << 20
_RESPONSE_HEAD_BYTES = 512
_LEAST_RECEIVED_BYTES = 1 << 20
"""librdkafka takes no less."""


def response_bytes(kafka: KafkaSettings) -> int:
    """Bytes of one answer to a fetch; one batch may be larger.

    librdkafka has one limit for the whole answer and for what a batch of zstd unpacks to: see
    `consumer_options`.
    """
    return min(RESPONSE_BYTES, max_received(kafka) - _RESPONSE_HEAD_BYTES)


def max_received(kafka: KafkaSettings) -> int:
    """Bytes of one answer, or of one unpacked batch of zstd, beyond which confluent fails."""
    return max(kafka.max_unpacked_bytes, _LEAST_RECEIVED_BYTES)


def partition_bytes(kafka: KafkaSettings) -> int:
    """Bytes of one partition in one answer to a fetch."""
    return max(_PARTITION_BYTES, kafka.message_bytes)


def queue_bytes(kafka: KafkaSettings) -> int:
    """Bytes that a producer holds at most; kafka-python holds less where messages may be very large."""
    return max(QUEUE_BYTES, 2 * kafka.message_bytes)


def largest_batch(kafka: KafkaSettings) -> int:
    """Bytes of one batch, unpacked."""
    return max(kafka.max_unpacked_bytes, kafka.message_bytes)


def polled_bytes(kafka: KafkaSettings) -> int:
    """Bytes of the messages of one poll."""
    return POLL_BYTES + largest_batch(kafka)


def fetched_bytes(kafka: KafkaSettings, partitions: int, *, own: bool = False) -> int:
    """Bytes that a consumer holds at most before they are polled, as they come from one broker.

    own: of internal topics, whose batches are not packed

    kafka-python fetches a partition again once what it has of it is polled: one answer's share of each,
    packed. It unpacks one batch at a time, which takes twice its size on the way, and keeps a small one for
    each paused partition. Confluent fetches ahead until it holds PREFETCH_BYTES, and one answer goes beyond
    that.
    """
    shares = partitions * partition_bytes(kafka)
    if kafka.client == "kafka-python":
        batch = kafka.message_bytes if own else largest_batch(kafka)
        return shares + partitions * ASIDE_BYTES + 2 * batch
    return PREFETCH_BYTES + min(shares, max(response_bytes(kafka), partition_bytes(kafka)))
