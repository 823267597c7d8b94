"""The pages of a process, asked in every way that probes, scrapers, people and strangers ask."""

from __future__ import annotations

import http.client
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from prometheus_client import CollectorRegistry, Counter

from twinsieve.pipeline.service.http import MAX_CONNECTIONS, HealthServer
from twinsieve.pipeline.service.metrics import Metrics
from twinsieve.pipeline.service.run import SystemClock
from twinsieve.pipeline.settings.model import HttpSettings, Settings
from twinsieve.pipeline.status_pages.figures import StatusFigures
from twinsieve.pipeline.status_pages.server import LogTail, StatusPages, StatusServer
from twinsieve.stages.errors import UsageError

_TIMEOUT_S = 300


class _Pages:
    """A server, and what it is told to say."""

    def __init__(self, listen: str) -> None:
        self.why_not_healthy = self.why_not_ready = self.remark = ""
        address = HttpSettings(listen=listen).address
        assert address is not None
        registry = CollectorRegistry()
        Counter("seen", "Seen", registry=registry).inc(3)
        self.server = HealthServer(
            address,
            registry,
            lambda: self.why_not_healthy,
            lambda: self.why_not_ready,
            lambda: self.remark,
        )

    def ask(
        self, path: str, method: str = "GET", host: str = "127.0.0.1"
    ) -> tuple[int, bytes, http.client.HTTPMessage]:
        asked = http.client.HTTPConnection(host, self.server.port, timeout=_TIMEOUT_S)
        try:
            asked.request(method, path)
            answer = asked.getresponse()
            return answer.status, answer.read(), answer.msg
        finally:
            asked.close()


@contextmanager
def _listening(listen: str) -> Iterator[_Pages]:
    made = _Pages(listen)
    try:
        yield made
    finally:
        made.server.close()


@pytest.fixture
def pages() -> Iterator[_Pages]:
    with _listening("127.0.0.1:0") as made:
        yield made


def test_pages_tell_health_readiness_and_metrics(pages: _Pages) -> None:
    pages.why_not_ready = "waiting for broker: broker a:1: nothing listens there"
    assert pages.ask("/healthz")[:2] == (200, b"ok\n")
    assert pages.ask("/readyz")[:2] == (503, b"waiting for broker: broker a:1: nothing listens there\n")
    status, body, headers = pages.ask("/metrics")
    assert (status, b"seen_total 3.0\n" in body) == (200, True)
    assert headers["Content-Type"].startswith("text/plain; version=")
    pages.why_not_ready, pages.why_not_healthy = "", "worker: no step for minutes"
    assert pages.ask("/readyz")[:2] == (200, b"ok\n")
    assert pages.ask("/healthz")[:2] == (503, b"worker: no step for minutes\n")


def test_a_process_that_is_ready_may_have_a_remark(pages: _Pages) -> None:
    pages.remark = "index: is 40 s behind\n\x1b[31m"
    assert pages.ask("/readyz")[:2] == (200, b"ok; index: is 40 s behind\\n\\x1b[31m\n")
    assert pages.ask("/healthz")[:2] == (200, b"ok; index: is 40 s behind\\n\\x1b[31m\n")
    pages.why_not_ready = "worker: retrying, not ready"
    assert pages.ask("/readyz")[:2] == (503, b"worker: retrying, not ready\n")


def test_a_page_shows_what_can_be_shown_as_it_is(pages: _Pages) -> None:
    pages.remark = "state.dir …/état: \u202e\ud800"
    assert pages.ask("/readyz")[1].decode() == "ok; state.dir …/état: \\u202e\\ud800\n"


@pytest.mark.parametrize("path", ["/healthz?x=1", "/healthz/", "/healthz/?x", "/readyz?", "/metrics/?a[]=b"])
def test_a_query_and_a_slash_at_the_end_change_nothing(pages: _Pages, path: str) -> None:
    assert pages.ask(path)[0] == 200


@pytest.mark.parametrize("path", ["/", "/?x", "/healthz", "/readyz", "/metrics", "/none"])
def test_a_head_is_the_answer_to_a_get_without_its_body(pages: _Pages, path: str) -> None:
    status, body, headers = pages.ask(path)
    assert pages.ask(path, "HEAD")[:2] == (status, b"")
    assert pages.ask(path, "HEAD")[2]["Content-Length"] == str(len(body)) == headers["Content-Length"]


def test_the_first_page_leads_to_all_others(pages: _Pages) -> None:
    status, body, headers = pages.ask("/")
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    links = re.findall(rb'href="([^"]+)"', body)
    assert sorted(links) == [b"/healthz", b"/metrics", b"/readyz"]
    assert [pages.ask(link.decode())[0] for link in links] == [200, 200, 200]


@pytest.mark.parametrize("path", ["/other", "/healthz/more", "/../etc/passwd", "/%2e%2e/x", "//[", "*"])
def test_there_are_no_other_pages(pages: _Pages, path: str) -> None:
    status, body, _ = pages.ask(path)
    assert (status, body) == (404, b"no such page; there are /healthz, /readyz, /metrics\n")


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "FETCH"])
def test_no_answer_names_the_python_below(pages: _Pages, method: str) -> None:
    assert pages.ask("/healthz", method)[2]["Server"] == "twinsieve"


def test_a_reason_is_one_short_line_whatever_is_in_it(pages: _Pages) -> None:
    pages.why_not_ready = "a\r\nb\x1b[2J\u202e\ud800" + "中" * 1_000
    status, body, _ = pages.ask("/readyz")
    assert status == 503
    assert body.startswith(b"a\\r\\nb\\x1b[2J\\u202e\\ud800" + "中".encode())
    assert body.endswith("中\n".encode())
    assert len(body) < 4_000


@pytest.mark.parametrize(
    ("listen", "hosts"),
    [
        ("127.0.0.1:0", ["127.0.0.1"]),
        ("0.0.0.0:0", ["127.0.0.1"]),
        ("localhost:0", ["127.0.0.1"]),
        pytest.param("[::1]:0", ["::1"], marks=pytest.mark.needs("ipv6")),
        pytest.param("[::]:0", ["::1", "127.0.0.1"], marks=pytest.mark.needs("ipv6")),
    ],
)
def test_it_listens_where_it_is_told(listen: str, hosts: list[str]) -> None:
    with _listening(listen) as pages:
        assert [pages.ask("/healthz", host=host)[0] for host in hosts] == [200] * len(hosts)


@pytest.mark.parametrize(
    ("listen", "shown"),
    [
        ("no-such-host.invalid:8080", "'no-such-host.invalid:8080'"),
        ("192.0.2.1:8080", "'192.0.2.1:8080'"),
        ("[2001:db8::1]:1", r"'\[2001:db8::1\]:1'"),
    ],
)
def test_an_address_that_is_not_there_is_named(listen: str, shown: str) -> None:
    with pytest.raises(UsageError, match=rf"http\.listen is {shown}; the service cannot listen there \(\w"):
        _Pages(listen)


def _probe(port: int, path: str) -> int:
    asked = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_S)
    try:
        asked.request("GET", path)
        return asked.getresponse().status
    finally:
        asked.close()


@pytest.fixture(params=["/healthz", "/"], ids=["probes", "status pages"])
def socket_of(request: pytest.FixtureRequest, pages: _Pages) -> Iterator[tuple[int, str]]:
    """The port of each socket of a process, and a page on it."""
    if request.param == "/healthz":
        yield pages.server.port, "/healthz"
        return
    metrics = Metrics(SystemClock())
    figures = StatusFigures(Settings(), metrics, SystemClock(), str, str)
    server = StatusServer(("127.0.0.1", 0), StatusPages(figures, LogTail()))
    yield server.port, "/"
    server.close()


def test_connections_that_say_nothing_keep_nobody_out_and_are_few(socket_of: tuple[int, str]) -> None:
    port, path = socket_of
    before = threading.active_count()
    idle = []
    try:
        for _ in range(MAX_CONNECTIONS + 4):
            idle.append(socket.create_connection(("127.0.0.1", port), timeout=30))
            idle[-1].sendall(b"GET /heal")
        assert _probe(port, path) == 200
        assert threading.active_count() - before <= MAX_CONNECTIONS + 1
    finally:
        for connection in idle:
            connection.close()


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "FETCH"])
def test_other_methods_are_not_allowed(pages: _Pages, method: str) -> None:
    status, body, headers = pages.ask("/healthz", method)
    assert (status, body, headers["Allow"]) == (405, b"method not allowed; use GET or HEAD\n", "GET, HEAD")


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        (b"<script>alert(1)</script>\r\n\r\n", 400),
        (b"GET / HTTP/9.9\r\n\r\n", 505),
        (b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n", 414),
        (b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 200 + b"\r\n", 431),
    ],
)
def test_what_is_no_request_is_refused_without_repeating_it(
    socket_of: tuple[int, str], request_line: bytes, status: int
) -> None:
    with socket.create_connection(("127.0.0.1", socket_of[0]), timeout=_TIMEOUT_S) as raw:
        raw.sendall(request_line)
        answer = raw.makefile("rb").read()
    assert str(status).encode() in answer
    assert b"script" not in answer
    assert b"xxx" not in answer
    assert b"Python" not in answer
