"""Every entry of `data/words/` once where it decides, and once without the lists, where it does not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.stages.differ.asked import reason
from tests.stages.differ.lists import (
    LISTS,
    first_spellings,
    negations,
    numbers,
    sides,
    spelled,
    spelling_groups,
    stages,
)
from tests.stages.differ.test_differences import FULL, GUARDS
from twinsieve.stages import differ
from twinsieve.stages.contract import Differences
from twinsieve.stages.differ.phrases import Phrases
from twinsieve.stages.differ.rules import Rule
from twinsieve.stages.differ.word_lists import phrases_from, phrases_of
from twinsieve.stages.text.normalizer import Normalizer
from twinsieve.stages.text.rules import TextConfig

_UNSPACED = {"zh", "ja", "th"}
_FRAMES = {
    "zh": ("本市新开的图书馆里面", "读者们已经坐满了座位"),
    "ja": ("あたらしい図書館のなかに", "ひとびとがすわっている"),
    "th": ("ห้องสมุดแห่งนี้ใน", "ผู้คนนั่งอยู่"),
}
_NONSENSE = ("zubrela quomil draftone vesk pilomar", "grendow talimf oskane wubrid")
_NO_LISTS = phrases_from([])
_NORMALIZER = Normalizer(TextConfig(profile="plain"))
_EVERY_SENSE = {Rule.OPPOSITE, Rule.CALENDAR, Rule.NUMERAL, Rule.NUMBER}


def framed(language: str, middle: str) -> str:
    """The words in the middle of a text that says nothing."""
    before, after = _FRAMES.get(language, _NONSENSE)
    return before + middle + after if language in _UNSPACED else f"{before} {middle} {after}"


def rules_of(
    pairs: Sequence[tuple[str, str]], differences: Differences = GUARDS, phrases: Phrases | None = None
) -> list[Rule]:
    """Why each later text is kept apart from its earlier one."""
    bodies = _NORMALIZER.bodies([text for pair in pairs for text in pair])
    lists = phrases or phrases_of()
    return [reason(bodies, 2 * row, 2 * row + 1, differences, lists) for row in range(len(pairs))]


def listed(language: str, name: str) -> list[str]:
    """All words of a list."""
    return sorted(spelled(LISTS[language].get(name, "")))


def wrong(
    pairs: Iterable[tuple[str, str]], rules: Iterable[Rule], expected: set[Rule]
) -> list[tuple[str, str, str]]:
    """The pairs whose rule is none of those expected."""
    return [(*pair, rule.words) for pair, rule in zip(pairs, rules, strict=True) if rule not in expected]


@pytest.mark.parametrize("language", LISTS)
def test_each_word_keeps_apart_from_another_side_and_without_the_lists_it_does_not(language: str) -> None:
    pairs = []
    for entry in sides(language):
        assert len({word for side in entry for word in side}) == len(
            {(n, w) for n, side in enumerate(entry) for w in side}
        ), entry
        for number, side in enumerate(entry):
            other = entry[(number + 1) % len(entry)]
            pairs += [(word, other[0]) for word in side]
    texts = [(framed(language, word), framed(language, against)) for word, against in pairs]
    assert wrong(pairs, rules_of(texts), _EVERY_SENSE) == []
    assert wrong(pairs, rules_of(texts, phrases=_NO_LISTS), {Rule.NONE}) == []


@pytest.mark.parametrize("language", LISTS)
def test_words_of_one_side_are_no_opposites(language: str) -> None:
    pairs = [(side[0], word) for entry in sides(language) for side in entry for word in side[1:]]
    senses: dict[str, set[tuple[str, int, int]]] = {}
    for name in LISTS:
        for kind, entry in enumerate(sides(name)):
            for number, side in enumerate(entry):
                for word in side:
                    senses.setdefault(word, set()).add((name, kind, number))
    united: dict[str, set[tuple[str, int, int]]] = {}
    for word, first in first_spellings().items():
        united.setdefault(first, set()).update(senses.get(word, set()))
    senses |= {word: united[first] for word, first in first_spellings().items()}

    def excluded(one: str, other: str) -> bool:
        apart = any(
            mine[:2] == theirs[:2] and mine[2] != theirs[2]
            for mine in senses[one]
            for theirs in senses[other]
        )
        negates = (one in negations()) != (other in negations())
        negates |= (one in stages()) != (other in stages())
        return apart or negates or (one in numbers() and other in numbers())

    free = [
        pair
        for pair in pairs
        if not excluded(*pair) and not (language in _UNSPACED and _differ_by_negation(*pair))
    ]
    assert len(free) * 2 >= len(pairs)
    texts = [(framed(language, word), framed(language, against)) for word, against in free]
    assert wrong(free, rules_of(texts), {Rule.NONE}) == []


def _differ_by_negation(one: str, other: str) -> bool:
    return any((word in one) != (word in other) for word in negations())


@pytest.mark.parametrize("language", LISTS)
def test_a_negation_added_keeps_apart_and_one_in_both_does_not(language: str) -> None:
    listed_ones = listed(language, "negation")
    without = framed(language, "")
    added = [(framed(language, word), without) for word in listed_ones]
    assert wrong(added, rules_of(added), {Rule.OPPOSITE}) == []
    assert wrong(added, rules_of(added, phrases=_NO_LISTS), {Rule.NONE}) == []
    both = [(text + ("啊" if language == "zh" else "s"), text) for text, _ in added]
    assert wrong(both, rules_of(both), {Rule.NONE}) == []


@pytest.mark.parametrize("language", [name for name, lists in LISTS.items() if "idioms" in lists])
def test_an_idiom_added_keeps_nothing_apart(language: str) -> None:
    phrases = [phrase.replace("_", " ") for phrase in listed(language, "idioms")]
    added = [(framed(language, phrase), framed(language, "")) for phrase in phrases]
    assert wrong(added, rules_of(added), {Rule.NONE}) == []


@pytest.mark.parametrize("language", LISTS)
def test_a_correction_at_an_end_keeps_apart_and_inside_it_does_not(language: str) -> None:
    text, glue = framed(language, ""), "" if language in _UNSPACED else " "
    corrections = listed(language, "corrections")
    for ends in (
        [(text + glue + word, text) for word in corrections],
        [(word + glue + text, text) for word in corrections],
    ):
        assert wrong(ends, rules_of(ends), {Rule.CORRECTION, Rule.OPPOSITE, Rule.STAGE}) == []
        assert wrong(ends, rules_of(ends, phrases=_NO_LISTS), {Rule.NONE}) == []
    plain = [
        word
        for word in corrections
        if word not in negations() | stages()
        and not (language in _UNSPACED and _differ_by_negation(word, ""))
    ]
    inside = [(word + glue + text + glue + word, word + glue + text) for word in plain]
    assert wrong(inside, rules_of(inside), {Rule.NONE}) == []


@pytest.mark.parametrize("language", LISTS)
def test_a_spelled_number_is_its_value(language: str) -> None:
    numbers = [
        (form, value)
        for word, value in LISTS[language].get("numbers", {}).items()
        for form in sorted(spelled(word))
    ]
    same = [(framed(language, word), framed(language, str(value))) for word, value in numbers]
    other = [(framed(language, word), framed(language, str(value + 40))) for word, value in numbers]
    assert wrong(same, rules_of(same), {Rule.NONE}) == []
    assert wrong(other, rules_of(other), {Rule.NUMBER}) == []


def test_a_chinese_numeral_is_its_value() -> None:
    numerals = LISTS["zh"]["numerals"].items()
    same = [(framed("zh", word), framed("zh", str(value))) for word, value in numerals]
    other = [(framed("zh", word), framed("zh", "37")) for word, _ in numerals]
    assert wrong(same, rules_of(same), {Rule.NONE}) == []
    assert wrong(other, rules_of(other), {Rule.NUMBER}) == []


@pytest.mark.parametrize("language", [name for name, lists in LISTS.items() if "powers" in lists])
def test_a_power_multiplies_the_number_before_it(language: str) -> None:
    powers = [
        (form, value) for word, value in LISTS[language]["powers"].items() for form in sorted(spelled(word))
    ]
    same = [(framed(language, f"7 {word}"), framed(language, "7" + "0" * power)) for word, power in powers]
    other = [(framed(language, f"7 {word}"), framed(language, "8" + "0" * power)) for word, power in powers]
    assert wrong(same, rules_of(same), {Rule.NONE}) == []
    assert wrong(other, rules_of(other), {Rule.NUMBER}) == []
    assert wrong(same, rules_of(same, phrases=_NO_LISTS), {Rule.NUMBER}) == []


def test_the_word_of_a_currency_is_its_sign() -> None:
    named = [
        (sign, word)
        for sign, text in LISTS["any"]["currencies"].items()
        for word in sorted(spelled(text))
        if not sign.isalpha()  # the R of R$ 20
    ]
    same = [(framed("en", f"{sign}20"), framed("en", f"20 {word}")) for sign, word in named]
    other = [(framed("en", "₩20"), framed("en", f"20 {word}")) for _, word in named]
    assert wrong(same, rules_of(same), {Rule.NONE}) == []
    assert wrong(other, rules_of(other), {Rule.NUMBER}) == []


@pytest.mark.parametrize("language", [name for name, lists in LISTS.items() if "same" in lists])
def test_spellings_of_one_word_are_no_replacement(language: str) -> None:
    groups, first = spelling_groups(language), first_spellings()
    # A word that an earlier list took for another one stays there.
    pairs = [(group[0], word) for group in groups for word in group[1:] if first[word] == first[group[0]]]
    assert len(pairs) * 3 >= 2 * sum(len(group) - 1 for group in groups)
    texts = [(framed(language, one), framed(language, other)) for one, other in pairs]
    assert wrong(pairs, rules_of(texts, FULL), {Rule.NONE}) == []


def test_a_denial_holds_where_its_language_is_spoken_and_where_none_is_known() -> None:
    phrases = phrases_from(
        [
            {"language": "xa", "light": "zub qui dra", "negation": "vesko"},
            {"language": "xb", "light": "lor mip tuk"},
            {"language": "xc", "light": "hul", "beside": "xa"},
            {"negation": "nevko"},
        ]
    )
    spoken, other, beside, unknown = (
        f"{light} pilomar {{}} grendow talimf oskane"
        for light in ("zub qui dra", "lor mip tuk", "hul hul hul", "")
    )
    pairs = [(text.format("vesko"), text.format("")) for text in (spoken, other, beside, unknown)]
    assert rules_of(pairs, phrases=phrases) == [Rule.OPPOSITE, Rule.NONE, Rule.OPPOSITE, Rule.OPPOSITE]
    of_none = [(text.format("nevko"), text.format("")) for text in (spoken, other, beside, unknown)]
    assert set(rules_of(of_none, phrases=phrases)) == {Rule.OPPOSITE}


@pytest.mark.parametrize("language", sorted(set(LISTS) - {"any", "zh_names"}))
def test_a_file_names_the_sources_of_its_opposites_and_light_words(language: str) -> None:
    path = Path(differ.__path__[0]) / "data" / "words" / f"{language}.yaml"
    comments = " ".join(
        line.lstrip("# ") for line in path.read_text("utf-8").splitlines() if line.startswith("#")
    )
    for name in ("Opposites", "Light words"):
        assert re.search(rf"{name}: .*\w", comments), name


def test_entries_are_spelled_as_bodies_spell_them() -> None:
    """Else they would never be found."""
    texts = set[str]()
    for language in LISTS:
        for name in ("light", "negation", "corrections", "agency", "emoticons"):
            texts |= set(listed(language, name))
        texts |= {word for entry in sides(language) for side in entry for word in side}
        for name in ("numbers", "powers"):
            texts |= {form for word in LISTS[language].get(name, {}) for form in spelled(word)}
        texts |= {form for group in LISTS[language].get("same", []) for form in spelled(group)}
    ordered = sorted(texts)
    bodies = _NORMALIZER.bodies([f"x {text} x" for text in ordered])
    found = [bodies.text(row)[1:-1] for row in range(len(ordered))]
    assert [(text, body) for text, body in zip(ordered, found, strict=True) if text != body] == []
    many = [
        text
        for row, text in enumerate(ordered)
        if np.sum(bodies.word_starts[bodies.starts[row] : bodies.starts[row + 1]]) != 3
    ]
    assert [text for text in many if not set(text) & set("#+") and text.isascii()] == []
