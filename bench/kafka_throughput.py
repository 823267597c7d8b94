"""Messages a second from a full input topic to read-committed outputs: `python -m bench.kafka_throughput`.

A broker, two processes (both with a worker, one of them with the index), generated posts. The clock runs
from the first message that comes out to the last, and, apart from it, from process start.
"""

from __future__ import annotations

import argparse
import time

from bench.kafka_deployment import Deployment, Load, Watcher, in_thread, judge, poll_until
from bench.machine import machine_line
from tests.broker.cluster import Cluster


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--client", default="kafka-python", choices=["kafka-python", "confluent"])
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--delivery", default="exactly-once", choices=["exactly-once", "at-least-once"])
    parser.add_argument("--limit", type=float, default=300.0, help="seconds")
    options = parser.parse_args()
    print(machine_line())
    with Cluster().start() as cluster:
        app = f"bench-{options.client[:2]}"
        deployment = Deployment(cluster.bootstrap, options.client, app, delivery=options.delivery)
        deployment.create_topics()
        load = Load(cluster.bootstrap, f"{app}.in", options.messages)
        load.run()
        watcher = Watcher(cluster.bootstrap, deployment.outputs)
        try:
            start = time.monotonic()
            deployment.start("a")
            deployment.start("b")
            in_thread(watcher.run)
            finished = poll_until(lambda: len(watcher.seen) >= options.messages, options.limit)
            times = [one.at_s for seen in list(watcher.seen.values()) for one in seen]
            found = judge(load, watcher, deployment.outputs[0])
            took = max(times) - min(times)
            print(
                f"input: {options.messages} generated posts, 4 partitions\n"
                f"{options.client}, {options.delivery}: "
                f"{len(times) / took:,.0f} messages/s ({took:.1f} s; first after {min(times) - start:.1f} s, "
                f"last after {max(times) - start:.1f} s from process start)"
                f"{'' if finished else ' NOT FINISHED'}\n"
                f"{found.lost} lost, {found.extra} extra, {found.orphans} orphans, "
                f"{found.disorder} out of order"
            )
        finally:
            watcher.stop.set()
            deployment.close()


if __name__ == "__main__":
    main()
