"""Somebody's ordinary consumer in the consumer group of the workers."""

from __future__ import annotations

import threading

from confluent_kafka import Consumer

from tests.broker.deployment import in_thread


class Stranger:
    """Joins the group in a thread, reads its share and commits by itself, until `leave`.

    read: messages so far
    """

    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self.read = 0
        self._stop = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "client.id": "console",
                "partition.assignment.strategy": "range",
                "auto.commit.interval.ms": 200,
                "log_level": 0,
            }
        )
        self._consumer.subscribe([topic])
        self._thread = in_thread(self._run)

    def _run(self) -> None:
        while not self._stop.is_set():
            self.read += sum(message.error() is None for message in self._consumer.consume(500, 0.1))
        self._consumer.close()

    def leave(self) -> None:
        """Commit what was read, and go."""
        self._stop.set()
        self._thread.join(60.0)
