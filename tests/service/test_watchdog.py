"""A role that hangs ends its process, and nothing else does; systemd hears how the process is."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.memory.broker import ManualClock
from twinsieve.pipeline.service.loop import Loop
from twinsieve.pipeline.service.metrics import Metrics
from twinsieve.pipeline.service.watchdog import Supervisor, Watchdog


class Hanging(Loop):
    """A role whose steps go through until `hangs` is set; then its step waits for `wakes`."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__("worker", clock, Metrics(clock), 120.0)
        self.hangs, self.wakes, self.hung = threading.Event(), threading.Event(), threading.Event()

    def _step(self) -> None:
        if self.hangs.is_set():
            self.hung.set()
            self.a_call_without_an_end()

    def a_call_without_an_end(self) -> None:
        self.wakes.wait()

    def _set_gauges(self) -> None: ...
    def _query_lag(self) -> None: ...
    def _finish(self) -> None: ...
    def _give_up(self, *, leaves: bool = False) -> None: ...


class Watched:
    """A role in a thread, and a watchdog that looks when it is told to."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.loop = Hanging(self.clock)
        self.stop = threading.Event()
        self.ended: list[int] = []
        self.dog = Watchdog(self.stop, self.clock, end=self.ended.append)
        self.dog.watch([self.loop])
        self.thread = threading.Thread(target=self.loop.run, daemon=True)
        self.thread.start()

    def hang(self) -> None:
        self.loop.hangs.set()
        assert self.loop.hung.wait(300)

    def look(self, times: int, every_s: float = 1.0) -> None:
        for _ in range(times):
            self.clock.sleep(every_s)
            self.dog.look()


@pytest.fixture
def watched() -> Iterator[Watched]:
    watched = Watched()
    yield watched
    watched.loop.stop()
    watched.loop.wakes.set()
    watched.thread.join(300)
    assert not watched.thread.is_alive()


def test_a_role_that_hangs_ends_its_process_after_the_others_could_leave(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    watched.hang()
    watched.look(290)
    assert not watched.stop.is_set()
    with caplog.at_level(logging.CRITICAL):
        watched.look(20)
    assert watched.stop.is_set(), "the other roles finish"
    assert "a_call_without_an_end" in caplog.text, "the log says where it hangs"
    assert not watched.ended
    watched.look(30)
    assert watched.ended[0] == 1


def test_a_text_that_cannot_be_made_stops_no_watchdog(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    def fails() -> str:
        raise AttributeError("another thread has just taken the role away")

    watched.dog = Watchdog(watched.stop, watched.clock, fails, end=watched.ended.append)
    watched.dog.watch([watched.loop])
    watched.hang()
    watched.look(310)
    assert watched.stop.is_set()
    assert len([line for line in caplog.messages if "state of this process" in line]) == 1, "told once"


def test_a_process_that_was_stopped_or_suspended_does_not_hang(watched: Watched) -> None:
    watched.hang()
    watched.look(100, every_s=3_600.0)
    assert not watched.stop.is_set()


def test_a_role_that_makes_progress_or_has_said_that_it_needs_time_does_not_hang(watched: Watched) -> None:
    watched.hang()
    for _ in range(10):
        watched.look(200)
        watched.loop.turned_s = watched.clock.monotonic_s()
    watched.loop.turned_s += 2_000.0
    watched.look(1_900)
    assert not watched.stop.is_set()


def test_a_role_that_has_ended_does_not_hang(watched: Watched) -> None:
    watched.loop.stop()
    watched.thread.join(300)
    watched.look(1_000)
    assert not watched.stop.is_set()


@pytest.fixture(params=["file", "abstract"])
def listener(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[socket.socket, str]]:
    """What systemd listens on, and its name in NOTIFY_SOCKET."""
    name = str(tmp_path / "notify") if request.param == "file" else f"@twinsieve-{tmp_path}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
        ear.bind(name.replace("@", "\0", 1))
        ear.settimeout(10)
        yield ear, name


def heard(ear: socket.socket) -> list[str]:
    ear.setblocking(False)
    lines: list[str] = []
    while True:
        try:
            lines += ear.recv(4_096).decode().splitlines()
        except BlockingIOError:
            return lines


def test_systemd_hears_when_it_is_ready_that_it_is_well_and_that_it_stops(
    listener: tuple[socket.socket, str],
) -> None:
    ear, name = listener
    clock, stop = ManualClock(), threading.Event()
    state = {"ready": "waiting for broker: no\nREADY=1", "healthy": ""}
    dog = Watchdog(
        stop,
        clock,
        lambda: state["ready"],
        lambda: state["healthy"],
        supervisor=Supervisor({"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "20000000"}),
    )

    def told(seconds: int) -> list[str]:
        lines = []
        for _ in range(seconds):
            clock.sleep(1.0)
            dog.look()
            lines += heard(ear)
        return lines

    first = told(30)
    assert "READY=1" not in first, "not even by a text with a line break"
    assert any(line.startswith("EXTEND_TIMEOUT_USEC=") for line in first)
    assert 2 <= first.count("WATCHDOG=1") <= 4, "at least twice in WATCHDOG_USEC"
    state["ready"] = ""
    assert told(2)[:2] == ["STATUS=working", "READY=1"]
    state["healthy"] = "index: no step for minutes"
    assert told(30) == [], "systemd ends a process that is not well"
    stop.set()
    assert "STOPPING=1" in told(1)


def test_without_systemd_nothing_is_sent(tmp_path: Path) -> None:
    Supervisor({}).tell(READY=1)
    Supervisor({"NOTIFY_SOCKET": str(tmp_path / "gone")}).tell(READY=1)
    assert Supervisor({"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "5", "WATCHDOG_PID": "1"}).watch_s is None
