"""Ids that a schema registry does not know among good messages: `python -m bench.kafka_unknown_schemas`.

    python -m bench.kafka_unknown_schemas [--messages 100000] [--rate 1000]

Good messages of Avro at a steady rate into four partitions, and as many of seven bytes with an id each that
nobody knows into the first one: without these, with a registry that takes 25 requests a second, and with one
that is 200 ms away. Two processes. Printed are times of good messages in the other partitions, when the first
partition had its last good message out, counted from the last id, and the most memory of a process.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from itertools import count
from pathlib import Path

from bench.machine import machine_line
from tests.broker.cluster import Cluster
from tests.broker.deployment import Deployment, Watcher, in_thread, judge, poll_until
from tests.broker.load import PARTITIONS, Load
from tests.registry.own_registry import OwnRegistry
from tests.registry.posts import settings, writer

_LIMIT_S = 900.0
_WARM_S = 10.0
_CASES: dict[str, Mapping[str, float] | None] = {
    "without": None,
    "25 requests a second": {"a_second": 25},
    "200 ms away": {"delay_s": 0.2},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--rate", type=float, default=1_000.0, help="good messages a second; as many ids")
    given = parser.parse_args()
    print(machine_line())
    print(f"{given.messages} generated posts at {given.rate:g}/s, {PARTITIONS} partitions", flush=True)
    for case, registry in _CASES.items():
        print(f"{case}: {_run(given.messages, given.rate, registry)}", flush=True)


def _run(messages: int, rate: float, slow: Mapping[str, float] | None) -> str:
    with Cluster().start() as cluster, OwnRegistry() as registry:
        write, numbers = writer(registry, "avro"), count(1_000)
        deployment = Deployment(
            cluster.bootstrap, "ids", source=settings(registry, "avro"), snapshot_every="5m"
        )
        deployment.create_topics()
        topic, watcher = "ids.in", Watcher(cluster.bootstrap, deployment.outputs)
        warm = Load(cluster.bootstrap, topic, int(_WARM_S * rate), rate, seed=2, write=write)
        load = Load(cluster.bootstrap, topic, messages, rate, seed=3, write=write)
        ids = Load(
            *(cluster.bootstrap, topic, messages, rate),
            partitions=1,
            write=lambda _: b"\0" + next(numbers).to_bytes(4, "big") + b"\2a",
        )
        try:
            for member in ("a", "b"):
                deployment.start(member)
            in_thread(watcher.run)
            in_thread(warm.run).join()
            poll_until(lambda: warm.sent_s.keys() <= watcher.seen.keys(), _LIMIT_S)
            for name, value in (slow or {}).items():
                setattr(registry, name, value)
            loading = [in_thread(each.run) for each in ([load, ids] if slow else [load])]
            for thread in loading:
                thread.join()
            sent = load.sent_s.keys() | ids.sent_s.keys()
            is_out = poll_until(lambda: sent <= watcher.seen.keys(), _LIMIT_S)
            memory = max(map(_most_memory, (each.pid for each in deployment.processes.values())))
        finally:
            watcher.stop.set()
            deployment.close()
        load.sent_s |= warm.sent_s
        others = {place: at_s for place, at_s in load.sent_s.items() if place[0] and place not in warm.sent_s}
        first = [at for at in load.sent_s if not at[0] and at in watcher.seen]
        last_s = max(watcher.seen[at][0].at_s for at in first) - max([*ids.sent_s.values(), *others.values()])
        found = judge(load, watcher, deployment.outputs[0])
        load.sent_s = others
        timed = judge(load, watcher, deployment.outputs[0])
        return "; ".join(
            (
                f"others p50 {timed.p50_ms:.0f}, p99 {timed.p99_ms:.0f} ms, slowest {timed.worst_s:.1f} s",
                f"the first partition is out {last_s:.1f} s after the last message",
                f"all out: {is_out}, {found.lost} lost, {found.disorder} out of order",
                f"{memory} MiB, {len(registry.asked)} requests",
            )
        )


def _most_memory(pid: int) -> int:
    """MiB that a process had at most."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) >> 10 for line in lines if line.startswith("VmHWM"))


if __name__ == "__main__":
    main()
