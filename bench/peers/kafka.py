"""The sieve and its peers on one broker, in turn, with the same input; what comes out is counted.

Peers drop exact repeats alone. The input is partitioned by text, and a message's key is its text's digest: so
a store for each partition finds all repeats, and no peer must send messages through a topic of its own first.
This program needs neither.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from statistics import median
from typing import NamedTuple

import orjson
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from bench.peers.installation import Installation
from tests import debian
from tests.broker.cluster import Cluster
from tests.broker.deployment import Deployment, poll_until
from tests.broker.load import PARTITIONS
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.commands.kafka.connect import connect
from twinsieve.pipeline.generate.stream import generate
from twinsieve.pipeline.settings.model import KafkaSettings

_ROOT = Path(__file__).resolve().parents[2]
_JAVA = Path(__file__).with_name("streams")
_LIMIT_S = 300.0
WORKERS = 2
"""Workers of this program, beside the index; threads of Kafka Streams."""


class Result(NamedTuple):
    """rate: messages a second, from the first committed offset to the last; cpu: µs a message, all processes

    out: messages in the output; right: how many there must be, or None where similar ones are dropped too
    """

    name: str
    rate: float
    cpu: float
    out: int
    right: int | None


class _Run(NamedTuple):
    """What is measured. group: whose offsets tell the progress; output: topic"""

    group: str
    output: str
    start: Callable[[], list[int]]
    stop: Callable[[], None]


_NAMES = {
    "confluent": "twinsieve, confluent",
    "kafka-python": "twinsieve, kafka-python",
    "Kafka Streams": "Kafka Streams",
    "Quix Streams": "Quix Streams",
    "a set": "a loop with a set",
}


def results(
    peers: Installation, messages: int, times: int, told: Callable[[Result], None]
) -> tuple[dict[str, list[Result]], dict[str, str]]:
    """Of each program its runs, and the errors of those that did not run. told: called after each run"""
    found: dict[str, list[Result]] = {}
    errors = {"Quix Streams": peers.errors["quixstreams"]} if "quixstreams" in peers.errors else {}
    with Cluster().start() as cluster:
        texts = _write(cluster.bootstrap, "peers.in", messages)
        for turn in range(times):
            for name in _NAMES:
                if name in errors:
                    continue
                try:
                    with _run(name, cluster.bootstrap, turn, peers) as run:
                        result = _measured(name, run, cluster.bootstrap, messages, texts)
                except RuntimeError as error:
                    errors[name] = str(error)
                    continue
                found.setdefault(name, []).append(result)
                told(result)
    return found, errors


def medians(runs: list[Result]) -> Result:
    """The medians of rate and CPU time."""
    rate, cpu = (median(getattr(run, name) for run in runs) for name in ("rate", "cpu"))
    return runs[0]._replace(rate=rate, cpu=cpu)


def _write(bootstrap: str, topic: str, messages: int) -> int:
    """Fill the input with generated posts. returns: how many different texts they have"""
    broker = connect(KafkaSettings(bootstrap=bootstrap))
    broker.admin().create_topic(NewTopic(topic, PARTITIONS))
    broker.close()
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50, "compression.type": "lz4"})
    texts = set()
    for post in generate(messages, 1):
        digest = blake2b(post["text"].encode(), digest_size=16).digest()
        texts.add(digest)
        while True:
            try:
                producer.produce(topic, orjson.dumps(post), digest, partition=digest[0] % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush(300)
    return len(texts)


@contextmanager
def _run(name: str, bootstrap: str, turn: int, peers: Installation) -> Iterator[_Run]:
    app = f"peers-{name.replace(' ', '-')}-{turn}".lower()
    with tempfile.TemporaryDirectory() as folder:
        if name in ("confluent", "kafka-python"):
            yield _own(name, bootstrap, app)
            return
        output = f"{app}.out"
        broker = connect(KafkaSettings(bootstrap=bootstrap))
        broker.admin().create_topic(NewTopic(output, PARTITIONS))
        broker.close()
        common = [bootstrap, app, "peers.in", output]
        if name == "Kafka Streams":
            program = ["java", "-cp", f"{_jars()}/*", str(_JAVA / "ExactFilter.java")]
            command = [*program, *common, str(WORKERS), folder]
        elif name == "Quix Streams":
            command = [str(peers.python), "-m", "bench.peers.quix_filter", *common, folder]
        else:
            command = [sys.executable, "-m", "bench.peers.plain_set", *common]
        process: list[subprocess.Popen[bytes]] = []

        def start() -> list[int]:
            process.append(subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.DEVNULL))
            return [process[0].pid]

        def stop() -> None:
            process[0].send_signal(signal.SIGKILL)
            process[0].wait()

        yield _Run(app, output, start, stop)


def _own(client: str, bootstrap: str, app: str) -> _Run:
    deployment = Deployment(bootstrap, client, app, snapshot_every="5m", source={"topics": ["peers.in"]})
    deployment.create_topics()

    def start() -> list[int]:
        deployment.start("index", role="index")
        for number in range(WORKERS):
            deployment.start(f"w{number}", role="worker")
        return [process.pid for process in deployment.processes.values()]

    return _Run(f"{app}.workers", f"{app}.out", start, deployment.close)


def _measured(name: str, run: _Run, bootstrap: str, messages: int, texts: int) -> Result:
    """One run, from the first committed offset that is seen to the last."""
    pids = run.start()
    seen: list[tuple[float, int, float]] = []
    try:
        reader = Consumer({"bootstrap.servers": bootstrap, "group.id": run.group, "log_level": 0})
        partitions = [TopicPartition("peers.in", number) for number in range(PARTITIONS)]

        def is_done() -> bool:
            try:
                done = sum(max(0, at.offset) for at in reader.committed(partitions, timeout=30))
            except KafkaException:  # the group's coordinator is still on its way
                return False
            if done > (seen[-1][1] if seen else 0):
                seen.append((time.monotonic(), done, sum(map(_cpu_seconds, pids))))
            return done >= messages

        finished = poll_until(is_done, _LIMIT_S)
        reader.close()
    finally:
        run.stop()
    if not finished or len(seen) < 2:
        raise RuntimeError(f"{seen[-1][1] if seen else 0:,} of {messages:,} messages after {_LIMIT_S:g} s")
    (first_s, before, cpu_before), (last_s, done, cpu) = seen[0], seen[-1]
    is_own = name in ("confluent", "kafka-python")
    out = _count(bootstrap, run.output)
    if not is_own and out != texts:
        raise RuntimeError(f"{out:,} messages came out of {texts:,} different ones")
    micros = 1e6 * (cpu - cpu_before) / (done - before)
    rate = (done - before) / (last_s - first_s)
    return Result(_NAMES[name], rate, micros, out, None if is_own else texts)


def _cpu_seconds(pid: int) -> float:
    """CPU time of a process that lives."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _count(bootstrap: str, topic: str) -> int:
    """Committed messages of a topic."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "peers-count",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    count, quiet_s = 0, time.monotonic() + 5.0
    while time.monotonic() < quiet_s:
        messages = [message for message in consumer.consume(10_000, 0.5) if not message.error()]
        if messages:
            count, quiet_s = count + len(messages), time.monotonic() + 3.0
    consumer.close()
    return count


def _jars() -> Path:
    """The folder with the jars of Kafka Streams, fetched once. raises: RuntimeError with Maven's error"""
    folder = _ROOT / "build" / "peers" / "streams"
    if not folder.is_dir():
        partial = folder.with_name("streams.partial")
        shutil.rmtree(partial, ignore_errors=True)
        command = ["mvn", "-q", "-B", "-f", str(_JAVA / "pom.xml"), "dependency:copy-dependencies"]
        said = debian.first_error([*command, f"-DoutputDirectory={partial}"], os.environ)
        if said is not None or not partial.is_dir():
            raise RuntimeError(f"Kafka Streams was not fetched: {said or 'Maven wrote nothing'}")
        partial.rename(folder)
    return folder
