"""Every entry of `words.yaml` once where it keeps two messages apart, and once where it does not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.stages.differ.test_differences import GUARDS, reasons
from twinsieve.stages import differ
from twinsieve.stages.differ.rules import Rule
from twinsieve.stages.text.normalizer import Normalizer
from twinsieve.stages.text.rules import TextConfig

LISTS: dict[str, dict[str, Any]] = yaml.safe_load(
    (Path(differ.__path__[0]) / "data" / "words.yaml").read_text(encoding="utf-8")
)
_UNSPACED = {"zh", "ja", "th"}
_FRAMES = {
    "zh": ("本市新开的图书馆里面", "读者们已经坐满了座位"),
    "ja": ("あたらしい図書館のなかに", "ひとびとがすわっている"),
    "th": ("ห้องสมุดแห่งนี้ใน", "ผู้คนนั่งอยู่"),
}
_LATIN = ("the library of the town was painted", "yellow during summer by painters")


def framed(language: str, middle: str) -> str:
    """The words in the middle of a text that says nothing."""
    before, after = _FRAMES.get(language, _LATIN)
    return before + middle + after if language in _UNSPACED else f"{before} {middle} {after}"


def entries(name: str) -> Iterator[tuple[str, str]]:
    for language, lists in LISTS.items():
        for phrase in lists.get(name, "").split():
            yield language, phrase


def sides(*names: str) -> Iterator[tuple[str, str, list[list[str]]]]:
    for language, lists in LISTS.items():
        for name in names:
            if name == "opposites":
                for pair in lists.get(name, []):
                    yield language, name, [side.split() for side in pair.split("/")]
            elif lists.get(name):
                yield language, name, [side.split() for side in lists[name]]


def rule_of(later: str, earlier: str) -> Rule:
    """The reason under guards, on which the kernel and the plain list agree."""
    kernel, plain = reasons(later, earlier, GUARDS)
    assert kernel == plain, (later, earlier)
    return kernel


@pytest.mark.parametrize(
    ("language", "name", "synonyms"), list(sides("opposites", "weekdays", "months", "days"))
)
def test_sides_keep_apart_and_words_of_one_side_do_not(
    language: str, name: str, synonyms: list[list[str]]
) -> None:
    expected = {Rule.OPPOSITE} if name == "opposites" else {Rule.CALENDAR, Rule.NUMERAL}
    filled = [side for side in synonyms if side]
    for number, side in enumerate(filled):
        for other in filled[number + 1 :]:
            for phrase in side:
                for against in other:
                    rule = rule_of(framed(language, against), framed(language, phrase))
                    assert rule in expected | {Rule.OPPOSITE}, (phrase, against)
        for phrase in side:
            assert rule_of(framed(language, side[0]), framed(language, phrase)) == Rule.NONE or _negates(
                language, side[0], phrase
            ), (side[0], phrase)


def _negates(language: str, phrase: str, other: str) -> bool:
    """Whether one of two words of a side holds a negation and the other one does not."""
    negations = LISTS[language].get("negation", "").split()
    return any((word in phrase) != (word in other) for word in negations)


@pytest.mark.parametrize(("language", "phrase"), list(entries("negation")))
def test_a_negation_added_keeps_apart_and_one_in_both_does_not(language: str, phrase: str) -> None:
    with_it, without = framed(language, phrase), framed(language, "")
    assert rule_of(with_it, without) == rule_of(without, with_it) == Rule.OPPOSITE
    assert rule_of(with_it + ("啊" if language == "zh" else "s"), with_it) == Rule.NONE


@pytest.mark.parametrize(("language", "phrase"), list(entries("idioms")))
def test_an_idiom_added_keeps_nothing_apart(language: str, phrase: str) -> None:
    assert rule_of(framed(language, phrase), framed(language, "")) == Rule.NONE


@pytest.mark.parametrize(("language", "phrase"), list(entries("corrections")))
def test_a_correction_at_an_end_keeps_apart_and_inside_it_does_not(language: str, phrase: str) -> None:
    text = framed(language, "")
    glue = "" if language in _UNSPACED else " "
    assert rule_of(text + glue + phrase, text) in {Rule.CORRECTION, Rule.OPPOSITE}
    assert rule_of(phrase + glue + text, text) in {Rule.CORRECTION, Rule.OPPOSITE}
    known = LISTS[language].get("negation", "").split()
    negates = language in _UNSPACED and any(word in phrase for word in known)
    inside = rule_of(phrase + glue + text + glue + phrase, phrase + glue + text)
    assert inside == (Rule.OPPOSITE if negates else Rule.NONE)


@pytest.mark.parametrize(
    ("language", "word", "value"),
    [(language, *pair) for language, lists in LISTS.items() for pair in lists.get("numbers", {}).items()],
)
def test_a_spelled_number_is_its_value(language: str, word: str, value: int) -> None:
    assert rule_of(framed(language, word), framed(language, str(value))) == Rule.NONE
    assert rule_of(framed(language, word), framed(language, str(value + 40))) == Rule.NUMBER


@pytest.mark.parametrize(("word", "value"), list(LISTS["zh"]["numerals"].items()))
def test_a_chinese_numeral_is_its_value(word: str, value: int) -> None:
    assert rule_of(framed("zh", word), framed("zh", str(value))) == Rule.NONE
    assert rule_of(framed("zh", word), framed("zh", "37")) == Rule.NUMBER


def test_entries_are_spelled_as_bodies_spell_them() -> None:
    """Else they would never be found."""
    names = ("light", "negation", "corrections")
    texts = [phrase for name in names for _, phrase in entries(name)]
    texts += [
        phrase
        for *_, synonyms in sides("opposites", "weekdays", "months", "days")
        for s in synonyms
        for phrase in s
    ]
    bodies = Normalizer(TextConfig(profile="plain")).bodies([f"x {text} x" for text in texts])
    spelled = [bodies.text(row)[1:-1] for row in range(len(texts))]
    assert [(text, body) for text, body in zip(texts, spelled, strict=True) if text != body] == []
