"""Hostile texts on a page of the renderer, in a real browser: they are shown, and that is all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.pages.chromium import Browser
from tests.pages.hostile import TEXTS, UNBREAKABLE
from twinsieve.pipeline.basics.printable import beginning, printable
from twinsieve.pipeline.pages import render as renderer
from twinsieve.pipeline.pages.render import render

_TEMPLATE = """{% extends "base.html" %}{% from "pair.html" import pair %}
{% block title %}{{ text | shown }}{% endblock %}
{% block content %}<h1>{{ text | shown }}</h1>
<p id="whole" class="text" dir="auto" title="{{ text | shown }}">{{ text | shown }}</p>
{{ pair(text, text ~ "!") }}
<div class="wide"><table><tr><th>text</th><td id="cell">{{ text | shown }}</td><td class="number">{{ 1 }}</td></tr></table></div>
<ul><li>{{ text | shown }}</li></ul>
<p id="end">end</p>{% endblock %}"""
_HOLE = """{% extends "base.html" %}{% block content %}{{ text | safe }}{% endblock %}"""
"""What no template may do."""
_SCRIPT = "document.querySelector('#end').textContent = 'the script ran';\n"


@pytest.fixture(autouse=True, scope="module")
def _own_template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The renderer has one more template and a script."""
    data = tmp_path_factory.mktemp("data")
    for source in renderer._DATA.iterdir():
        (data / source.name).write_bytes(source.read_bytes())
    (data / "page.html").write_text(_TEMPLATE)
    (data / "hole.html").write_text(_HOLE)
    (data / "page.js").write_text(_SCRIPT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(renderer, "_DATA", data)
        renderer._environment.cache_clear()
        yield
    renderer._environment.cache_clear()


@pytest.mark.parametrize("name", TEXTS)
def test_text_is_shown_and_does_nothing(browser: Browser, name: str) -> None:
    text = TEXTS[name]
    browser.show(render("page.html", script="page.js", text=text).html)
    browser.require_inert()
    shown = printable(beginning(text, 2_000))
    assert browser.text("#whole") == shown
    assert browser.text("#cell") == shown
    assert browser.one("#whole").get_attribute("title") == shown
    assert browser.text("#end") == "the script ran"
    browser.require_layout(cut=[""] if name in UNBREAKABLE else [])


@pytest.mark.parametrize("name", [name for name, text in TEXTS.items() if "__pwned" in text])
def test_policy_holds_where_a_template_forgets_to_escape(browser: Browser, name: str) -> None:
    browser.show(render("hole.html", script="page.js", text=TEXTS[name]).html)
    assert browser.evaluate("return window.__pwned") is None
    assert [problem for problem in browser.problems() if problem.startswith("dialog")] == []


def test_list_keeps_its_bullets(browser: Browser) -> None:
    """They stand outside the box of their line, so they were gone where that box cut what it holds."""
    browser.show(render("page.html", text="a line").html)
    shown = browser.picture("ul")
    browser.evaluate("document.querySelector('ul').style.listStyle = 'none'")
    assert browser.picture("ul") != shown


def test_page_is_readable_without_scripts(browser: Browser) -> None:
    browser.show(render("page.html", script="page.js", text="a text").html, scripts=False)
    assert browser.seen("#whole") == "a text"
    assert browser.seen("#end") == "end"
