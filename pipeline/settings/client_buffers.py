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
ANSWER_BYTES = 16 << 10
"""Of one answer to a fetch of a group's consumer on confluent. librdkafka unpacks all of an answer at once: a
small one bounds what that may be. A batch that is larger comes by itself."""
SLICE_MESSAGES = 32
"""Confluent takes so few out of librdkafka's queue at a time, and ends a poll at POLL_BYTES."""
_ZSTD_RATIO = 1 << 15
"""128 KiB of one byte take a block of four."""
_PARTITION_BYTES = 4 << 20
_RESPONSE_HEAD_BYTES = 512
_LEAST_RECEIVED_BYTES, _MAX_RECEIVED_BYTES = 1 << 20, (1 << 31) - 1
"""librdkafka takes no less, and no more."""


def response_bytes(kafka: KafkaSettings) -> int:
    """Bytes of one answer to a fetch; one batch may be larger.

    librdkafka has one limit for the whole answer and for what a batch of zstd unpacks to: see
    `consumer_options`.
    """
    return min(RESPONSE_BYTES, max_received(kafka) - _RESPONSE_HEAD_BYTES)


def max_received(kafka: KafkaSettings) -> int:
    """Bytes of one answer, or of one unpacked batch of zstd, beyond which confluent fails.

    Where a frame does not say its size, librdkafka tries three times as much after each guess that was too
    little, and gives up once that is above its limit: so it has three times the limit.
    """
    return max(min(3 * kafka.max_unpacked_bytes, _MAX_RECEIVED_BYTES), _LEAST_RECEIVED_BYTES)


def partition_bytes(kafka: KafkaSettings) -> int:
    """Bytes of one partition in one answer to a fetch."""
    return max(_PARTITION_BYTES, kafka.message_bytes)


def queue_bytes(kafka: KafkaSettings) -> int:
    """Bytes that a producer holds at most; kafka-python holds less where messages may be very large."""
    return max(QUEUE_BYTES, 2 * kafka.message_bytes)


def largest_batch(kafka: KafkaSettings) -> int:
    """Bytes of one batch, unpacked."""
    return max(kafka.max_unpacked_bytes, kafka.message_bytes)


def answer_batches(kafka: KafkaSettings) -> int:
    """Batches of zstd in one answer to confluent that unpack to as much as may be."""
    return 1 + ANSWER_BYTES * _ZSTD_RATIO // max_received(kafka)


def polled_bytes(kafka: KafkaSettings) -> int:
    """Bytes of the messages of one poll: of one batch beyond its end, or on confluent of a slice, which may
    be all that was fetched."""
    beyond = largest_batch(kafka) if kafka.client == "kafka-python" else fetched_bytes(kafka, 1)
    return POLL_BYTES + beyond


def fetched_bytes(kafka: KafkaSettings, partitions: int, *, own: bool = False) -> int:
    """Bytes that a consumer holds at most before they are polled, as they come from one broker.

    own: of internal topics, whose batches are not packed

    kafka-python fetches a partition again once what it has of it is polled: one answer's share of each,
    packed. It unpacks one batch at a time, which takes twice its size on the way, and keeps a small one for
    each paused partition.

    Confluent fetches ahead until it holds PREFETCH_BYTES, unpacked, and one answer goes
    beyond that: with zstd as many batches as it has room for, each as large as one may be.
    """
    shares = partitions * partition_bytes(kafka)
    if kafka.client == "kafka-python":
        batch = kafka.message_bytes if own else largest_batch(kafka)
        return shares + partitions * ASIDE_BYTES + 2 * batch
    if own:
        return PREFETCH_BYTES + min(shares, max(response_bytes(kafka), partition_bytes(kafka)))
    return PREFETCH_BYTES + answer_batches(kafka) * max(max_received(kafka), kafka.message_bytes)
