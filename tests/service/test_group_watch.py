"""A worker logs who joins and leaves its group, and warns where somebody does so again and again."""

from __future__ import annotations

import logging

import pytest

from tests.memory.broker import ManualClock
from twinsieve.pipeline.service.group_watch import GroupWatch


@pytest.fixture
def clock(caplog: pytest.LogCaptureFixture) -> ManualClock:
    caplog.set_level(logging.INFO)
    return ManualClock()


def _warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


def test_a_member_that_leaves_is_named(clock: ManualClock, caplog: pytest.LogCaptureFixture) -> None:
    watch = GroupWatch(clock)
    watch.rebalanced(1)
    watch.look({"a-worker", "b-worker"}, 2)
    assert not caplog.records, "who is there at the start has not joined"
    watch.rebalanced(1)
    assert watch.is_due
    watch.look({"a-worker"}, 4)
    assert not watch.is_due
    (said,) = caplog.messages
    assert "b-worker left" in said
    assert "a-worker" not in said


def test_who_joins_and_leaves_again_and_again_is_warned_of_once(
    clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    watch = GroupWatch(clock)
    watch.look({"a-worker"}, 4)
    for _ in range(30):
        for members in ({"a-worker", "b-worker"}, {"a-worker"}):
            clock.sleep(5.0)
            watch.rebalanced(1)
            watch.look(members, 4)
    (said,) = _warnings(caplog)
    assert "b-worker" in said
    assert "a-worker" not in said


def test_a_rolling_restart_now_and_then_is_no_warning(
    clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    watch = GroupWatch(clock)
    watch.look({"a-worker", "b-worker"}, 2)
    for _ in range(30):
        for members in ({"a-worker"}, {"a-worker", "b-worker"}):
            clock.sleep(60.0)
            watch.rebalanced(1)
            watch.look(members, 2)
    assert not _warnings(caplog)
