"""Topics of an app get more partitions under a steady load; what comes out, and after how long."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import orjson

from tests.broker.load import Place, place_in
from tests.broker.stranger import (
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
    add_partitions,
    arrived,
    producer,
    reader,
)
from twinsieve.pipeline.tools.generate.stream import generate

_PAUSE_S = 0.02
_FRESH = {"topic_metadata_refresh_interval_ms": 500}


class Growth:
    """Writes posts to each partition of `app`'s input, and watches its outputs, in threads, until `stop`.

    sent_s, seen_s: for each place when it was sent, and when it first came out; monotonic seconds
    extra: messages that came out again; disorder: that came out before an earlier one of their partition in
        the same partition of the same output
    """

    def __init__(self, bootstrap: str, topic: str, outputs: Sequence[str], partitions: int) -> None:
        self._bootstrap, self._topic, self._outputs = bootstrap, topic, outputs
        self._partitions = partitions
        self.sent_s: dict[Place, float] = {}
        self.seen_s: dict[Place, float] = {}
        self.extra = self.disorder = 0
        self._stop, self._watched = threading.Event(), threading.Event()
        self._threads = [threading.Thread(target=call, daemon=True) for call in (self._load, self._watch)]
        for thread in self._threads:
            thread.start()

    def grow(self, topic: str, partitions: int) -> None:
        """Raise the number of partitions of this topic; the load goes to new ones of the input at once."""
        add_partitions(self._bootstrap, topic, partitions)
        if topic == self._topic:
            self._partitions = partitions

    def come_out(self) -> Counter[int]:
        """Number of messages that have come out, by input partition."""
        return Counter(partition for partition, _ in self.seen_s.copy())

    @property
    def is_all_out(self) -> bool:
        return self.sent_s.keys() <= self.seen_s.keys()

    def worst_s(self, since_s: float = 0.0) -> float:
        """The longest time that a message sent since then took; infinite if one is not out."""
        sent_s = {place: at for place, at in self.sent_s.copy().items() if at >= since_s}
        return max((self.seen_s.get(place, float("inf")) - at for place, at in sent_s.items()), default=0.0)

    def slowest(self, since_s: float, until_s: float) -> dict[int, tuple[int, int, float]]:
        """Of the messages sent in this time, by input partition: how many came out in it, how many were sent, and
        the longest time that one took, or has waited."""
        found: dict[int, tuple[int, int, float]] = {}
        for place, at_s in self.sent_s.copy().items():
            if since_s <= at_s < until_s:
                out, sent, slowest_s = found.get(place[0], (0, 0, 0.0))
                seen_s = self.seen_s.get(place, float("inf"))
                took_s = min(seen_s, until_s + 1.0) - at_s
                found[place[0]] = out + (seen_s < until_s + 1.0), sent + 1, max(slowest_s, took_s)
        return found

    def stop_load(self) -> None:
        """End the load; all that was sent is acknowledged."""
        self._stop.set()
        self._threads[0].join(60.0)

    def stop(self) -> None:
        """End the load and the watch."""
        self._stop.set()
        self._watched.set()
        for thread in self._threads:
            thread.join(60.0)

    def _load(self) -> None:
        posts = producer(self._bootstrap, enable_idempotence=True, **_FRESH)

        def told(at_s: float, error: KafkaError | None, message: Message) -> None:
            assert error is None, error
            self.sent_s[message.partition(), message.offset()] = at_s

        for number, post in enumerate(generate(10**9, 1)):
            if self._stop.is_set():
                break
            partition = number % self._partitions
            key, at_s = b"%d" % number, time.monotonic()
            while True:
                try:
                    posts.produce(
                        self._topic,
                        orjson.dumps(post),
                        key,
                        partition,
                        on_delivery=lambda error, message, at_s=at_s: told(at_s, error, message),
                    )
                    break
                except KafkaException:  # its metadata lack the partition
                    posts.list_topics(self._topic, 10)
            posts.poll(0)
            if not partition:
                time.sleep(_PAUSE_S)
        assert posts.flush(60) == 0

    def _watch(self) -> None:
        outputs = reader(self._bootstrap, **_FRESH)
        reached: dict[tuple[str, int], int] = {}
        newest: dict[tuple[str, int, int], int] = {}

        def assign(_: Any, parts: list[TopicPartition]) -> None:
            outputs.assign(
                [TopicPartition(p.topic, p.partition, reached.get((p.topic, p.partition), 0)) for p in parts]
            )

        outputs.subscribe(list(self._outputs), on_assign=assign)
        while not self._watched.is_set():
            for message in arrived(outputs):
                topic, partition, now_s = message.topic(), message.partition(), time.monotonic()
                reached[topic, partition] = message.offset() + 1
                place = place_in(dict(message.headers() or ())["twinsieve-origin"])
                self.extra += place in self.seen_s
                self.seen_s.setdefault(place, now_s)
                lane = topic, partition, place[0]
                self.disorder += newest.get(lane, -1) > place[1]
                newest[lane] = place[1]
        outputs.close()
