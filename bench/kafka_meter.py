"""The meter of throughput on Kafka: rate and CPU of a program that is warm and idle before its input.

1. The program starts on an empty input. WARM_UP posts of another seed are written. When all are committed and
   the program's processes use next to no CPU, the program is ready. So no figure has a part of the start in
   it, and no message is read before its clock runs.
2. The first part of the input is written (300,000 messages). Clock and CPU run from its first message to the
   commit of its last: the first figure.
3. The second part is written at once (1,000,000 messages) and measured in the same way: the second figure. It
   is the slope between both sizes, because what comes once after a pause is in the first figure alone.

The input is packed in advance into the record batches that a producer with `linger.ms=50` makes of a full
queue: 1 MB unpacked, LZ4. A write sends these bytes and waits for the broker, so it takes little of the
machine. How long it took stands beside the figure: a rate near that of the write measures the broker.
"""

from __future__ import annotations

import socket
import struct
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from kafka.record.memory_records import MemoryRecordsBuilder

from bench.machine import MachineTime, cpu_seconds, machine_time
from bench.peers.programs import Program, message_of
from tests.broker.cluster import Cluster
from tests.broker.deployment import poll_until
from tests.broker.load import PARTITIONS, Place
from tests.broker.stranger import Consumer, KafkaException, TopicPartition, consumer
from twinsieve.pipeline.tools.generate.stream import generate

INPUT = "bench.in"
"""The topic that the programs read."""
FIRST, SECOND = 300_000, 1_000_000
"""Messages of the two parts, if nothing else is asked for."""
WARM_UP = 50_000
_WARM_UP_SEED = 2
_LIMIT_S = 600.0
"""For each part, and for the start with the warm-up: a first start compiles kernels for minutes."""
_IDLE_CORES = 0.35
"""Cores that an idle program may use: three processes that poll took .19 of a busy machine, Java that still
compiles .61."""
_IDLE_LIMIT_S = 120.0
_LOOK_S = 0.02
_LZ4, _BATCH_BYTES = 3, 1_000_000
_PRODUCE, _PRODUCE_VERSION, _ALL_REPLICAS, _WRITE_LIMIT_MS = 0, 3, -1, 60_000


class Figure(NamedTuple):
    """A part of the input, from its first message to the commit of its last.

    rate: messages a second; seconds: of the clock; cpu, broker: µs of CPU a message, of all processes of the
    program and of the broker; idle: share of the machine's time in which cores had nothing to do, 0 to 1
    writing: seconds of the clock until the broker had acknowledged the part
    """

    rate: float
    seconds: float
    cpu: float
    broker: float
    idle: float
    writing: float

    def __str__(self) -> str:
        return (
            f"{self.rate:,.0f} messages/s, {self.cpu:.1f} µs of CPU a message, broker {self.broker:.1f} µs, "
            f"cores idle {self.idle:.0%}, written for {self.writing:.1f} of {self.seconds:.1f} s"
        )


class Part(NamedTuple):
    """messages: how many; batches: record batches as the broker stores them, each with its partition"""

    messages: int
    batches: list[tuple[int, bytes]]


class Input(NamedTuple):
    """parts: the warm-up and the two that are measured; texts: number of different texts in all three

    places: of all messages, in the order of their partitions
    """

    parts: tuple[Part, Part, Part]
    texts: int
    places: list[Place]

    def __str__(self) -> str:
        warm_up, first, second = (part.messages for part in self.parts)
        return f"{first:,} messages, then {second:,}, after {warm_up:,}; {PARTITIONS} partitions"


class _Reading(NamedTuple):
    at_s: float
    cpu_s: float
    broker_s: float
    machine: MachineTime


def prepared(first: int, second: int, posts: Iterator[dict[str, Any]] | None = None) -> Input:
    """The input of a run, packed; takes some 30 µs a message.

    first, second: messages of the two parts; posts: at least that many; None: generated ones, seed 1
    """
    measured_posts = generate(first + second, 1) if posts is None else posts
    warm_up = generate(WARM_UP, _WARM_UP_SEED)
    keys: set[bytes] = set()
    ends: Counter[int] = Counter()
    parts = []
    for source, count in ((warm_up, WARM_UP), (measured_posts, first), (measured_posts, second)):
        messages = [message_of(post) for post in islice(source, count)]
        keys.update(key for _, key, _ in messages)
        ends.update(partition for partition, _, _ in messages)
        parts.append(Part(len(messages), list(_packed(messages))))
    places = [(partition, offset) for partition in sorted(ends) for offset in range(ends[partition])]
    return Input((parts[0], parts[1], parts[2]), len(keys), places)


def measured(cluster: Cluster, run: Program, posts: Input) -> tuple[Figure, Figure]:
    """Start a program whose input INPUT is empty, and measure both parts; it is not stopped.

    raises: RuntimeError if it does not commit all in time, or is never idle
    """
    brokers = [node.pid for node in cluster.nodes]
    commits = consumer(cluster.bootstrap, run.group)
    pids, done, figures = run.start(), 0, list[Figure]()
    for part in posts.parts:
        before = _reading(pids, brokers)
        _write(cluster.bootstrap, part)
        writing = time.monotonic() - before.at_s
        done += part.messages
        committed = wait_committed(commits, INPUT, done, _LIMIT_S)
        if committed < done:
            raise RuntimeError(f"{committed:,} of {done:,} messages after {_LIMIT_S:g} s")
        figures.append(_figure(part.messages, before, _reading(pids, brokers), writing))
        is_warm_up = len(figures) == 1
        if is_warm_up and not poll_until(lambda: _cores(pids) < _IDLE_CORES, _IDLE_LIMIT_S):
            raise RuntimeError(f"uses {_IDLE_CORES} cores or more for {_IDLE_LIMIT_S:g} s without messages")
    commits.close()
    return figures[1], figures[2]


def wait_committed(commits: Consumer, topic: str, messages: int, limit_s: float) -> int:
    """Wait until the group has committed this number of input messages, or the time is over.

    commits: a consumer of the group, which reads nothing
    returns: how many input messages are committed
    """
    partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    done, end_s = 0, time.monotonic() + limit_s
    while done < messages and time.monotonic() < end_s:
        time.sleep(_LOOK_S)
        try:
            done = sum(max(0, at.offset) for at in commits.committed(partitions, timeout=30))
        except KafkaException:  # the group's coordinator is still on its way
            done = 0
    return done


def _cores(pids: Collection[int]) -> float:
    """Cores that the processes use, in one second."""
    before_s = sum(map(cpu_seconds, pids))
    time.sleep(1.0)
    return sum(map(cpu_seconds, pids)) - before_s


def _reading(pids: Collection[int], brokers: Collection[int]) -> _Reading:
    cpu_s, broker_s = sum(map(cpu_seconds, pids)), sum(map(cpu_seconds, brokers))
    return _Reading(time.monotonic(), cpu_s, broker_s, machine_time())


def _figure(messages: int, before: _Reading, after: _Reading, writing: float) -> Figure:
    seconds = after.at_s - before.at_s
    micros = 1e6 / messages
    cpu, broker = micros * (after.cpu_s - before.cpu_s), micros * (after.broker_s - before.broker_s)
    idle = (after.machine.idle - before.machine.idle) / (after.machine.all - before.machine.all)
    return Figure(messages / seconds, seconds, cpu, broker, idle, writing)


def _packed(messages: Iterable[tuple[int, bytes, bytes]]) -> Iterator[tuple[int, bytes]]:
    """Record batches of messages, each with its partition, in the order in which they are full."""
    now_ms = time.time_ns() // 1_000_000
    open_ones: dict[int, MemoryRecordsBuilder] = {}
    for partition, key, value in messages:
        batch = open_ones.get(partition)
        if batch is None or batch.append(now_ms, key, value) is None:
            if batch is not None:
                yield partition, _closed(batch)
            batch = open_ones[partition] = MemoryRecordsBuilder(2, _LZ4, _BATCH_BYTES)
            batch.append(now_ms, key, value)
    yield from ((partition, _closed(batch)) for partition, batch in open_ones.items())


def _closed(batch: MemoryRecordsBuilder) -> bytes:
    batch.close()
    return bytes(batch.buffer())


def _write(bootstrap: str, part: Part) -> None:
    """Write batches to INPUT and wait until the broker has acknowledged all.

    source: https://kafka.apache.org/protocol, "Produce API", version 3
    raises: RuntimeError with the broker's code of the first one that was refused
    """
    host, _, port = bootstrap.partition(":")
    topic = struct.pack(">h", len(INPUT)) + INPUT.encode()
    with socket.create_connection((host, int(port))) as broker:
        for partition, batch in part.batches:
            # API, version, correlation id, no client id; no transaction, acks, timeout; a topic, a partition.
            head = struct.pack(">hhih", _PRODUCE, _PRODUCE_VERSION, 0, -1)
            head += struct.pack(">hhii", -1, _ALL_REPLICAS, _WRITE_LIMIT_MS, 1)
            head += topic + struct.pack(">iii", 1, partition, len(batch))
            broker.sendall(struct.pack(">i", len(head) + len(batch)) + head + batch)
        answers = broker.makefile("rb")
        for _ in part.batches:
            (size,) = struct.unpack(">i", answers.read(4))
            # Correlation id, one topic, its name, one partition, its number: then the code.
            (code,) = struct.unpack_from(">h", answers.read(size), 4 + 4 + len(topic) + 4 + 4)
            if code:
                raise RuntimeError(f"the broker refused a batch with code {code}")
