"""Topics get more partitions under load: how long the slowest message takes, in each order of the topics.

    python -m bench.kafka_more_partitions [--order outputs ...]

Two processes run under a steady load of posts to all partitions of the input. Then the partitions of the
input, of the three outputs and of the verdicts topic are doubled in the given order, some seconds apart, or
all at once. The watcher reads the outputs and knows nothing of how twinsieve works. Every message must come
out once, and messages of one partition in their order within a partition of an output; exit code 1 otherwise.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from itertools import permutations

from bench.machine import machine_line
from tests.broker.cluster import Cluster
from tests.broker.deployment import Deployment, poll_until
from tests.broker.growth import Growth
from tests.broker.load import PARTITIONS

_KINDS = ("input", "outputs", "verdicts")
_ORDERS = {" ".join(order): order for order in permutations(_KINDS)}
_APART_S = 3.0
_AFTER_S = 20.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--order", action="append", choices=[*_ORDERS, "at once"])
    options = parser.parse_args()
    print(machine_line(), flush=True)
    good = True
    with Cluster(lives_long=True).start() as cluster:
        for number, order in enumerate(options.order or [*_ORDERS, "at once"]):
            good = _doubled(cluster.bootstrap, f"doubled-{number}", order) and good
    sys.exit(0 if good else 1)


def _doubled(bootstrap: str, app: str, order: str) -> bool:
    deployment = Deployment(bootstrap, app)
    deployment.create_topics()
    topics = {"input": [f"{app}.in"], "outputs": deployment.outputs, "verdicts": [f"{app}.verdicts"]}
    growth = Growth(bootstrap, f"{app}.in", deployment.outputs, PARTITIONS)
    processes = [deployment.start(name) for name in ("a", "b")]
    good = False
    try:
        assert poll_until(lambda: len(growth.come_out()) == PARTITIONS, 120.0), "nothing comes out"
        assert poll_until(lambda: deployment.log("b").read_text().count("phase standby") > 0, 120.0)
        time.sleep(_APART_S)
        began_s = time.monotonic()
        for kind in _ORDERS.get(order, _KINDS):
            for topic in topics[kind]:
                growth.grow(topic, 2 * PARTITIONS)
            if order != "at once":
                time.sleep(_APART_S)
        sent_s = time.monotonic()
        time.sleep(_AFTER_S)
        growth.stop_load()
        is_out = poll_until(lambda: growth.is_all_out, 60.0)
        lost, alive = (
            len(growth.sent_s.keys() - growth.seen_s.keys()),
            all(p.poll() is None for p in processes),
        )
        good = is_out and alive and not (growth.extra or growth.disorder)
        rate = len(growth.sent_s) / (sent_s + _AFTER_S - min(growth.sent_s.values()))
        print(
            f"{order}: {len(growth.sent_s)} messages at {rate:.0f}/s, slowest since the first "
            f"topic grew {growth.worst_s(began_s):.1f} s; {lost} lost, {growth.extra} extra, "
            f"{growth.disorder} out of order{'' if alive else ', a process has ended'}",
            flush=True,
        )
    finally:
        growth.stop()
        for name in ("a", "b"):
            deployment.signal(name, signal.SIGTERM)
        for process in processes:
            process.wait(60)
        deployment.close(keep_logs=not good)
    return good


if __name__ == "__main__":
    main()
