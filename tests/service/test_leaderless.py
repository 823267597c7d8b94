"""The worker's loop at full pace while one of its input partitions has no leader."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from tests.driver import OUTPUT, WORKER, World
from tests.memory.clients import MemoryReader
from twinsieve.pipeline.broker.records import AbortableError, Partition
from twinsieve.pipeline.service.build import Builder
from twinsieve.pipeline.service.metrics import Metrics
from twinsieve.pipeline.service.probe_limits import ALIVE_S
from twinsieve.pipeline.service.worker_loop import WorkerLoop
from twinsieve.pipeline.worker.worker import Worker

_RATE = 8
_SPELL_S = 60.0
_STEP_S = 0.25
"""So long each turn takes besides what it waits for."""
_DEAD = Partition("in", 2)


class _Builder:
    """Hands the loop the worker that the world has made."""

    alive_s = ALIVE_S
    job = "seed"  # compares no settings with those of the index

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def worker(self, _: object) -> Worker:
        return self._worker


class Spells:
    """A worker under its loop and an index; input comes on in[0] and in[1]."""

    def __init__(self) -> None:
        self.world = World(partitions=3)
        self.world.cluster.session_timeout_s = self.world.cluster.transaction_timeout_s = 1e9
        self.index = self.world.start("i", roles="index")
        process = self.world.start(
            "w", roles="worker", worker_config=replace(WORKER, poll_messages=500, max_pending=5_000)
        )
        self.world.settle()
        assert process.worker is not None
        self.metrics = Metrics(self.world.clock)
        builder = cast("Builder", _Builder(process.worker))
        self.loop = WorkerLoop(builder, self.world.clock, self.metrics)
        self.loop._stop.wait = self.world.clock.sleep  # type: ignore[assignment,method-assign]
        self._made = 0

    def run(self) -> tuple[int, int, int]:
        """One spell: turns of the loop, messages produced, messages that came out."""
        clock = self.world.clock
        began_s, before, first, turns = clock.monotonic_s(), self.out(), self._made, 0
        while clock.monotonic_s() - began_s < _SPELL_S:
            due = int((clock.monotonic_s() - began_s) * _RATE) - (self._made - first)
            for _ in range(due):
                self.world.produce("in", self._made % 2, [b"message %d" % self._made])
                self._made += 1
            self.loop._turn()
            turns += 1
            self.index.step(0.0)
            clock.sleep(_STEP_S)
        return turns, self._made - first, self.out() - before

    def out(self) -> int:
        return sum(len(self.world.cluster.values(OUTPUT, number)) for number in range(3))


def test_a_partition_without_a_leader_costs_the_others_nothing() -> None:
    spells = Spells()
    calm_turns, _, calm_out = spells.run()
    spells.world.cluster.faults.leaderless.add(_DEAD)
    turns, made, out = spells.run()
    assert calm_out > 0
    assert out > 0.95 * made
    assert turns > 0.95 * calm_turns


def test_a_partition_without_a_known_end_costs_ever_fewer_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its topic's description names a leader; a question about offsets waits ten seconds for nothing."""
    spells = Spells()
    calm_turns, _, _ = spells.run()
    waited: list[float] = []
    ask = MemoryReader.end_offsets

    def asked(self: MemoryReader, partitions: set[Partition]) -> dict[Partition, int]:
        if _DEAD in partitions:
            waited.append(spells.world.clock.monotonic_s())
            spells.world.clock.sleep(10.0)
            raise AbortableError("end_offsets: no answer")
        return ask(self, partitions)

    monkeypatch.setattr(MemoryReader, "end_offsets", asked)
    produced = came = 0
    turns = 0
    for _ in range(5):
        turns, made, out = spells.run()
        produced, came = produced + made, came + out
    assert len(waited) == 4, "together, alone, and then after one minute and two"
    assert came > 0.95 * produced
    assert turns > 0.95 * calm_turns
