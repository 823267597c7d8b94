"""The sieve and its peers as processes that read one topic of a broker and write another.

Peers drop exact repeats alone. Inputs are partitioned by text, and a message's key is its text's digest: so a
store for each partition finds all repeats, and no peer must send messages through a topic of its own first.
This program needs neither.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, TypeVar

import orjson

from bench.peers.installation import Installation
from tests import debian
from tests.broker.deployment import Deployment
from tests.broker.load import PARTITIONS
from tests.broker.stranger import Consumer, Producer, producer, queue, reader
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.kafka.broker import KafkaBroker
from twinsieve.pipeline.settings.model import KafkaSettings

_Result = TypeVar("_Result", bound=Any)
"""A NamedTuple: what was measured in one run."""
_ROOT = Path(__file__).resolve().parents[2]
_JAVA = Path(__file__).with_name("streams")
_FLUSH_S = 300.0
WORKERS = 2
"""Workers of this program, beside the index; threads of Kafka Streams."""
OWN = "twinsieve"
"""The one that finds similar messages, too."""
NAMES = (OWN, "Kafka Streams", "Quix Streams", "a loop with a set")


class Program(NamedTuple):
    """group: whose offsets tell the progress; output: topic; start: returns the ids of its processes"""

    group: str
    output: str
    start: Callable[[], list[int]]
    stop: Callable[[], None]


def _unusable(peers: Installation) -> dict[str, str]:
    """The errors of the programs that were not installed, by name."""
    return {"Quix Streams": peers.errors["quixstreams"]} if "quixstreams" in peers.errors else {}


def in_turn(
    names: Iterable[str], times: int, peers: Installation, run: Callable[[str, int], _Result]
) -> tuple[dict[str, list[_Result]], dict[str, str]]:
    """The results of each program, and the errors of those that cannot run or gave a wrong answer, by name.

    run: measures one program in one turn; raises RuntimeError, after which the program is left out
    """
    found: dict[str, list[_Result]] = {}
    errors = _unusable(peers)
    for turn in range(times):
        for name in names:
            if name in errors:
                continue
            try:
                found.setdefault(name, []).append(run(name, turn))
            except RuntimeError as error:
                errors[name] = str(error)
    return {name: results for name, results in found.items() if name not in errors}, errors


def medians(runs: list[_Result]) -> _Result:
    """One result with the medians of all that are fractions; the rest is of the first run."""
    first = runs[0]
    fractions = [name for name, value in first._asdict().items() if isinstance(value, float)]
    return first._replace(**{name: median(getattr(run, name) for run in runs) for name in fractions})


def reader_of(bootstrap: str, topic: str) -> Consumer:
    """A consumer of the committed messages of a topic, from its beginning, without delay."""
    return reader(bootstrap, [topic], PARTITIONS, fetch_wait_max_ms=5)


def make_topic(bootstrap: str, topic: str) -> None:
    """A new topic."""
    broker = KafkaBroker(KafkaSettings(bootstrap=bootstrap))
    broker.admin().create_topic(NewTopic(topic, PARTITIONS))
    broker.close()


def message_of(post: dict[str, Any]) -> tuple[int, bytes, bytes]:
    """Partition, key and value of the message of a post."""
    digest = blake2b(post["text"].encode(), digest_size=16).digest()
    return digest[0] % PARTITIONS, digest, orjson.dumps(post)


def send(writer: Producer, topic: str, post: dict[str, Any]) -> None:
    """Give a post to a producer."""
    partition, key, value = message_of(post)
    queue(writer, topic, value, key, partition=partition)


def fill(bootstrap: str, topic: str, posts: Iterable[dict[str, Any]]) -> None:
    """Write posts to a topic, as fast as it goes."""
    writer = producer(bootstrap, linger_ms=50, compression_type="lz4")
    for post in posts:
        send(writer, topic, post)
    writer.flush(_FLUSH_S)


@contextmanager
def program(
    name: str, bootstrap: str, app: str, source: str, peers: Installation, *, alone: bool = False
) -> Iterator[Program]:
    """A program that is not started yet. source: its input, which exists; alone: in one process

    raises: RuntimeError if Kafka Streams cannot be fetched
    """
    if name == OWN:
        yield own(Deployment(bootstrap, app, snapshot_every="5m", source={"topics": [source]}), alone=alone)
        return
    output = f"{app}.out"
    make_topic(bootstrap, output)
    with tempfile.TemporaryDirectory() as folder:
        common = [bootstrap, app, source, output]
        if name == "Kafka Streams":
            java = ["java", "-cp", f"{_jars()}/*", str(_JAVA / "ExactFilter.java")]
            command = [*java, *common, str(WORKERS), folder]
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

        yield Program(app, output, start, stop)


def own(deployment: Deployment, *, alone: bool = False) -> Program:
    """This program, or the one of another checkout. alone: one process with both roles"""
    deployment.create_own_topics()

    def start() -> list[int]:
        if alone:
            deployment.start("one")
        else:
            deployment.start("index", role="index")
            for number in range(WORKERS):
                deployment.start(f"w{number}", role="worker")
        return [process.pid for process in deployment.processes.values()]

    return Program(f"{deployment.app}.workers", deployment.outputs[0], start, deployment.close)


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
