"""The lists of words as their files spell them, read in the simplest way."""

from __future__ import annotations

import unicodedata
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from twinsieve.stages import differ
from twinsieve.stages.text.scripts import UNSPACED_RANGES

LISTS: dict[str, dict[str, Any]] = {
    file.stem: yaml.load(file.read_text(encoding="utf-8").replace("ı", "i"), yaml.CSafeLoader)
    for file in sorted((Path(differ.__path__[0]) / "data" / "words").iterdir())
}


def in_order(text: str) -> list[str]:
    """The words that one word with braces stands for, each followed by itself without accents."""
    before, brace, rest = text.partition("{")
    inner, _, behind = rest.partition("}")
    forms = (
        [before + form + end for form in inner.split(",") for end in in_order(behind)] if brace else [text]
    )
    result = []
    for form in forms:
        result.append(form)
        if len(form) >= 4 and not any(first <= ord(form[0]) <= last for first, last in UNSPACED_RANGES):
            result.append(_bare(form))
    return list(dict.fromkeys(form for form in result if form)) if text else [""]


def spelled(text: str) -> set[str]:
    """All words of a text of a list."""
    return {form for word in text.split() for form in in_order(word)}


def sides(language: str) -> list[list[list[str]]]:
    """The sides of each opposite, of the weekdays, the months and the days: their words."""
    lists = LISTS[language]
    entries = [pair.split("/") for pair in lists.get("opposites", [])]
    every = [*entries, *(lists.get(name, []) for name in ("weekdays", "months", "days"))]
    return [filled for entry in every if (filled := [_in_order(side) for side in entry if side.split()])]


@cache
def negations() -> frozenset[str]:
    """Those of all languages, with their other spellings."""
    listed = set().union(
        *(spelled(lists.get("negation", "")) | spelled(lists.get("concord", "")) for lists in LISTS.values())
    )
    firsts = {first_spellings().get(word) for word in listed} - {None}
    return frozenset(listed | {word for word, first in first_spellings().items() if first in firsts})


@cache
def stages() -> frozenset[str]:
    """Words that say how far something has come, of all languages."""
    return frozenset().union(*(spelled(row) for lists in LISTS.values() for row in lists.get("stages", [])))


@cache
def numbers() -> frozenset[str]:
    """Words and characters for numbers, of all languages."""
    return frozenset(
        form
        for lists in LISTS.values()
        for name in ("numbers", "numerals", "powers")
        for word in lists.get(name, {})
        for form in spelled(word)
    )


def spelling_groups(language: str) -> list[list[str]]:
    """Words that are spellings of one word, the usual one first."""
    return [_in_order(group) for group in LISTS[language].get("same", [])]


@cache
def first_spellings() -> dict[str, str]:
    """Each word of a group with the first spelling of its word. A word of several groups stays in the first."""
    first: dict[str, str] = {}
    for language in LISTS:
        for group in spelling_groups(language):
            word = first.get(group[0], group[0])
            for form in group:
                first.setdefault(form, word)
    return first


def _in_order(side: str) -> list[str]:
    return [form for word in side.split() for form in in_order(word)]


def _bare(text: str) -> str:
    """A text without the accents that its letters are composed with."""
    letters = [(char, unicodedata.normalize("NFD", char)) for char in text]
    return "".join(
        parts[0] if len(parts) > 1 and all(map(unicodedata.combining, parts[1:])) else char
        for char, parts in letters
    )
