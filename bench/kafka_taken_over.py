"""An app of another checkout is taken over by this one, process by process under load, and given back.

    python -m bench.kafka_taken_over OLD [--client confluent] [--rate 500]

OLD: the folder of a checkout with its installation in `.venv`, whose settings file all processes read, of
either checkout. Each process is stopped by SIGTERM and started again by the other checkout under the same
name, until all are of this one; then the same the other way round. Printed for each change: how often nothing
came out for half a second and more, and for how long at most. The watcher reads the outputs and knows nothing
of how twinsieve works. Exit code 1 if a message was lost, came out twice or out of order.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from itertools import pairwise
from pathlib import Path

from bench.machine import machine_line
from tests.broker.cluster import Cluster
from tests.broker.deployment import Deployment, Watcher, in_thread, judge, poll_until
from tests.broker.load import Load

_MEMBERS = ("a", "b", "c")
_SETTLES_S = 20.0
_STARTS_S = 180.0
_PAUSE_S = 0.5
_RATE = 500.0


def main() -> None:
    """Print machine, the pauses of each change, and what was lost or came out twice."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("--client", help="the old checkout's `kafka.client`, which this one accepts")
    parser.add_argument("--rate", type=float, default=_RATE)
    given = parser.parse_args()
    old = [str(given.old.absolute() / ".venv/bin/twinsieve")]
    new = [sys.executable, "-m", "twinsieve"]
    print(machine_line(), flush=True)
    with Cluster(lives_long=True).start() as cluster:
        deployment = Deployment(cluster.bootstrap, "taken-over", program=old)
        good = False
        try:
            deployment.create_topics()
            if given.client is not None:
                deployment.set("kafka", client=given.client)
            good = _changed(deployment, cluster.bootstrap, given.rate, old, new)
        finally:
            deployment.close(keep_logs=not good)
    sys.exit(0 if good else 1)


def _changed(deployment: Deployment, bootstrap: str, rate: float, old: list[str], new: list[str]) -> bool:
    changes = [(member, program) for program in (new, old) for member in _MEMBERS]
    load = Load(bootstrap, f"{deployment.app}.in", int(rate * 3600), rate)
    watcher = Watcher(bootstrap, deployment.outputs)
    for member in _MEMBERS:
        deployment.start(member)
    watches, writes = in_thread(watcher.run), in_thread(load.run)
    assert poll_until(lambda: len(watcher.seen) > rate, _STARTS_S), "nothing comes out"
    time.sleep(_SETTLES_S)
    began: list[tuple[str, float]] = []
    for member, program in changes:
        began.append((f"{member}, {'this checkout' if program is new else 'the other'}", time.monotonic()))
        deployment.signal(member, signal.SIGTERM)
        deployment.processes[member].wait(60)
        deployment.start(member, program=program)
        time.sleep(_SETTLES_S)
    ended_s = time.monotonic()
    load.stop.set()
    writes.join()
    poll_until(lambda: len(watcher.seen) >= len(load.sent_s), 120.0)
    watcher.stop.set()
    watches.join()
    out_s = sorted(seen[0].at_s for seen in watcher.seen.values())
    for (what, since_s), (_, until_s) in pairwise([*began, ("", ended_s)]):
        pauses = [after - before for before, after in pairwise(out_s) if since_s <= before < until_s]
        long = [pause for pause in pauses if pause >= _PAUSE_S]
        print(
            f"{what}: {len(long)} pauses of {_PAUSE_S:g} s and more, longest {max(pauses, default=0.0):.1f} s"
        )
    findings = judge(load, watcher, f"{deployment.app}.out")
    print(findings)
    return findings.good


if __name__ == "__main__":
    main()
