"""A shard that is there and does not help: it reads nothing of the log, is slow, or is of another version. The index
goes on without it, and what comes out is what comes out without shards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from tests.crash.sharded_app import PATIENCE_S, Answering, App, files_at_once, settings_in
from tests.crash.test_crash_with_shards import check, judge_first
from tests.service.conftest import scheme as scheme
from tests.service.test_changed_settings import posts
from tests.shards.conftest import small_pieces
from tests.shards.holding_shards import count_taken
from twinsieve.pipeline.shards import shard
from twinsieve.pipeline.wire import frame
from twinsieve.stages.judge.scheme import Scheme

__all__ = ["small_pieces"]


@pytest.fixture
def app(scheme: Scheme, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_pieces: None) -> App:
    files_at_once(monkeypatch)
    return App(scheme, settings_in(str(tmp_path / "state")))


def check_equal(app: App, folder: Path, later: list[str]) -> None:
    """What came out is what one process lets out of the first posts and these."""
    alone = App(app.world.scheme, settings_in(str(folder), answers="none"))
    alone.judging("one")
    judge_first(alone)
    alone.world.produce(iter(later))
    alone.run()
    alone.end_all()
    check(app, alone.out())


def fed(app: App, texts: list[str]) -> float:
    """These come in, three a second; returns how long the last ones took to come out."""
    clock = app.world.clock
    for low in range(0, len(texts), 3):
        app.world.produce(iter(texts[low : low + 3]))
        app.turn(1.0)
    began_s = clock.monotonic_s()
    app.run()
    return clock.monotonic_s() - began_s


def test_a_shard_that_reads_nothing_is_waited_for_once(app: App, tmp_path: Path) -> None:
    index = app.judging("one")
    slow = app.shard("a")
    judge_first(app)
    assert slow.shard is not None
    reads = slow.shard._reader
    with patch.object(reads, "poll", lambda timeout_s, _: app.world.clock.sleep(timeout_s) or []):
        later = list(posts(2, 120))
        assert fed(app, later) < 1.0, "no block waits any more"
        assert index.index.late.keys() == {"a-shard"}
    check_equal(app, tmp_path / "alone", later)


def test_a_backlog_is_judged_as_fast_as_without_a_slow_shard(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard, "_POLLED", 1)
    app.judging("one")
    app.shard("a")
    judge_first(app)
    clock, later = app.world.clock, list(posts(2, 400))
    app.world.produce(iter(later))
    began_s = clock.monotonic_s()
    while not app.world.done():
        # It answers a block before the patience is over, and so, in the end, all of them.
        app.freeze("a", PATIENCE_S / 2)
        app.run(lambda: app.world.done() or not app.is_frozen("a"))
        app.step()
        assert clock.monotonic_s() - began_s < PATIENCE_S, "the index waits for each block"
    assert clock.monotonic_s() - began_s > 0.5, "it has waited"
    check_equal(app, tmp_path / "alone", later)


@contextmanager
def of_version(versions: dict[str, int]) -> Iterator[None]:
    """What a program reads and writes whose formats have these numbers, and the same form."""
    with ExitStack() as stack:
        for name, number in versions.items():
            stack.enter_context(patch.object(frame, name, number))
        yield


class Other(Answering):
    """A shard of a program with other versions of formats."""

    def __init__(self, versions: dict[str, int], *args: Any) -> None:
        self._versions = versions
        with of_version(versions):
            super().__init__(*args)

    def step(self) -> None:
        with of_version(self._versions):
            super().step()

    def finish(self) -> bool:
        with of_version(self._versions):
            return super().finish()


@pytest.mark.parametrize("by", [-1, 1], ids=["older", "newer"])
@pytest.mark.parametrize("name", ["VERSION", "SEGMENTS_VERSION"])
def test_a_shard_of_another_version_beside_the_index_changes_nothing(
    name: str, by: int, app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As while an app gets another version process by process."""
    taken = count_taken(monkeypatch)
    app.judging("one")
    other = Other({name: getattr(frame, name) + by}, app, app.settings, "old", lambda _: None)
    app.members["old"] = other
    judge_first(app)
    later = list(posts(2, 60))
    assert fed(app, later) < 1.0
    assert taken[0] == 0
    if name == "VERSION":
        assert other.shard is not None
        assert other.shard.remark.startswith("cannot read the log: ")
        assert any("does not say that it is there" in line for line in other.shard.notices)
    app.shard("a")
    app.turn(8.0)
    more = list(posts(3, 30))
    assert fed(app, more) < 1.0
    assert taken[0], "a shard of this version stands beside it"
    check_equal(app, tmp_path / "alone", later + more)
