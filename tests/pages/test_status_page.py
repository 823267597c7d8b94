"""The status page in a browser: it updates by itself, holds hostile texts, and needs no script."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.memory.broker import MemoryBroker, MemoryCluster
from tests.pages.chromium import Browser
from tests.pages.hostile import TEXTS, UNBREAKABLE
from tests.service.running import Service
from tests.service.status_pages import Served, first_port, pages_listening
from tests.service.stepped import unlike
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.records import Messages, Partition
from twinsieve.pipeline.service.run import SystemClock
from twinsieve.pipeline.settings.model import Settings


@pytest.fixture
def served() -> Iterator[Served]:
    made = Served()
    yield made
    made.server.close()


@pytest.fixture(autouse=True)
def _no_long_pauses(served: Served, browser: Browser) -> None:
    """The page asks ten times as often; its server is there for as long as the browser."""
    browser.hurry()


def _address(served: Served) -> str:
    return f"http://127.0.0.1:{served.port}/"


def _text(browser: Browser, selector: str) -> str:
    """Text of an element, which a refresh may replace at any moment; empty without one."""
    script = "return document.querySelector(arguments[0])?.textContent ?? ''"
    return str(browser.evaluate(script, selector))


def _require_no_others_than_refused(browser: Browser) -> None:
    """Fail if there was another problem than requests that nobody answered."""
    browser.leave()
    assert [problem for problem in browser.problems() if "net::ERR_" not in problem] == []


def _add_hostile(served: Served) -> None:
    for text in TEXTS.values():
        served.log("%s", text)
    served.why_not_ready = "index: " + TEXTS["long link"][:300]


def test_hostile_texts_are_inert_and_layout_holds(browser: Browser, served: Served) -> None:
    _add_hostile(served)
    browser.open(_address(served))
    browser.require_inert()
    browser.require_layout(cut=UNBREAKABLE)


def test_hostile_texts_that_come_later_are_inert(browser: Browser, served: Served) -> None:
    browser.open(_address(served))
    _add_hostile(served)
    browser.wait(lambda: "index: " in _text(browser, "#figures"), "a refresh")
    browser.require_inert()
    browser.require_layout(cut=UNBREAKABLE)


def test_page_updates_by_itself(browser: Browser, served: Served) -> None:
    browser.open(_address(served))
    browser.evaluate("document.body.dataset.seen = 'yes'")
    total = '[data-name="messages.by_verdict.near.total"]'
    assert _text(browser, total) == "0"
    served.metrics.messages.labels("near").inc(12_345)
    served.log("worker: it failed")
    browser.wait(lambda: _text(browser, total) == "12,345", "the new figure")
    assert "worker: it failed" in _text(browser, "#figures")
    assert browser.evaluate("return document.body.dataset.seen") == "yes", "the page was loaded again"


def test_page_says_when_the_process_is_gone(browser: Browser, served: Served) -> None:
    browser.open(_address(served))
    served.server.close()
    browser.wait(lambda: "these figures are old" in _text(browser, "#stale"), "the remark")
    _require_no_others_than_refused(browser)


def test_page_of_a_service_shows_what_comes_in(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ports = pages_listening(monkeypatch)
    cluster = MemoryCluster(SystemClock())
    cluster.create(NewTopic("posts", 1))
    settings = Settings.model_validate(
        {
            "app": "t",
            "topics": {"auto_create": True},
            "state": {"dir": str(tmp_path / "state")},
            "http": {"listen": "none", "pages": "127.0.0.1:0"},
            "near": {"window": {"messages": 1_000}},
            "exact": {"window": {"messages": 1_000}},
        }
    )
    service = Service(settings, cluster, member="one")
    try:
        browser.open(f"http://127.0.0.1:{first_port(ports)}/")
        messages = Messages()
        for text in (unlike(1), TEXTS["script"] + unlike(2), unlike(1), TEXTS["script"] + unlike(2)):
            messages.add(None, json.dumps({"text": text}).encode())
        MemoryBroker(cluster).appender().append(Partition("posts", 0), messages)
        exact = '[data-name="messages.by_verdict.exact.total"]'
        browser.wait(lambda: _text(browser, exact) == "2", "both drops")
        browser.require_inert()
        browser.require_layout()
        browser.leave()
    finally:
        service.end()
