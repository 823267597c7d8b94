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
from tests.service.status_pages import Served, first_port, pages_listening, shown
from tests.service.stepped import unlike
from twinsieve.pipeline.basics.printable import beginning
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.records import Messages, Partition
from twinsieve.pipeline.service.run import SystemClock
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.status_pages.drops import MAX_TEXT


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


def _count(browser: Browser, selector: str) -> int:
    return int(browser.evaluate("return document.querySelectorAll(arguments[0]).length", selector))


def _require_no_others_than_refused(browser: Browser) -> None:
    """Fail if there was another problem than requests that nobody answered."""
    browser.leave()
    assert [problem for problem in browser.problems() if "net::ERR_" not in problem] == []


def _add_hostile(served: Served) -> None:
    for name, text in TEXTS.items():
        cut = beginning(text, MAX_TEXT)
        served.drops.add(f"{name}: {cut}", f"{name}: {cut[::-1]}")
        served.drops.add("", f"{name}: {cut}", why_leader=f"{name}: {cut}")
        served.log("%s", text)
    served.why_not_ready = "index: " + TEXTS["long link"][:300]


def test_hostile_texts_are_inert_and_layout_holds(browser: Browser, served: Served) -> None:
    _add_hostile(served)
    browser.open(_address(served))
    assert _count(browser, "article") == 2 * len(TEXTS)
    browser.require_inert()
    browser.require_layout(cut=UNBREAKABLE)


def test_hostile_texts_that_come_later_are_inert(browser: Browser, served: Served) -> None:
    browser.open(_address(served))
    browser.wait(lambda: served.asked > 1, "a refresh")
    _add_hostile(served)
    browser.wait(lambda: _count(browser, "article") == 2 * len(TEXTS), "the drops")
    browser.require_inert()
    browser.require_layout(cut=UNBREAKABLE)


def test_page_updates_by_itself(browser: Browser, served: Served) -> None:
    served.drops.add("kept one", "dropped one", why_leader="not read yet")
    browser.open(_address(served))
    browser.evaluate("document.body.dataset.seen = 'yes'")
    assert "not read yet" in _text(browser, "#drop-1")
    total = '[data-name="messages.by_verdict.near.total"]'
    assert _text(browser, total) == "0"
    served.metrics.messages.labels("near").inc(12_345)
    served.log("worker: it failed")
    served.drops.drops[0].why_leader = ""
    served.drops.drops[0].html, served.drops.drops[0].changed = None, 2
    served.drops.add("kept two", "dropped two", changed=3)
    browser.wait(lambda: _text(browser, total) == "12,345", "the new figure")
    browser.wait(lambda: "kept one" in _text(browser, "#drop-1"), "the leader of the first drop")
    browser.wait(lambda: _count(browser, "article") == 2, "the second drop")
    order = "return [...document.querySelectorAll('article')].map((each) => each.id)"
    assert browser.evaluate(order) == ["drop-2", "drop-1"]
    assert "worker: it failed" in _text(browser, "#figures")
    assert browser.evaluate("return document.body.dataset.seen") == "yes", "the page was loaded again"
    # Nothing is sent twice.
    asked = served.asked
    browser.wait(lambda: served.asked > asked + 1, "more refreshes")
    assert _count(browser, "article") == 2


def test_page_keeps_the_last_thousand_drops(browser: Browser, served: Served) -> None:
    for number in range(1_000):
        served.drops.add("k", f"d {number}")
    browser.open(_address(served))
    for number in range(1_000, 1_005):
        served.drops.add("k", f"d {number}")
    browser.wait(lambda: _count(browser, "#drop-1005"), "new drops")
    browser.wait(lambda: _count(browser, "article") == 1_000, "old ones go")
    assert _count(browser, "#drop-6")
    assert not _count(browser, "#drop-5")


def test_page_without_scripts_has_the_same_figures(browser: Browser, served: Served) -> None:
    served.metrics.messages.labels("near").inc(12_345)
    served.drops.add("kept one", "dropped one")
    browser.open(_address(served), scripts=False)
    without = browser.evaluate(
        "return [...document.querySelectorAll('data')].map((each) => [each.dataset.name, each.getAttribute('value')])"
    )
    figures = shown(served.port).figures
    changing = {"memory.resident_bytes"}
    assert {
        name: None if value is None else float(value) for name, value in without if name not in changing
    } == {name: value for name, value in figures.items() if name not in changing}
    assert "dropped one" in _text(browser, "#drops")
    # The page asks for itself again.
    browser.wait(lambda: served.asked > 2, "a refresh without scripts")


def test_page_says_when_the_process_is_gone(browser: Browser, served: Served) -> None:
    browser.open(_address(served))
    browser.wait(lambda: served.asked > 1, "a refresh")
    served.server.close()
    browser.wait(lambda: "these figures are old" in _text(browser, "#stale"), "the remark")
    _require_no_others_than_refused(browser)


def test_page_of_a_process_that_started_again_is_loaded_again(browser: Browser, served: Served) -> None:
    served.drops.add("kept one", "dropped one")
    browser.open(_address(served))
    browser.wait(lambda: _count(browser, "#drop-1"), "the drop")
    served.server.close()
    again = Served(f"127.0.0.1:{served.port}")
    try:
        again.drops.add("kept again", "dropped again")
        browser.wait(lambda: "dropped again" in _text(browser, "#drops"), "the drops of the new process")
        assert "dropped one" not in _text(browser, "#drops")
        _require_no_others_than_refused(browser)
    finally:
        again.server.close()


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
            "http": {"listen": "none", "pages": "127.0.0.1:0", "texts": True},
            "near": {"window": {"messages": 1_000}},
            "exact": {"window": {"messages": 1_000}},
        }
    )
    service = Service(settings, cluster, member="one")
    try:
        browser.open(f"http://127.0.0.1:{first_port(ports)}/")
        assert _count(browser, "article") == 0
        messages = Messages()
        for text in (unlike(1), TEXTS["script"] + unlike(2), unlike(1), TEXTS["script"] + unlike(2)):
            messages.add(None, json.dumps({"text": text}).encode())
        MemoryBroker(cluster).appender().append(Partition("posts", 0), messages)
        browser.wait(lambda: _count(browser, "article") == 2, "both drops")
        browser.wait(lambda: _text(browser, "#drops").count(unlike(1)) == 2, "the text of a leader")
        browser.require_inert()
        browser.require_layout()
        browser.leave()
    finally:
        service.end()
