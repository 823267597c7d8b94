"""The page of `audit --html` in a real browser."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.calling import Run
from tests.pages.chromium import Browser
from tests.pages.hostile import TEXTS, UNBREAKABLE

_HOSTILE_NAME = "<img src=x onerror=alert(1)>\u202e.jsonl"


def _page(run: Run, folder: Path, rows: Iterable[tuple[str, str]], name: str = "dropped.jsonl") -> Path:
    """The page of what `dedup` drops of these rows. rows: (id, text)"""
    source = folder / "posts.jsonl"
    source.write_text("".join(json.dumps({"id": id_, "text": text}) + "\n" for id_, text in rows))
    dropped, apart, page = folder / name, folder / "apart.jsonl", folder / "page.html"
    outputs = ["-o", folder / "kept.jsonl", "--duplicates", dropped, "--kept-apart", apart]
    run("dedup", source, *outputs)
    done = run("audit", dropped, "--kept-apart", apart, "--html", page)
    assert (done.code, page.is_file()) == (0, True), done.err
    return page


def _articles(browser: Browser) -> list[str]:
    """What stands in the articles that are shown."""
    return [article.text for article in browser.all("article") if article.is_displayed()]


def test_hostile_texts_ids_and_names_do_nothing(browser: Browser, run: Run, tmp_path: Path) -> None:
    long_enough = {name: f"{name}: {text}" for name, text in TEXTS.items()}
    rows = [(f"{text[:300]} {copy}", text) for copy in (1, 2) for text in long_enough.values()]
    page = _page(run, tmp_path, rows, _HOSTILE_NAME)
    browser.open(page)
    browser.require_inert()
    text = browser.text("main")
    for name in TEXTS:
        assert f"{name}: " in text, name
    browser.require_layout(cut=UNBREAKABLE)
    browser.open(page, scripts=False)
    browser.require_inert()
    browser.require_layout(cut=UNBREAKABLE)


@pytest.fixture
def page(run: Run, tmp_path: Path) -> Path:
    rows = [
        ("a1", "The harbour ferry is late again this morning, says the port"),
        ("a2", "The harbour ferry is late again this morning, says the port"),
        ("b1", "Rain over the northern hills until Thursday, then slowly drier"),
        ("b2", "Rain over the northern hills until Thursday, then slowly drier"),
        ("b3", "Rain over the northern hills until Thursday, then slowly drier"),
    ]
    return _page(run, tmp_path, rows)


def test_search_shows_what_holds_the_words_alone(browser: Browser, page: Path) -> None:
    browser.open(page)
    everything = _articles(browser)
    assert len(everything) == 5, "two clusters and three drops"
    browser.click("input[type=search]")
    browser.press("NORTHERN hills")
    shown = _articles(browser)
    assert len(shown) == 3
    assert all("northern hills" in text for text in shown)
    assert browser.seen("output") == "3 of 5 entries"
    browser.press(" nowhere")
    assert _articles(browser) == []
    browser.evaluate(
        "const i = document.querySelector('input'); i.value = 'a2'; i.dispatchEvent(new Event('input'))"
    )
    assert len(_articles(browser)) == 2
    browser.require_layout()


def test_page_says_the_same_without_scripts(browser: Browser, page: Path) -> None:
    browser.open(page)
    everything = _articles(browser)
    browser.open(page, scripts=False)
    assert _articles(browser) == everything
    assert browser.all("input") == []
