"""A role that hangs in its client keeps no process alive that has something to say."""

from __future__ import annotations

import logging
import threading

import pytest

from tests.memory.broker import ManualClock
from twinsieve.pipeline.broker.records import BrokerError, FatalError
from twinsieve.pipeline.service.loop import Loop, LoopPhase
from twinsieve.pipeline.service.metrics import Metrics
from twinsieve.pipeline.service.run import drive


class _Role(Loop):
    """Does one thing and never looks at anything. begun: unless it fails, it did its work before"""

    def __init__(self, name: str, error: Exception | None, *, begun: bool = True) -> None:
        clock = ManualClock()
        super().__init__(name, clock, Metrics(clock))
        self.let_go = threading.Event()
        self.lets_go = threading.Event()
        self.lets_go.set()
        self._error = error
        if begun and error is None:
            self._worked()

    def _step(self) -> None:
        if self._error is not None:
            raise self._error
        self.let_go.wait()

    def _set_gauges(self) -> None:
        """Nothing to show."""

    def _give_up(self, *, leaves: bool = False) -> None:
        self.lets_go.wait()

    _query_lag = _finish = _set_gauges


def _stop(role: _Role, *limits_s: float) -> None:
    """End a process that has this role alone."""
    stop = threading.Event()
    stop.set()
    roles: dict[str, list[Loop]] = {"worker": [], "index": []}
    roles[role.name].append(role)
    drive(roles["worker"], roles["index"], stop, *limits_s)


@pytest.mark.parametrize("hanging", ["worker", "index"])
def test_the_error_of_one_role_is_told_though_the_other_hangs(
    hanging: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    denied = FatalError("transaction app.index: not allowed", denied=True)
    roles = {name: _Role(name, None if name == hanging else denied) for name in ("worker", "index")}
    with pytest.raises(FatalError, match="not allowed"):
        drive([roles["worker"]], [roles["index"]], threading.Event(), 0.2)
    assert f"{hanging}: does not end" in caplog.text
    roles[hanging].let_go.set()


def test_the_error_of_a_role_is_told_though_its_clients_do_not_close(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.ERROR)
    role = _Role("worker", FatalError("transaction app.index: not allowed", denied=True))
    role.lets_go.clear()
    with pytest.raises(FatalError, match="not allowed"):
        drive([role], [], threading.Event(), 0.2)
    assert "worker: does not end" in caplog.text
    role.lets_go.set()


@pytest.mark.parametrize("hanging", ["worker", "index"])
def test_a_clean_stop_ends_with_an_error_though_a_role_hangs(
    hanging: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    role = _Role(hanging, None)
    with pytest.raises(BrokerError, match=f"{hanging}: does not end within 0.2 s: a client hangs") as said:
        _stop(role, 0.2, 0.2)
    assert said.value.retryable, "a new start helps"
    assert f"{hanging}: does not end within 0.2 s, so the process ends without waiting for it" in caplog.text
    role.let_go.set()


@pytest.mark.parametrize("begun", [True, False])
@pytest.mark.parametrize("hanging", ["worker", "index"])
def test_the_other_role_leaves_at_once_if_the_watchdog_has_found_that_one_hangs(
    hanging: str, *, begun: bool
) -> None:
    """The watchdog ends the process soon, with an error, also if the role hangs at its start."""
    roles = {name: _Role(name, None, begun=begun or name != hanging) for name in ("worker", "index")}
    other = next(role for name, role in roles.items() if name != hanging)
    other.let_go.set()
    stop = threading.Event()
    roles[hanging].has_hung = True
    stop.set()
    with pytest.raises(BrokerError, match=f"{hanging}: hangs") as said:
        drive([roles["worker"]], [roles["index"]], stop, 5.0, 5.0, 5.0)
    assert said.value.exit_code == 1
    assert other.phase.now is LoopPhase.STOPPING
    assert other.thread is None
    roles[hanging].let_go.set()


def test_a_stop_notices_that_the_role_that_it_waits_for_hangs() -> None:
    role = _Role("index", None)
    noticed = threading.Timer(0.3, setattr, (role, "has_hung", True))
    noticed.start()
    with pytest.raises(BrokerError, match="index: hangs"):
        _stop(role, 5.0, 5.0)
    role.let_go.set()


def test_a_process_ends_with_an_error_though_the_role_that_hung_ends_after_all() -> None:
    role = _Role("worker", None)
    role.has_hung = True
    role.let_go.set()
    with pytest.raises(BrokerError, match="worker: hangs"):
        _stop(role, 5.0, 5.0)


def test_a_clean_stop_waits_for_a_role_that_takes_its_time() -> None:
    role = _Role("index", None)
    ended = threading.Thread(target=_stop, args=(role, 0.0, 60.0, 0.0))
    ended.start()
    ended.join(0.5)
    assert ended.is_alive()
    role.let_go.set()
    ended.join()


@pytest.mark.parametrize("hanging", ["worker", "index"])
def test_a_stop_waits_for_no_role_that_has_done_nothing_and_does_not_hear(
    hanging: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It may wait for a silent broker, or read a snapshot for minutes."""
    caplog.set_level(logging.INFO)
    role = _Role(hanging, None, begun=False)
    _stop(role, 600.0, 600.0, 0.2)
    assert f"{hanging}: was still starting, so the process ends without waiting for it" in caplog.messages
    role.let_go.set()


def test_a_stop_waits_for_a_role_that_has_done_nothing_and_hears() -> None:
    class Hears(_Role):
        def _step(self) -> None:
            self._stop.wait()

        def _finish(self) -> None:
            self.let_go.wait()

    role = Hears("index", None, begun=False)
    ended = threading.Thread(target=_stop, args=(role, 0.0, 60.0, 0.5))
    ended.start()
    ended.join(2.0)
    assert ended.is_alive(), "it writes its last snapshot"
    role.let_go.set()
    ended.join()
