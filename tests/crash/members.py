"""Processes with the real sieve on the memory broker, whose snapshots have small pieces."""

from __future__ import annotations

from tests.crash.snapshot_steps import let_go
from tests.memory.broker import MemoryBroker
from tests.service.test_changed_settings import Deployment, base, deployment, exact_window, posts
from tests.twins import Later
from twinsieve.pipeline.broker.ports import Hook, no_hook
from twinsieve.pipeline.broker.records import AbortableError, FatalError, Partition
from twinsieve.pipeline.index.config import MAX_BLOCKS
from twinsieve.pipeline.index.index import Index
from twinsieve.pipeline.index.snapshot_store import SnapshotReader
from twinsieve.pipeline.index.transaction import Pace
from twinsieve.pipeline.service.build import Builder
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.worker.worker import Worker
from twinsieve.stages.contract import Kind
from twinsieve.stages.judge.scheme import Scheme

MESSAGES = 260


def settings_at(state: str, method: str = "bloom", segment: int = 16_000_000, exact: int = 80) -> Settings:
    """A near window of 60 messages in segments, and an exact window of 80, with a snapshot whenever it is
    possible."""
    settings = exact_window(base(state), exact)
    settings = settings.model_copy(update={"near": settings.near.model_copy(update={"segment": segment})})
    return settings.model_copy(update={"exact": settings.exact.model_copy(update={"method": method})})


class Member:
    """One process of a deployment, with an index and perhaps a worker."""

    def __init__(
        self, world: Deployment, settings: Settings, slot: str, *, works: bool = True, hook: Hook = no_hook
    ) -> None:
        self.broker = MemoryBroker(world.cluster, hook)
        builder = Builder(
            settings, world.scheme, world.clock, lambda _: self.broker, slot, emit=True, background=Later(1)
        )
        self._pace = Pace(MAX_BLOCKS)
        self._new_index = lambda: builder.index(hook, pace=self._pace)
        self.index: Index = self._new_index()
        self.worker: Worker | None = builder.worker(hook) if works else None
        self._world = world

    def step(self) -> None:
        for role in (self.index, self.worker):
            if role is not None:
                try:
                    role.step(0.05)
                except AbortableError as error:
                    self._world.notices.append(str(error))
                except FatalError as error:
                    # As the loop of the index does it.
                    self._world.notices += [*self.index.notices, str(error)]
                    self.index.abandon()
                    self.index = self._new_index()

    def kill(self) -> None:
        self.broker.die(lambda waiting: waiting)
        let_go(self.index)
        self._world.clock.sleep(20.0)

    def end(self) -> None:
        """Stop as on SIGTERM."""
        if self.worker is not None:
            self.worker.close()
        self.index.close()
        self._world.notices += self.index.notices


def run(world: Deployment, *members: Member, rounds: int = 3_000) -> None:
    """Step the members until all is emitted."""
    for _ in range(rounds):
        for member in members:
            member.step()
        # Before an index deletes them behind its snapshots.
        world.decisions.update(world.cluster.log(Partition("t.decisions", 0)).visible())
        if world.done():
            return
    raise AssertionError(f"stuck: {world.notices}")


def verdicts_undisturbed(scheme: Scheme, settings: Settings, *counts: int) -> dict[int, Kind]:
    """The verdicts of one process that nothing disturbs. counts: messages of each set of posts, from 1 on"""
    world = deployment(settings, scheme)
    for seed, count in enumerate(counts, 1):
        world.produce(posts(seed, count))
    member = Member(world, settings, "one")
    run(world, member)
    member.end()
    return world.judged()


def check_folder(member: Member, *, strict: bool = True) -> set[str]:
    """After a clean end the folder holds whole snapshots, the files that they name, and nothing else."""
    store = member.index._store
    assert store is not None
    log_id = member.index._ids[0]
    named: set[str] = set()
    for snapshot in store.read(log_id):
        if not isinstance(snapshot, SnapshotReader):
            assert not strict, snapshot
            continue
        snapshot.ledger()
        named.update(file.name for file in snapshot.files)
    there = {name for name in store.storage.names() if not name.endswith(".snapshot")}
    assert there == named, there ^ named
    assert len(named) < 40
    return named
