"""Milliseconds from the writing of a message to its read-committed arrival in the output, of each in turn.

Each runs in one process. All copy the timestamp of the input to the output.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from statistics import median, quantiles
from typing import NamedTuple

from bench.peers.installation import Installation
from bench.peers.programs import OWN, in_turn, make_topic, message_of, program, reader_of
from tests.broker.cluster import Cluster
from tests.broker.deployment import in_thread, poll_until
from tests.broker.stranger import arrived, producer, queue
from twinsieve.pipeline.tools.generate.stream import generate

_SKIP_S = 15.0
"""What comes in the first seconds, with the start of the program, does not count."""
_LIMIT_S = 60.0
_PROGRAMS = (OWN, "Kafka Streams")


class Latency(NamedTuple):
    """p50, p99: in ms; messages: how many arrived that count"""

    name: str
    p50: float
    p99: float
    messages: int


def latencies(
    peers: Installation, rate: float, seconds: float, times: int, told: Callable[[Latency], None]
) -> tuple[dict[str, list[Latency]], dict[str, str]]:
    """Of each program its runs, and the errors of those that did not run. told: called after each run"""
    with Cluster().start() as cluster:

        def run(name: str, turn: int) -> Latency:
            source = f"late-{name.replace(' ', '-')}-{turn}".lower()
            make_topic(cluster.bootstrap, source)
            with program(name, cluster.bootstrap, f"{source}-app", source, peers, alone=True) as one:
                one.start()
                try:
                    waits = _waits_ms(cluster.bootstrap, source, one.output, rate, seconds)
                finally:
                    one.stop()
            if len(waits) < rate:
                raise RuntimeError(f"{len(waits)} messages came out")
            result = Latency(name, median(waits), quantiles(waits, n=100)[98], len(waits))
            told(result)
            return result

        return in_turn(_PROGRAMS, times, peers, run)


def _waits_ms(bootstrap: str, source: str, output: str, rate: float, seconds: float) -> list[float]:
    """How long messages took that were written after `_SKIP_S`."""
    waits: list[float] = []
    # Before the first is sent, because to make one takes more CPU time than to judge it.
    posts = [*map(message_of, generate(int(rate * (_SKIP_S + seconds)), 1, repeats=0.0))]
    began = time.time()
    stop = threading.Event()

    def read() -> None:
        consumer = reader_of(bootstrap, output)
        while not stop.is_set():
            for message in arrived(consumer):
                written = message.timestamp()[1]
                if written >= 1000 * (began + _SKIP_S):
                    waits.append(1000 * time.time() - written)
        consumer.close()

    reading = in_thread(read)
    writer = producer(bootstrap, linger_ms=2)
    start = time.monotonic()
    for number, (partition, key, value) in enumerate(posts):
        ahead = start + number / rate - time.monotonic()
        if ahead > 0.002:
            writer.poll(0)
            time.sleep(ahead)
        queue(writer, source, value, key, partition=partition)
    writer.flush(30)
    # Of posts that repeat nothing nearly all come out.
    poll_until(lambda: len(waits) >= 0.95 * rate * seconds, _LIMIT_S)
    time.sleep(1.0)
    stop.set()
    reading.join()
    return waits
