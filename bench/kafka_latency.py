"""Milliseconds from a message's send to its read-committed arrival: `python -m bench.kafka_latency`.

A broker, two processes with both roles (or three, --processes apart), generated posts at a steady rate. The
first seconds, with joins and warm-up, do not count.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

from bench.machine import machine_line
from tests.broker.cluster import Cluster
from tests.broker.deployment import Deployment, Findings, Watcher, in_thread, judge, poll_until
from tests.broker.load import Load

_RATE = 2_000.0
_SECONDS = 30.0
_SKIP_S = 10.0
_SNAPSHOT_EVERY = "5m"
"""The default of the program."""
PROCESSES = {
    "one": {"a": "both"},
    "both": {"a": "both", "b": "both"},
    "apart": {"index": "index", "a": "worker", "b": "worker"},
}
"""Roles by member."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=_RATE, help="messages a second")
    parser.add_argument("--seconds", type=float, default=_SECONDS)
    parser.add_argument("--skip", type=float, default=_SKIP_S, help="seconds that do not count")
    parser.add_argument("--snapshot-every", default=_SNAPSHOT_EVERY, help="each is a pause")
    parser.add_argument(
        "--processes",
        default="both",
        choices=PROCESSES,
        help="one process or two with both roles, or the index and two workers",
    )
    options = parser.parse_args()
    print(machine_line())
    found = latency(options.rate, options.seconds, options.skip, options.snapshot_every, options.processes)
    print(
        f"input: {found.messages} generated posts at {options.rate:g} messages/s, 4 partitions, "
        f"roles {options.processes}, a snapshot every {options.snapshot_every}\n"
        f"p50 {found.p50_ms:.0f} ms, p99 {found.p99_ms:.0f} ms, "
        f"slowest {found.worst_s * 1000:.0f} ms, {found.lost} lost, {found.extra} extra"
    )


def latency(
    rate: float = _RATE,
    seconds: float = _SECONDS,
    skip_s: float = _SKIP_S,
    snapshot_every: str = _SNAPSHOT_EVERY,
    processes: str = "both",
    program: Sequence[str] = (),
    shown: Callable[[Load, Watcher], None] | None = None,
) -> Findings:
    """One run; times are in its findings.

    rate: messages a second; skip_s: seconds that do not count; processes: a key of `PROCESSES`
    program: command line of a twinsieve that is not this one
    shown: gets the messages that count and what came out, once all processes have ended
    """
    with Cluster().start() as cluster:
        app = "late"
        deployment = Deployment(cluster.bootstrap, app, snapshot_every=snapshot_every)
        deployment.create_topics()
        warm = Load(cluster.bootstrap, f"{app}.in", int(skip_s * rate), rate, seed=2)
        load = Load(cluster.bootstrap, f"{app}.in", int(seconds * rate), rate, seed=3)
        warm.make()
        load.make()
        watcher = Watcher(cluster.bootstrap, deployment.outputs)
        try:
            for member, role in PROCESSES[processes].items():
                deployment.start(member, role, program=program)
            in_thread(watcher.run)
            in_thread(warm.run).join()
            poll_until(lambda: warm.sent_s.keys() <= watcher.seen.keys(), 120.0)
            watcher.longest_gap_s = 0.0
            in_thread(load.run).join()
            poll_until(lambda: load.sent_s.keys() <= watcher.seen.keys(), 120.0)
            watcher.stop.set()
            time.sleep(0.3)
            output = deployment.outputs[0]
            before = {place: watcher.seen.pop(place, ()) for place in warm.sent_s}
            # Messages of the load may be duplicates of these.
            kept = {place for place, seen in before.items() if any(one.topic == output for one in seen)}
            return judge(load, watcher, output, kept=kept)
        finally:
            watcher.stop.set()
            deployment.close()
            if shown is not None:
                shown(load, watcher)


if __name__ == "__main__":
    main()
