"""What one core of a worker and of an index can do: `python -m bench.kafka_ceiling [--shards]`.

Each part of the load goes through the app in two stages, so that no role waits for another one's cores:

1. asking: the index is frozen (SIGSTOP); the worker, on the first core, reads the part and appends
   fingerprints to the log, until the log holds all of it
2. the index, on the first core, judges what waits in the log; the worker, on the other cores, emits it

Broker, shards and this program have the other cores all the time. A figure is CPU time of all threads of a
role: a core does 1,000,000 / µs messages a second. A worker asks and emits. The elapsed time stands beside
it: a worker that asks pauses between two polls, as all its answers are outstanding.

--shards: the same with shards that answer for full segments, behind the same window without them
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import NamedTuple

from bench.kafka_shards import App
from bench.machine import cpu_seconds, machine_line
from tests.broker.cluster import Cluster
from tests.broker.load import PARTITIONS, Load
from tests.broker.stranger import Consumer, KafkaException, TopicPartition, consumer

_LOOK_S = 0.02
_SESSION = "3m"
_CALM_S, _STUCK_S = 2.0, 120.0
"""The log is complete if it does not grow for _CALM_S; whoever does not go on for _STUCK_S is stuck."""


class _Moment(NamedTuple):
    """How far a role was, when, and how much CPU time its process had used."""

    place: int
    at_s: float
    cpu_s: float

    @classmethod
    def now(cls, place: int, pid: int) -> _Moment:
        return cls(place, time.monotonic(), cpu_seconds(pid))


class Stage(NamedTuple):
    """cpu_us, elapsed_us: a message"""

    cpu_us: float
    elapsed_us: float

    def __str__(self) -> str:
        return f"{self.cpu_us:5.2f} µs of CPU, {self.elapsed_us:5.2f} µs elapsed"


STAGES = ("asking", "judging", "emitting")


def stages(app: App, messages: int) -> dict[str, Stage]:
    """Bring one part of the load through the app, stage by stage."""
    name, processes = app.deployment.app, app.deployment.processes
    log = TopicPartition(f"{name}.fingerprints", 0)
    inputs = [TopicPartition(f"{name}.in", number) for number in range(PARTITIONS)]
    worker_group, index_group = (consumer(app.bootstrap, f"{name}.{group}") for group in ("workers", "index"))

    def logged() -> int:
        return int(worker_group.get_watermark_offsets(log, timeout=30)[1])

    def judged() -> int:
        return _committed(index_group, [log])

    def emitted() -> int:
        return _committed(worker_group, inputs)

    def reached(role: str, place: Callable[[], int], target: float, stuck_s: float = _STUCK_S) -> _Moment:
        """When a role's place reached the target, or moved no more."""
        last = _Moment.now(place(), pid_of(role))
        while last.place < target and time.monotonic() < last.at_s + stuck_s:
            time.sleep(_LOOK_S)
            if (now := place()) > last.place:
                last = _Moment.now(now, pid_of(role))
        if inf > target > last.place:
            raise SystemExit(f"the {role} is stuck at {last.place:,} of {target:,}")
        return last

    def pid_of(role: str) -> int:
        return processes[role].pid

    def stage(began: _Moment, done: _Moment) -> Stage:
        return Stage(1e6 * (done.cpu_s - began.cpu_s) / messages, 1e6 * (done.at_s - began.at_s) / messages)

    others = _cores() - {_first_core()}
    for role in ("index", "worker"):
        app.deployment.signal(role, signal.SIGSTOP)
    Load(app.bootstrap, f"{name}.in", messages, None, seed=1_000 + app.sent).run()
    app.sent += messages
    bind(pid_of("worker"), {_first_core()})
    began = _Moment.now(0, pid_of("worker"))
    app.deployment.signal("worker", signal.SIGCONT)
    found = {"asking": stage(began, reached("worker", logged, inf, _CALM_S))}
    bind(pid_of("worker"), others)
    bind(pid_of("index"), {_first_core()})
    index_began, worker_began = (_Moment.now(0, pid_of(role)) for role in ("index", "worker"))
    app.deployment.signal("index", signal.SIGCONT)
    # The log grows by reports while the worker emits.
    found["judging"] = stage(index_began, reached("index", judged, logged()))
    found["emitting"] = stage(worker_began, reached("worker", emitted, app.sent))
    for role in ("index", "worker"):
        bind(pid_of(role), _cores())
    worker_group.close()
    index_group.close()
    return found


def bind(pid: int, cores: Iterable[int]) -> None:
    """Let all threads of a process run on these cores alone."""
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(ProcessLookupError):
            os.sched_setaffinity(int(thread.name), cores)


def _cores() -> set[int]:
    return set(os.sched_getaffinity(0))


def _first_core() -> int:
    return min(_cores())


def _committed(group: Consumer, partitions: list[TopicPartition]) -> int:
    """Sum of the committed offsets; 0 while the group's coordinator is on its way."""
    with suppress(KafkaException):
        return sum(max(0, at.offset) for at in group.committed(partitions, timeout=30))
    return 0


def ceilings(app: App, messages: int, parts: int) -> None:
    """Print the medians of some parts."""
    app.post(messages)  # connections, kernels, memory
    runs = [stages(app, messages) for _ in range(parts)]
    cpu_us = {}
    for name in STAGES:
        of = [run[name] for run in runs]
        cpu, elapsed = (statistics.median(column) for column in zip(*of, strict=True))
        cpu_us[name] = cpu
        least, most = min(each.cpu_us for each in of), max(each.cpu_us for each in of)
        print(f"  {name:9} {Stage(cpu, elapsed)} ({least:.2f} to {most:.2f})")
    worker, index = cpu_us["asking"] + cpu_us["emitting"], cpu_us["judging"]
    print(
        f"  a core of a worker: {1e6 / worker:,.0f} messages/s, of the index: {1e6 / index:,.0f}", flush=True
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--messages", type=int, default=120_000, help="of a part; all of them wait at once")
    parser.add_argument("--parts", type=int, default=5)
    parser.add_argument("--kept", type=int, default=400_000, help="in full segments of the near window")
    parser.add_argument("--segments", type=int, default=4)
    parser.add_argument("--shards", action="store_true")
    options = parser.parse_args()
    if len(_cores()) < 2:
        raise SystemExit("needs two cores: one for the role that works, and one for all others")
    print(machine_line())
    with Cluster().start() as cluster:
        for node in cluster.nodes:
            bind(node.pid, _cores() - {_first_core()})
        app = App(cluster.bootstrap, "ceiling", options.kept, options.segments)
        # An index that is frozen for longer would be restored.
        app.deployment.set("kafka", session_timeout=_SESSION)
        try:
            app.fill()
            app.end()
            for shards in (False, True) if options.shards else (False,):
                load = f"{options.parts} parts of {options.messages:,} generated posts"
                window = f"{options.kept:,} kept in {options.segments} segments"
                print(f"{load}, {window}, {'shards answer' if shards else 'no shards'}")
                app.run(shards=shards)
                ceilings(app, options.messages, options.parts)
                app.end()
        finally:
            for name in app.deployment.processes:
                app.deployment.signal(name, signal.SIGCONT)
            app.deployment.close()


if __name__ == "__main__":
    main()
