"""Messages a second of the sieve and its peers, in turn, on one input, each on a broker of its own.

`bench.kafka_meter` says how. Outputs are counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from bench.kafka_meter import INPUT, Figure, Input, measured
from bench.peers.installation import Installation
from bench.peers.programs import NAMES, OWN, in_turn, make_topic, program, reader_of
from tests.broker.cluster import Cluster
from tests.broker.stranger import arrived


class Result(NamedTuple):
    """first, second: the meter's figures

    out: messages in the output; right: how many there must be, or None where similar ones are dropped too
    """

    name: str
    first: Figure
    second: Figure
    out: int
    right: int | None


def results(
    peers: Installation, posts: Input, times: int, told: Callable[[Result], None]
) -> tuple[dict[str, list[Result]], dict[str, str]]:
    """Of each program its runs, and the errors of those that did not run. told: called after each run"""

    def run(name: str, turn: int) -> Result:
        app = f"peers-{name.replace(' ', '-')}-{turn}".lower()
        with Cluster().start() as cluster:
            make_topic(cluster.bootstrap, INPUT)
            with program(name, cluster.bootstrap, app, INPUT, peers) as one:
                try:
                    first, second = measured(cluster, one, posts)
                finally:
                    one.stop()
            out = _count(cluster.bootstrap, one.output)
        if name != OWN and out != posts.texts:
            raise RuntimeError(f"{out:,} messages came out of {posts.texts:,} different ones")
        result = Result(name, first, second, out, None if name == OWN else posts.texts)
        told(result)
        return result

    return in_turn(NAMES, times, peers, run)


def _count(bootstrap: str, topic: str) -> int:
    """Committed messages of a topic."""
    consumer = reader_of(bootstrap, topic)
    count, quiet_s = 0, time.monotonic() + 5.0
    while time.monotonic() < quiet_s:
        if messages := arrived(consumer):
            count, quiet_s = count + len(messages), time.monotonic() + 3.0
    consumer.close()
    return count
