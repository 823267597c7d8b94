"""A snapshot that is read for minutes: alive while bytes arrive, dead when none do, and the page says how far."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pytest
from fsspec.implementations.local import LocalFileSystem

from tests.memory.broker import MemoryBroker
from tests.service.test_changed_settings import base, posts
from tests.service.turned import Turned
from tests.stored import hash_sieves, snapshots_at
from tests.twins import AtOnce, FrozenHashes, HashSieve, Later
from twinsieve.pipeline.broker.ports import Hook
from twinsieve.pipeline.index.index import Index
from twinsieve.pipeline.index.transaction import Pace
from twinsieve.pipeline.saved import Moved, Watch, no_watch
from twinsieve.pipeline.service.build import Builder
from twinsieve.pipeline.settings.model import Settings
from twinsieve.stages.judge.frozen import SavedParts
from twinsieve.stages.judge.scheme import Scheme

_PIECE = 64 << 10
_PIECES = 256
_WHOLE_S = 570.0
"""What 16,000,000 kept messages (5.7 GB) take at 10 MB a second."""


class Bulky(HashSieve):
    """Its state is large, and is read and written piece by piece."""

    def freeze(self, _have: Collection[str] = ()) -> FrozenHashes:
        random = np.random.default_rng(0).integers(0, 256, _PIECE * _PIECES, dtype=np.uint8)
        return replace(super().freeze(), parts={"bulk-0": lambda: {"bytes": random}})

    def load(self, stream: BinaryIO, files: SavedParts | None = None) -> HashSieve:
        assert files is not None
        assert files.sections("bulk-0")["bytes"].nbytes == _PIECE * _PIECES
        return super().load(stream)


class BulkyBuilder(Builder):
    """Makes indexes of that sieve."""

    def index(self, hook: Hook, watch: Watch = no_watch, pace: Pace | None = None) -> Index:
        broker = self.connect(self.settings)
        store = snapshots_at(self.settings.state.dir, self.settings.app)
        background: Executor = self.background
        return Index(
            broker, self.clock, self.index_config(), hash_sieves(Bulky), store, background, hook, watch, pace
        )


class Slow:
    """A store whose reads take their time by the clock; `looks` is called for each second of that.

    hangs_s: a pause in the midst, in which no byte comes
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, clock_sleep: Callable[[float], None]) -> None:
        self._sleep = clock_sleep
        self.hangs_s = 0.0
        self.came = 0
        self.looks: Callable[[], None] = lambda: None
        plain = LocalFileSystem.open

        def opened(files: LocalFileSystem, path: str, mode: str) -> object:
            stream = plain(files, path, mode)
            if "r" in mode and not path.endswith(".snapshot"):
                read, size = stream.read, os.path.getsize(path)
                stream.read = lambda count=-1: self._read(read, count, size)
            return stream

        monkeypatch.setattr(LocalFileSystem, "open", opened)

    def _read(self, read: Callable[[int], bytes], count: int, size: int) -> bytes:
        data = read(count)
        if self.came < size // 2 <= self.came + len(data):
            self._pass(self.hangs_s)
        self.came += len(data)
        self._pass(len(data) / size * _WHOLE_S)
        return data

    def _pass(self, seconds: float) -> None:
        while seconds > 0:
            self._sleep(min(1.0, seconds))
            seconds -= 1.0
            self.looks()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return base(str(tmp_path / "state"))


def _judged(settings: Settings, scheme: Scheme) -> Turned:
    """A process that has judged, and stopped with a large last snapshot."""
    first = _process(settings, scheme)
    first.world.produce(posts(1, 9))
    first.run_until(first.world.done, 30.0)
    for loop in first.loops:
        loop.stop()
        loop.run()
    first.clock.sleep(20.0)
    return first


def _process(
    settings: Settings, scheme: Scheme, before: Turned | None = None, background: Executor | None = None
) -> Turned:
    made = Turned(settings, scheme, world=before.world if before else None)
    made.index._builder = BulkyBuilder(
        settings,
        scheme,
        made.clock,
        lambda _: MemoryBroker(made.world.cluster),
        "one",
        emit=True,
        background=background or AtOnce(),
        queries=Later(),
    )
    return made


def test_a_snapshot_that_is_read_for_minutes_is_told_and_healthy(
    settings: Settings, scheme: Scheme, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "twinsieve")
    first = _judged(settings, scheme)
    roles = _process(settings, scheme, first)
    slow = Slow(monkeypatch, roles.clock.sleep)
    (bulk,) = Path(settings.state.dir).glob("t/bulk-*.part")
    size = bulk.stat().st_size
    seen: list[tuple[float | None, ...]] = []

    def look() -> None:
        roles.index.log_silence()
        assert roles.index.alive
        assert not roles.index.ready
        if len(seen) % 10:
            seen.append(seen[-1])
            return
        page = roles.page()
        assert page["index_phase"][("restoring",)] == 1
        assert page["index_live"] == {(): 0.0}
        assert "index_lag_blocks" not in page
        seen.append(tuple(page.get(name, {}).get(()) for name in ("restored_bytes", "restore_bytes")))

    slow.looks = look
    caplog.clear()
    began_s = roles.clock.monotonic_s()
    roles.turn(1)
    took_s = roles.clock.monotonic_s() - began_s
    assert _WHOLE_S <= took_s <= 1.02 * _WHOLE_S, "it is read once"
    told = [(done, of) for done, of in seen if done is not None]
    assert {of for _, of in told} == {size}
    assert told == sorted(told)
    assert len({done for done, _ in told}) > 40
    lines = [line for line in caplog.messages if "index: reading a snapshot, byte " in line]
    assert 35 <= len(lines) <= 58, "every ten seconds"
    assert f" of {size}, " in lines[30]
    assert lines[30].endswith(" left")
    assert not any("no broker" in line for line in caplog.messages), "nobody was asked meanwhile"
    slow.looks = lambda: None
    roles.run_until(lambda: roles.ready and roles.value("index_live") == 1, 60.0)
    page = roles.page()
    assert "restore_bytes" not in page
    assert "restored_bytes" not in page


def test_a_store_that_sends_no_byte_for_two_minutes_is_dead_until_it_does(
    settings: Settings, scheme: Scheme, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = _judged(settings, scheme)
    roles = _process(settings, scheme, first)
    slow = Slow(monkeypatch, roles.clock.sleep)
    slow.hangs_s = 150.0
    began_ms = roles.clock.now_ms()
    seen: list[bool] = []
    at_s: list[float] = []

    def look() -> None:
        seen.append(roles.index.alive)
        at_s.append((roles.clock.now_ms() - began_ms) / 1000)

    slow.looks = look
    roles.turn(1)
    # By the clock: a read of a few bytes takes a look too, and hardly any time.
    dead_s = at_s[seen.index(False)]
    assert 250 <= dead_s - 120 <= 320, "two minutes behind the last byte, which is one from the middle"
    assert 30 <= seen.count(False) <= 40
    assert all(seen[-200:])


def test_a_last_snapshot_that_is_written_for_minutes_is_healthy(
    settings: Settings, scheme: Scheme, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "twinsieve")
    roles = _process(settings, scheme, background=Later(1_000))
    roles.world.produce(posts(1, 9))
    roles.run_until(roles.world.done, 30.0)
    seen: list[bool] = []

    def write(self: FrozenHashes, stream: BinaryIO) -> None:
        for _ in range(50):
            roles.clock.sleep(5.0)
            seen.append(roles.index.alive)
            stream.write(b"piece")

    monkeypatch.setattr(FrozenHashes, "write", write)
    roles.index.stop()
    roles.index.run()
    assert len(seen) == 50
    assert all(seen)
    assert any("index: writing a snapshot, byte " in line for line in caplog.messages)
    assert any("index: snapshot stored at block" in line for line in caplog.messages)


def test_filling_the_sieve_may_take_a_while_and_a_missing_byte_may_not(
    settings: Settings, scheme: Scheme
) -> None:
    roles = _process(settings, scheme)
    gib = 1 << 30
    for done, alive_s in ((5 * gib, 119.0), (6 * gib, 470.0)):
        roles.index._moved(Moved("reading", done, 6 * gib))
        roles.clock.sleep(alive_s)
        assert roles.index.alive
        roles.clock.sleep(20.0)
        assert not roles.index.alive


def test_a_snapshot_that_takes_no_time_has_no_line_of_progress(
    settings: Settings, scheme: Scheme, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "twinsieve")
    roles = _process(settings, scheme, background=Later(1_000))
    roles.world.produce(posts(1, 9))
    roles.run_until(roles.world.done, 30.0)
    caplog.clear()
    roles.index.stop()
    roles.index.run()
    lines = [line for line in caplog.messages if "snapshot" in line]
    assert lines
    assert all(line.startswith("index: snapshot stored at block") for line in lines)
