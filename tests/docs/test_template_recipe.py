"""The recipes for texts of one template keep of the rows on the page what the page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.calling import SMALL, Run
from tests.docs.documents import ROOT, blocks, commands
from twinsieve import Sieve

_PAGE = ROOT / "docs" / "RECIPES.md"


def test_texts_of_one_template_are_compared_within_their_scope(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    (rows,) = blocks(_PAGE.read_text("utf-8").partition("of one template\n")[2].partition("\n## ")[0], "")
    monkeypatch.chdir(tmp_path)
    Path("FILE").write_text(rows)
    (words,) = (words for words in commands(_PAGE, "twinsieve") if "scope=[place]" in words)
    lines = rows.splitlines()

    assert run(*words[1:], "-q", *SMALL).code == 0
    assert Path("unique.jsonl").read_text().splitlines() == lines[:2]
    without = [word for word in words[1:] if word != "scope=[place]"]
    del without[len(without) - 1]
    assert run(*without, "-q", *SMALL).code == 0
    assert Path("unique.jsonl").read_text().splitlines() == lines[:1]


def test_tickets_are_compared_within_their_customer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    (rows,) = blocks(
        _PAGE.read_text("utf-8").partition("\n## Tickets and mails\n")[2].partition("\n## ")[0], ""
    )
    monkeypatch.chdir(tmp_path)
    Path("FILE").write_text(rows)
    (words,) = (words for words in commands(_PAGE, "twinsieve") if "scope=[customer]" in words)
    assert run(*words[1:], "-q", *SMALL).code == 0
    assert Path("unique.jsonl").read_text().splitlines() == rows.splitlines()[:2]


def test_rows_without_the_field_are_one_scope() -> None:
    texts = ["The ferry leaves at nine o'clock from the northern pier."] * 5
    assert Sieve().judge(texts, scopes=["a", None, "b", None, "a"]).kept.tolist() == [True] * 3 + [False] * 2
