"""Parts of the documentation that come from the code are up to date."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import generated_docs


@pytest.mark.parametrize("page", generated_docs.pages(), ids=lambda page: page.name)
def test_a_page_has_the_parts_that_the_code_generates(page: Path) -> None:
    assert generated_docs.rewritten(page) == page.read_text("utf-8"), "run python -m scripts.generated_docs"


def test_every_part_is_on_a_page() -> None:
    text = "".join(page.read_text("utf-8") for page in generated_docs.pages())
    assert all(f"<!-- from the code: {name} -->" in text for name in generated_docs.PARTS)
