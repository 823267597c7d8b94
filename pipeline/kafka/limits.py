"""What a topic refuses, found out before sending: one such message or batch would fail its transaction each
time."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress

import lz4.frame
import zstandard

from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason
from twinsieve.pipeline.broker.admin import Admin, TopicInfo
from twinsieve.pipeline.broker.clocks import BrokerClock
from twinsieve.pipeline.broker.records import (
    NO_TOPIC_ID,
    AbortableError,
    BrokerError,
    Header,
    Messages,
    Partition,
)

BATCH_BYTES = 256 << 10
"""A producer's batches have no more than this; each costs the broker about the same, however small."""
_LEAST_BATCH_BYTES = 1 << 10
_KEEP_S = 60.0
_BATCH_BYTES = 61 + 64
"""Header of a record batch, and the lengths and deltas of its one record."""
_HEADER_BYTES = 10
_ANY_BYTES = 1 << 62

_COMPRESS: Mapping[str, Callable[[bytes], bytes]] = {
    "lz4": lz4.frame.compress,
    "zstd": zstandard.compress,
    "gzip": gzip.compress,
}


class Limits:
    """Limits of topics, requested from the broker and kept for a minute.

    Where describing a topic's settings is not allowed, Kafka's default size is assumed.
    """

    def __init__(
        self,
        admin: Callable[[], Admin],
        clock: BrokerClock,
        client_bytes: int,
        compression: str,
        *,
        nulls: bool,
    ) -> None:
        """clock: the broker's, which is the one that counts
        nulls: the client can send null header values, and records with neither key nor value
        """
        self._admin = admin
        self._clock = clock
        self._client_bytes = client_bytes
        self._compress = _COMPRESS.get(compression)
        self._nulls = nulls
        self._lock = threading.Lock()
        self._infos: dict[str, tuple[float, TopicInfo]] = {}

    def of(self, topic: str) -> TopicInfo:
        """One topic, with its settings as far as they are known."""
        with self._lock:
            now = time.monotonic()
            queried_s, info = self._infos.get(topic, (-_KEEP_S, TopicInfo(topic, NO_TOPIC_ID, 0)))
            if now - queried_s >= _KEEP_S:
                # Away or not allowed: what was known, or the default, is the best guess; a wrong one
                # shows as a failed transaction that names the size.
                with suppress(BrokerError):
                    info = self._admin().topics([topic], settings=True)[topic] or info
                self._infos[topic] = (now, info)
            return info

    def forget(self, topics: Collection[str]) -> None:
        """Ask the broker again for these."""
        with self._lock:
            for topic in topics:
                self._infos.pop(topic, None)

    def unsendable(self, topic: str, messages: Messages) -> dict[int, DeadLetterReason]:
        info = self.of(topic)
        max_bytes = info.message_bytes
        oldest, newest = self._clock.accepted_ms(info)
        small = min(max_bytes, self._client_bytes) - _BATCH_BYTES
        reasons: dict[int, DeadLetterReason] = {}
        rows = zip(messages.keys, messages.values, messages.headers, messages.timestamps_ms, strict=True)
        for row, (key, value, headers, stamp) in enumerate(rows):
            timely = stamp < 0 or oldest <= stamp <= newest
            if timely and value is not None and _bytes_at_most(key, value, headers) <= small:
                continue
            reason = self._reason(key, value, headers, max_bytes)
            if reason is None and not timely:
                reason = DeadLetterReason.BAD_TIMESTAMP
            if reason is not None:
                reasons[row] = reason
        return reasons

    def _reason(
        self, key: bytes | None, value: bytes | None, headers: Sequence[Header], max_bytes: int
    ) -> DeadLetterReason | None:
        if key is None and value is None and not self._nulls:
            return DeadLetterReason.NO_KEY_NO_VALUE
        beside = _BATCH_BYTES + len(key or b"")
        for name, text in headers:
            if text is None and not self._nulls:
                return DeadLetterReason.NULL_HEADER
            try:
                beside += len(name.encode()) + len(text or b"") + _HEADER_BYTES
            except UnicodeEncodeError:
                return DeadLetterReason.BAD_HEADER
        return None if self._fits(beside, value or b"", max_bytes) else DeadLetterReason.TOO_LARGE_FOR_TOPIC

    def _fits(self, beside: int, value: bytes, max_bytes: int) -> bool:
        size = beside + len(value)
        if size > self._client_bytes:
            return False
        if size <= max_bytes:
            return True
        # The broker's limit is on what arrives. A message that came to us compressed must go out again.
        if self._compress is None or beside > max_bytes:
            return False
        packed = len(self._compress(value))
        return beside + packed + packed // 50 <= max_bytes

    def check(self, partition: Partition, messages: Messages) -> None:
        """Check that all of these can be sent. raises: AbortableError that names the first which cannot"""
        topic = partition.topic
        for row, why in self.unsendable(topic, messages).items():
            size = len(messages.values[row] or b"")
            limit = min(self.of(topic).message_bytes, self._client_bytes)
            raise AbortableError(
                f"{partition}: message {row} of {len(messages)} is {why} ({size} bytes; {topic} takes "
                f"{limit}); raise its max.message.bytes or lower kafka.block_bytes"
            )


class BatchBytes:
    """How large the batches of one producer may be, so that none of its topics refuses one.

    A topic's limit is on batches, as they arrive: many small messages at once are too large for it, though
    each would pass. What compression saves is not known beforehand, and not counted on.

    now: bytes of a batch, of a producer that is made now; a message that is larger makes a batch of its own
    """

    def __init__(self, limits: Limits, topics: Collection[str]) -> None:
        self._limits = limits
        self._topics = frozenset(topics)
        self.now = self._taken()

    def _taken(self) -> int:
        return min([BATCH_BYTES, *(self._limits.of(topic).message_bytes for topic in sorted(self._topics))])

    def refused(self) -> None:
        """A batch of `now` was refused: a topic takes less than before, or does not show what it takes."""
        self._limits.forget(self._topics)
        taken = self._taken()
        self.now = taken if taken < self.now else max(_LEAST_BATCH_BYTES, self.now // 2)


def _bytes_at_most(key: bytes | None, value: bytes, headers: Sequence[Header]) -> int:
    """Bytes of a message that every client can send; a very large number where that takes a closer look."""
    size = len(value) + len(key or b"")
    for name, text in headers:
        if text is None or not name.isascii():
            return _ANY_BYTES
        size += len(name) + len(text) + _HEADER_BYTES
    return size
