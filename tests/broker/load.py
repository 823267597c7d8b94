"""Posts written to the input of a deployment, and where in it they are."""

from __future__ import annotations

import gzip
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path

import orjson

from tests.broker.stranger import (
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
    arrived,
    consumer,
    producer,
    queue,
)
from twinsieve.pipeline.tools.generate.stream import generate

PARTITIONS = 4
_LOOK_S = 20.0
_ANSWER_S = 30.0
_CONNECTS_S = 1.0
_ORIGIN = re.compile(rb".*\[(\d+)\]@(\d+)")
Place = tuple[int, int]
"""Partition and offset of an input message."""


def place_in(header: bytes) -> Place:
    """The place that a header names.

    >>> place_in(b"posts[3]@17")
    (3, 17)
    """
    match = _ORIGIN.fullmatch(header)
    assert match is not None, header
    return int(match[1]), int(match[2])


@dataclass
class Load:
    """Posts written to the input at a steady rate by a thread; `None`: as fast as it goes.

    posts: a file of real ones, gzipped JSON lines, from its beginning again where it ends; else generated
    partitions: number of partitions of the input, which get the messages in turn
    write: what makes the value of a message of a generated post in JSON
    """

    bootstrap: str
    topic: str
    messages: int
    rate: float | None = None
    seed: int = 1
    posts: Path | None = None
    partitions: int = PARTITIONS
    write: Callable[[bytes], bytes] = bytes
    sent_s: dict[Place, float] = field(default_factory=dict)
    failed: int = 0
    made: list[bytes] | None = None
    """What `make` has made, if that was called."""
    _unplaced_s: dict[bytes, float] = field(default_factory=dict)
    stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Until all is written and acknowledged, or stopped."""
        sends = producer(
            self.bootstrap,
            enable_idempotence=True,
            linger_ms=2 if self.rate else 50,
            compression_type="lz4",
            delivery_timeout_ms=300_000,
            queue_buffering_max_messages=1_000_000,
            # A broker that is back has what was written meanwhile as soon as it takes it: what a message
            # waits for this client is none of what is measured.
            reconnect_backoff_max_ms=100,
            retry_backoff_ms=20,
            retry_backoff_max_ms=100,
        )
        if self.rate is not None:
            # It connects, and gets its number, before the clock runs: that takes half a second.
            sends.list_topics(self.topic, _ANSWER_S)
            sends.poll(_CONNECTS_S)
        start = time.monotonic()
        look_s = start + _LOOK_S
        for number, value in enumerate(self.made or self._values()):
            if self._unplaced_s and time.monotonic() >= look_s:
                # Before retention takes them.
                self._find_unplaced()
                look_s = time.monotonic() + _LOOK_S
            if self.rate is not None:
                ahead = start + number / self.rate - time.monotonic()
                if ahead > 0.002:
                    sends.poll(0)
                    time.sleep(ahead)
            if self.stop.is_set():
                break
            self._send(sends, number, value)
        sends.flush(300)
        deadline_s = time.monotonic() + 2 * _ANSWER_S
        while self._unplaced_s and time.monotonic() < deadline_s:
            self._find_unplaced()

    def make(self) -> None:
        """Make all messages now: a post takes more CPU time to generate than to judge."""
        self.made = [*self._values()]

    @property
    def unplaced(self) -> int:
        """Messages of which nobody said where they are; what comes of them counts as extra."""
        return len(self._unplaced_s)

    def _values(self) -> Iterator[bytes]:
        if self.posts is None:
            return map(self.write, map(orjson.dumps, generate(self.messages, self.seed)))
        return islice(cycle(gzip.decompress(self.posts.read_bytes()).splitlines()), self.messages)

    def _send(self, sends: Producer, number: int, value: bytes) -> None:
        at, key = time.monotonic(), b"%d" % number

        def told(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self.failed += 1
            elif message.offset() is None:
                self._unplaced_s[key] = at
            else:
                self.sent_s[message.partition(), message.offset()] = at

        queue(sends, self.topic, value, key, partition=number % self.partitions, on_delivery=told)

    def _find_unplaced(self) -> None:
        """Places of messages whose first acknowledgement went down with a leader: the next one has them
        already, and says so without the offset."""
        looks = consumer(self.bootstrap, "bench-load", auto_offset_reset="earliest")
        for number in range(self.partitions):
            try:
                offset, end = looks.get_watermark_offsets(TopicPartition(self.topic, number), _ANSWER_S)
            except KafkaException:
                continue  # its leader is away; the next look finds them
            looks.assign([TopicPartition(self.topic, number, offset)])
            deadline_s = time.monotonic() + _ANSWER_S
            while offset < end and time.monotonic() < deadline_s:
                for message in arrived(looks):
                    offset = message.offset() + 1
                    at = self._unplaced_s.pop(message.key(), None)
                    if at is not None:
                        self.sent_s[number, message.offset()] = at
        looks.close()
