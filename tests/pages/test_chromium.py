"""The tests' browser notices what a page must not do: a harness that notices nothing passes every page."""

from __future__ import annotations

from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from tests.pages.chromium import Browser

_POLICY = """<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'none'">"""


def _page(body: str, head: str = "") -> bytes:
    return f"<!doctype html><meta charset=utf-8>{head}<body>{body}".encode()


def test_calm_page_has_no_problems(browser: Browser) -> None:
    browser.show(_page("<p>calm</p>", _POLICY))
    browser.require_inert(scripts=0)
    browser.require_layout()
    assert browser.seen("p") == "calm"


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


def test_box_that_scrolls_may_hold_more_than_fits(browser: Browser) -> None:
    browser.show(_page(f"<div style='overflow-x: auto'><p>{'W' * 300}</p></div>"))
    browser.require_layout()


def test_scripts_can_be_off(browser: Browser) -> None:
    body = "<p>without</p><noscript>none</noscript><script>document.querySelector('p').textContent = 'with'</script>"
    browser.show(_page(body), scripts=False)
    assert browser.text("p") == "without"
    assert browser.seen() == "without\n\nnone"
    browser.reload()
    assert browser.text("p") == "without"
    browser.show(_page(body))
    assert browser.text("p") == "with"


def test_keys_clicks_and_downloads_work_on_a_file(browser: Browser) -> None:
    script = """
      document.querySelector("button").onclick = () => {
        const link = document.createElement("a");
        link.href = URL.createObjectURL(new Blob(["a\\tb\\n"], {type: "text/tab-separated-values"}));
        link.download = "rows.tsv";
        link.click();
      };
      document.onkeydown = (event) => { document.querySelector("p").textContent += event.key; };
    """
    browser.show(_page(f"<p></p><button>save</button><script>{script}</script>"))
    browser.press("1a" + Keys.ARROW_DOWN)
    assert browser.text("p") == "1aArrowDown"
    browser.click("button")
    assert browser.downloaded("rows.tsv") == b"a\tb\n"


def test_pages_before_are_judged_too(browser: Browser, tmp_path: Path) -> None:
    for name, body in [("one", "<p>calm</p>"), ("two", "<img src='one.html'>"), ("three", "<p>calm</p>")]:
        (tmp_path / f"{name}.html").write_bytes(_page(body))
        browser.open(tmp_path / f"{name}.html")
    assert [one for one in browser.problems() if one.startswith("request")] == [
        f"request: {(tmp_path / 'one.html').as_uri()}"
    ]


def test_what_a_page_stores_lasts_for_a_test(browser: Browser, tmp_path: Path) -> None:
    page = _page("<script>localStorage.seen = 1 + Number(localStorage.seen || 0)</script>")
    stored = "return localStorage.seen"
    browser.show(page)
    browser.reload_until(lambda: int(browser.evaluate(stored)) > 1, "what it stored")
    browser.use(tmp_path)
    browser.show(page)
    assert browser.evaluate(stored) == "1"


def test_hurry_ends_with_its_test(browser: Browser, tmp_path: Path) -> None:
    page = _page("<script>const wait = setTimeout.toString()</script>")
    browser.hurry()
    browser.show(page)
    assert "native code" not in browser.evaluate("return wait")
    browser.require_inert()
    browser.use(tmp_path)
    browser.show(page)
    assert "native code" in browser.evaluate("return wait")


def test_problems_of_one_test_stay_there(browser: Browser, tmp_path: Path) -> None:
    browser.show(_page("<script>setInterval(() => console.error('still here'), 1)</script>"))
    browser.use(tmp_path)
    assert browser.problems() == []
