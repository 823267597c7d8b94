"""Days and months by the names that Unicode CLDR gives them: each language of the lists knows them all."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from tests.stages.differ.test_words import LISTS, framed, rules_of, wrong
from twinsieve.stages.differ.rules import Rule

_PATH = Path(__file__).with_name("calendar_names.tsv")
_ROWS = [line.split("\t") for line in _PATH.read_text("utf-8").splitlines()[2:]]
_APART = {Rule.CALENDAR, Rule.NUMBER, Rule.NUMBER_ADDED, Rule.NUMERAL}


@pytest.mark.parametrize(("language", "kind", "names"), _ROWS)
def test_a_day_or_month_in_place_of_the_next_one_keeps_apart(language: str, kind: str, names: str) -> None:
    own = language.partition("-")[0]
    every = names.split(",")
    # Hindi has one word for yesterday and tomorrow.
    nexts = [(one, other) for one, other in pairwise([*every, every[0]]) if one != other]
    assert len(nexts) >= 2, kind
    texts = [(framed(own, one), framed(own, other)) for one, other in nexts]
    assert wrong(texts, rules_of(texts), _APART) == []


def test_each_language_of_the_lists_has_names_here() -> None:
    languages = {lists["language"] for lists in LISTS.values() if "language" in lists}
    assert {row[0].partition("-")[0] for row in _ROWS} == languages
