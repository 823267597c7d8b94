"""A soak: random troubles for a deployment under load, and what must still be true of it."""

from __future__ import annotations

import bisect
import random
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from tests.broker.cluster import Cluster
from tests.broker.deployment import Deployment, Findings, Watcher, in_thread, judge, poll_until
from tests.broker.load import PARTITIONS, Load
from tests.broker.memory_groups import memory_groups
from tests.broker.shard_counts import ShardCounts
from tests.broker.stranger import Stranger
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.sizing.process_memory import held_by

_START_S = 300.0
"""Until the first messages come out, at most."""
_SETTLE_S = 600.0
"""After the last trouble, a message that has not come out within this time counts as stuck. A slow machine
needs minutes."""
SESSION_S = 1.0
"""Session timeout of a broker, in seconds. One that comes back from a kill waits for the end of its old session,
and reads again the segments it was writing; the p99 counts both. Its controller is a node of its own, as Kafka
asks of production: a lone node of both roles holds its own old session against itself for a second more
(--combined)."""

_CLOCKS = {"a": (-150.0, 0.0), "b": (90.0, 20.0), "visitor": (600.0, 0.0)}
"""Seconds ahead of the broker's, and after how many the clock jumps to the other side (hard)."""
_OUTPUT_BYTES = 20_000
"""The largest batch that the outputs take (hard)."""
_SEGMENT = 20_000
"""The near window then has eleven segments, and one is sealed every few seconds."""
_SEGMENT_S = 5.0
"""With shards, a segment has as many messages as come in this time."""

MAX_P99_S = 15.0
"""What is promised under 3,000 messages a second on two cores."""
LOADED = 0.9
"""Share of the messages due that must have been sent: with fewer, another load was measured."""


class Soak:
    """Slots `a` and `b` always have a process, and each shard has a slot; trouble comes in a seeded order.

    counts: of the answers of shards, if there are shards
    program: command line of the program, if it is another one
    ended: exit codes of processes that ended by themselves, with their slots
    """

    def __init__(
        self,
        cluster: Cluster,
        deployment: Deployment,
        seed: int,
        pause_s: float,
        *,
        stranger_s: float = 0.0,
        shards: int = 0,
        program: Sequence[str] = (),
    ) -> None:
        self._program = program
        self._shards = [f"shard{number}" for number in range(shards)]
        self.counts = ShardCounts() if shards else None
        self._cluster = cluster
        self._deployment = deployment
        self._random = random.Random(seed)
        self._pause_s = pause_s
        self._stranger_s = stranger_s
        self._zombies = 0
        self.done: list[tuple[float, str]] = []
        self.ended: list[str] = []
        self.away: list[tuple[float, float]] = []

    def run(self, seconds: float) -> None:
        """Make trouble for `seconds`; then everything is healthy again."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            trouble = self._random.choices(*zip(*self._troubles(), strict=True))[0]
            self.done.append((time.monotonic(), trouble.__name__.strip("_")))
            trouble()
            self._wait(self._pause_s)

    def _troubles(self) -> list[tuple[Callable[[], None], int]]:
        """Each with its share of all troubles."""
        return [
            (self._kill, 6),
            (self._kill_both, 1),
            (self._zombie, 2),
            (self._visitor, 1),
            (self._broker, 1),
            (self._stranger, 4 if self._stranger_s else 0),
        ]

    def _wait(self, seconds: float) -> None:
        poll_until(lambda: self.supervise() and False, seconds)

    def supervise(self) -> bool:
        """Starts what has ended by itself; a displaced zombie may stay ended."""
        for slot in ("a", "b", *self._shards):
            if not self._living(slot):
                last = [name for name in self._deployment.processes if name.split("~")[0] == slot][-1:]
                self.ended += [f"{slot} {self._deployment.processes[name].poll()}" for name in last]
                self._start(slot)
        return True

    def _start(self, slot: str, tag: str = "") -> None:
        role = "shard" if slot in self._shards else "both"
        listen = self.counts.address() if self.counts is not None else "none"
        self._deployment.start(slot, role, tag, listen, self._program)

    def _slot(self) -> str:
        return self._random.choice(["a", "b", *self._shards])

    def _living(self, slot: str) -> list[str]:
        held = self._deployment.processes
        return [name for name in held if name.split("~")[0] == slot and held[name].poll() is None]

    def _kill(self) -> None:
        slot = self._slot()
        for name in self._living(slot):
            self._deployment.kill(name)
        self._start(slot)

    def _kill_both(self) -> None:
        for slot in ("a", "b"):
            for name in self._living(slot):
                self._deployment.kill(name)
            self._start(slot)

    def _zombie(self) -> None:
        slot = self._slot()
        living = self._living(slot)
        if not living:
            return
        zombie = living[0]
        self._deployment.signal(zombie, signal.SIGSTOP)
        self._wait(self._random.uniform(0.5, 3.0))
        self._zombies += 1
        self._start(slot, f"~{self._zombies}")
        self._wait(self._random.uniform(1.0, 6.0))
        self._deployment.signal(zombie, signal.SIGCONT)

    def _visitor(self) -> None:
        visitor = self._deployment.start("visitor", program=self._program)
        self._wait(self._random.uniform(5.0, 8.0))
        self._deployment.signal("visitor", signal.SIGTERM)
        self._wait(2.0)
        if visitor.poll() is None:
            poll_until(lambda: visitor.poll() is not None, 20.0)
        self._deployment.kill("visitor")

    def _stranger(self) -> None:
        app = self._deployment.app
        stranger = Stranger(self._cluster.bootstrap, f"{app}.workers", f"{app}.in")
        end_s = time.monotonic() + self._random.uniform(1.0, self._stranger_s)
        while time.monotonic() < end_s:
            if self._random.random() < 0.3:
                self._kill()
            self._wait(min(self._pause_s, end_s - time.monotonic()))
        stranger.leave()

    def _broker(self) -> None:
        self._restart(0, 0.5, 3.0)

    def _restart(self, node: int, least_s: float, max_s: float) -> None:
        """Kill a broker; it is back after some time between these."""
        gone_s = time.monotonic()
        self._cluster.nodes[node].kill()
        self._wait(self._random.uniform(least_s, max_s))
        self._cluster.restart(node)
        self.away.append((gone_s, time.monotonic()))


def soak(
    seconds: float,
    rate: float,
    seed: int,
    pause_s: float,
    *,
    posts: Path | None = None,
    keep_logs: bool = False,
    combined: bool = False,
    hard: bool = False,
    stranger_s: float = 0.0,
    shards: int = 0,
    session_s: float = SESSION_S,
    limited: bool = False,
) -> tuple[Findings, str]:
    """What the checker found, and what was done to the deployment, which had caught up before.

    posts: a file of real ones; else generated
    combined: the broker is its own controller, and so dies with it
    hard: clocks of processes are wrong by minutes, one of them jumps, and the outputs take small batches alone
    stranger_s: if not 0, another consumer joins the workers' group now and then, for up to this time
    shards: processes of the role "shard", which are killed and frozen like the others
    session_s: of the broker; a machine that is often held up for longer has a broker that serves nobody
    limited: each process has a cgroup with the memory that `lint` and the manifests give it; not with shards
    """
    broker = {
        "broker.session.timeout.ms": str(int(1000 * session_s)),
        "broker.heartbeat.interval.ms": str(int(200 * session_s)),
        "log.segment.bytes": str(16 << 20),
    }
    with ExitStack() as ends:
        cluster = ends.enter_context(
            Cluster(extra=broker, apart=not combined, lives_long=True, mortal=True).start()
        )
        app = "soak"
        deployment = Deployment(
            cluster.bootstrap,
            app,
            clocks=_CLOCKS if hard else None,
            segment=int(rate * _SEGMENT_S) if shards else _SEGMENT,
        )
        if shards:
            deployment.set("near", answers="shards")
        deployment.create_topics()
        if hard:
            deployment.limit_outputs(_OUTPUT_BYTES)
        load = Load(cluster.bootstrap, f"{app}.in", int((seconds + 600) * rate), rate, seed, posts)
        watcher = Watcher(cluster.bootstrap, deployment.outputs)
        groups = ends.enter_context(memory_groups()) if limited else None
        limit_bytes = held_by(Settings.model_validate(deployment.settings), PARTITIONS).limit
        program = [] if groups is None else [*groups.within(limit_bytes), sys.executable, "-m", "twinsieve"]
        trouble = Soak(
            cluster, deployment, seed, pause_s, stranger_s=stranger_s, shards=shards, program=program
        )
        found = None
        try:
            trouble.supervise()
            if trouble.counts is not None:
                in_thread(trouble.counts.run)
            watching = in_thread(watcher.run)
            loading = in_thread(load.run)
            poll_until(lambda: len(load.sent_s) - rate < len(watcher.seen) > 0, _START_S)
            start_s = time.monotonic()
            watcher.longest_gap_s = 0.0
            trouble.run(seconds)
            load.stop.set()
            loading.join(120.0)
            poll_until(lambda: trouble.supervise() and load.sent_s.keys() <= watcher.seen.keys(), _SETTLE_S)
            watcher.stop.set()
            watching.join(10.0)
            found = judge(load, watcher, deployment.outputs[0], start_s)
        finally:
            watcher.stop.set()
            load.stop.set()
            if trouble.counts is not None:
                trouble.counts.stop.set()
            deployment.close(keep_logs=keep_logs or found is None or not found.good)
        said = [
            _slowest(trouble, load, watcher),
            f"{load.failed} sends failed, {load.unplaced} sent to an unknown place",
        ]
        said.append(f"ended by themselves: {', '.join(trouble.ended) or 'none'}")
        if groups is not None:
            said.append(f"limit {limit_bytes >> 20} MiB, {groups.killed} processes killed for their memory")
        if trouble.counts is not None:
            found = replace(found, answered=trouble.counts.answered)
            said.append(str(trouble.counts))
        if trouble.away:
            said.append(_without_absence(trouble.away, load, watcher, start_s))
        return found, "; ".join(said)


def _slowest(trouble: Soak, load: Load, watcher: Watcher) -> str:
    """Each kind of trouble: how often, and the slowest message sent after each time before the next one."""
    starts = [at for at, _ in trouble.done]
    worst = [0.0] * len(starts)
    for place, sent in load.sent_s.items():
        turn = bisect.bisect(starts, sent) - 1
        if turn >= 0 and place in watcher.seen:
            worst[turn] = max(worst[turn], watcher.seen[place][0].at_s - sent)
    by_kind: dict[str, list[str]] = {}
    for (_, name), slowest in zip(trouble.done, worst, strict=True):
        by_kind.setdefault(name, []).append(f"{slowest:.1f}")
    return ", ".join(f"{len(all_)} × {name} ({' '.join(all_)} s)" for name, all_ in sorted(by_kind.items()))


def _without_absence(away: list[tuple[float, float]], load: Load, watcher: Watcher, since_s: float) -> str:
    """The p99 when no message is charged for the time in which there was no broker."""
    times = []
    for place, sent in load.sent_s.items():
        if sent >= since_s and place in watcher.seen:
            seen = watcher.seen[place][0].at_s
            absent = sum(max(0.0, min(back, seen) - max(gone, sent)) for gone, back in away)
            times.append(seen - sent - absent)
    times.sort()
    spans = " ".join(f"{back - gone:.1f}" for gone, back in away)
    return f"broker away {spans} s, p99 without that {times[int(0.99 * len(times))] * 1000:.0f} ms"


def shortcomings(found: Findings, due: float, max_s: float) -> list[str]:
    """What the soak is red for, besides what `Findings` counts: a line each."""
    said = []
    if found.timed < LOADED * due:
        said.append(f"only {found.timed} messages of {due:.0f} were sent: a slower load was measured")
    if found.answered == 0:
        said.append("no row was judged with an answer of a shard: an app without shards was measured")
    if found.p99_ms > max_s * 1000:
        said.append(f"p99 {found.p99_ms / 1000:.1f} s is above {max_s:g} s")
    return said
