"""The Python of the pages runs, and prints what they show."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from tests.docs.documents import DOCUMENTS, name_of

_BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```\n\n```\n(?P<shown>.*?)^```$", re.MULTILINE | re.DOTALL)


_PAGES = [page for page in DOCUMENTS if "```python" in page.read_text("utf-8")]


@pytest.mark.parametrize("page", _PAGES, ids=name_of)
def test_the_python_of_a_page_prints_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: Path
) -> None:
    """In the order of the page and in one folder: later snippets read files of earlier ones."""
    monkeypatch.chdir(tmp_path)
    text = page.read_text("utf-8")
    blocks = list(_BLOCK.finditer(text))
    assert len(blocks) == text.count("```python")
    for block in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block["code"], page.name, "exec"), {"__name__": "page"})
        assert _stripped(printed.getvalue()) == _stripped(block["shown"]), block["code"]


def _stripped(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]
