"""The status pages of a running service: figures and errors are what was sent to it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import pytest

from tests.memory.broker import ManualClock, MemoryBroker, MemoryCluster
from tests.service.running import Service, came_out, wait_for
from tests.service.scraped import Scraped, listening
from tests.service.status_pages import ask, first_port, pages_listening, shown, status_json
from tests.service.stepped import unlike
from twinsieve.pipeline.broker.records import BrokerError, Messages, Partition
from twinsieve.pipeline.settings.model import Settings

OUTPUTS = ("posts.unique", "posts.duplicates", "posts.dead")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.model_validate(
        {
            "app": "t",
            "topics": {"auto_create": True},
            "state": {"dir": str(tmp_path / "state")},
            "http": {"listen": "127.0.0.1:0", "pages": "127.0.0.1:0"},
            "kafka": {"idle_report": "1h", "answer_timeout": "60s"},
            "near": {"window": {"messages": 1_000}},
            "exact": {"window": {"messages": 10_000}},
        }
    )


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    return pages_listening(monkeypatch)


@pytest.fixture
def start(
    settings: Settings, cluster: MemoryCluster, monkeypatch: pytest.MonkeyPatch, pages: list[int]
) -> Iterator[Callable[..., Scraped]]:
    ports = listening(monkeypatch)
    started: list[Scraped] = []

    def make(changed: Settings = settings, **options: object) -> Scraped:
        started.append(Scraped(changed, cluster, ports, member="one", **options))  # type: ignore[arg-type]
        return started[-1]

    yield make
    for each in started:
        each.stop()


def produce(cluster: MemoryCluster, partition: int, *texts: str) -> None:
    messages = Messages()
    for text in texts:
        messages.add(None, orjson.dumps({"text": text}))
    MemoryBroker(cluster).appender().append(Partition("posts", partition), messages)


def test_no_page_shows_a_text(
    start: Callable[..., Scraped], cluster: MemoryCluster, pages: list[int]
) -> None:
    start()
    produce(cluster, 0, unlike(1), unlike(1))
    wait_for(lambda: came_out(cluster, *OUTPUTS) == 2, "both")
    for path in ("/", "/status.json"):
        body = ask(first_port(pages), path)[1].decode()
        assert unlike(1)[:5] not in body
        assert orjson.dumps(unlike(1)).decode() not in body


def test_dry_run_has_pages(start: Callable[..., Scraped], cluster: MemoryCluster, pages: list[int]) -> None:
    start(dry_run=True)
    produce(cluster, 0, unlike(1), unlike(1))
    port = first_port(pages)
    wait_for(lambda: status_json(port)["messages"]["total"] == 2, "both")
    assert status_json(port)["app"] == "t-shadow"


def test_roles_apart_show_what_they_have(
    start: Callable[..., Scraped], cluster: MemoryCluster, pages: list[int]
) -> None:
    start(role="worker")
    wait_for(lambda: len(pages) == 1, "pages of the worker")
    start(role="index")
    wait_for(lambda: len(pages) == 2, "pages of the index")
    produce(cluster, 0, unlike(1), unlike(1))
    wait_for(lambda: came_out(cluster, *OUTPUTS) == 2, "both")
    worker, index = (status_json(port) for port in pages)
    assert (list(worker["roles"]), list(index["roles"])) == (["worker"], ["index"])
    assert (worker["index"]["phase"], index["index"]["phase"]) == ("none", "live")
    for port in pages:
        assert "not ready" not in shown(port).text


def test_a_process_that_waits_for_a_broker_says_so(
    cluster: MemoryCluster, settings: Settings, pages: list[int]
) -> None:
    def away(_: MemoryCluster) -> MemoryBroker:
        raise BrokerError("broker a:9092: nothing listens there", retryable=True)

    service = Service(settings, cluster, away, member="one")
    try:
        port = first_port(pages)
        wait_for(lambda: "nothing listens" in status_json(port)["process"]["why_not_ready"], "the reason")
        found = status_json(port)
        assert found["process"]["phase"] == "waiting_for_broker"
        assert [line["message"] for line in found["errors"]] == [
            "run: waiting for a broker: broker a:9092: nothing listens there"
        ]
        text = shown(port).text
        assert "not ready: waiting for broker: broker a:9092: nothing listens there" in text
    finally:
        service.end()
    assert ask_refused(port)


def ask_refused(port: int) -> bool:
    try:
        ask(port, "/")
    except ConnectionRefusedError:
        return True
    return False


def test_nothing_is_left_of_the_pages_of_a_service_that_ended(
    cluster: MemoryCluster, settings: Settings, pages: list[int]
) -> None:
    log = logging.getLogger("twinsieve")
    handlers, threads = list(log.handlers), set(threading.enumerate())
    service = Service(settings, cluster, member="one", clock=ManualClock())
    port = first_port(pages)
    assert len(log.handlers) == len(handlers) + 1
    wait_for(lambda: status_json(port)["process"]["ready"], "it is ready")
    service.end()
    assert log.handlers == handlers
    assert ask_refused(port)
    wait_for(lambda: set(threading.enumerate()) <= threads, "no thread more")


def test_there_are_no_pages_unless_they_are_asked_for(
    cluster: MemoryCluster, settings: Settings, pages: list[int]
) -> None:
    http = settings.http.model_copy(update={"pages": None})
    assert Settings().http.pages is None
    service = Service(settings.model_copy(update={"http": http}), cluster, member="one")
    produce(cluster, 0, unlike(1), unlike(1))
    wait_for(lambda: came_out(cluster, *OUTPUTS) == 2, "both")
    service.end()
    assert pages == []
