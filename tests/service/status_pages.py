"""The status pages of a process, and what stands on them."""

from __future__ import annotations

import http.client
import json
import logging
from html.parser import HTMLParser
from typing import Any

import pytest

from tests.memory.broker import ManualClock
from tests.service.running import wait_for
from twinsieve.pipeline.service.metrics import Metrics
from twinsieve.pipeline.settings.model import HttpSettings, Settings
from twinsieve.pipeline.status_pages import server as status_pages
from twinsieve.pipeline.status_pages.figures import StatusFigures
from twinsieve.pipeline.status_pages.server import LogTail, StatusPages, StatusServer

_TIMEOUT_S = 300


def pages_listening(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Ports of the status pages of services that are started from now on."""
    ports: list[int] = []

    class Listening(StatusServer):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments)  # type: ignore[arg-type]
            ports.append(self.port)

    monkeypatch.setattr(status_pages, "StatusServer", Listening)
    return ports


def first_port(ports: list[int]) -> int:
    wait_for(lambda: bool(ports), "status pages")
    return ports[0]


def ask(
    port: int, path: str, method: str = "GET", *, to: str = "127.0.0.1", headers: dict[str, str] | None = None
) -> tuple[int, bytes, http.client.HTTPMessage]:
    """Status, body and headers of an answer. headers: instead of those that are sent anyway"""
    asked = http.client.HTTPConnection(to, port, timeout=_TIMEOUT_S)
    try:
        asked.putrequest(method, path, skip_host=headers is not None)
        for name, value in (headers or {}).items():
            asked.putheader(name, value)
        asked.endheaders()
        answer = asked.getresponse()
        return answer.status, answer.read(), answer.msg
    finally:
        asked.close()


def status_json(port: int) -> Any:
    status, body, _ = ask(port, "/status.json")
    assert status == 200, body
    return json.loads(body)


def leaves(values: Any, above: str = "") -> dict[str, Any]:
    """All values by their path, as `window.hours`."""
    if not isinstance(values, dict):
        return {above: values}
    found: dict[str, Any] = {}
    for name, value in values.items():
        found |= leaves(value, f"{above}.{name}" if above else name)
    return found


class Shown(HTMLParser):
    """What a page shows. figures: values of its figures by their path, None for one that is not known"""

    def __init__(self, html: bytes) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: list[str] = []
        self.text = ""
        self.figures: dict[str, float | None] = {}
        self.feed(html.decode())
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += [name for name, _ in attrs]
        given = dict(attrs)
        if tag == "data":
            value = given.get("value")
            name, number = given["data-name"] or "", None if value is None else float(value)
            assert self.figures.setdefault(name, number) == number, f"{name} is shown with two values"

    def handle_data(self, data: str) -> None:
        self.text += data


def shown(port: int) -> Shown:
    status, body, _ = ask(port, "/")
    assert status == 200, body
    return Shown(body)


class Served:
    """A server whose log and metrics a test chooses."""

    def __init__(self, listen: str = "127.0.0.1:0") -> None:
        address = HttpSettings(pages=listen).pages_address
        assert address is not None
        clock = ManualClock()
        metrics = Metrics(clock)
        metrics.set_info("weibo", "both")
        self.tail = LogTail()
        self.metrics, self.why_not_ready = metrics, ""
        figures = StatusFigures(Settings(), metrics, clock, lambda: self.why_not_ready, str)
        self.server = StatusServer(address, StatusPages(figures, self.tail))
        self.port = self.server.port

    def log(self, message: str, *values: object, level: int = logging.WARNING) -> None:
        self.tail.handle(logging.LogRecord("twinsieve", level, "", 0, message, values, None))
