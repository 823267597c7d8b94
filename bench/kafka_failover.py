"""How long nothing comes out when the index dies: `python -m bench.kafka_failover --kept 1000000`.

A real broker, a worker process, index processes of their own, generated posts. The window is filled first;
then posts trickle in, the judging index is killed with -9, and the clock runs until the first post comes out
that was written after the kill. Three times each: a warm standby takes over; the index is started again in
its slot from a snapshot; the same without any snapshot, from the log and the decisions alone.
"""

from __future__ import annotations

import argparse
import math
import shutil
import statistics
import threading
import time
from collections.abc import Callable
from pathlib import Path

import orjson
import yaml

from bench.machine import machine_line
from tests.broker.cluster import Cluster
from tests.broker.deployment import Deployment, in_thread, poll_until
from tests.broker.load import PARTITIONS
from tests.broker.stranger import arrived, producer, queue, reader
from tests.service.scraped import Pages
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.kafka.broker import KafkaBroker
from twinsieve.pipeline.settings.model import KafkaSettings
from twinsieve.pipeline.tools.generate.stream import generate
from twinsieve.stages.contract import MAX_SEGMENT

_TRICKLE = 200.0
_LIMIT_S = 900.0
_WARM_BLOCKS = 20
_TAKE_PART_S = 5.0
"""A standby that has just joined its group is given time to be one of it."""


class Probe:
    """Reads the uniques as they come and remembers when, and when each was written."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.arrivals: list[tuple[float, float]] = []
        self.stop = threading.Event()
        self._bootstrap = bootstrap
        self._topic = topic

    def run(self) -> None:
        """Until stopped."""
        uniques = reader(self._bootstrap, [self._topic], PARTITIONS, new=True)
        while not self.stop.is_set():
            for message in arrived(uniques):
                self.arrivals.append((time.time(), message.timestamp()[1] / 1000))
        uniques.close()

    def first_after(self, moment: float) -> float | None:
        """Seconds from that moment to the first arrival of a message written after it."""
        return next((at - moment for at, written in list(self.arrivals) if written > moment), None)

    def slowest_s(self) -> float:
        """The longest way of a message from its writing to its arrival."""
        return max((at - written for at, written in list(self.arrivals)), default=0.0)


def _produce(bootstrap: str, topic: str, count: int, seed: int, stop: threading.Event, rate: float) -> None:
    """Posts that repeat nothing, as fast as it goes (rate 0) or `rate` a second, until stopped."""
    writer = producer(bootstrap, linger_ms=5, queue_buffering_max_messages=500_000)
    start = time.monotonic()
    for number, post in enumerate(generate(count, seed, repeats=0.0)):
        if stop.is_set():
            break
        if rate:
            time.sleep(max(0.0, start + number / rate - time.monotonic()))
        queue(writer, topic, orjson.dumps(post), partition=number % PARTITIONS)
        writer.poll(0)
    writer.flush(120)


class Failover:
    """One deployment with a filled window."""

    def __init__(self, bootstrap: str, kept: int, segment: int) -> None:
        self._bootstrap = bootstrap
        self._app = "failover"
        self._number = 0
        self.pages: dict[str, Pages] = {}
        self.deployment = Deployment(bootstrap, self._app)
        settings = self.deployment.settings
        settings["near"] = {"window": {"messages": kept, "age": "none"}, "segment": segment}
        settings["exact"] = {"window": {"messages": 10 * kept, "age": "none"}}
        settings["state"] = {"dir": str(self.deployment.folder / "state"), "snapshot_every": "60s"}
        self.deployment.file.write_text(yaml.safe_dump(settings))
        self.deployment.create_topics()
        self._admin = KafkaBroker(KafkaSettings(bootstrap=bootstrap)).admin()

    @property
    def state(self) -> Path:
        """The folder of snapshots."""
        return self.deployment.folder / "state"

    def fill(self, kept: int) -> float:
        """Load the window; seconds that it took."""
        topic = f"{self._app}.in"
        _produce(self._bootstrap, topic, int(1.05 * kept), 1, threading.Event(), 0.0)
        start = time.monotonic()
        self.deployment.start("w", "worker")
        self.start_index()
        if not poll_until(self._drained, _LIMIT_S):
            raise SystemExit(f"the window is not full after {_LIMIT_S:g} s; logs: {self.deployment.folder}")
        return time.monotonic() - start

    def _drained(self) -> bool:
        time.sleep(1.0)
        parts = [Partition(f"{self._app}.in", number) for number in range(PARTITIONS)]
        committed = self._admin.group_offsets(Names(self._app).workers)
        ends = self._admin.end_offsets(parts)
        return all(at in committed and committed[at].offset >= ends[at] for at in parts)

    def start_index(self, slot: str = "i") -> str:
        """A new index process; its name."""
        self._number += 1
        tag = f"~{self._number}"
        self.pages[slot + tag] = self.deployment.start_shown(slot, "index", tag)
        return slot + tag

    def judging(self) -> str:
        """Name of the index that judges; one that joins may have taken over from the one before."""
        found: list[str] = []

        def one() -> bool:
            alive = [name for name in self.pages if self.deployment.processes[name].poll() is None]
            found[:] = [name for name in alive if self.pages[name].total("index_live") == 1.0]
            return len(found) == 1

        if not poll_until(one, _LIMIT_S):
            raise SystemExit(f"no index judges; logs: {self.deployment.folder}")
        return found[0]

    def newest(self) -> str:
        """Name of the index process started last."""
        return list(self.deployment.processes)[-1]

    def lag_blocks(self) -> float:
        """How far that one is behind the log; infinite while it does not say."""
        lag = self.pages[self.newest()].total("index_lag_blocks")
        return math.inf if lag is None else lag

    def log_end(self) -> int:
        """Blocks in the log."""
        at = Partition(f"{self._app}.fingerprints", 0)
        return self._admin.end_offsets([at])[at]

    def stall(self, probe: Probe, live: str, restart: Callable[[], object]) -> float:
        """Kill the live index, do what a supervisor would, wait for what was written afterwards."""
        self.deployment.kill(live)
        killed = time.time()
        restart()
        if not poll_until(lambda: probe.first_after(killed) is not None, _LIMIT_S):
            raise SystemExit(f"nothing comes out any more; logs: {self.deployment.folder}")
        found = probe.first_after(killed)
        assert found is not None
        return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kept", type=int, default=1_000_000)
    parser.add_argument("--segment", type=int, default=MAX_SEGMENT, help="near.segment")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--keep-logs", action="store_true")
    options = parser.parse_args()
    print(machine_line())
    with Cluster().start() as cluster:
        failover = Failover(cluster.bootstrap, options.kept, options.segment)
        stop = threading.Event()
        probe = Probe(cluster.bootstrap, f"{failover.deployment.app}.out")
        try:
            took = failover.fill(options.kept)
            print(
                f"input: {int(1.05 * options.kept)} generated posts, window {options.kept}, "
                f"segments of {options.segment}; filled in {took:.0f} s",
                flush=True,
            )
            in_thread(probe.run)
            topic = f"{failover.deployment.app}.in"
            in_thread(lambda: _produce(cluster.bootstrap, topic, 10_000_000, 2, stop, _TRICKLE))
            _measure(failover, probe, options.times)
        finally:
            stop.set()
            probe.stop.set()
            failover.deployment.close(keep_logs=options.keep_logs)


def _measure(failover: Failover, probe: Probe, times: int) -> None:
    live = failover.newest()
    snapshots = failover.state / "failover"
    blocks = failover.log_end()
    if not poll_until(
        lambda: any(int(path.stem.split("-")[1]) >= blocks for path in snapshots.glob("*.snapshot")), 180
    ):
        raise SystemExit(f"no snapshot of the full window; logs: {failover.deployment.folder}")
    size = sum(path.stat().st_size for path in snapshots.iterdir())
    print(f"state: {size / 2**20:,.0f} MiB; slowest message beside snapshots {probe.slowest_s():.2f} s")
    for name in ("warm standby", "cold from snapshot", "cold from log and decisions"):
        found = []
        for _ in range(times):
            if name == "warm standby":
                standby = failover.start_index("j" if live.startswith("i") else "i")
                start = time.monotonic()
                if not poll_until(lambda: failover.lag_blocks() < _WARM_BLOCKS, _LIMIT_S):
                    raise SystemExit(f"{standby} does not get warm; logs: {failover.deployment.folder}")
                print(f"  a standby is warm {time.monotonic() - start:.1f} s after its start", flush=True)
                time.sleep(_TAKE_PART_S)
                found.append(failover.stall(probe, failover.judging(), lambda: None))
                live = failover.judging()
            else:
                if name == "cold from log and decisions":
                    shutil.rmtree(snapshots, ignore_errors=True)
                slot = live.split("~")[0]
                found.append(failover.stall(probe, live, lambda: failover.start_index(slot)))  # noqa: B023
                live = failover.newest()
            time.sleep(5.0)
        shown = ", ".join(f"{each:.1f}" for each in sorted(found))
        print(f"{name}: median {statistics.median(found):.1f} s ({shown})", flush=True)


if __name__ == "__main__":
    main()
