"""Memory of the Kafka clients for records that are fetched and not polled, or sent and not acknowledged."""

from __future__ import annotations

from twinsieve.pipeline.settings.model import KafkaSettings

QUEUE_BYTES = 64 << 20
"""The most bytes in the queue of a producer, unless two of the largest messages need more (`queue_bytes`)."""
POLL_BYTES = 16 << 20
"""A poll ends after the batch with which it has this number of unpacked bytes."""
ASIDE_BYTES = 2 << 20
"""The most bytes of an unpacked batch that kafka-python keeps for a paused partition. A larger batch is
dropped and fetched again."""
PREFETCH_BYTES = 64 << 20
"""A confluent consumer stops fetching when it holds this number of bytes; kafka-python has no such limit."""
RESPONSE_BYTES = 50 << 20
"""The most bytes of one answer to a fetch, with both clients; a single batch may be larger."""
ANSWER_BYTES = 16 << 10
"""The most bytes of one answer to a fetch of a group's consumer on confluent. It is small because librdkafka
unpacks all of an answer at once. A larger batch is alone in its answer."""
SLICE_MESSAGES = 32
"""Number of messages (a slice) taken out of librdkafka's queue at a time. A poll ends after the slice with
which it has POLL_BYTES."""
_ZSTD_RATIO = 1 << 15
"""The largest ratio of unpacked to packed bytes: zstd packs 128 KiB of one repeated byte into 4 bytes."""
_PARTITION_BYTES = 4 << 20
_RESPONSE_HEAD_BYTES = 512
_LEAST_RECEIVED_BYTES, _MAX_RECEIVED_BYTES = 1 << 20, (1 << 31) - 1
"""The smallest and the largest limit that librdkafka accepts in `max_received`."""


def response_bytes(kafka: KafkaSettings) -> int:
    """The most bytes of one answer to a fetch; a single batch may be larger.

    librdkafka has one common limit for a whole answer and for an unpacked zstd batch: see `consumer_options`.
    """
    return min(RESPONSE_BYTES, max_received(kafka) - _RESPONSE_HEAD_BYTES)


def max_received(kafka: KafkaSettings) -> int:
    """The limit in bytes of an answer and of an unpacked zstd batch; beyond it confluent fails.

    If a zstd frame does not state its size, librdkafka guesses the size, and triples the guess until it is
    large enough. It fails if a guess is above the limit. So the limit is three times `max_unpacked_bytes`.
    """
    return max(min(3 * kafka.max_unpacked_bytes, _MAX_RECEIVED_BYTES), _LEAST_RECEIVED_BYTES)


def partition_bytes(kafka: KafkaSettings) -> int:
    """The most bytes of one partition in one answer to a fetch."""
    return max(_PARTITION_BYTES, kafka.message_bytes)


def queue_bytes(kafka: KafkaSettings) -> int:
    """The most bytes in the queue of a producer. kafka-python holds less if messages may be very large."""
    return max(QUEUE_BYTES, 2 * kafka.message_bytes)


def largest_batch(kafka: KafkaSettings) -> int:
    """The most bytes of one unpacked batch."""
    return max(kafka.max_unpacked_bytes, kafka.message_bytes)


def answer_batches(kafka: KafkaSettings) -> int:
    """The most zstd batches in one answer to confluent that can each unpack to the largest allowed size."""
    return 1 + ANSWER_BYTES * _ZSTD_RATIO // max_received(kafka)


def polled_bytes(kafka: KafkaSettings) -> int:
    """The most bytes of the messages of one poll. It may exceed POLL_BYTES by one batch; on confluent by one
    slice, which may be everything that was fetched."""
    beyond = largest_batch(kafka) if kafka.client == "kafka-python" else fetched_bytes(kafka, 1)
    return POLL_BYTES + beyond


def fetched_bytes(kafka: KafkaSettings, partitions: int, *, own: bool = False) -> int:
    """The most bytes that a consumer has fetched from one broker and that are not polled yet.

    own: whether the topics are internal topics, whose batches are not packed

    kafka-python fetches a partition again only after all that it holds of it was polled. So it holds one
    answer's share of each partition, packed. It unpacks one batch at a time, which for a moment takes twice
    the batch's size, and keeps one small unpacked batch for each paused partition.

    Confluent fetches ahead until it holds PREFETCH_BYTES, unpacked. The last answer may exceed this: with
    zstd by as many batches as fit into an answer, each of the largest allowed size.
    """
    shares = partitions * partition_bytes(kafka)
    if kafka.client == "kafka-python":
        batch = kafka.message_bytes if own else largest_batch(kafka)
        return shares + partitions * ASIDE_BYTES + 2 * batch
    if own:
        return PREFETCH_BYTES + min(shares, max(response_bytes(kafka), partition_bytes(kafka)))
    return PREFETCH_BYTES + answer_batches(kafka) * max(max_received(kafka), kafka.message_bytes)
