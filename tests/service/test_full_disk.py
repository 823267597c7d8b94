"""A disk that takes no segments: judging goes on while memory lasts, then pauses, or another process judges."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.memory.broker import MemoryBroker
from tests.service.conftest import scheme as scheme
from tests.service.stepped import unlike
from tests.service.test_changed_settings import base, with_section
from tests.service.turned import Turned
from tests.twins import AtOnce
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.operate.status import status_of
from twinsieve.pipeline.saved import segment_files, segment_writer, tries
from twinsieve.pipeline.saved.storage import Storage
from twinsieve.pipeline.service import build
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.settings.stage_config import sieve_config
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.scheme import Scheme

GROUP = Names("t").index
SEGMENT, WINDOW = 20, 400
ALLOWED = 5
"""Segments that `state.memory` has room for, and then some."""


class Immediate(AtOnce):
    """A thread that writes segments, and is done when the step goes on."""

    def __init__(self, name: str) -> None:
        """name: as for `DaemonExecutor`"""


class Disks:
    """Folders that refuse files of segments: those of the processes in `full`."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.full = set[str]()
        self.tried = 0
        self._folder = folder
        monkeypatch.setattr(segment_files, "DaemonExecutor", Immediate)
        monkeypatch.setattr(segment_writer, "DaemonExecutor", Immediate)
        monkeypatch.setattr(build, "spare_bytes", lambda: None)
        plain = Storage.create

        def create(storage: Storage, name: str) -> Any:
            if name.startswith("segment-") and any(f"/{each}/" in storage.address for each in self.full):
                self.tried += 1
                raise OSError(28, os.strerror(28))
            return plain(storage, name)

        monkeypatch.setattr(Storage, "create", create)

    def settings(self, name: str) -> Settings:
        """Those of a process whose disk has this name."""
        (self._folder / name).mkdir(exist_ok=True)
        settings = base(str(self._folder / name))
        settings = with_section(settings, "exact", method="none")
        window = settings.near.window.model_copy(update={"messages": WINDOW})
        settings = with_section(settings, "near", segment=SEGMENT, window=window)
        opened = BatchSieve(sieve_config(settings, "")).near.segments.open.bytes_used
        return with_section(settings, "state", memory=ALLOWED * opened * 5 // 4, snapshot_every_ms=60_000)


@pytest.fixture
def disks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disks:
    return Disks(tmp_path, monkeypatch)


@pytest.fixture
def start(
    disks: Disks, scheme: Scheme, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str, Turned | None], Turned]:
    """Makes a process of this name with its own disk, beside one that is there, or the first one."""

    def made(name: str, first: Turned | None) -> Turned:
        world = None if first is None else first.world
        process = Turned(disks.settings(name), scheme, name=name, world=world)
        if first is None:
            monkeypatch.setattr(tries, "monotonic", process.clock.monotonic_s)
        else:
            process.loops = [process.index]
        return process

    return made


Start = Callable[[str, "Turned | None"], Turned]


def run(processes: Sequence[Turned], seconds: float, holds: Callable[[], bool] = lambda: False) -> bool:
    clock = processes[0].clock
    end_s = clock.monotonic_s() + seconds
    while clock.monotonic_s() < end_s and not holds():
        for each in processes:
            each.turn(1)
        clock.sleep(0.1)
    return holds()


def feed(processes: Sequence[Turned], begin: int, count: int) -> int:
    """Write posts that are unlike each other, a few at a time; returns how many came out before they did not."""
    world = processes[0].world
    for number in range(begin, begin + count, 10):
        world.produce([unlike(each) for each in range(number, number + 10)])
        if not run(processes, 20.0, world.done):
            return number - begin
    return count


def sieve_of(process: Turned) -> Any:
    index = process.index._index
    assert index is not None
    return index.state.sieve


def in_memory(process: Turned) -> int:
    """Sealed segments that are in no file."""
    return sum(not each.is_mapped for each in sieve_of(process).near.segments.sealed)


def members(process: Turned) -> list[str | None]:
    return [each.instance for each in process.world.cluster.group(GROUP).members.values()]


def test_judging_pauses_where_one_more_segment_would_not_fit_and_goes_on_when_the_disk_has_room(
    disks: Disks, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "twinsieve")
    disks.full.add("a")
    one = start("a", None)
    memory = disks.settings("a").state.memory
    assert memory is not None
    came = feed([one], 0, WINDOW)
    assert 2 * SEGMENT < came < WINDOW, "more than one segment, and not the whole window"
    held = sieve_of(one).in_memory()
    assert held.bytes <= memory < held.bytes + held.next_bytes
    assert one.value("window_unwritten_segments") == in_memory(one) == held.sealed >= 3
    assert one.value("index_paused_by_disk") == 1
    assert one.value("index_live") == 1
    assert one.value("segment_failures_total") == 1
    run([one], 300.0)
    assert disks.tried <= 3 + one.clock.monotonic_s() / 60, "once a minute"
    assert in_memory(one) == held.sealed
    assert not one.index.ready
    assert one.index.alive
    assert "retention" in one.index.why_not_ready
    assert len([line for line in caplog.messages if "index: paused" in line]) == 1
    status = status_of(disks.settings("a"), MemoryBroker(one.world.cluster), one.world.clock)
    assert any("its disk is full" in line for line in status.problems(None))
    disks.full.clear()
    assert run([one], 120.0, one.world.done), "what waited comes out"
    assert feed([one], 1_000, 3 * SEGMENT) == 3 * SEGMENT
    run([one], 30.0)
    assert in_memory(one) == 0
    assert one.value("window_unwritten_segments") == one.value("index_paused_by_disk") == 0
    assert one.index.ready
    status = status_of(disks.settings("a"), MemoryBroker(one.world.cluster), one.world.clock)
    assert status.paused_ms is None


def test_one_that_pauses_hands_over_to_a_standby_whose_disk_has_room(disks: Disks, start: Start) -> None:
    disks.full.add("a")
    one = start("a", None)
    run([one], 10.0)
    two = start("b", one)
    run([one, two], 20.0)
    assert (one.value("index_live"), two.value("index_live")) == (1, 0)
    assert feed([one, two], 0, WINDOW) == WINDOW
    run([one, two], 10.0)
    assert (one.value("index_live"), two.value("index_live")) == (0, 1)
    assert members(two) == ["b-index"]
    bound = disks.settings("a").state.memory
    assert bound is not None
    held = sieve_of(one).in_memory()
    assert held.bytes <= bound + held.next_bytes, "it follows only as far as there is memory"
    assert two.index.ready
    disks.full.clear()
    assert run([one, two], 200.0, lambda: len(members(two)) == 2), "it comes back when its disk has room"
    assert feed([one, two], 1_000, 2 * SEGMENT) == 2 * SEGMENT


def test_nobody_hands_over_to_one_whose_disk_is_full_too(disks: Disks, start: Start) -> None:
    disks.full |= {"a", "b"}
    one = start("a", None)
    run([one], 10.0)
    two = start("b", one)
    run([one, two], 20.0)
    assert len(members(one)) == 2
    came = feed([one, two], 0, WINDOW)
    assert came < WINDOW
    turned = one.value("rebalances_total", "index")
    run([one, two], 200.0)
    assert members(one) == ["a-index"], "the standby has left"
    assert one.value("rebalances_total", "index") == turned, "nothing moves while both wait"
    assert one.value("index_paused_by_disk") == 1
    disks.full.discard("b")
    assert run([one, two], 200.0, one.world.done), "the one whose disk has room takes over"
    assert two.value("index_live") == 1
