"""Whatever a text holds, a page shows it and does not run it."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinsieve.pipeline.basics.printable import acts
from twinsieve.pipeline.pages import render as renderer
from twinsieve.pipeline.pages.render import render, svg_image

TEMPLATE = """{% extends "base.html" %}{% from "pair.html" import pair %}
{% block content %}<p id="one" title="{{ left }}">{{ left }}</p>{{ pair(left, right) }}{% endblock %}"""


class Elements(HTMLParser):
    """Names of the elements of a page, and the text in it."""

    def __init__(self, html: bytes) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: list[str] = []
        self.text = ""
        self.feed(html.decode())
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += [name for name, _ in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of templates, with one more."""
    for source in renderer._DATA.iterdir():
        (tmp_path / source.name).write_bytes(source.read_bytes())
    (tmp_path / "page.html").write_text(TEMPLATE)
    (tmp_path / "page.js").write_text("document.title = 'ran';\n")
    monkeypatch.setattr(renderer, "_DATA", tmp_path)
    renderer._environment.cache_clear()
    return tmp_path


@pytest.fixture(autouse=True, scope="module")
def _fresh_environment() -> object:
    yield
    renderer._environment.cache_clear()


@given(st.text(), st.text())
def test_text_adds_no_element_and_no_acting_character(left: str, right: str) -> None:
    plain, page = Elements(render("page.html", left="", right="").html), None
    page = Elements(render("page.html", left=left, right=right).html)
    marks = {"del", "ins"}
    assert [name for name in page.names if name not in marks] == plain.names
    assert page.attributes == plain.attributes
    assert not any(acts(char) for char in page.text if char != "\n")


def test_script_tag_and_quotes_are_shown_as_text() -> None:
    hostile = "\"'><script>alert(1)</script>\u202e\x00\ud800"
    page = Elements(render("page.html", left=hostile, right="").html)
    assert "script" not in page.names
    assert "\"'><script>alert(1)</script>\\u202e\\x00\\ud800" in page.text


def test_policy_allows_the_own_style_and_script_alone(data: Path) -> None:
    page = render("page.html", script="page.js", left="", right="")
    html = page.html.decode()
    for tag in ("style", "script"):
        inside = re.search(rf"<{tag}>(.*?)</{tag}>", html, re.DOTALL)
        assert inside is not None
        digest = base64.b64encode(hashlib.sha256(inside[1].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in page.policy
    assert "script-src 'none'" in render("page.html", left="", right="").policy
    assert "default-src 'none'" in page.policy
    assert "unsafe" not in page.policy


def test_missing_value_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError, match="left"):
        render("page.html", right="")


def test_image_is_an_address_without_quotes() -> None:
    assert svg_image(b'<svg onload="alert(1)">').startswith("data:image/svg+xml;base64,PHN2")
