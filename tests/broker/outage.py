"""An outage: the broker is killed, stays away, and comes back."""

from __future__ import annotations

import time

from tests.broker.cluster import Cluster
from tests.broker.deployment import Deployment, Findings, Watcher, in_thread, judge, poll_until
from tests.broker.load import Load

_SETTLE_S = 180.0


def outage(seconds: float, rate: float, *, keep_logs: bool = False) -> tuple[Findings, dict[str, int], bool]:
    """What the checker found, log lines of each process while the broker was away, and whether all live."""
    with Cluster(mortal=True).start() as cluster:
        app = "outage"
        deployment = Deployment(cluster.bootstrap, app)
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


def max_lines(seconds: float) -> float:
    """Log lines that a process may write in an outage: each kind once, then one line every few seconds."""
    return 20 + seconds / 3


def _lines(deployment: Deployment, name: str) -> int:
    return deployment.log(name).read_bytes().count(b"\n")
