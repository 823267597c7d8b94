"""Checks before sending: which messages would a topic refuse, and how large may a batch be?

A single refused message or batch fails its transaction, at every attempt.
"""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress

import lz4.frame
import numpy as np
import zstandard
from numpy.typing import NDArray

from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason
from twinsieve.pipeline.broker.admin import Admin, TopicInfo
from twinsieve.pipeline.broker.clocks import BrokerClock
from twinsieve.pipeline.broker.records import (
    NO_TOPIC_ID,
    AbortableError,
    BrokerError,
    Copies,
    Header,
    Messages,
    Partition,
)
from twinsieve.stages.rows.listed_records import encoded_name

BATCH_BYTES = 1 << 20
"""Greatest size of a producer's batches, below Kafka's default limit of a topic. A batch costs client and
broker about the same whatever its size, so small batches are slower."""
_LEAST_BATCH_BYTES = 1 << 10
_KEEP_S = 60.0
_BATCH_BYTES = 61 + 64
"""Bytes of a record batch that holds one message, without the message's key, value and headers: 61 for the
batch header, 64 for the lengths and deltas of the record."""
_HEADER_BYTES = 10

_COMPRESS: Mapping[str, Callable[[bytes], bytes]] = {
    "lz4": lz4.frame.compress,
    "zstd": zstandard.compress,
    "gzip": gzip.compress,
}


class Limits:
    """Limits of topics, requested from the broker and cached for a minute.

    If the broker does not allow describing a topic's settings, Kafka's default size limit is assumed.
    """

    def __init__(
        self,
        admin: Callable[[], Admin],
        clock: BrokerClock,
        client_bytes: int,
        compression: str,
    ) -> None:
        """admin: returns the administration client that requests the limits
        clock: the broker's clock, because the broker compares timestamps with its own time
        client_bytes: largest message that the client itself accepts
        compression: name of the codec that the client sends with
        """
        self._admin = admin
        self._clock = clock
        self._client_bytes = client_bytes
        self._compress = _COMPRESS.get(compression)
        self._lock = threading.Lock()
        self._infos: dict[str, tuple[float, TopicInfo]] = {}

    def of(self, topic: str) -> TopicInfo:
        """The topic with its settings; without settings if the broker did not return them."""
        with self._lock:
            now = time.monotonic()
            queried_s, info = self._infos.get(topic, (-_KEEP_S, TopicInfo(topic, NO_TOPIC_ID, 0)))
            if now - queried_s >= _KEEP_S:
                # If the broker is away or refuses, the cached or default limits are the best guess. A wrong
                # guess leads to a failed transaction whose error names the size.
                with suppress(BrokerError):
                    info = self._admin().topics([topic], settings=True)[topic] or info
                self._infos[topic] = (now, info)
            return info

    def forget(self, topics: Collection[str]) -> None:
        """Drop the cached limits of these topics, so that the next use requests them again."""
        with self._lock:
            for topic in topics:
                self._infos.pop(topic, None)

    def unsendable(self, topic: str, messages: Messages | Copies) -> dict[int, DeadLetterReason]:
        info = self.of(topic)
        if isinstance(messages, Messages):
            return self._refused(info, messages)
        doubtful = self._doubtful(info, messages)
        if not len(doubtful):
            return {}
        refused = self._refused(info, messages.only(doubtful).listed())
        return {int(doubtful[place]): reason for place, reason in refused.items()}

    def _doubtful(self, info: TopicInfo, copies: Copies) -> NDArray[np.int64]:
        """The messages that the topic may refuse; the others it takes."""
        columns = copies.records.columns.part(copies.rows)
        oldest, newest = self._clock.accepted_ms(info)
        most = min(info.message_bytes, self._client_bytes) - _BATCH_BYTES
        sizes = columns.content_sizes + columns.header_counts * _HEADER_BYTES + copies.added.bounds()
        is_doubtful = sizes > most
        is_doubtful |= (columns.times_ms >= 0) & ((columns.times_ms < oldest) | (columns.times_ms > newest))
        if info.compacts:
            is_doubtful |= columns.key_sizes < 0
        return np.flatnonzero(is_doubtful)

    def _refused(self, info: TopicInfo, messages: Messages) -> dict[int, DeadLetterReason]:
        """Rows that the topic would refuse, with the reason."""
        oldest, newest = self._clock.accepted_ms(info)
        reasons: dict[int, DeadLetterReason] = {}
        rows = zip(messages.keys, messages.values, messages.headers, messages.timestamps_ms, strict=True)
        for row, (key, value, headers, stamp) in enumerate(rows):
            if not self._fits(key, value, headers, info.message_bytes):
                reasons[row] = DeadLetterReason.TOO_LARGE_FOR_TOPIC
            elif stamp >= 0 and not oldest <= stamp <= newest:
                reasons[row] = DeadLetterReason.BAD_TIMESTAMP
            elif info.compacts and key is None:
                reasons[row] = DeadLetterReason.NO_KEY
        return reasons

    def _fits(
        self, key: bytes | None, value: bytes | None, headers: Sequence[Header], max_bytes: int
    ) -> bool:
        beside = _BATCH_BYTES + len(key or b"")
        for name, text in headers:
            beside += len(encoded_name(name)) + len(text or b"") + _HEADER_BYTES
        size = beside + len(value or b"")
        if size > self._client_bytes:
            return False
        if size <= max_bytes:
            return True
        # The broker's limit applies to the compressed size. An input message that fitted only because it
        # was compressed must be sendable again.
        if self._compress is None or beside > max_bytes:
            return False
        packed = len(self._compress(value or b""))
        return beside + packed + packed // 50 <= max_bytes

    def check(self, partition: Partition, messages: Messages) -> None:
        """Check that all of these can be sent. raises: AbortableError naming the first that cannot be sent"""
        topic = partition.topic
        for row, why in self.unsendable(topic, messages).items():
            size = len(messages.values[row] or b"")
            limit = min(self.of(topic).message_bytes, self._client_bytes)
            raise AbortableError(
                f"{partition}: message {row} of {len(messages)} cannot be sent: {why} ({size} bytes; {topic} "
                f"accepts {limit}); raise max.message.bytes of the topic, or lower kafka.block_bytes"
            )


class BatchBytes:
    """How large the batches of one producer may be, so that none of its topics refuses a batch.

    A topic's limit applies to whole batches: a batch of many small messages may be too large, even if each
    message alone is small enough. The compressed size is not known beforehand, so the size before
    compression counts.

    now: greatest bytes of a batch, for a producer made now; a larger message gets a batch of its own
    """

    def __init__(self, limits: Limits, topics: Collection[str]) -> None:
        self._limits = limits
        self._topics = frozenset(topics)
        self.now = self._taken()

    def _taken(self) -> int:
        return min([BATCH_BYTES, *(self._limits.of(topic).message_bytes for topic in sorted(self._topics))])

    def refused(self) -> None:
        """Lower `now`, because a batch of that size was refused.

        Either the limit of a topic was lowered, or the broker does not show the limit.
        """
        self._limits.forget(self._topics)
        taken = self._taken()
        self.now = taken if taken < self.now else max(_LEAST_BATCH_BYTES, self.now // 2)
