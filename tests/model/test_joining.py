"""What an index reads and when it joins: nothing twice, and not before it could judge soon."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.driver import DECISIONS, Process, World
from tests.memory.consumer import MemoryConsumer
from tests.model.checker import check_settled
from tests.twins import HashSieve
from twinsieve.pipeline.index import follower as index_restore
from twinsieve.pipeline.saved import segment_writer
from twinsieve.stages.contract import Batch, Verdicts
from twinsieve.stages.window.segments import IntoFile, SealedSegment


def _judging(world: World) -> list[Process]:
    return [each for each in world.processes if each.running and each.index is not None and each.index.live]


def _busy_world(messages: int, slot: str = "b", **settings: Any) -> World:
    """A process that has judged `messages` messages, in blocks of one each."""
    world = World(partitions=1)
    world.start(slot, **settings)
    for number in range(messages):
        world.produce("in", 0, [b"text %d" % number])
        world.settle()
    return world


def test_a_warm_standby_reads_no_decision_twice_when_it_takes_over(monkeypatch: pytest.MonkeyPatch) -> None:
    world = _busy_world(5)
    world.start("c")
    for number in range(40):
        world.produce("in", 0, [b"more %d" % number])
        world.settle()
    world.run(20)
    decoded = []
    decode = index_restore.decode_ruling

    def counted(*args: Any) -> Any:
        decoded.append(args)
        return decode(*args)

    monkeypatch.setattr(index_restore, "decode_ruling", counted)
    world.processes[0].kill()
    world.produce("in", 0, [b"one more"])
    check_settled(world)
    assert _judging(world) == [world.processes[1]]
    assert len(decoded) <= 3, "the standby was up with all of them"


class _Slow(HashSieve):
    """Takes `row_s` for each row that it applies, by the clock of its world."""

    def __init__(self, world: World, row_s: float) -> None:
        super().__init__()
        self._world, self._row_s = world, row_s

    def apply(self, batch: Batch, verdicts: Verdicts) -> None:
        self._world.clock.sleep(self._row_s * len(batch))
        super().apply(batch, verdicts)


def _newcomer(world: World, slot: str, row_s: float = 0.05, **more: Any) -> Process:
    """A process that applies the decisions on twenty messages a second."""
    return world.start(slot, sieve=lambda: _Slow(world, row_s), **more)


def _left(judge: Process, newcomer: Process) -> int:
    """Messages that one has judged and the other has not applied."""
    return _kept(judge) - _kept(newcomer)


def _kept(process: Process) -> int:
    if process.index is None:
        return 0
    sieve = process.index.state.sieve
    assert isinstance(sieve, HashSieve)
    return len(sieve.kept)


@pytest.mark.parametrize(
    ("judges", "joins", "restores"),
    [("b", "a", True), ("m", "a", False), ("a", "0new", False), ("a", "z", False)],
)
def test_who_judges_keeps_the_log_until_a_newcomer_could_judge_within_a_second(
    judges: str, joins: str, restores: bool, tmp_path: Path
) -> None:
    world = _busy_world(60, judges, snapshots=str(tmp_path / judges))
    old = world.processes[0]
    world.run(30)
    if restores:
        shutil.copytree(tmp_path / judges, tmp_path / joins)
    for number in range(200):
        world.produce("in", 0, [b"later %d" % number])
        world.settle()
    newcomer = _newcomer(world, joins, snapshots=str(tmp_path / joins))
    left = []
    while newcomer.index is None or newcomer.index._consumer is None:
        left.append(_left(old, newcomer))
        assert _judging(world) == [old]
        assert newcomer.index is None or not newcomer.index.ready
        world.run(1)
    assert left == sorted(left, reverse=True)
    assert left[min(1, len(left) - 1)] > 100
    assert left[-1] <= 20, "twenty are a second's worth"
    world.run(30)
    assert _judging(world) == [newcomer if joins < judges else old]
    world.produce("in", 0, [b"text 3", b"new"])
    check_settled(world)


def test_without_an_index_that_judges_a_newcomer_catches_up_before_it_does() -> None:
    world = _busy_world(200)
    world.kill_all()
    newcomer = _newcomer(world, "a")
    world.produce("in", 0, [b"text 3", b"new"])
    check_settled(world)
    assert _judging(world) == [newcomer]


class _Sealing(HashSieve):
    """Has a full segment, which goes into a file, once it has applied something."""

    _write: IntoFile | None = None

    def seal_into(self, write: IntoFile | None) -> None:
        self._write = write

    def apply(self, batch: Batch, verdicts: Verdicts) -> None:
        super().apply(batch, verdicts)
        write, self._write = self._write, None
        if write is not None:
            write(SealedSegment(0, 1, 1, {}))


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Event]:
    """A disk that writes no segment before this is set, and then none."""
    is_back = Event()

    def write(*_: object) -> None:
        assert is_back.wait(60.0)
        raise OSError

    monkeypatch.setattr(segment_writer, "written_segment", write)
    yield is_back
    is_back.set()


def _waiting_for_a_segment(place: Path) -> tuple[World, Process]:
    """A process that judges, and one with an earlier name that has applied all, but a full segment is in no
    file."""
    world = _busy_world(20)
    newcomer = world.start("a", sieve=_Sealing, snapshots=str(place))
    world.run(10)
    assert _left(world.processes[0], newcomer) == 0
    assert _judging(world) == [world.processes[0]]
    return world, newcomer


def test_a_newcomer_leaves_the_log_to_who_judges_until_its_full_segments_are_in_files(
    tmp_path: Path, disk: Event
) -> None:
    world, newcomer = _waiting_for_a_segment(tmp_path)
    disk.set()
    assert newcomer.index is not None
    assert newcomer.index._journal is not None
    newcomer.index._journal.segments.wait()
    world.run(10)
    assert _judging(world) == [newcomer]


def test_a_newcomer_that_comes_no_closer_joins_after_three_patiences_and_says_so(
    tmp_path: Path, disk: Event
) -> None:
    world, newcomer = _waiting_for_a_segment(tmp_path)
    world.clock.sleep(newcomer.index_config.join_s)
    world.run(10)
    assert not disk.is_set()
    assert _judging(world) == [newcomer]
    assert newcomer.index is not None
    assert any("joins its group although it is not warm" in line for line in newcomer.index.notices)


def test_a_live_index_reads_on_from_where_it_was_after_a_rebalance() -> None:
    world = _busy_world(80)
    assert world.processes[0].index is not None
    at = world.processes[0].index.follower.decisions_at
    assert at > world.cluster.log(DECISIONS).end / 2
    world.start("a")
    world.produce("in", 0, [b"text 3", b"new"])
    check_settled(world)


def test_an_index_that_is_still_joining_does_not_stand_by(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryConsumer, "_heartbeat", lambda _: False)
    world = World(partitions=1)
    joining = world.start("a", roles="index")
    world.run(10)
    assert joining.index is not None
    assert joining.index._consumer is not None
    assert not joining.index.ready
    monkeypatch.undo()
    world.run(10)
    assert joining.index.live
