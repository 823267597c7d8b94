"""An app on the memory broker, with the real sieve, whose index uses the answers of shards: segments of a few
messages, and processes that can be killed, frozen and ended.

One partition of the input, so that the log has one order, and what comes out can be compared with what comes out
of one process without shards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from tests.crash.members import Member, let_go
from tests.memory.broker import CrashError, Hook, MemoryBroker
from tests.service.test_changed_settings import base, deployment, with_section
from tests.twins import AtOnce, Later
from twinsieve.pipeline.broker.ports import no_hook
from twinsieve.pipeline.broker.records import (
    AbortableError,
    BrokerError,
    FatalError,
    Header,
    Partition,
)
from twinsieve.pipeline.index.segment_answers import Unused
from twinsieve.pipeline.service import build
from twinsieve.pipeline.service.build import Builder, wire_scheme
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.shards.shard import Shard
from twinsieve.pipeline.wire.frame import What
from twinsieve.pipeline.wire.ruling import decode_ruling
from twinsieve.stages.errors import StateError
from twinsieve.stages.judge.scheme import Scheme

ANSWERS = "t.answers"
LOG, DECISIONS = Partition("t.fingerprints", 0), Partition("t.decisions", 0)
PATIENCE_S = 10.0
"""Longer than a session of the memory broker."""
_STUCK_ROUNDS = 3_000
Came = tuple[bytes | None, tuple[Header, ...]]
"""Value and headers of what came out."""


def settings_in(state: str, *, answers: str = "shards", replicas: int = 1) -> Settings:
    """A near window of 60 messages in segments of 10, and no exact stage, which would find most copies by itself."""
    settings = with_section(base(state), "state", snapshot_every_ms=1_000)
    settings = with_section(settings, "exact", method="none")
    return with_section(
        settings, "near", segment=10, answers=answers, replicas=replicas,
        patience_ms=round(PATIENCE_S * 1000), grace_ms=20_000,
    )  # fmt: skip


class Judging(Member):
    """A process with an index and perhaps a worker. Its segments are in files when a step ends."""

    def step(self) -> None:
        """Do a round of each role."""
        super().step()
        journal = self.index._journal
        assert journal is not None
        journal.segments.scratch._writer.submit(int).result()
        journal.segments.thread.submit(int).result()

    def kill(self) -> None:
        """As kill -9. What it wrote arrives; its sessions have not timed out yet."""
        self.broker.die(lambda waiting: waiting)
        let_go(self.index)

    @property
    def waits(self) -> bool:
        """Whether a block waits for answers."""
        held, answers = self.index._held, self.index.answers
        waits = bool(held) and answers is not None
        return waits and bool(held._awaited(answers, held._blocks[0], self.index._sealed))


class Answering:
    """A process with a shard, which is made again after errors as its loop does."""

    def __init__(self, app: App, settings: Settings, slot: str, hook: Hook) -> None:
        self.broker = MemoryBroker(app.world.cluster, hook)
        world = app.world
        builder = Builder(settings, world.scheme, world.clock, lambda _: self.broker, slot, True, Later())
        self._made, self._hook = builder.shard_maker(), hook
        self.shard: Shard | None = None

    def step(self) -> None:
        """Do a round. raises: FatalError if another process has its name"""
        if self.shard is None:
            with suppress(AbortableError):
                self.shard = self._made(self._hook)
            return
        try:
            self.shard.step(0.05)
        except AbortableError:
            return
        except FatalError as error:
            self.shard.close()
            self.shard = None
            if error.fenced:
                raise

    def kill(self) -> None:
        """As kill -9."""
        self.broker.die(lambda waiting: waiting)

    def finish(self) -> bool:
        """Do a round of leaving; returns whether that is done."""
        return self.shard is None or self.shard.finish(0.05)

    def end(self) -> None:
        """Close it, after `finish`."""
        if self.shard is not None:
            self.shard.close()


class App:
    """Processes of one app by name, and what was counted of the answers."""

    def __init__(self, scheme: Scheme, settings: Settings) -> None:
        self.settings = settings
        self.world = deployment(settings, scheme)
        self.members: dict[str, Judging | Answering] = {}
        self.frozen_s: dict[str, float] = {}
        """Until when a process stands still."""
        self.unused: Counter[Unused] = Counter()
        """Of indexes that are gone; see `unused_answers`."""
        self.stops: list[str] = []

    def judging(self, slot: str, *, hook: Hook = no_hook, state: str = "", works: bool = True) -> Judging:
        """Start a process with an index. state: another folder for its snapshots"""
        settings = with_section(self.settings, "state", dir=state) if state else self.settings
        member = Judging(self.world, settings, slot, works=works, hook=hook)
        self.members[slot] = member
        return member

    def shard(self, slot: str, *, hook: Hook = no_hook, **near: Any) -> Answering:
        """Start a shard. near: settings that differ from those of the index"""
        member = Answering(self, with_section(self.settings, "near", **near), slot, hook)
        self.members[slot] = member
        return member

    def kill(self, slot: str) -> None:
        """As kill -9."""
        member = self.members.pop(slot)
        self.frozen_s.pop(slot, None)
        self._count(member)
        member.kill()

    def freeze(self, slot: str, seconds: float) -> None:
        """As SIGSTOP, and SIGCONT after that time."""
        self.frozen_s[slot] = self.world.clock.monotonic_s() + seconds

    def step(self) -> None:
        """A round of every process. One that crashes, or that must give way, is gone then."""
        for slot, member in list(self.members.items()):
            if self.members.get(slot) is not member or self.is_frozen(slot):
                continue
            try:
                member.step()
            except (CrashError, BrokerError):
                self.kill(slot)
            except StateError as error:
                self.stops.append(str(error))
                self.kill(slot)
        # Before an index deletes them behind its snapshots.
        self.world.decisions.update(self.world.cluster.log(DECISIONS).visible())

    def is_frozen(self, slot: str) -> bool:
        """Whether a process stands still."""
        return self.world.clock.monotonic_s() < self.frozen_s.get(slot, 0.0)

    def run(self, done: Callable[[], bool] | None = None) -> None:
        """Until `done`, or all is emitted. raises: AssertionError if that does not come about"""
        for _ in range(_STUCK_ROUNDS):
            if (done or self.world.done)():
                return
            self.step()
        notices = [member.index.notices for member in self.members.values() if isinstance(member, Judging)]
        raise AssertionError(f"stuck: {self.world.notices} {notices} {self.stops}")

    def turn(self, seconds: float) -> None:
        """Let all run for a while."""
        until_s = self.world.clock.monotonic_s() + seconds
        while self.world.clock.monotonic_s() < until_s:
            self.step()
            self.world.clock.sleep(0.05)

    def end(self, slot: str) -> None:
        """End a process as SIGTERM does, while the others go on."""
        member = self.members.pop(slot)
        self._count(member)
        try:
            while isinstance(member, Answering) and not member.finish():
                self.step()
        except (CrashError, BrokerError):
            member.kill()
        else:
            member.end()

    def end_all(self) -> None:
        """End every process that is left, shards first."""
        for slot in reversed(list(self.members)):
            self.end(slot)

    def _count(self, member: Judging | Answering) -> None:
        if isinstance(member, Judging) and member.index.answers is not None:
            self.unused += member.index.answers.unused

    def unused_answers(self) -> Counter[Unused]:
        """How many answers were not used, by reason, in all indexes so far."""
        counts = self.unused.copy()
        for member in self.members.values():
            if isinstance(member, Judging) and member.index.answers is not None:
                counts += member.index.answers.unused
        return counts

    def log_offsets(self) -> dict[int, int]:
        """The block of each decision, by the offset of the decision."""
        wire = wire_scheme(self.settings, self.world.scheme)
        return {
            at: decode_ruling(What.DECISION, entry.value or b"", wire, "").log_offset
            for at, entry in self.world.cluster.log(DECISIONS).visible()
        }

    def answers(self) -> list[tuple[Partition, bytes]]:
        """All records of answers that retention left."""
        logs = self.world.cluster.topics[ANSWERS].logs
        return [
            (Partition(ANSWERS, number), entry.value or b"")
            for number, log in enumerate(logs)
            for _, entry in log.visible()
        ]

    def out(self) -> dict[str, list[Came]]:
        """What came out, in its order."""
        return {
            name: [(entry.value, entry.headers) for entry in self.world.entries(name)]
            for name in ("posts.unique", "posts.duplicates")
        }


def files_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards wait for their store, instead of asking it in a thread."""
    monkeypatch.setattr(build, "DaemonExecutor", lambda _: AtOnce())
