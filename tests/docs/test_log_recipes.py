"""The two recipes for logs keep of the log on the page what the page says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.calling import SMALL, Run
from tests.docs.documents import ROOT, blocks, commands

_PAGE = ROOT / "docs" / "RECIPES.md"


def test_one_recipe_keeps_repeats_alone_and_one_keeps_templates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    log, templates = blocks(_PAGE.read_text("utf-8").partition("### Templates")[2], "")
    monkeypatch.chdir(tmp_path)
    Path("FILE").write_text(log)
    repeats, _, by_template = (words for words in commands(_PAGE, "twinsieve") if "text" in words)

    assert run(*repeats[1:], "-q", *SMALL).code == 0
    assert Path("unique.log").read_text().splitlines() == log.splitlines()[:-1], "only the last line repeats"
    assert run(*by_template[1:], "-q", *SMALL).code == 0
    assert Path("templates.log").read_text() == templates
    sizes = [json.loads(line)["size"] for line in Path("clusters.jsonl").read_text().splitlines()]
    assert sum(sizes) - len(sizes) == len(log.splitlines()) - len(templates.splitlines())
