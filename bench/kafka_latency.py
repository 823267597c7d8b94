"""Milliseconds from a message's send to its read-committed arrival: `python -m bench.kafka_latency`.

A broker, two processes with both roles (or three, --processes apart), generated posts at a steady rate. The
first seconds, with joins and warm-up, do not count.
"""

from __future__ import annotations

import argparse
import time

from bench.machine import machine_line
from tests.broker.cluster import Cluster
from tests.broker.deployment import Deployment, Watcher, in_thread, judge, poll_until
from tests.broker.load import Load


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--client", default="kafka-python", choices=["kafka-python", "confluent"])
    parser.add_argument("--rate", type=float, default=2_000.0, help="messages a second")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--skip", type=float, default=10.0, help="seconds that do not count")
    parser.add_argument("--snapshot-every", default="5m", help="the product's default; each is a pause")
    parser.add_argument(
        "--processes",
        default="both",
        choices=["both", "apart"],
        help="two processes with both roles, or the index and two workers",
    )
    options = parser.parse_args()
    print(machine_line())
    with Cluster().start() as cluster:
        app = f"late-{options.client[:2]}"
        deployment = Deployment(
            cluster.bootstrap,
            options.client,
            app,
            snapshot_every=options.snapshot_every,
        )
        deployment.create_topics()
        warm = Load(cluster.bootstrap, f"{app}.in", int(options.skip * options.rate), options.rate, seed=2)
        load = Load(cluster.bootstrap, f"{app}.in", int(options.seconds * options.rate), options.rate, seed=3)
        watcher = Watcher(cluster.bootstrap, deployment.outputs)
        try:
            if options.processes == "both":
                deployment.start("a")
                deployment.start("b")
            else:
                deployment.start("index", role="index")
                deployment.start("a", role="worker")
                deployment.start("b", role="worker")
            in_thread(watcher.run)
            in_thread(warm.run).join()
            poll_until(lambda: warm.sent_s.keys() <= watcher.seen.keys(), 120.0)
            watcher.longest_gap_s = 0.0
            in_thread(load.run).join()
            poll_until(lambda: load.sent_s.keys() <= watcher.seen.keys(), 120.0)
            watcher.stop.set()
            time.sleep(0.3)
            for place in warm.sent_s:
                watcher.seen.pop(place, None)
            found = judge(load, watcher, deployment.outputs[0])
            print(
                f"input: {found.messages} generated posts at {options.rate:g} messages/s, 4 partitions, "
                f"{options.client}, roles {options.processes}, "
                f"a snapshot every {options.snapshot_every}\n"
                f"p50 {found.p50_ms:.0f} ms, p99 {found.p99_ms:.0f} ms, "
                f"slowest {found.worst_s * 1000:.0f} ms, {found.lost} lost, {found.extra} extra"
            )
        finally:
            watcher.stop.set()
            deployment.close()


if __name__ == "__main__":
    main()
