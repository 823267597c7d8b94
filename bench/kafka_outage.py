"""The broker is killed, stays away, and comes back: `python -m bench.kafka_outage --seconds 60`.

Two processes under a steady load of generated posts. They must go on by themselves, lose and double nothing,
and say so in some twenty lines at once and one every few seconds then. Exit code 1 otherwise.
"""

from __future__ import annotations

import argparse
import sys
import time

from bench.kafka_deployment import Deployment, Findings, Watcher, in_thread, judge, poll_until
from bench.kafka_load import Load
from bench.machine import machine_line
from tests.broker.cluster import Cluster

_SETTLE_S = 180.0


def outage(
    client: str, seconds: float, rate: float, *, keep_logs: bool = False
) -> tuple[Findings, dict[str, int], bool]:
    """What the checker found, log lines of each process while the broker was away, and whether all live."""
    with Cluster().start() as cluster:
        app = f"outage-{client[:2]}"
        deployment = Deployment(cluster.bootstrap, client, app)
        deployment.create_topics()
        load = Load(cluster.bootstrap, f"{app}.in", int((seconds + 600) * rate), rate)
        watcher = Watcher(cluster.bootstrap, deployment.outputs)
        found = None
        try:
            for member in ("a", "b"):
                deployment.start(member)
            watching, loading = in_thread(watcher.run), in_thread(load.run)
            poll_until(lambda: len(watcher.seen) > 2 * rate, 120.0)
            before = {name: _lines(deployment, name) for name in deployment.processes}
            cluster.nodes[0].kill()
            time.sleep(seconds)
            said = {name: _lines(deployment, name) - before[name] for name in deployment.processes}
            cluster.restart()
            seen = len(watcher.seen)
            poll_until(lambda: len(watcher.seen) > seen + rate, _SETTLE_S)
            load.stop.set()
            loading.join(_SETTLE_S)
            poll_until(lambda: load.sent_s.keys() <= watcher.seen.keys(), _SETTLE_S)
            watcher.stop.set()
            watching.join(10.0)
            alive = all(process.poll() is None for process in deployment.processes.values())
            found = judge(load, watcher, deployment.outputs[0])
            return found, said, alive
        finally:
            watcher.stop.set()
            load.stop.set()
            deployment.close(keep_logs=keep_logs or found is None or not found.good)


def most_lines(seconds: float) -> float:
    """Log lines that a process may write in an outage: each kind once, then one line every few seconds."""
    return 20 + seconds / 3


def _lines(deployment: Deployment, name: str) -> int:
    return deployment.log(name).read_bytes().count(b"\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--client", action="append", choices=["kafka-python", "confluent"])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rate", type=float, default=500.0, help="messages a second")
    parser.add_argument("--keep-logs", action="store_true")
    options = parser.parse_args()
    print(machine_line())
    good = True
    for client in options.client or ["kafka-python", "confluent"]:
        found, said, alive = outage(client, options.seconds, options.rate, keep_logs=options.keep_logs)
        print(f"{client}: broker away for {options.seconds:g} s at {options.rate:g} generated posts/s")
        print(
            f"{found}; log lines meanwhile {said}; {'both live' if alive else 'A PROCESS ENDED'}", flush=True
        )
        good = good and found.good and alive and max(said.values()) <= most_lines(options.seconds)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
