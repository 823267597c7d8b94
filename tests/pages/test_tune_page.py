"""The report of `tune` in a real browser: pairs are labelled there, and both commands take the labels."""

from __future__ import annotations

import csv
import json
import subprocess
from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from tests.calling import SMALL, Run, program
from tests.pages.chromium import Browser
from tests.pages.hostile import TEXTS, UNBREAKABLE

_PAIRS = 8
_NAMES = ["later_id", "earlier_id", "label"]


def _report(posts: Path, pairs: int) -> Path:
    page = posts.with_suffix(".html")
    words = program("tune", posts, "--report", page, "--label-pairs", str(pairs), *SMALL)
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return page


@pytest.fixture(scope="module")
def posts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Generated posts, with their report beside them."""
    path = tmp_path_factory.mktemp("tune") / "posts.jsonl"
    words = program("generate", "--messages", "1000", "--seed", "7", "-o", path)
    subprocess.run(words, check=True, timeout=300)
    _report(path, _PAIRS)
    return path


@pytest.fixture(scope="module")
def hostile_posts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Each hostile text twice, the second with an end of its own, with hostile ids; the report beside them."""
    name = "<img src=x onerror=alert(1)>.jsonl"
    path = tmp_path_factory.mktemp("hostile") / name
    rows = [
        {
            "id": f"{copy} {name}: {text[:200]}",
            "text": f"{name}: {text[:5_000]} {copy * 'and some more of that'}",
        }
        for copy in (1, 2)
        for name, text in TEXTS.items()
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    _report(path, len(TEXTS))
    return path


def _labels(browser: Browser) -> list[str]:
    """The label of each pair, as its buttons show it; empty without one."""
    script = """return [...document.querySelectorAll("article")].map((one) =>
      [...one.querySelectorAll("button[aria-pressed=true]")].map((button) => button.textContent).join())"""
    found: list[str] = browser.evaluate(script)
    return found


def _press(browser: Browser, pair: int, label: str) -> None:
    browser.click(f"#pair-{pair} button[data-label={label}]")


def _rows(tsv: bytes) -> list[dict[str, str]]:
    reader = csv.DictReader(tsv.decode().splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)
    assert reader.fieldnames == _NAMES
    return list(reader)


def test_clicks_label_pairs_and_take_labels_back(browser: Browser, posts: Path) -> None:
    browser.open(posts.with_suffix(".html"))
    assert not browser.one("#download-labels").is_enabled()
    _press(browser, 1, "same")
    _press(browser, 2, "different")
    _press(browser, 3, "unsure")
    _press(browser, 4, "same")
    assert _labels(browser) == ["same", "different", "unsure", "same", "", "", "", ""]
    _press(browser, 4, "unsure")
    _press(browser, 1, "same")
    assert _labels(browser) == ["", "different", "unsure", "unsure", "", "", "", ""]
    assert browser.seen("#label-progress").startswith("3 of 8 labelled")
    # The head of the page says so, too.
    assert browser.seen("#label-call").startswith("3 of 8 labelled")


def test_keys_label_and_move(browser: Browser, posts: Path) -> None:
    browser.open(posts.with_suffix(".html"))
    browser.click("#label-start")
    browser.press("sdu" + Keys.ARROW_LEFT + "d" + Keys.ARROW_RIGHT + "Sx")
    assert _labels(browser) == ["same", "different", "different", "", "same", "", "", ""]


def test_reload_keeps_labels(browser: Browser, posts: Path) -> None:
    browser.open(posts.with_suffix(".html"))
    _press(browser, 2, "same")
    _press(browser, 3, "same")
    _press(browser, 3, "same")
    browser.reload_until(lambda: _labels(browser) == ["", "same", "", "", "", "", "", ""], "the labels")


def test_download_is_what_both_commands_take(browser: Browser, posts: Path, run: Run, tmp_path: Path) -> None:
    browser.open(posts.with_suffix(".html"))
    clicked = ["same", "different", "unsure", "same", "", "different", "same", "same"]
    for pair, label in enumerate(clicked, 1):
        if label:
            _press(browser, pair, label)
    browser.click("#download-labels")
    downloaded = browser.downloaded("labels.tsv")
    assert [row["label"] for row in _rows(downloaded)] == [label for label in clicked if label]
    labels = tmp_path / "labels.tsv"
    labels.write_bytes(downloaded)
    done = run("evaluate", posts, "--judged", labels)
    assert done.code == 0, done.err
    page, stats = tmp_path / "labelled.html", tmp_path / "stats.json"
    outputs = ["--report", page, "--stats", stats, "--label-pairs", _PAIRS]
    done = run("tune", posts, "--judged", labels, *outputs, *SMALL)
    assert done.code == 0, done.err
    browser.forget()
    browser.open(page)
    assert _labels(browser) == clicked, "the next report holds the labels"
    browser.require_inert()
    browser.require_layout()


def test_report_is_readable_without_scripts(browser: Browser, posts: Path) -> None:
    page = posts.with_suffix(".html")
    browser.open(page, scripts=False)
    assert "Scripts are off" in browser.seen()
    assert not [one for one in browser.all("button") if one.is_displayed()]
    lines = _rows(browser.text("#label-lines").encode())
    assert [row["label"] for row in lines] == [""] * _PAIRS
    browser.open(page)
    for pair in range(1, _PAIRS + 1):
        _press(browser, pair, "same")
    browser.click("#download-labels")
    assert _rows(browser.downloaded("labels.tsv")) == [{**row, "label": "same"} for row in lines]


def test_report_is_inert_and_keeps_its_layout(browser: Browser, posts: Path) -> None:
    browser.open(posts.with_suffix(".html"))
    browser.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    browser.require_inert()
    browser.require_layout()


def test_hostile_texts_ids_and_names_do_nothing(browser: Browser, hostile_posts: Path) -> None:
    page = hostile_posts.with_suffix(".html")
    browser.open(page)
    browser.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    browser.require_inert()
    browser.require_layout(cut=UNBREAKABLE)
    browser.open(page, scripts=False)
    browser.require_inert()
    browser.require_layout(cut=UNBREAKABLE)


def test_labels_of_hostile_ids_are_taken(
    browser: Browser, hostile_posts: Path, run: Run, tmp_path: Path
) -> None:
    browser.open(hostile_posts.with_suffix(".html"))
    browser.click("#label-start")
    pairs = len(browser.all("article"))
    assert pairs > 30
    browser.press("s" * pairs)
    browser.click("#download-labels")
    labels = tmp_path / "labels.tsv"
    labels.write_bytes(browser.downloaded("labels.tsv"))
    assert len(_rows(labels.read_bytes())) == pairs
    done = run("evaluate", hostile_posts, "--judged", labels)
    assert done.code == 0, done.err
