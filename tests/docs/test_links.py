"""Links between the pages lead to a file, and to a heading that it has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.documents import DOCUMENTS, anchors, name_of


@pytest.mark.parametrize("page", DOCUMENTS, ids=name_of)
def test_links_lead_to_a_file_and_a_heading_of_it(page: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text("utf-8")):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        to = page.parent / name if name else page
        assert to.exists(), target
        assert not anchor or anchor in anchors(to), target
