"""Parts of the documentation that come from the code are as the code has them now."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import pages


@pytest.mark.parametrize("page", pages.pages(), ids=lambda page: page.name)
def test_a_page_holds_what_the_code_says(page: Path) -> None:
    assert pages.rewritten(page) == page.read_text("utf-8"), "run python -m scripts.pages"


def test_every_part_stands_on_a_page() -> None:
    text = "".join(page.read_text("utf-8") for page in pages.pages())
    assert all(f"<!-- from the code: {name} -->" in text for name in pages.PARTS)
