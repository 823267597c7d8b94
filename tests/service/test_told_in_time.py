"""What goes wrong is said by page, metric and log within 30 s of its first failure, and no longer than 30 s
behind the first success. Meanwhile nothing that works is taken for dead."""

from __future__ import annotations

import errno
import logging
import os
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import BinaryIO

import pytest

from tests.memory.broker import ManualClock
from tests.service.test_changed_settings import base, posts, with_section
from tests.service.turned import Turned
from tests.stored import journal_at, snapshots_at
from tests.twins import AtOnce, HashSieve
from twinsieve.pipeline.broker.records import AbortableError
from twinsieve.pipeline.index.snapshot_writer import SnapshotWriter
from twinsieve.pipeline.index.state import IndexState
from twinsieve.pipeline.saved import storage
from twinsieve.pipeline.settings.model import Settings
from twinsieve.stages.errors import StateError
from twinsieve.stages.judge.scheme import Scheme

TOLD_S = 30.0
EVERY_S = 12.0


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return with_section(base(str(tmp_path / "state")), "state", snapshot_every_ms=round(EVERY_S * 1000))


def _traffic(roles: Turned, seconds: float) -> None:
    """Three posts a second."""
    seeds = iter(range(10_000))
    roles.run(seconds, lambda: roles.world.produce(posts(next(seeds), 3)))


def _settled(settings: Settings, scheme: Scheme, hook: Callable[[str], None] | None = None) -> Turned:
    made = Turned(settings, scheme, **({} if hook is None else {"hook": hook}))
    made.world.produce(posts(1, 9))
    made.run_until(lambda: made.world.done() and made.ready, 30.0)
    made.run(6.0)
    assert {("0", "posts")} == made.page()["lag_messages"].keys()
    assert made.value("index_lag_blocks") == 0
    return made


class Disk:
    """Where snapshots go; full as long as it is told so: the first bytes of a file fit, the rest does not."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.full = False
        plain = storage.private_file

        def made(path: str) -> BinaryIO:
            file = plain(path)
            if not self.full:
                return file
            with file:
                file.write(b"some")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(storage, "private_file", made)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def test_snapshots_that_fail_are_told_and_tried_again_until_they_succeed(
    settings: Settings, scheme: Scheme, disk: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "twinsieve")
    disk.full = True
    roles = Turned(settings, scheme)
    _traffic(roles, EVERY_S + TOLD_S)
    assert (roles.value("snapshot_failures_total") or 0) >= 1
    assert len([line for line in caplog.messages if "snapshot cannot be written" in line]) == 1
    _traffic(roles, 258.0)
    failures = roles.value("snapshot_failures_total") or 0
    assert failures >= 4, "tried again within a minute each time"
    assert (roles.value("snapshot_age_seconds") or 0) > 280.0
    assert roles.value("snapshot_last_success_timestamp_seconds") is None
    assert len([line for line in caplog.messages if "snapshot cannot be written" in line]) == 1, "not a flood"
    assert roles.ready, "the index goes on"
    assert roles.alive
    disk.full = False
    _traffic(roles, 60.0)
    assert (roles.value("snapshot_age_seconds") or 0) < EVERY_S + 5.0
    stored_s = roles.value("snapshot_last_success_timestamp_seconds")
    assert stored_s is not None
    assert roles.clock.now_ms() / 1000 - 60.0 <= stored_s <= roles.clock.now_ms() / 1000
    # What the full disk did not take is missing between the pieces, so the index restores once: it has all of the log.
    assert roles.value("snapshot_failures_total") == failures + 1
    assert (
        len([line for line in caplog.messages if "restoring from the last snapshot and the log" in line]) == 1
    )
    assert [line for line in caplog.messages if "snapshot stored at block" in line]


def test_snapshots_that_fail_for_hours_are_told_again_now_and_then(tmp_path: Path, disk: Disk) -> None:
    disk.full = True
    clock = ManualClock()
    store = snapshots_at(str(tmp_path))
    journal = journal_at(store.storage)
    writer = SnapshotWriter(store, journal, (bytes(16), bytes(16)), bytes(16), AtOnce(), clock, EVERY_S)
    state = IndexState(HashSieve())
    notices: list[str] = []
    for _ in range(60):
        writer.judged()
        clock.sleep(TOLD_S)
        assert writer.is_due()
        writer.begin(state, 0)
        with pytest.raises(StateError, match="No space left") as failed:
            writer.finished()
        notices += filter(None, [writer.notice_of(failed.value)])
    assert len(notices) == 3, "in half an hour"
    assert "the last 41 tries failed" in notices[-1]
    assert writer.failures == 60
    disk.full = False
    for is_first in (True, False):
        writer.judged()
        clock.sleep(EVERY_S)
        writer.begin(state, 0)
        stored = writer.finished()
        assert stored is not None
        assert ("failed_before=60" in stored.log_line) == is_first


def test_a_failed_snapshot_is_tried_again_though_nothing_arrives_any_more(
    settings: Settings, scheme: Scheme, disk: Disk
) -> None:
    disk.full = True
    roles = Turned(settings, scheme)
    _traffic(roles, EVERY_S + TOLD_S)
    assert roles.value("snapshot_failures_total") != 0
    disk.full = False
    roles.run(60.0)
    assert len(list(Path(settings.state.dir).glob("t/*.snapshot"))) == 1
    assert roles.value("snapshot_age_seconds") is None, "nothing is left to follow"


def test_a_topic_without_traffic_and_a_standby_have_no_age_of_a_snapshot(
    settings: Settings, scheme: Scheme
) -> None:
    roles = _settled(settings, scheme)
    assert roles.value("snapshot_age_seconds") is not None
    roles.run(60.0)
    assert roles.value("snapshot_last_success_timestamp_seconds") is not None, "due without traffic, too"
    assert roles.value("snapshot_age_seconds") is None
    standby = Turned(settings, scheme, world=roles.world, name="two")
    for _ in range(30):
        standby.turn(1)
        roles.turn(1)
    for each in (roles, standby):
        each.clock.sleep(3_600.0)
    for _ in range(30):
        standby.turn(1)
        roles.turn(1)
    ages = [each.value("snapshot_age_seconds") for each in (roles, standby)]
    assert ages == [None, None]
    roles.world.produce(posts(2, 3))
    seen = set()
    for _ in range(300):
        standby.turn(1)
        roles.turn(1)
        seen |= {each.value("snapshot_age_seconds") for each in (roles, standby)}
    assert 0 < max(filter(None, seen)) < 60.0, "it counts from the block, not from the last snapshot"


def test_a_last_snapshot_that_fails_is_told(
    settings: Settings, scheme: Scheme, disk: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    roles = Turned(settings, scheme, background=AtOnce())
    _traffic(roles, EVERY_S - 2.0)
    disk.full = True
    caplog.clear()
    for loop in roles.loops:
        loop.stop()
        loop.run()
    assert roles.value("snapshot_failures_total") == 1
    assert any("snapshot cannot be written" in line for line in caplog.messages)


def _says_it_knows_nothing(roles: Turned) -> bool:
    page = roles.page()
    unknown = not {"lag_messages", "index_lag_blocks"} & page.keys()
    return unknown and page["index_live"] == {(): 0.0} and not roles.ready


def _says_all_is_well(roles: Turned) -> bool:
    page = roles.page()
    known = {"lag_messages", "index_lag_blocks"} <= page.keys()
    return known and page["index_live"] == {(): 1.0} and roles.ready


def test_brokers_that_are_away_are_told_and_so_is_their_return(
    settings: Settings, scheme: Scheme, caplog: pytest.LogCaptureFixture
) -> None:
    roles = _settled(settings, scheme)
    errors = roles.page()["broker_errors_total"]
    assert set(errors.values()) == {0.0}
    gone_s = roles.clock.now_ms() / 1000
    roles.world.cluster.reachable = False
    roles.run_until(partial(_says_it_knows_nothing, roles), TOLD_S)
    assert any("does not answer" in line for line in caplog.messages)
    for _ in range(60):
        roles.run(5.0)
        assert _says_it_knows_nothing(roles), "for as long as that lasts"
        assert roles.alive
    assert all(count > 0 for count in roles.page()["broker_errors_total"].values())
    answered = roles.page()["broker_answered_timestamp_seconds"]
    assert answered.keys() == {("index",), ("worker",)}
    assert all(gone_s - 20.0 <= at_s <= gone_s for at_s in answered.values())
    roles.world.cluster.reachable = True
    roles.run_until(partial(_says_all_is_well, roles), TOLD_S)
    roles.world.produce(posts(3, 5))
    roles.run_until(roles.world.done, TOLD_S)


def test_brokers_that_are_away_at_the_start_are_told(
    settings: Settings, scheme: Scheme, caplog: pytest.LogCaptureFixture
) -> None:
    roles = Turned(settings, scheme)
    roles.world.cluster.reachable = False
    assert roles.page()["index_phase"][("restoring",)] == 1, "there is an index, it is not made yet"
    roles.run(TOLD_S)
    assert _says_it_knows_nothing(roles)
    assert any("does not answer" in line for line in caplog.messages)
    assert all(count > 0 for count in roles.page()["broker_errors_total"].values())
    assert "broker_answered_timestamp_seconds" not in roles.page()
    assert roles.alive
    roles.world.cluster.reachable = True
    roles.run_until(partial(_says_all_is_well, roles), TOLD_S)


@pytest.mark.parametrize("call", ["reader.end_offsets", "consumer.poll.before", "transactor.commit.before"])
def test_brokers_that_are_frozen_are_told_from_beside_the_call_that_hangs(
    call: str, settings: Settings, scheme: Scheme, caplog: pytest.LogCaptureFixture
) -> None:
    """As a client that waits for its answer with patience, and for longer than anybody wants to."""
    caplog.set_level(logging.INFO, "twinsieve")
    frozen = threading.Event()
    seen: list[tuple[float, bool, int]] = []

    def hook(step: str) -> None:
        if step != call or not frozen.is_set():
            return
        for second in range(70):
            roles.clock.sleep(1.0)
            for loop in roles.loops:
                loop.log_silence()
            said = len([line for line in caplog.messages if "no broker has answered" in line])
            seen.append((second + 1.0, _says_it_knows_nothing(roles), said))
            assert roles.alive
        frozen.clear()

    roles = _settled(settings, scheme, hook)
    caplog.clear()
    frozen.set()
    roles.world.produce(posts(2, 9))
    roles.run_until(lambda: not frozen.is_set(), 200.0)
    assert seen[0][1] is False
    late = [(knows_nothing, said) for at_s, knows_nothing, said in seen if at_s >= TOLD_S]
    assert set(late) == {(True, 2)}, "a line for each role, once"
    roles.run_until(partial(_says_all_is_well, roles), TOLD_S)
    assert len([line for line in caplog.messages if "a broker answers again" in line]) == 2


def test_a_role_whose_questions_fail_works_again_once_one_is_answered(
    settings: Settings, scheme: Scheme
) -> None:
    """Its steps find nothing and succeed; a broker that is away looks no other to a consumer."""
    deaf = threading.Event()

    def hook(step: str) -> None:
        if step.endswith(".end_offsets") and deaf.is_set():
            raise AbortableError("end_offsets: no answer")

    roles = _settled(settings, scheme, hook)
    roles.run(60.0)
    deaf.set()

    def phases() -> set[str]:
        page = roles.page()["role_phase"]
        return {label for labels, value in page.items() for label in labels if value}

    retrying = {"worker", "index", "retrying"}
    roles.run_until(lambda: phases() == retrying, TOLD_S)
    seen: list[set[str]] = []
    roles.run(60.0, lambda: seen.append(phases()))
    assert all(each == retrying for each in seen)
    assert roles.page()["index_live"] == {(): 0.0}
    assert not roles.ready
    assert all(loop.why_not_ready for loop in roles.loops)
    deaf.clear()
    roles.run_until(partial(_says_all_is_well, roles), TOLD_S)
    assert phases() == {"worker", "index", "working"}
