"""Messages a second of the sieve and its peers on one broker, in turn, on one input; outputs are counted."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from bench.kafka_throughput import progress
from bench.peers.installation import Installation
from bench.peers.programs import NAMES, OWN, Program, fill, in_turn, make_topic, program, reader_of
from tests.broker.cluster import Cluster
from tests.broker.stranger import arrived
from twinsieve.pipeline.tools.generate.stream import generate

_INPUT = "peers.in"
_LIMIT_S = 300.0


class Result(NamedTuple):
    """rate: messages a second, from the first committed offset to the last; cpu: µs a message, all processes

    idle: share of the machine's time in which cores had nothing to do, 0 to 1
    out: messages in the output; right: how many there must be, or None where similar ones are dropped too
    """

    name: str
    rate: float
    cpu: float
    idle: float
    out: int
    right: int | None


def results(
    peers: Installation, messages: int, times: int, told: Callable[[Result], None]
) -> tuple[dict[str, list[Result]], dict[str, str]]:
    """Of each program its runs, and the errors of those that did not run. told: called after each run"""
    with Cluster().start() as cluster:
        make_topic(cluster.bootstrap, _INPUT)
        texts = len(set(fill(cluster.bootstrap, _INPUT, generate(messages, 1))))

        def run(name: str, turn: int) -> Result:
            app = f"peers-{name.replace(' ', '-')}-{turn}".lower()
            with program(name, cluster.bootstrap, app, _INPUT, peers) as one:
                result = _measured(name, one, cluster.bootstrap, messages, texts)
            told(result)
            return result

        return in_turn(NAMES, times, peers, run)


def _measured(name: str, run: Program, bootstrap: str, messages: int, texts: int) -> Result:
    """One run, from the first committed offset that is seen to the last."""
    try:
        seen = progress(bootstrap, run.group, _INPUT, messages, _LIMIT_S, run.start())
    finally:
        run.stop()
    first, last = seen[0], seen[-1]
    if last.done < messages:
        raise RuntimeError(f"{last.done:,} of {messages:,} messages after {_LIMIT_S:g} s")
    if len(seen) < 2:
        raise RuntimeError("all messages were committed at once; take more of them")
    is_own = name == OWN
    out = _count(bootstrap, run.output)
    if not is_own and out != texts:
        raise RuntimeError(f"{out:,} messages came out of {texts:,} different ones")
    done = last.done - first.done
    micros = 1e6 * (last.cpu_s - first.cpu_s) / done
    rate = done / (last.at_s - first.at_s)
    idle = (last.machine.idle - first.machine.idle) / (last.machine.all - first.machine.all)
    return Result(name, rate, micros, idle, out, None if is_own else texts)


def _count(bootstrap: str, topic: str) -> int:
    """Committed messages of a topic."""
    consumer = reader_of(bootstrap, topic)
    count, quiet_s = 0, time.monotonic() + 5.0
    while time.monotonic() < quiet_s:
        if messages := arrived(consumer):
            count, quiet_s = count + len(messages), time.monotonic() + 3.0
    consumer.close()
    return count
