"""Figures of README.md and docs/BENCHMARKS.md follow from the counts in the repository, by arithmetic of their own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import sqrt

import pytest

from tests.docs.documents import ROOT

PAGES = ("README.md", "docs/BENCHMARKS.md")
_SHARE = re.compile(r"[\d.]+ % \([\d.]+–[\d.]+\)")
_OF = re.compile(r"\d+ of \d+")


def rows_of_counts() -> list[list[int]]:
    """right, wrong, unsure, same; of each set under each measure."""
    lines = (ROOT / "tests" / "accuracy" / "label_counts.tsv").read_text("utf-8").splitlines()
    return [[int(number) for number in line.split("\t")[2:]] for line in lines[1:]]


def share(hits: int, of: int) -> str:
    """In percent, with the interval that solves |p − share| = 1.96 · √(p (1 − p) / n) for p."""
    if not of:
        return "–"
    z, found = 1.959964, hits / of
    half = sqrt(z**4 + 4 * z**2 * of * found * (1 - found))
    low, high = (abs(2 * of * found + z**2 + sign * half) / (2 * (of + z**2)) for sign in (-1, 1))
    return f"{found * 100:.1f} % ({low * 100:.0f}–{high * 100:.0f})"


def tables(page: str) -> Iterator[list[dict[str, str]]]:
    """The tables of a page that hold counts of labels: for each row the cells by their column."""
    text = (ROOT / page).read_text("utf-8")
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        head, _, *rows = [
            [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()
        ]
        counts = [name for name in head if name.endswith("right / wrong / unsure")]
        if counts and len(head) > 2:
            yield [dict(zip(head, row, strict=True)) | {"counts": row[head.index(counts[0])]} for row in rows]


@pytest.mark.parametrize(("page", "number"), [("README.md", 1), ("docs/BENCHMARKS.md", 4)])
def test_precision_in_a_table_is_that_of_the_counts_beside_it(page: str, number: int) -> None:
    found = list(tables(page))
    assert len(found) == number
    for row in (row for table in found for row in table):
        right, wrong, unsure = map(int, row["counts"].split(" / "))
        assert row["precision"] == share(right, right + wrong)
        assert row.get("unsure as wrong", "") in ("", share(right, right + wrong + unsure))
        assert [right, wrong, unsure] in [counts[:3] for counts in rows_of_counts()]


@pytest.mark.parametrize("page", PAGES)
def test_every_share_with_an_interval_is_one_of_the_counts(page: str) -> None:
    known = {
        share(*each)
        for right, wrong, unsure, same in rows_of_counts()
        for each in ((right, right + wrong), (right, right + wrong + unsure), (right, same))
    }
    shares = _SHARE.findall((ROOT / page).read_text("utf-8"))
    assert len(shares) > 20
    assert set(shares) <= known


def test_every_number_of_right_drops_in_the_prose_of_the_readme_is_one_of_the_counts() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    known = {f"{right} of {right + wrong}" for right, wrong, _, _ in rows_of_counts()}
    section = text.partition("## Which profile")[2].partition("\n## ")[0]
    found = _OF.findall(section)
    assert found
    assert set(found) <= known


def test_the_readme_names_recall_and_loss_of_every_peer_as_measured() -> None:
    def peers(page: str, *names: str) -> dict[str, list[str]]:
        text = (ROOT / page).read_text("utf-8")
        table = re.search(r"^(\| program \|[^\n]*lost[^\n]*\n)((?:\|.*\n)+)", text, re.MULTILINE)
        assert table is not None
        head = [cell.strip() for cell in table[1].strip("|\n").split("|")]
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2].splitlines()[1:]]
        return {row[0]: [row[head.index(name)] for name in names] for row in rows}

    assert peers("README.md", "edited", "lost", "posts/s") == peers(
        "docs/BENCHMARKS.md", "edited", "lost", "posts/s"
    )
