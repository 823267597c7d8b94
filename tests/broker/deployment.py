"""A whole deployment to measure and to hurt: a real broker, twinsieve processes, a load and a reader.

Every process is the command itself; the harness only starts, kills, freezes and restarts it.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.broker.load import PARTITIONS, Load, Place, place_in
from tests.broker.server import free_ports
from tests.broker.stranger import arrived, limit_topics, reader
from tests.service.scraped import Pages
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.kafka.broker import KafkaBroker
from twinsieve.pipeline.operate.topic_checks import create
from twinsieve.pipeline.settings.model import KafkaSettings, Settings

_ROOT = Path(__file__).resolve().parents[2]


class Deployment:
    """Topics and settings of one app on a broker, and its processes by member name.

    snapshot_every: what is killed soon needs young ones; the product's own default is 5m
    clocks: seconds that the clock of a member is ahead, and after how many it jumps (`tests.broker.wrong_clock`)
    source: more settings of the section `input`; segment: `near.segment`; kafka: of the section `kafka`
    program: command line of the program; sets: KEY=VALUE of more settings, on the command line of `run` alone
    partitions: number of partitions of the input
    """

    def __init__(
        self,
        bootstrap: str,
        app: str,
        *,
        snapshot_every: str = "10s",
        clocks: Mapping[str, tuple[float, float]] | None = None,
        source: Mapping[str, object] | None = None,
        segment: int | None = None,
        program: Sequence[str] = (sys.executable, "-m", "twinsieve"),
        sets: Sequence[str] = (),
        partitions: int = PARTITIONS,
        **kafka: object,
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=f"twinsieve-{app}-"))
        self.app = app
        self.settings: dict[str, Any] = {
            "app": app,
            "input": {"topics": [f"{app}.in"], **(source or {})},
            "output": {"topic": f"{app}.out", "duplicates": f"{app}.dup", "dead_letter": f"{app}.dead"},
            "exact": {"window": {"messages": 2_000_000, "age": "7d"}},
            "near": {"window": {"messages": 200_000, "age": "24h"}},
            "kafka": {"bootstrap": bootstrap, **kafka},
            "state": {"dir": str(self.folder / "state"), "snapshot_every": snapshot_every},
            "http": {"listen": "none"},
        }
        if segment is not None:
            self.settings["near"] |= {"segment": segment}
        self.file = self.folder / "settings.yaml"
        self.file.write_text(yaml.safe_dump(self.settings))
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._bootstrap = bootstrap
        self._clocks = clocks or {}
        self._program = program
        self._sets = sets
        self._partitions = partitions

    @property
    def outputs(self) -> list[str]:
        """Topics that messages end in."""
        return [f"{self.app}.out", f"{self.app}.dup", f"{self.app}.dead"]

    def create_topics(self, replication: int = 1, max_bytes: int | None = None) -> None:
        """All topics, as `twinsieve topics create` makes them.

        max_bytes: of a batch of the input, where that is not as the broker has it
        """
        broker = KafkaBroker(KafkaSettings(bootstrap=self._bootstrap))
        admin = broker.admin()
        limits = {} if max_bytes is None else {"max.message.bytes": str(max_bytes)}
        admin.create_topic(NewTopic(f"{self.app}.in", self._partitions, replication, limits))
        topics = {"replication": replication, "min_in_sync": max(1, replication - 1)}
        create(Settings.model_validate({**self.settings, "topics": topics}), admin)
        broker.close()

    def create_own_topics(self) -> None:
        """The topics that the program itself creates; the input exists."""
        command = [*self._program, "topics", "create", "-c", str(self.file)]
        subprocess.run(command, cwd=_ROOT, stdout=subprocess.DEVNULL, check=True)

    def limit_outputs(self, batch_bytes: int) -> None:
        """From now on the outputs take no batch that is larger."""
        limit_topics(self._bootstrap, self.outputs, batch_bytes)

    def start(
        self,
        member: str,
        role: str = "both",
        tag: str = "",
        listen: str = "none",
        program: Sequence[str] = (),
        sets: Sequence[str] = (),
    ) -> subprocess.Popen[bytes]:
        """Start a process in a slot; `tag` keeps it apart from another one in the same slot.

        listen: address of its metrics; program: in place of the deployment's; sets: beside the deployment's
        """
        wrong = [str(number) for number in self._clocks.get(member, ())]
        clock = [sys.executable, "-m", "tests.broker.wrong_clock", *wrong]
        command = clock if wrong else list(program or self._program)
        command += ["run", "-c", str(self.file), "--member", member, "--role", role]
        for pair in (f"http.listen={listen}", *self._sets, *sets):
            command += ["--set", pair]
        return self._spawn(member + tag, command)

    def start_shown(
        self, member: str, role: str = "both", tag: str = "", program: Sequence[str] = ()
    ) -> Pages:
        """Start a process that shows pages. Arguments: as of `start`"""
        (port,) = free_ports(1)
        self.start(member, role, tag, f"127.0.0.1:{port}", program)
        return Pages(port)

    def redrive(self, member: str) -> subprocess.Popen[bytes]:
        """Start `twinsieve redrive` under this member name."""
        return self._spawn(member, [*self._program, "redrive", "-c", str(self.file), "--member", member])

    def set(self, section: str, **values: object) -> None:
        """Change settings in the file; processes that start from now on have them."""
        self.settings[section] = self.settings.get(section, {}) | values
        self.file.write_text(yaml.safe_dump(self.settings))

    def _spawn(self, name: str, command: Sequence[str]) -> subprocess.Popen[bytes]:
        with open(self.log(name), "ab") as log:
            process = subprocess.Popen(
                command,
                cwd=_ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.processes[name] = process
        return process

    def log(self, name: str) -> Path:
        """What a process has said."""
        return self.folder / f"{name}.log"

    def signal(self, name: str, number: signal.Signals) -> None:
        """Send a signal to a process's group, if it lives."""
        process = self.processes[name]
        if process.poll() is None:
            os.killpg(process.pid, number)

    def kill(self, name: str) -> None:
        """kill -9 and wait."""
        self.signal(name, signal.SIGKILL)
        self.processes[name].wait(30)

    def close(self, *, keep_logs: bool = False) -> None:
        """Kill what still runs; the folder with settings, state and logs goes unless it is to be read."""
        for name in self.processes:
            self.kill(name)
        if keep_logs:
            print(f"logs: {self.folder}", file=sys.stderr)
        else:
            shutil.rmtree(self.folder, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Seen:
    """One message that came out: where, when, and for which leader it was dropped."""

    topic: str
    place: Place
    at_s: float
    leader: Place | None


@dataclass
class Watcher:
    """Reads every output topic, committed messages alone, in a thread.

    gathers_ms: how long a broker gathers messages before it answers. Each answer costs it some time for every
        partition, so a reader of hundreds that is in a hurry would take more of the machine than the app does
    """

    bootstrap: str
    topics: list[str]
    partitions: int = PARTITIONS
    gathers_ms: int = 0
    seen: dict[Place, list[Seen]] = field(default_factory=dict)
    disorder: int = 0
    stop: threading.Event = field(default_factory=threading.Event)
    longest_gap_s: float = 0.0

    def run(self) -> None:
        """Until stopped."""
        outputs = reader(
            self.bootstrap,
            self.topics,
            self.partitions,
            fetch_wait_max_ms=max(5, self.gathers_ms),
            fetch_min_bytes=1 << 20 if self.gathers_ms else 1,
            fetch_queue_backoff_ms=5,
            fetch_error_backoff_ms=20,
            reconnect_backoff_max_ms=100,
            retry_backoff_max_ms=100,
        )
        last: dict[tuple[str, int], int] = {}
        before = None
        while not self.stop.is_set():
            for message in arrived(outputs):
                now = time.monotonic()
                headers = dict(message.headers() or ())
                place = place_in(headers["twinsieve-origin"])
                leader = place_in(headers["twinsieve-leader"]) if "twinsieve-leader" in headers else None
                self.seen.setdefault(place, []).append(Seen(message.topic(), place, now, leader))
                row = message.topic(), place[0]
                self.disorder += last.get(row, -1) > place[1]
                last[row] = place[1]
                if before is not None:
                    self.longest_gap_s = max(self.longest_gap_s, now - before)
                before = now
        outputs.close()


@dataclass(frozen=True)
class Findings:
    """lost: never came out; extra: came out twice; orphans: dropped for a leader that was not kept.

    timed: those of the messages that the times are of
    answered: rows (times segments) that were judged with answers of shards; None: there are no shards
    """

    messages: int
    timed: int
    unique: int
    lost: int
    extra: int
    orphans: int
    disorder: int
    p50_ms: float
    p99_ms: float
    worst_s: float
    gap_s: float
    answered: float | None = None

    @property
    def good(self) -> bool:
        """Exactly once each, in order, for leaders that were kept."""
        return not (self.lost or self.extra or self.orphans or self.disorder)

    def __str__(self) -> str:
        verdict = "OK" if self.good else "WRONG"
        return (
            f"{verdict}: {self.messages} messages, {self.unique} unique, {self.lost} lost, "
            f"{self.extra} extra, {self.orphans} orphans, {self.disorder} out of order; "
            f"p50 {self.p50_ms:.0f} ms, p99 {self.p99_ms:.0f} ms, slowest {self.worst_s:.1f} s, "
            f"longest silence {self.gap_s:.1f} s"
        )


def judge(
    load: Load, watcher: Watcher, output: str, since_s: float = 0.0, kept: Collection[Place] = ()
) -> Findings:
    """Holds what came out against what was put in, knowing nothing of how twinsieve works.

    since_s: times are those of the messages sent from then on
    kept: messages that came out as unique before the load, which may be leaders of its duplicates
    """
    extra = sum(len(seen) - 1 for seen in watcher.seen.values()) + len(
        watcher.seen.keys() - load.sent_s.keys()
    )
    unique = {place for place, seen in watcher.seen.items() if any(one.topic == output for one in seen)}
    orphans = sum(
        one.leader not in unique and one.leader not in kept
        for seen in watcher.seen.values()
        for one in seen
        if one.topic != output and one.leader is not None
    )
    times = sorted(
        watcher.seen[place][0].at_s - at
        for place, at in load.sent_s.items()
        if place in watcher.seen and at >= since_s
    )

    def share(part: float) -> float:
        return times[min(len(times) - 1, int(part * len(times)))] if times else 0.0

    return Findings(
        len(load.sent_s),
        sum(at >= since_s for at in load.sent_s.values()),
        len(unique),
        len(load.sent_s.keys() - watcher.seen.keys()),
        extra,
        orphans,
        watcher.disorder,
        share(0.5) * 1000,
        share(0.99) * 1000,
        share(1.0),
        watcher.longest_gap_s,
    )


def in_thread(call: Callable[[], None]) -> threading.Thread:
    """The call in a thread that ends with the program."""
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    return thread


def poll_until(true: Callable[[], bool], seconds: float) -> bool:
    """Whether it became true in that time."""
    return any(true() for _ in _ticks(seconds))


def _ticks(seconds: float) -> Iterator[None]:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield
        time.sleep(0.05)
