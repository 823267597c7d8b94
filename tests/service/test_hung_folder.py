"""A state folder that hangs: judging goes on, the thread that waits is named, and no place of a group is taken."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from tests.configs import builder
from tests.crash.members import MESSAGES, settings_at, verdicts_undisturbed
from tests.crash.snapshot_steps import small_pieces
from tests.hung_folder import hung
from tests.memory.broker import ManualClock
from tests.service.conftest import scheme as scheme
from tests.service.test_changed_settings import posts
from tests.service.turned import Turned
from twinsieve.pipeline.basics.daemon_executor import DaemonExecutor
from twinsieve.pipeline.saved import store_calls
from twinsieve.pipeline.saved.storage import Storage
from twinsieve.pipeline.service import slots
from twinsieve.pipeline.service.judging_settings import JudgingSettings
from twinsieve.pipeline.service.slots import take_slot
from twinsieve.pipeline.service.worker_loop import WorkerLoop
from twinsieve.pipeline.settings.model import Settings
from twinsieve.stages.judge.scheme import Scheme

pytestmark = pytest.mark.heavy

_DEADLINE_S = 300.0
_MORE = 200


@pytest.fixture(autouse=True)
def _pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    small_pieces(monkeypatch)


def _process(settings: Settings, scheme: Scheme, name: str = "one", before: Turned | None = None) -> Turned:
    return Turned(
        settings,
        scheme,
        world=before.world if before else None,
        name=name,
        background=DaemonExecutor("snapshot"),
    )


def _until(holds: Callable[[], object], *roles: Turned) -> None:
    """Turn until that holds: other threads work by the real clock."""
    deadline = time.monotonic() + _DEADLINE_S
    while not holds():
        assert time.monotonic() < deadline
        for each in roles:
            each.turn(1)
            each.clock.sleep(0.1)


@pytest.mark.parametrize("segment", [16_000_000, 20])
def test_judging_waits_for_no_folder_that_hangs_and_the_thread_that_does_is_named(
    scheme: Scheme,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    segment: int,
) -> None:
    caplog.set_level(logging.INFO, "twinsieve")
    unbroken = verdicts_undisturbed(scheme, settings_at(str(tmp_path / "other")), MESSAGES, _MORE)
    state = tmp_path / "state"
    monkeypatch.setattr(Storage, "shares_device", lambda *_: False)
    roles = _process(settings_at(str(state), segment=segment), scheme)
    roles.world.produce(posts(1, MESSAGES))
    _until(lambda: roles.value("snapshot_last_success_timestamp_seconds") and roles.world.done(), roles)
    with hung(state, never=threading.get_ident()) as folder:
        roles.world.produce(posts(2, _MORE))
        _until(lambda: folder.waiting, roles)
        monkeypatch.setattr(store_calls, "HUNG_S", 0.05)
        _until(roles.world.done, roles)
        assert roles.world.judged() == unbroken
        _until(lambda: roles.value("state_hung_seconds"), roles)
        assert roles.alive
        assert roles.ready
        assert str(state) in roles.index.remark
        (told,) = [line for line in caplog.messages if "has not returned" in line]
        assert str(state) in told
        assert any(f"(thread {name})" in told for name in folder.waiting)
        for loop in roles.loops:
            loop.stop()
            loop.run()
        assert folder.touched == [], "the thread that judges, or that stops"
    assert not any("no broker" in line for line in caplog.messages)
    again = _process(settings_at(str(state), segment=segment), scheme, before=roles)
    again.clock.sleep(20.0)
    again.world.produce(posts(3, 9))
    _until(again.world.done, again)
    assert {at: kind for at, kind in again.world.judged().items() if at in unbroken} == unbroken


def test_queries_of_the_broker_wait_for_no_folder_that_hangs(tmp_path: Path) -> None:
    answers = threading.Event()
    made = replace(builder(settings_at(str(tmp_path))), background=DaemonExecutor("snapshot"))
    made.background.submit(answers.wait)
    clock = cast("ManualClock", made.clock)
    sizes, settings = made.log_sizes(), JudgingSettings(made, clock)
    clock.sleep(100.0)
    deadline = time.monotonic() + _DEADLINE_S
    while sizes.newest() is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    settings.look(judges=False)
    assert settings._query is not None
    settings._query.exception(_DEADLINE_S)
    answers.set()


def test_a_process_that_cannot_restore_leaves_the_judging_to_another_one_and_says_why(
    scheme: Scheme, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO, "twinsieve")
    state = tmp_path / "state"
    first = _process(settings_at(str(state)), scheme)
    first.world.produce(posts(1, 30))
    _until(first.world.done, first)
    for loop in first.loops:
        loop.stop()
        loop.run()
    first.clock.sleep(20.0)
    monkeypatch.setattr(store_calls, "HUNG_S", 0.05)
    with hung(state) as folder:
        waits = _process(settings_at(str(state)), scheme, before=first)
        restoring = threading.Thread(target=waits.index._turn, name="role-index", daemon=True)
        restoring.start()
        other = _process(settings_at(str(tmp_path / "other")), scheme, "two", before=first)
        first.world.produce(posts(2, 30))
        _until(first.world.done, other)
        assert other.value("index_live") == 1
        other.clock.sleep(200.0)
        _until(lambda: folder.waiting and waits.index.remark)
        waits.index.log_silence()
        assert waits.index.waits_for_store
        assert waits.index.alive, "a new process would wait too"
        assert str(state) in waits.index.remark
        (told,) = [line for line in caplog.messages if "has not returned" in line]
        assert "(thread role-index)" in told
        assert not any("no broker" in line for line in caplog.messages)
        # The process cannot end while it waits, so its worker may take partitions from others.
        worker = WorkerLoop(waits.index._builder, waits.clock, waits.metrics, index=waits.index)
        _until(lambda: worker._turn() or worker.is_member, other)  # type: ignore[func-returns-value]
        worker._give_up(leaves=True)
    restoring.join(_DEADLINE_S)
    _until(lambda: waits.index.ready, waits, other)
    assert not waits.index.waits_for_store


def test_a_process_takes_its_name_elsewhere_if_the_folder_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(slots, "_ANSWERS_S", 0.05)
    state, other = tmp_path / "state", tmp_path / "other"
    with hung(state) as folder:
        slot = take_slot("a", [state, other])
        assert folder.waiting
    assert list(other.iterdir())
    assert str(state) in caplog.text
    slot.release()
