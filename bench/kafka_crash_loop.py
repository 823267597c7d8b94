"""One of two processes ends again and again: which partitions still come out, and how late.

    python -m bench.kafka_crash_loop [--seconds 600] [--end settings ...]

Process `a` runs under a steady load of posts to all partitions. Process `b` is killed with SIGKILL while it
serves half of them, and is started again two seconds after each end, as a supervisor does it. It ends

settings   by itself: it has an old file, with another profile
starting   by SIGKILL one second after its start
working    by SIGKILL one second after it has begun to read its partitions

Printed for each input partition: how many messages came out, and the slowest one. Exit code 1 if a message is
lost or comes out twice.
"""

from __future__ import annotations

import argparse
import re
import signal
import sys
import threading
import time
from collections import Counter

from bench.machine import machine_line
from tests.broker.cluster import Cluster
from tests.broker.deployment import Deployment, poll_until
from tests.broker.growth import Growth
from tests.broker.load import PARTITIONS

_ENDS = ("settings", "starting", "working")
_PAUSE_S = 2.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--end", action="append", choices=_ENDS)
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    print(machine_line(), flush=True)
    good = True
    with Cluster(lives_long=True).start() as cluster:
        for end in options.end or _ENDS:
            good = _Looping(cluster.bootstrap, end, options.seconds).run() and good
    sys.exit(0 if good else 1)


class _Looping:
    """One way to end."""

    def __init__(self, bootstrap: str, end: str, seconds: float) -> None:
        self._end, self._seconds = end, seconds
        self._deployment = Deployment(bootstrap, f"loop-{end}")
        self._deployment.create_topics()
        app = self._deployment.app
        self._growth = Growth(bootstrap, f"{app}.in", self._deployment.outputs, PARTITIONS)
        self._codes: Counter[int] = Counter()
        self._stop = threading.Event()

    def run(self) -> bool:
        """Whether nothing was lost or came out twice; prints what was found."""
        deployment, growth = self._deployment, self._growth
        good = False
        try:
            for name in ("a", "b"):
                deployment.start(name)
                assert poll_until(lambda name=name: self._works(name), 120.0), f"{name} does not work"  # type: ignore[misc]
            assert poll_until(lambda: len(growth.come_out()) == PARTITIONS, 60.0), "nothing comes out"
            deployment.kill("b")
            began_s = time.monotonic()
            if self._end == "settings":
                deployment._sets = ["profile=plain"]
            looping = threading.Thread(target=self._supervise, daemon=True)
            looping.start()
            time.sleep(self._seconds)
            # What is sent in the last second may be on its way.
            by_partition = growth.slowest(began_s, time.monotonic() - 1.0)
            self._stop.set()
            looping.join(60.0)
            growth.stop_load()
            good = poll_until(lambda: growth.is_all_out, 60.0) and not (growth.extra or growth.disorder)
            lost = len(growth.sent_s.keys() - growth.seen_s.keys())
            print(
                f"{self._end}: b ended {self._codes.total()} times in {self._seconds:.0f} s, "
                f"codes {dict(self._codes)}; {lost} lost, {growth.extra} extra, "
                f"{growth.disorder} out of order"
            )
            for partition, (out, sent, slowest_s) in sorted(by_partition.items()):
                print(f"  partition {partition}: {out} of {sent} came out in time, slowest {slowest_s:.1f} s")
            for name in ("a", "b"):
                print(f"  {name} says: {self._last_words(name)}", flush=True)
        finally:
            self._stop.set()
            growth.stop()
            deployment.close(keep_logs=not good)
        return good

    def _works(self, name: str, at: int = 0) -> bool:
        log = self._deployment.log(name)
        return log.exists() and b"worker: state is now working" in log.read_bytes()[at:]

    def _supervise(self) -> None:
        while not self._stop.wait(_PAUSE_S):
            log = self._deployment.log("b")
            at = log.stat().st_size
            process = self._deployment.start("b")
            if self._end == "working":
                poll_until(lambda at=at: self._stop.is_set() or self._works("b", at), 600.0)  # type: ignore[misc]
            if self._end != "settings":
                self._stop.wait(1.0)
                process.send_signal(signal.SIGKILL)
            self._codes[process.wait(120)] += 1

    def _last_words(self, name: str) -> str:
        said = [
            line
            for line in self._deployment.log(name).read_text().splitlines()
            if re.search(r"level=critical|the group", line)
        ]
        return said[-1].partition(" msg=")[2][:400] if said else "nothing"


if __name__ == "__main__":
    main()
