"""Messages a second and CPU a message on Kafka: `python -m bench.kafka_throughput`.

A broker, two workers and the index, each a process, on this machine; `bench.kafka_meter` is the meter. Input
is generated posts, or real ones (--posts FILE). Outputs are read committed and checked after both figures.
"""

from __future__ import annotations

import argparse
import gzip
import os
import sys
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

import orjson

from bench.kafka_meter import FIRST, INPUT, SECOND, Figure, Input, measured, prepared
from bench.machine import machine_line, memory_mib
from bench.peers.programs import make_topic, own
from tests.broker.cluster import Cluster
from tests.broker.deployment import Deployment, Findings, Watcher, in_thread, judge, poll_until
from tests.broker.load import Load

_CHECK_LIMIT_S = 300.0
_THIS = (sys.executable, "-m", "twinsieve")


class Throughput(NamedTuple):
    """first, second: the meter's figures; peak_mib: VmHWM of all processes

    found: of the check; its times mean nothing
    """

    first: Figure
    second: Figure
    peak_mib: float
    found: Findings

    def __str__(self) -> str:
        return (
            f"{self.first}; then {self.second}; at most {self.peak_mib:,.0f} MiB; {self.found.lost} lost, "
            f"{self.found.extra} extra, {self.found.orphans} orphans, {self.found.disorder} out of order"
        )


def throughput(posts: Input, program: Sequence[str] = _THIS) -> Throughput:
    """One run. program: command line of a twinsieve"""
    with Cluster().start() as cluster:
        make_topic(cluster.bootstrap, INPUT)
        deployment = Deployment(
            cluster.bootstrap, "bench", snapshot_every="5m", source={"topics": [INPUT]}, program=program
        )
        watcher = Watcher(cluster.bootstrap, deployment.outputs)
        try:
            first, second = measured(cluster, own(deployment), posts)
            peak_mib = sum(memory_mib(each.pid, "VmHWM") for each in deployment.processes.values())
            in_thread(watcher.run)
            poll_until(lambda: len(watcher.seen) >= len(posts.places), _CHECK_LIMIT_S)
            load = Load(cluster.bootstrap, INPUT, 0, sent_s=dict.fromkeys(posts.places, 0.0))
            return Throughput(first, second, peak_mib, judge(load, watcher, deployment.outputs[0]))
        finally:
            watcher.stop.set()
            deployment.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--messages", type=int, default=FIRST, help="of the first figure")
    parser.add_argument("--more", type=int, default=SECOND, help="messages of the second figure")
    parser.add_argument(
        "--posts", type=Path, help="real posts, gzipped JSON lines, from the beginning again at the end"
    )
    options = parser.parse_args()
    real = None
    if options.posts is not None:
        real = map(orjson.loads, cycle(gzip.decompress(options.posts.read_bytes()).splitlines()))
    posts = prepared(options.messages, options.more, real)
    what = "generated posts" if options.posts is None else f"posts of {options.posts.name}"
    print(f"{machine_line()}; load before {os.getloadavg()[0]:.1f}\ninput: {what}: {posts}", flush=True)
    print(throughput(posts))


if __name__ == "__main__":
    main()
