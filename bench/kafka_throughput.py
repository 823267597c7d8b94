"""Messages a second from a full input topic to read-committed outputs: `python -m bench.kafka_throughput`.

A broker, two workers and the index, each a process, on this machine. Input is generated posts, or real
ones (--posts FILE). The clock runs from the first committed input offset that is seen to the last; outputs
are read and checked when it has stopped, so that the check takes no part in it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.machine import MachineTime, cpu_seconds, machine_line, machine_time, memory_mib
from tests.broker.cluster import Cluster
from tests.broker.deployment import Deployment, Watcher, in_thread, judge, poll_until
from tests.broker.load import PARTITIONS, Load
from tests.broker.stranger import KafkaException, TopicPartition, consumer

MESSAGES = 200_000


class Throughput(NamedTuple):
    """rate: messages a second; cpu: µs a message, all processes; peak_mib: VmHWM of all processes

    said: all there is to say of the run
    """

    rate: float
    cpu: float
    peak_mib: float
    said: str


class Progress(NamedTuple):
    """done: input messages whose outcome is committed; cpu_s: of the processes; machine: of all cores"""

    at_s: float
    done: int
    cpu_s: float
    machine: MachineTime


def throughput(messages: int, posts: Path | None, limit_s: float, program: Sequence[str] = ()) -> Throughput:
    """One run. program: command line of a twinsieve that is not this one"""
    with Cluster().start() as cluster:
        app = "bench"
        deployment = Deployment(cluster.bootstrap, app)
        deployment.create_topics()
        load = Load(cluster.bootstrap, f"{app}.in", messages, posts=posts)
        load.run()
        watcher = Watcher(cluster.bootstrap, deployment.outputs)
        try:
            start = time.monotonic()
            deployment.start("index", role="index", program=program)
            deployment.start("a", role="worker", program=program)
            deployment.start("b", role="worker", program=program)
            pids = [process.pid for process in deployment.processes.values()]
            seen = progress(cluster.bootstrap, f"{app}.workers", f"{app}.in", messages, limit_s, pids)
            first, last = seen[0], seen[-1]
            in_thread(watcher.run)
            finished = poll_until(lambda: len(watcher.seen) >= messages, limit_s)
            found = judge(load, watcher, deployment.outputs[0])
            took = last.at_s - first.at_s
            rate = (last.done - first.done) / took
            cpu = 1e6 * (last.cpu_s - first.cpu_s) / max(1, last.done - first.done)
            peak_mib = sum(memory_mib(pid, "VmHWM") for pid in pids)
            said = (
                f"{rate:,.0f} messages/s ({took:.1f} s; first after "
                f"{first.at_s - start:.1f} s, last after {last.at_s - start:.1f} s from process start)"
                f"{'' if finished else ' NOT FINISHED'}, {cpu:.1f} µs of CPU a message, "
                f"at most {peak_mib:,.0f} MiB; "
                f"{found.lost} lost, {found.extra} extra, {found.orphans} orphans, "
                f"{found.disorder} out of order"
            )
            return Throughput(rate, cpu, peak_mib, said)
        finally:
            watcher.stop.set()
            deployment.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=MESSAGES)
    parser.add_argument("--posts", type=Path, help="real posts, gzipped JSON lines")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds")
    options = parser.parse_args()
    what = "generated posts" if options.posts is None else f"posts of {options.posts.name}"
    print(f"{machine_line()}\ninput: {options.messages} {what}, 4 partitions")
    print(throughput(options.messages, options.posts, options.limit).said)


def progress(
    bootstrap: str, group: str, topic: str, messages: int, limit_s: float, pids: Collection[int] = ()
) -> list[Progress]:
    """Looks at what is committed, from the first that sees anything until all is. pids: whose CPU counts"""
    reader = consumer(bootstrap, group)
    partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    seen: list[Progress] = []
    end_s = time.monotonic() + limit_s
    while time.monotonic() < end_s:
        try:
            done = sum(max(0, at.offset) for at in reader.committed(partitions, timeout=30))
        except KafkaException:  # the group's coordinator is still on its way
            done = 0
        if done > (seen[-1].done if seen else 0):
            seen.append(Progress(time.monotonic(), done, sum(map(cpu_seconds, pids)), machine_time()))
        if done >= messages:
            break
        time.sleep(0.05)
    reader.close()
    return seen or [Progress(end_s + late_s, 0, 0.0, machine_time()) for late_s in (0.0, 1.0)]


if __name__ == "__main__":
    main()
