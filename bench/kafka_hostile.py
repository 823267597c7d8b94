"""Texts that cost an index as much as can be, on a small share of a core.

    python -m bench.kafka_hostile --seconds 600

A real broker, one process with both roles that is stopped whenever it ran for more than its share of the
time, and texts of 170 words of a and b with a number, all kept apart: each is compared with many, to their
ends. More come than it can judge. Every ten seconds: what came out, how far behind its index says it is, what
its pages say. Exit code 1 unless the input moves on all the time, the process is never restarted, no second
transaction of the index is refused, and both pages answer 200 within 5 s and say how far behind it is.
"""

from __future__ import annotations

import argparse
import random
import re
import signal
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable

import orjson
from confluent_kafka import Producer

from bench.machine import machine_line
from bench.small_share import throttle
from tests.broker.cluster import Cluster
from tests.broker.deployment import Deployment, poll_until
from tests.broker.load import PARTITIONS
from tests.broker.server import free_ports

_LOOK_S = 10.0
_READY_S = 600.0
_WORDS, _CHANGED = 170, 14


def main() -> None:
    """Print what was seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--client", default="kafka-python", choices=["kafka-python", "confluent"])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--rate", type=float, default=500.0, help="messages a second")
    parser.add_argument("--millicores", type=int, default=250)
    options = parser.parse_args()
    print(machine_line(), flush=True)
    with Cluster().start() as cluster:
        good = _run(cluster.bootstrap, options)
    sys.exit(0 if good else 1)


def _run(bootstrap: str, options: argparse.Namespace) -> bool:
    (port,) = free_ports(1)
    deployment = Deployment(bootstrap, options.client, "hostile", source={"time_field": "none"})
    deployment.create_topics()
    over = threading.Event()
    helpers: list[threading.Thread] = []
    try:
        process = deployment.start("one", listen=f"127.0.0.1:{port}")
        poll_until(lambda: _page(port, "readyz")[0] == 200, _READY_S)
        helpers = [
            threading.Thread(target=throttle, args=(process.pid, options.millicores / 1_000, over)),
            threading.Thread(target=_produce, args=(bootstrap, "hostile.in", options.rate, over)),
        ]
        for helper in helpers:
            helper.start()
        return _watch(port, options, lambda: process.poll() is None)
    finally:
        over.set()
        for helper in helpers:
            helper.join()
        deployment.signal("one", signal.SIGCONT)
        log = deployment.log("one").read_text(errors="replace").splitlines()
        for line in [each for each in log if "WARN" in each.upper() or "ERROR" in each.upper()][-12:]:
            print(f"  log: {line[:220]}")
        deployment.close()


def _watch(port: int, options: argparse.Namespace, lives: Callable[[], bool]) -> bool:
    began_s, emitted, good, stood = time.monotonic(), 0.0, True, 0
    behind_said = False
    while (passed_s := time.monotonic() - began_s) < options.seconds:
        time.sleep(_LOOK_S)
        healthy, _ = _page(port, "healthz")
        ready, said = _page(port, "readyz")
        _, page = _page(port, "metrics")
        out = _sum(page, "twinsieve_messages_total")
        refused = _sum(page, 'twinsieve_aborted_transactions_total{role="index"}')
        print(
            f"{passed_s + _LOOK_S:5.0f} s: {out:8.0f} out, {(out - emitted) / _LOOK_S:6.1f}/s; behind "
            f"{_sum(page, 'twinsieve_index_behind_seconds'):5.0f} s; {refused:.0f} transactions of the index "
            f"refused, {_sum(page, 'twinsieve_resyncs_total'):.0f} resyncs; {healthy} {ready} {said.strip()}",
            flush=True,
        )
        stood = stood + 1 if out <= emitted else 0
        behind_said = behind_said or "s behind" in said
        good = good and lives() and healthy == ready == 200 and stood < 6 and refused < 2
        emitted = out
    print(
        f"{options.client}, {options.millicores} millicores, {options.rate:g} hostile texts/s, "
        f"{options.seconds:g} s: {emitted:.0f} came out, {emitted / options.seconds:.1f}/s; "
        f"{'good' if good and behind_said else 'NOT GOOD'}"
    )
    return good and behind_said


def _produce(bootstrap: str, topic: str, rate: float, over: threading.Event) -> None:
    rng = random.Random(1)
    base = ["".join(rng.choice("ab") for _ in range(2)) for _ in range(_WORDS)]
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
    began_s, sent = time.monotonic(), 0
    while not over.wait(0.05):
        while sent < rate * (time.monotonic() - began_s):
            words = list(base)
            for _ in range(_CHANGED):
                words[rng.randrange(_WORDS)] = "".join(rng.choice("ab") for _ in range(2))
            text = f"{' '.join(words)} {rng.randrange(10**9)}"
            producer.produce(topic, orjson.dumps({"text": text}), partition=sent % PARTITIONS)
            sent += 1
        producer.poll(0)
    producer.flush(30)


def _page(port: int, name: str) -> tuple[int, str]:
    """Status and text; 0 where there is no answer in time."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{name}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


def _sum(page: str, name: str) -> float:
    """The sum of all series of that name, or of the one with these labels."""
    found = re.findall(rf"^{re.escape(name)}(?:\{{[^}}]*\}})? ([0-9.e+-]+)$", page, re.MULTILINE)
    return sum(map(float, found))


if __name__ == "__main__":
    main()
