"""The tests' browser notices what a page must not do: a harness that notices nothing passes every page."""

from __future__ import annotations

import pytest

from tests.pages.chromium import Browser

_POLICY = """<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'none'">"""


def _page(body: str, head: str = "") -> bytes:
    return f"<!doctype html><meta charset=utf-8>{head}<body>{body}".encode()


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("<script>window.__pwned=1</script>", "Executing inline script violates"),
        ("<p style='color: red'>x</p>", "Applying inline style violates"),
        ("<p onclick='x()'>x</p><script>", "Executing inline"),
    ],
)
def test_refusal_of_the_policy_is_noticed(browser: Browser, body: str, problem: str) -> None:
    browser.show(_page(body, _POLICY))
    assert problem in "\n".join(browser.problems())


@pytest.mark.parametrize(
    "body",
    [
        "<img src='http://other.invalid/x.png'>",
        "<link rel=stylesheet href='https://other.invalid/x.css'>",
        "<script>fetch('http://127.0.0.1:9/x').catch(() => {})</script>",
        "<script>navigator.sendBeacon('http://other.invalid/x', 'y')</script>",
        "<script>try { new WebSocket('ws://127.0.0.1:9/x') } catch {}</script>",
        "<iframe src='http://other.invalid/'></iframe>",
        "<meta http-equiv=refresh content='0;url=http://other.invalid/'>",
        "<script>location = 'http://other.invalid/'</script>",
        "<img src='neighbour.png'>",
    ],
)
def test_request_of_another_address_is_noticed(browser: Browser, body: str) -> None:
    browser.show(_page(body))
    hosts = (
        "http://other.invalid/",
        "https://other.invalid/",
        "http://127.0.0.1:9/",
        "ws://127.0.0.1:9/",
        "file:",
    )
    starts = tuple(f"request: {host}" for host in hosts)
    browser.wait(lambda: [one for one in browser.problems() if one.startswith(starts)], "the request")


def test_request_that_the_policy_refused_is_noticed(browser: Browser) -> None:
    browser.show(_page("<img src='http://other.invalid/x.png'>", _POLICY))
    problems = browser.problems()
    assert "request: http://other.invalid/x.png" in problems
    assert "Content Security Policy" in "\n".join(problems)


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("alert('hello')", "dialog: hello"),
        ("console.error('bad')", "bad"),
        ("throw new Error('thrown')", "Uncaught Error: thrown"),
        ("Promise.reject(new Error('rejected'))", "rejected"),
    ],
)
def test_dialog_and_error_are_noticed(browser: Browser, script: str, problem: str) -> None:
    browser.show(_page(f"<script>{script}</script>"))
    assert problem in "\n".join(browser.problems())


@pytest.mark.parametrize(
    "body",
    [
        "<div onclick='1'>x</div>",
        "<a href=' java\tscript:1'>x</a>",
        "<iframe srcdoc='x'></iframe>",
        "<base href='https://example.org/'>",
        "<script>window.__pwned = 'by a text'</script>",
        "<script></script>",
    ],
)
def test_active_page_is_noticed(browser: Browser, body: str) -> None:
    browser.show(_page(body))
    with pytest.raises(AssertionError):
        browser.require_inert(scripts=0)
    browser.problems()


@pytest.mark.parametrize(
    "body",
    [
        f"<p>{'W' * 300}</p>",
        "<div style='width: 1500px; height: 10px'></div>",
        "<div style='position: absolute; left: -50px; width: 100px; height: 10px'></div>",
        "<table><tr>" + "<td>some words</td>" * 40 + "</table>",
        "<div style='width: 500px; height: 10px'></div>",
        f"<p style='overflow: hidden'>{'W' * 300}</p>",
        f"<p style='overflow-x: clip'>{'W' * 300}</p>",
    ],
)
def test_page_that_does_not_fit_is_noticed(browser: Browser, body: str) -> None:
    browser.show(_page(body))
    with pytest.raises(AssertionError, match="at a width of"):
        browser.require_layout()
