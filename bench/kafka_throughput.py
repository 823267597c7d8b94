"""Messages a second from a full input topic to read-committed outputs: `python -m bench.kafka_throughput`.

A broker, two workers and the index, each a process, on this machine. Input is generated posts, or real
ones (--posts FILE). The clock runs from the first committed input offset that is seen to the last; outputs
are read and checked when it has stopped, so that the check takes no part in it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaException, TopicPartition

from bench.machine import machine_line, memory_mib
from tests.broker.cluster import Cluster
from tests.broker.deployment import Deployment, Watcher, in_thread, judge, poll_until
from tests.broker.load import PARTITIONS, Load

MESSAGES = 200_000


class Throughput(NamedTuple):
    """rate: messages a second; peak_mib: VmHWM of all processes; said: all there is to say of the run"""

    rate: float
    peak_mib: float
    said: str


def throughput(
    client: str,
    messages: int,
    posts: Path | None,
    limit_s: float,
    source: Mapping[str, Any] | None = None,
    write: Callable[[bytes], bytes] = bytes,
    program: Sequence[str] = (),
) -> Throughput:
    """One run. source: settings of the input; write: makes the message of a post in JSON

    program: command line of a twinsieve that is not this one
    """
    with Cluster().start() as cluster:
        app = f"bench-{client[:2]}"
        deployment = Deployment(cluster.bootstrap, client, app, source=source)
        deployment.create_topics()
        load = Load(cluster.bootstrap, f"{app}.in", messages, posts=posts, write=write)
        load.run()
        watcher = Watcher(cluster.bootstrap, deployment.outputs)
        try:
            start = time.monotonic()
            deployment.start("index", role="index", program=program)
            deployment.start("a", role="worker", program=program)
            deployment.start("b", role="worker", program=program)
            seen = progress(cluster.bootstrap, f"{app}.workers", f"{app}.in", messages, limit_s)
            (first_s, before), (last_s, done) = seen[0], seen[-1]
            in_thread(watcher.run)
            finished = poll_until(lambda: len(watcher.seen) >= messages, limit_s)
            found = judge(load, watcher, deployment.outputs[0])
            took = last_s - first_s
            rate = (done - before) / took
            peak_mib = sum(memory_mib(process.pid, "VmHWM") for process in deployment.processes.values())
            said = (
                f"{client}: {rate:,.0f} messages/s ({took:.1f} s; first after "
                f"{first_s - start:.1f} s, last after {last_s - start:.1f} s from process start)"
                f"{'' if finished else ' NOT FINISHED'}, at most {peak_mib:,.0f} MiB; "
                f"{found.lost} lost, {found.extra} extra, {found.orphans} orphans, "
                f"{found.disorder} out of order"
            )
            return Throughput(rate, peak_mib, said)
        finally:
            watcher.stop.set()
            deployment.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--client", default="kafka-python", choices=["kafka-python", "confluent"])
    parser.add_argument("--messages", type=int, default=MESSAGES)
    parser.add_argument("--posts", type=Path, help="real posts, gzipped JSON lines")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds")
    options = parser.parse_args()
    what = "generated posts" if options.posts is None else f"posts of {options.posts.name}"
    print(f"{machine_line()}\ninput: {options.messages} {what}, 4 partitions")
    print(throughput(options.client, options.messages, options.posts, options.limit).said)


def progress(
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
