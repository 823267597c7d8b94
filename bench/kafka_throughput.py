"""Messages a second from a full input topic to read-committed outputs: `python -m bench.kafka_throughput`.

A broker, two workers and the index, each a process, on this machine. Input is generated posts, or real
ones (--posts FILE). The clock runs from the first committed input offset that is seen to the last; outputs
are read and checked when it has stopped, so that the check takes no part in it.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, TopicPartition

from bench.kafka_deployment import PARTITIONS, Deployment, Load, Watcher, in_thread, judge, poll_until
from bench.machine import machine_line
from tests.broker.cluster import Cluster


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--client", default="kafka-python", choices=["kafka-python", "confluent"])
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--posts", type=Path, help="real posts, gzipped JSON lines")
    parser.add_argument("--delivery", default="exactly-once", choices=["exactly-once", "at-least-once"])
    parser.add_argument("--limit", type=float, default=300.0, help="seconds")
    options = parser.parse_args()
    print(machine_line())
    with Cluster().start() as cluster:
        app = f"bench-{options.client[:2]}"
        deployment = Deployment(cluster.bootstrap, options.client, app, delivery=options.delivery)
        deployment.create_topics()
        load = Load(cluster.bootstrap, f"{app}.in", options.messages, posts=options.posts)
        load.run()
        watcher = Watcher(cluster.bootstrap, deployment.outputs)
        try:
            start = time.monotonic()
            deployment.start("index", role="index")
            deployment.start("a", role="worker")
            deployment.start("b", role="worker")
            seen = _progress(
                cluster.bootstrap, f"{app}.workers", f"{app}.in", options.messages, options.limit
            )
            (first_s, before), (last_s, done) = seen[0], seen[-1]
            in_thread(watcher.run)
            finished = poll_until(lambda: len(watcher.seen) >= options.messages, options.limit)
            found = judge(load, watcher, deployment.outputs[0])
            took = last_s - first_s
            print(
                f"input: {options.messages} {load.what}, 4 partitions\n"
                f"{options.client}, {options.delivery}: "
                f"{(done - before) / took:,.0f} messages/s "
                f"({took:.1f} s; first after {first_s - start:.1f} s, "
                f"last after {last_s - start:.1f} s from process start)"
                f"{'' if finished else ' NOT FINISHED'}\n"
                f"{found.lost} lost, {found.extra} extra, {found.orphans} orphans, "
                f"{found.disorder} out of order"
            )
        finally:
            watcher.stop.set()
            deployment.close()


def _progress(
    bootstrap: str, group: str, topic: str, messages: int, limit_s: float
) -> list[tuple[float, int]]:
    """(time, input messages whose outcome is committed), from the first that is seen until all are."""
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "log_level": 0})
    partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    seen: list[tuple[float, int]] = []
    end_s = time.monotonic() + limit_s
    while time.monotonic() < end_s:
        try:
            done = sum(max(0, at.offset) for at in reader.committed(partitions, timeout=30))
        except KafkaException:  # the group's coordinator is still on its way
            done = 0
        if done > (seen[-1][1] if seen else 0):
            seen.append((time.monotonic(), done))
        if done >= messages:
            break
        time.sleep(0.05)
    reader.close()
    return seen or [(end_s, 0), (end_s + 1, 0)]


if __name__ == "__main__":
    main()
