"""The start of a process: from its first moment it can be asked how far it is, and be stopped."""

from __future__ import annotations

import logging
import re
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from tests.memory.broker import ManualClock, MemoryBroker, MemoryCluster
from tests.service.running import wait_for
from tests.service.scraped import Scraped, listening
from tests.service.test_changed_settings import with_section
from twinsieve.pipeline.basics.program import program_version
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.records import BrokerError, FatalError
from twinsieve.pipeline.service.metrics import Metrics
from twinsieve.pipeline.service.redrive import run_redrive
from twinsieve.pipeline.service.run import SystemClock, run_service
from twinsieve.pipeline.service.seed import run_seed
from twinsieve.pipeline.service.start_checks import until_answered
from twinsieve.pipeline.settings.model import Settings
from twinsieve.stages.errors import SieveError, UsageError

_AWAY = "broker a:9092: nothing listens there; start the broker or correct kafka.bootstrap"


@pytest.fixture
def cluster() -> MemoryCluster:
    made = MemoryCluster(SystemClock())
    made.create(NewTopic("posts", 1))
    return made


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.model_validate(
        {
            "app": "t",
            "topics": {"auto_create": True},
            "state": {"dir": str(tmp_path / "state")},
            "http": {"listen": "127.0.0.1:0"},
            "near": {"window": {"messages": 100}},
            "exact": {"window": {"messages": 100}},
        }
    )


class _Gate:
    """Makes brokers of a cluster; until it is opened it is silent, or refuses."""

    def __init__(self, error: SieveError | None = None) -> None:
        self.asked = threading.Event()
        self.asked_again = threading.Event()
        self.opened = threading.Event()
        self.error = error

    def __call__(self, cluster: MemoryCluster) -> MemoryBroker:
        (self.asked_again if self.asked.is_set() else self.asked).set()
        if self.error is not None and not self.opened.is_set():
            raise self.error
        assert self.opened.wait(300), "left behind"
        return MemoryBroker(cluster)


_Start = Callable[..., Scraped]


@pytest.fixture
def start(settings: Settings, cluster: MemoryCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[_Start]:
    ports = listening(monkeypatch)
    started: list[tuple[Scraped, _Gate]] = []

    def make(gate: _Gate, **options: object) -> Scraped:
        started.append((Scraped(settings, cluster, ports, broker=gate, member="one", **options), gate))
        return started[-1][0]

    yield make
    for each, gate in started:
        each.service.stop.set()
        gate.opened.set()
        each.stop()


def _phase(running: Scraped) -> str:
    (now,) = [labels[0] for labels, held in running.metrics()["process_phase"].items() if held]
    return now


def test_a_process_whose_broker_is_silent_answers_is_healthy_and_not_ready(start: _Start) -> None:
    running = start(gate := _Gate(), role="index", dry_run=True)
    assert gate.asked.wait(300)
    running.clock.sleep(10_000.0)
    assert running.page("/healthz") == (200, "ok\n")
    assert running.page("/readyz") == (503, "waiting for broker: localhost:9092\n")
    assert _phase(running) == "waiting_for_broker"
    ((app, role, scheme, settings, version),) = running.metrics()["info"]
    assert (app, role, scheme, version) == ("t-shadow", "index", "", program_version())
    assert re.fullmatch("[0-9a-f]{8}", settings)


def test_a_process_whose_broker_is_silent_can_be_stopped(start: _Start) -> None:
    running = start(gate := _Gate())
    assert gate.asked.wait(300)
    running.service.end()
    assert not gate.opened.is_set(), "the question is left behind unanswered"


def test_a_broker_that_refuses_is_asked_until_it_answers(
    start: _Start, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "twinsieve")
    running = start(gate := _Gate(BrokerError(_AWAY, retryable=True)))
    assert gate.asked_again.wait(300)
    assert running.status("/healthz") == 200
    assert running.page("/readyz") == (503, f"waiting for broker: {_AWAY}\n")
    gate.opened.set()
    wait_for(lambda: running.status("/readyz") == 200, "it is ready")
    assert _phase(running) == "running"
    ((app, role, scheme, *_),) = running.metrics()["info"]
    assert (app, role, len(scheme)) == ("t", "both", 16)
    assert [line for line in caplog.messages if "waiting for a broker" in line] == [
        f"run: waiting for a broker: {_AWAY}"
    ]


@pytest.mark.parametrize("command", ["seed", "redrive"])
def test_a_command_that_waits_for_a_broker_is_named(
    settings: Settings, caplog: pytest.LogCaptureFixture, command: str
) -> None:
    stop, asked = threading.Event(), threading.Event()

    def refuse(_: Settings) -> MemoryBroker:
        if asked.is_set():
            stop.set()
        asked.set()
        raise BrokerError(_AWAY, retryable=True)

    if command == "seed":
        run_seed(settings, "older", refuse, stop=stop)
    else:
        run_redrive(settings, refuse, stop=stop)
    assert f"{command}: waiting for a broker: {_AWAY}" in caplog.messages


def test_a_role_that_is_not_ready_is_named(start: _Start) -> None:
    polled, goes_on = threading.Event(), threading.Event()

    def hook(step: str) -> None:
        if step == "consumer.poll.before":
            polled.set()
            goes_on.wait(300)

    class Hooked(_Gate):
        def __call__(self, cluster: MemoryCluster) -> MemoryBroker:
            return MemoryBroker(cluster, hook)

    running = start(Hooked(), role="worker")
    try:
        assert polled.wait(300)
        assert running.page("/readyz") == (503, "worker: starting, not ready (joins its group)\n")
        assert _phase(running) == "running"
    finally:
        goes_on.set()


def test_a_broker_that_refuses_can_be_left(start: _Start) -> None:
    running = start(gate := _Gate(BrokerError(_AWAY, retryable=True)))
    assert gate.asked_again.wait(300)
    running.service.end()


@pytest.mark.parametrize(
    "error",
    [
        BrokerError("broker a:9092: refused user 'x' or its password", retryable=False),
        UsageError("the client is not installed"),
    ],
)
def test_what_waiting_cannot_mend_ends_the_process_at_once(
    settings: Settings, cluster: MemoryCluster, error: SieveError
) -> None:
    gate = _Gate(error)
    with pytest.raises(type(error), match=str(error)):
        run_service(settings, lambda _: gate(cluster), member="one")
    assert not gate.asked_again.is_set()


def test_a_port_in_use_is_told_before_a_broker_is_asked(settings: Settings, cluster: MemoryCluster) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        busy = with_section(settings, "http", listen=listen)
        gate = _Gate()
        with pytest.raises(UsageError, match=rf"http\.listen is '{listen}'.*in use"):
            run_service(busy, lambda _: gate(cluster), member="one")
        assert not gate.asked.is_set()


def test_a_name_that_is_refused_is_told_before_a_broker_is_asked(
    settings: Settings, cluster: MemoryCluster
) -> None:
    gate = _Gate()
    with pytest.raises(UsageError, match="POD_NAME"):
        run_service(settings, lambda _: gate(cluster), member="$(POD_NAME)")
    assert not gate.asked.is_set()


def test_a_stop_before_the_start_asks_nobody(settings: Settings, cluster: MemoryCluster) -> None:
    stop, gate = threading.Event(), _Gate()
    stop.set()
    run_service(settings, lambda _: gate(cluster), member="one", stop=stop)
    assert not gate.asked.is_set()


def test_a_seed_waits_for_a_broker_too_and_can_be_stopped(settings: Settings, cluster: MemoryCluster) -> None:
    gate, stop = _Gate(BrokerError(_AWAY, retryable=True)), threading.Event()
    results = []
    seeding = threading.Thread(
        target=lambda: results.append(
            run_seed(settings, "posts.unique", lambda _: gate(cluster), member="one", stop=stop)
        )
    )
    seeding.start()
    assert gate.asked_again.wait(300)
    stop.set()
    seeding.join(300)
    assert [result.finished for result in results] == [False]


class _Impatient(threading.Event):
    """Passes every wait at once, and is set after some of them."""

    def __init__(self, clock: ManualClock, each_s: float, waits: int) -> None:
        super().__init__()
        self._clock, self._each_s, self._left = clock, each_s, waits

    def wait(self, timeout: float | None = None) -> bool:
        self._clock.sleep(self._each_s)
        self._left -= 1
        if self._left <= 0:
            self.set()
        return self.is_set()


def test_one_failure_is_said_once_a_minute_and_another_at_once(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    tries: list[str] = []

    def ask() -> None:
        tries.append("login refused" if len(tries) == 30 else f"no answer after {len(tries)} ms")
        raise BrokerError(tries[-1], retryable=True)

    failures: list[BrokerError] = []
    assert until_answered(ask, clock, _Impatient(clock, 10.0, 40), failures.append) is None
    assert len(tries) == len(failures) == 40
    said = [line.removeprefix("run: waiting for a broker: ") for line in caplog.messages]
    assert said == [tries[at] for at in (0, 6, 12, 18, 24, 30, 31, 37)]


def test_an_answer_is_handed_on_with_what_it_raises() -> None:
    clock, stop = ManualClock(), threading.Event()
    assert until_answered(lambda: 7, clock, stop) == 7
    with pytest.raises(FatalError, match="not allowed"):
        until_answered(_raise(FatalError("not allowed", denied=True)), clock, stop)
    with pytest.raises(KeyError):
        until_answered(_raise(KeyError("x")), clock, stop)


def _raise(error: Exception) -> Callable[[], None]:
    def ask() -> None:
        raise error

    return ask


def test_the_metric_of_a_process_names_one_app_at_a_time() -> None:
    metrics = Metrics(ManualClock())
    metrics.set_info("a", "both")
    metrics.set_info("a", "both", "0123456789abcdef")
    (family,) = [one for one in metrics.registry.collect() if one.name == "twinsieve_info"]
    (sample,) = family.samples
    assert (sample.labels["app"], sample.labels["scheme"], sample.value) == ("a", "0123456789abcdef", 1.0)


def _with_scratch(settings: Settings, folder: Path) -> Settings:
    return with_section(settings, "state", scratch=str(folder))


@pytest.mark.parametrize("role", ["shard", "index", "both"])
def test_a_scratch_folder_that_cannot_be_made_ends_the_start_before_a_broker_is_asked(
    role: str, settings: Settings, tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(b"")
    shards = with_section(settings, "near", answers="shards", segment=50)
    with pytest.raises(UsageError, match=re.escape(str(tmp_path / "file" / "scratch"))) as caught:
        run_service(_with_scratch(shards, tmp_path / "file" / "scratch"), _never, role=role, member="one")
    assert caught.value.exit_code == 2


def _never(_: Settings) -> NoReturn:
    raise AssertionError("a broker is asked")


def test_a_missing_scratch_folder_is_made_and_a_worker_needs_none(settings: Settings, tmp_path: Path) -> None:
    for role, folder, is_made in (("index", "a/b", True), ("worker", "c", False)):
        with pytest.raises(AssertionError, match="a broker is asked"):
            run_service(_with_scratch(settings, tmp_path / folder), _never, role=role, member="one")
        assert (tmp_path / folder).is_dir() == is_made
