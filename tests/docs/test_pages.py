"""Parts of the documentation that come from the code are as the code has them now."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import pages


@pytest.mark.parametrize("page", pages.pages(), ids=lambda page: page.name)
def test_a_page_holds_what_the_code_says(page: Path) -> None:
    text = page.read_text("utf-8")
    assert pages.rewritten(text) == text, "run python -m scripts.pages"


def test_every_part_stands_on_a_page() -> None:
    told = "".join(page.read_text("utf-8") for page in pages.pages())
    assert all(f"<!-- from the code: {name} -->" in told for name in pages.PARTS)
