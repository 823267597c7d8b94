"""The index says in which segments it looks up itself, for which shards, and since when: on /readyz, in a metric, in
`status` and in the log."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.crash.sharded_app import ANSWERS, PATIENCE_S, settings_in
from tests.memory.broker import MemoryBroker
from tests.service.conftest import scheme as scheme
from tests.service.test_changed_settings import posts
from tests.service.turned import Turned
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.index.ends import NOT_ALONE
from twinsieve.pipeline.index.segment_waits import SegmentWaits
from twinsieve.pipeline.operate.status import status_of
from twinsieve.pipeline.service.metrics import Metrics
from twinsieve.pipeline.service.run import Status
from twinsieve.pipeline.settings.model import Settings
from twinsieve.stages.judge.scheme import Scheme
from twinsieve.stages.window.segments import SegmentId

QUIET_S = 66.0
"""Longer than the time between two warnings, and until the next query."""
QUERY_S = 6.0
"""Longer than the time between two queries."""


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> set[tuple[int, int]]:
    """The segments that shards answer for."""
    said = set[tuple[int, int]]()
    monkeypatch.setattr(SegmentWaits, "is_answered", lambda _, segment: (segment.first, segment.end) in said)
    return said


def shown(settings: Settings, scheme: Scheme) -> tuple[Turned, Status]:
    """A process whose index has judged and has heard all shards that are there, and its status page."""
    roles = Turned(settings, scheme)
    status = Status(Metrics(roles.clock), "localhost:9092")
    status.runs([roles.index])
    roles.world.produce(posts(1, 110))
    roles.run_until(roles.world.done, 60.0)
    roles.run(PATIENCE_S + QUERY_S)
    return roles, status


def test_it_says_which_segments_and_since_when(
    tmp_path: Path, scheme: Scheme, answered: set[tuple[int, int]], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "twinsieve")
    settings = settings_in(str(tmp_path))
    roles, status = shown(settings, scheme)

    def sealed() -> list[SegmentId]:
        index = roles.index._index
        assert index is not None
        return index._sealed

    def lines() -> list[str]:
        return [line for line in caplog.messages if "no shard answers" in line]

    def said() -> dict[str, int]:
        """Seconds by segment."""
        return {at: int(seconds) for at, seconds in re.findall(r"(\d+ to \d+) for (\d+) s", status.remark())}

    first, second, *others = [f"{one.first} to {one.end}" for one in sealed()]
    assert len(others) >= 2
    assert f"no shard answers for {len(sealed())} segments ({first} for " in status.remark()
    assert len(lines()) == 1
    assert f"({first} for 0 s, {second} for 0 s" in lines()[0]
    answered.update((one.first, one.end) for one in sealed()[1:])
    roles.run(QUIET_S)
    assert list(said()) == [first]
    assert said()[first] >= 60
    assert roles.value("index_unanswered_segments") == 1
    assert len(lines()) == 2, "the segments have changed"
    answered.discard((sealed()[1].first, sealed()[1].end))
    roles.run(QUERY_S)
    assert list(said()) == [first, second]
    assert said()[first] > 60 > said()[second]
    assert status.why_not_ready() == ""
    now_ms = roles.world.clock.now_ms()
    shards = status_of(settings, MemoryBroker(roles.world.cluster), roles.world.clock).shards
    assert shards is not None
    assert shards.alone.count == 2
    assert [f"{one.first} to {one.end}" for one in shards.alone.segments] == [first, second]
    ages_s = [(now_ms - one.since_ms) / 1000 for one in shards.alone.segments]
    assert ages_s[0] > 60 > ages_s[1] >= 0
    for _ in range(5):
        answered ^= {(sealed()[2].first, sealed()[2].end)}
        roles.run(QUERY_S)
    assert len(lines()) == 2, "however often they change"
    answered.update((one.first, one.end) for one in sealed())
    roles.run(QUERY_S)
    assert status.remark() == ""
    shards = status_of(settings, MemoryBroker(roles.world.cluster), roles.world.clock).shards
    assert shards is not None
    assert shards.alone == NOT_ALONE
    assert "index: shards answer for all segments" in caplog.messages


def test_an_index_that_takes_over_hears_its_shards_first(
    tmp_path: Path, scheme: Scheme, answered: set[tuple[int, int]], caplog: pytest.LogCaptureFixture
) -> None:
    settings = settings_in(str(tmp_path))
    roles = Turned(settings, scheme)
    roles.world.produce(posts(1, 110))
    roles.run_until(roles.world.done, 60.0)
    roles.run(1.0)
    roles.index._finish()
    caplog.clear()
    successor = Turned(settings, scheme, world=roles.world, name="two")
    successor.loops = [successor.index]

    def is_live() -> bool:
        index = successor.index._index
        return index is not None and index.live and bool(index._sealed)

    successor.run_until(is_live, 60.0)
    successor.run(PATIENCE_S - 1)
    index = successor.index._index
    assert index is not None
    assert successor.index.remark == ""
    assert successor.value("index_unanswered_segments") is None
    answered.update((one.first, one.end) for one in index._sealed[:-1])
    successor.run(1.0 + QUERY_S)
    assert successor.value("index_unanswered_segments") == 1
    assert [line for line in caplog.messages if "no shard answers for 1 segments" in line]


def test_a_topic_of_answers_that_is_gone_is_named_once_a_minute_until_it_is_back(
    tmp_path: Path, scheme: Scheme, caplog: pytest.LogCaptureFixture
) -> None:
    settings = settings_in(str(tmp_path))
    roles = Turned(settings, scheme)
    roles.world.produce(posts(1, 110))
    roles.run_until(roles.world.done, 60.0)
    roles.run(PATIENCE_S + QUERY_S)
    index = roles.index._index
    roles.world.cluster.delete(ANSWERS)
    caplog.clear()
    roles.run(3 * QUIET_S)
    lines = [line for line in caplog.messages if ANSWERS in line]
    assert 2 <= len(lines) <= 4
    assert f"{ANSWERS}: does not exist" in roles.index.remark
    assert roles.ready
    assert roles.index._index is index, "it has not restored"
    roles.world.cluster.create(NewTopic(ANSWERS, 4))
    roles.run(QUIET_S)
    caplog.clear()
    roles.run(QUIET_S)
    assert ANSWERS not in roles.index.remark
    assert not [line for line in caplog.messages if ANSWERS in line]


def test_it_names_the_shards_that_are_late_once_a_minute(
    tmp_path: Path, scheme: Scheme, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "twinsieve")
    late: dict[SegmentId, str] = {}
    monkeypatch.setattr(SegmentWaits, "late", lambda *_: late)
    settings = settings_in(str(tmp_path))
    roles, status = shown(settings, scheme)
    index = roles.index._index
    assert index is not None
    late |= dict.fromkeys(index._sealed[:2], "host-2-shard") | {index._sealed[2]: "h" * 300 + "\x1b-shard"}

    def lines() -> list[str]:
        return [line for line in caplog.messages if "answer too late" in line]

    roles.run(QUERY_S)
    assert "host-2-shard for 2 segments for " in status.remark()
    assert "hhhh for 1 segments" in status.remark()
    assert len(index.unanswered or ()) == len(index._sealed) - 3, "somebody is there for the others"
    assert roles.value("index_late_segments", "host-2-shard") == 2
    assert len(lines()) == 1
    roles.run(3 * QUIET_S)
    assert 3 <= len(lines()) <= 4
    shards = status_of(settings, MemoryBroker(roles.world.cluster), roles.world.clock).shards
    assert shards is not None
    assert [(one.shard[:12], one.segments) for one in shards.alone.late] == [
        ("host-2-shard", 2),
        (12 * "h", 1),
    ]
    assert roles.world.clock.now_ms() - shards.alone.late[0].since_ms > 180_000
    late.clear()
    roles.run(QUERY_S)
    assert status.remark().count("too late") == 0
    assert caplog.messages[-1] == "index: no shard is late any more"
