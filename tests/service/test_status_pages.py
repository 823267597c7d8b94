"""Who may read the status pages, and what a browser and a program are told."""

from __future__ import annotations

import json
import logging
import re
import socket
from collections.abc import Iterator

import pytest

from tests.service.status_pages import Served, ask, shown, status_json
from twinsieve.pipeline.basics.printable import acts
from twinsieve.pipeline.status_pages import server as status_pages
from twinsieve.stages.errors import UsageError

HOSTILE = [
    "\"'><script>alert(1)</script><img src=x onerror=alert(1)>",
    "\x7f\u202egnp.exe\u2066\x1b[2J\x07\x9b31m\u2028\ufeff",
    "x" * 1_000,
    "</dd></dl></article></div><h1>forged</h1>",
    "&lt;script&gt; &amp; {{ 7*7 }} {% raw %}",
    "\ud800 half a pair",
    "",
]


@pytest.fixture
def served() -> Iterator[Served]:
    made = Served()
    yield made
    made.server.close()


@pytest.fixture(scope="module")
def still() -> Iterator[Served]:
    """One that tests ask and do not change."""
    made = Served()
    yield made
    made.server.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LocalHost", "[::1]"])
def test_host_of_this_machine_is_answered(still: Served, host: str) -> None:
    for path in ("/", "/status.json"):
        assert ask(still.port, path, headers={"Host": f"{host}:{still.port}"})[0] == 200


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example:{}", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{}", "127.0.0.1.nip.io:{}"),
        *("0.0.0.0:{}", "[::]:{}", "127.0.0.2:{}", "user@127.0.0.1:{}", "127.0.0.1:{},evil", ":{}", ""),
    ],
)
def test_foreign_host_is_refused_with_a_clear_line(still: Served, host: str) -> None:
    port = still.port
    for path in ("/", "/status.json", "/none"):
        status, body, headers = ask(port, path, headers={"Host": host.format(port)})
        assert status == 421
        assert body.decode() == (
            f"refused: the header Host must be localhost:{port}, 127.0.0.1:{port} or [::1]:{port}; through a "
            f"tunnel, use the same port on both sides (ssh -L {port}:127.0.0.1:{port} HOST)\n"
        )
        assert headers["Content-Type"].startswith("text/plain")


def test_no_host_and_two_hosts_are_refused(served: Served) -> None:
    assert ask(served.port, "/", headers={})[0] == 421
    with socket.create_connection(("127.0.0.1", served.port)) as raw:
        host = f"Host: 127.0.0.1:{served.port}\r\n"
        raw.sendall(f"GET / HTTP/1.1\r\n{host}Host: evil.example\r\n\r\n".encode())
        assert raw.makefile("rb").readline().split()[1] == b"421"


def test_port_of_http_may_be_left_out() -> None:
    assert status_pages.misdirected(["127.0.0.1"], 80) == ""
    assert status_pages.misdirected(["127.0.0.1"], 8080) != ""


@pytest.mark.parametrize(
    "path", ["/x", "/metrics", "/healthz", "/../etc/passwd", "//[", "/status.json/x", "*"]
)
def test_there_are_no_other_pages(still: Served, path: str) -> None:
    assert ask(still.port, path)[:2] == (404, b"no such page; there are / and /status.json\n")


@pytest.mark.parametrize("path", ["/", "/status.json"])
def test_browser_gives_nothing_to_other_sites(still: Served, path: str) -> None:
    _, _, headers = ask(still.port, path)
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"
    assert headers["Server"] == "twinsieve"
    assert "Access-Control-Allow-Origin" not in headers
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; ")
    assert policy.endswith("; frame-ancestors 'none'") or path != "/"
    assert "unsafe" not in policy


@pytest.mark.needs("ipv6")
def test_it_listens_on_ipv6() -> None:
    served = Served("[::1]:0")
    try:
        assert ask(served.port, "/", to="::1")[0] == 200
        assert ask(served.port, "/", to="::1", headers={"Host": "evil.example"})[0] == 421
    finally:
        served.server.close()


def test_port_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UsageError) as refused:
            Served(f"127.0.0.1:{port}")
    assert str(refused.value) == (
        f"http.pages is '127.0.0.1:{port}'; the service cannot listen there (Address already in use)"
    )


def test_localhost_that_leads_elsewhere_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings allow the name, and a wrong /etc/hosts gives it another address."""
    monkeypatch.setattr(
        status_pages.socket, "getaddrinfo", lambda *_, **__: [(2, 1, 6, "", ("192.0.2.1", 8081))]
    )
    with pytest.raises(UsageError, match=r"host 'localhost' leads to 192\.0\.2\.1; write 127\.0\.0\.1:8081"):
        Served("localhost:8081")


def test_hostile_texts_add_no_element_and_no_acting_character(served: Served) -> None:
    served.log("plain")
    plain = shown(served.port)
    for text in HOSTILE:
        served.log("%s", text)
    page = shown(served.port)
    assert set(page.names) == set(plain.names)
    assert set(page.attributes) == set(plain.attributes)
    assert page.names.count("script") == 1
    assert not any(acts(char) for char in page.text if char != "\n")
    assert "<script>alert(1)</script>" in page.text


def test_json_holds_no_character_that_acts(served: Served) -> None:
    for text in HOSTILE:
        served.log("%s", text)
    _, body, headers = ask(served.port, "/status.json")
    assert headers["Content-Type"] == "application/json"
    assert re.fullmatch(rb"[ -~]*", body)
    assert not re.search(rb"[<&]", body)
    assert HOSTILE[0] in {line["message"] for line in json.loads(body)["errors"]}


def test_last_errors_are_shown_newest_first_without_secrets(served: Served) -> None:
    served.log("cannot read %s", "s3://AKIA:hunter2@bucket/x?token=abc")
    served.log("worker: it failed", level=logging.ERROR)
    found = status_json(served.port)["errors"]
    assert [(line["level"], line["message"]) for line in found] == [
        ("error", "worker: it failed"),
        ("warning", "cannot read s3://bucket/x"),
    ]
    page = shown(served.port)
    assert "cannot read s3://bucket/x" in page.text
    for secret in ("hunter2", "AKIA", "token"):
        assert secret not in page.text


def test_answer_that_came_while_the_page_was_made_is_of_no_time_ago(served: Served) -> None:
    served.metrics.role.enter("working", "index")
    served.metrics.answered.set({("index",): status_json(served.port)["time_s"] + 0.003})
    assert "last answer of the broker0 s ago" in shown(served.port).text


def test_page_needs_no_script(served: Served) -> None:
    html = ask(served.port, "/")[1]
    assert b'<noscript><meta http-equiv="refresh" content="5"></noscript>' in html
    assert b"src=" not in html
    assert b"href=" not in html
