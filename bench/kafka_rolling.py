"""Five processes are restarted one after the other: `python -m bench.kafka_rolling`.

Each is worker and index, with a state folder of its own: one that did not judge restores from the log.
The window is filled first; then generated posts come in, and each process is stopped (SIGTERM), started again
and waited for until it is ready. This is done with the names ascending, descending and mixed.

A move: another process judges than before. It is one to a process that is behind if that has more than a
second to catch up. The pause is the longest time in which nothing came out. Exit code 1 if a message was lost
or came out twice or out of order, at more than two moves, or one to a process that is behind.
"""

from __future__ import annotations

import argparse
import math
import re
import signal
import sys
import time
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

from bench.machine import machine_line
from tests.broker.cluster import Cluster
from tests.broker.deployment import Deployment, Watcher, in_thread, judge, poll_until
from tests.broker.load import Load
from tests.broker.server import free_ports
from tests.logfmt import read_line
from tests.service.scraped import Pages

_ORDERS = {"ascending": "01234", "descending": "43210", "mixed": "20413"}
_LIMIT_S = 300.0
_SETTLED_S = 5.0
_BEHIND_S = 1.0
_PHASE = re.compile(r"index: phase (\w+), next block")


class _Move(NamedTuple):
    """A process that began to judge, `took_s` after it got the log. at_s: of the system's clock"""

    at_s: float
    name: str
    took_s: float


class _Rolling:
    """One app with five processes, whose window is full."""

    def __init__(self, bootstrap: str, name: str, kept: int, rate: float) -> None:
        self._kept, self._rate = kept, rate
        self.deployment = Deployment(bootstrap, f"rolling-{name}")
        self.deployment.create_topics()
        self._source = f"{self.deployment.app}.in"
        self._bootstrap = bootstrap
        self._pages: dict[str, Pages] = {}
        self._watcher = Watcher(bootstrap, self.deployment.outputs)

    def run(self, order: str) -> bool:
        """Whether all is as it should be; prints what was found."""
        in_thread(self._watcher.run)
        for number in sorted(order):
            self._start(f"p{number}")
        self._until_ready()
        full = Load(self._bootstrap, self._source, self._kept)
        full.run()
        assert poll_until(lambda: full.sent_s.keys() <= self._watcher.seen.keys(), _LIMIT_S), "not full"
        load = Load(self._bootstrap, self._source, 10_000_000, self._rate, seed=2)
        loading = in_thread(load.run)
        time.sleep(_SETTLED_S)
        since_s, before = time.time(), self._live()[-1].name
        for number in order:
            self._restart(f"p{number}", load)
        load.stop.set()
        loading.join(60.0)
        poll_until(lambda: load.sent_s.keys() <= self._watcher.seen.keys(), 60.0)
        self._watcher.stop.set()
        load.sent_s |= full.sent_s
        found = judge(load, self._watcher, self.deployment.outputs[0])
        moves = []
        for each in self._live():
            if each.at_s > since_s and each.name != before:
                moves.append(each)
                before = each.name
        behind = sum(each.took_s > _BEHIND_S for each in moves)
        for each in moves:
            print(f"  {each.name} judges {each.took_s:.2f} s after it got the log")
        print(f"  {len(moves)} moves, {behind} to one behind; {found}", flush=True)
        return found.good and len(moves) <= 2 and not behind

    def _start(self, name: str) -> None:
        (port,) = free_ports(1)
        self._pages[name] = Pages(port)
        own = f"state.dir={self.deployment.folder / name}"
        self.deployment.start(name, listen=f"127.0.0.1:{port}", sets=[own])

    def _until_ready(self) -> None:
        def ready() -> bool:
            return all(page.status("/readyz") == 200 for page in self._pages.values())

        assert poll_until(ready, _LIMIT_S), "not ready"

    def _restart(self, name: str, load: Load) -> None:
        began_s = time.monotonic()
        self.deployment.signal(name, signal.SIGTERM)
        self.deployment.processes[name].wait(_LIMIT_S)
        ended_s = time.monotonic()
        self._start(name)
        self._until_ready()
        ready_s = time.monotonic()
        time.sleep(_SETTLED_S)
        stopping = self._pause(began_s, ended_s + _SETTLED_S, load)
        print(
            f"  {name}: stopped in {ended_s - began_s:.1f} s, pause {stopping}; "
            f"ready after {ready_s - ended_s:.1f} s, pause {self._pause(ended_s, time.monotonic(), load)}",
            flush=True,
        )

    def _pause(self, since_s: float, until_s: float, load: Load) -> str:
        """The longest time without an output, and the slowest message that was sent, between two moments."""
        seen = self._watcher.seen.copy()
        outs = sorted(one.at_s for each in seen.values() for one in each if since_s <= one.at_s <= until_s)
        silence_s = max((after - at for at, after in pairwise([since_s, *outs])), default=math.inf)
        slowest_s = max(
            (
                (seen[place][0].at_s if place in seen else time.monotonic()) - at
                for place, at in load.sent_s.copy().items()
                if since_s <= at <= until_s
            ),
            default=0.0,
        )
        return f"{silence_s:.2f} s (slowest message {slowest_s:.2f} s)"

    def _live(self) -> list[_Move]:
        """Each time that a process began to judge, in order."""
        found = []
        for name in self._pages:
            got_s = 0.0
            for line in self.deployment.log(name).read_text().splitlines():
                record = read_line(line)
                phase = _PHASE.match(record["msg"])
                if phase is None:
                    continue
                at_s = datetime.fromisoformat(record["time"]).timestamp()
                if phase[1] == "catching_up":
                    got_s = at_s
                elif phase[1] == "live":
                    found.append(_Move(at_s, name, at_s - got_s))
        return sorted(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--order", action="append", choices=list(_ORDERS))
    parser.add_argument("--kept", type=int, default=100_000, help="messages before the first restart")
    parser.add_argument("--rate", type=float, default=500.0, help="messages a second")
    parser.add_argument("--keep-logs", action="store_true")
    options = parser.parse_args()
    print(machine_line())
    good = True
    for name in options.order or list(_ORDERS):
        print(
            f"{name} ({_ORDERS[name]}): {options.kept} generated posts, then {options.rate:g}/s", flush=True
        )
        with Cluster().start() as cluster:
            rolling = _Rolling(cluster.bootstrap, name, options.kept, options.rate)
            try:
                good = rolling.run(_ORDERS[name]) and good
            finally:
                rolling.deployment.close(keep_logs=options.keep_logs)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
