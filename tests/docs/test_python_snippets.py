"""The Python of README and RECIPES runs, and prints what the pages show."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

_BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```\n\n```\n(?P<shown>.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("name", "count"), [("README.md", 1), ("docs/RECIPES.md", 5)])
def test_the_python_of_a_page_prints_what_the_page_shows(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, count: int
) -> None:
    """In the order of the page and in one folder: later snippets read files of earlier ones."""
    monkeypatch.chdir(tmp_path)
    page = (root / name).read_text("utf-8")
    blocks = list(_BLOCK.finditer(page))
    assert len(blocks) == page.count("```python") == count
    for block in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block["code"], name, "exec"), {"__name__": "page"})
        assert _stripped(printed.getvalue()) == _stripped(block["shown"]), block["code"]


def _stripped(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]
