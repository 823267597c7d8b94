"""`features.drop`: letters and digits that features leave out, and nothing else does."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
import re2
import unicodedata2
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.stages.fingerprint.bodies import bodies_of
from twinsieve.stages.contract import BandLayout
from twinsieve.stages.errors import UsageError
from twinsieve.stages.fingerprint.digest_config import DigestConfig
from twinsieve.stages.fingerprint.features import FeatureConfig
from twinsieve.stages.fingerprint.fingerprinter import Fingerprinter, dropped_characters, without
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig

LAYOUT = BandLayout(bands=4)
DROP = ("latin", "digits")


def test_what_goes_is_what_unicode_calls_latin_letters_and_digits() -> None:
    latin = re2.compile(r"\p{Latin}")
    wrong = []
    for code in [*range(0xD800), *range(0xE000, 0x110000)]:
        char = chr(code)
        category = unicodedata2.category(char)
        # RE2 follows an older Unicode; names tell what it does not know.
        named = unicodedata2.name(char, "").startswith("LATIN ")
        is_latin = category[0] == "L" and (bool(latin.fullmatch(char)) or named)
        if (dropped_characters(("latin",))[code], dropped_characters(("digits",))[code]) != (
            is_latin,
            category == "Nd",
        ):
            wrong.append(hex(code))
    assert wrong in ([], ["0xa7f1"])


def plain_without(text: str, word_starts: str, drop: tuple[str, ...]) -> tuple[str, str]:
    """Text and word starts without what goes; the next character begins a word."""
    kept, starts, begins = "", "", False
    for char, mark in zip(text, word_starts, strict=True):
        latin = unicodedata2.category(char)[0] == "L" and "LATIN" in unicodedata2.name(char)
        if ("latin" in drop and latin) or ("digits" in drop and unicodedata2.category(char) == "Nd"):
            begins = True
        else:
            kept, starts, begins = kept + char, starts + ("1" if begins else mark), False
    return kept, starts


texts = st.text(alphabet="天气好ab的é7٣я.x", max_size=30).map(lambda text: text + "今天天气很好吗")


@pytest.mark.parametrize("kind", ["chars", "shingles", "keywords"])
@pytest.mark.parametrize("drop", [("latin",), ("digits",), DROP])
@pytest.mark.usefixtures("dictionary_read_once")
def test_simhash_is_that_of_the_body_without_them_and_all_else_stays(
    kind: str, drop: tuple[str, ...]
) -> None:
    whole = FeatureConfig(kind, unit="words", width=2)  # type: ignore[arg-type]
    makers = [Fingerprinter(config, LAYOUT, DigestConfig()) for config in (whole, replace(whole, drop=drop))]

    @settings(max_examples=examples(15))
    @given(st.lists(st.tuples(texts, st.integers(0, 2**32)), min_size=1, max_size=4))
    def check(drawn: list[tuple[str, int]]) -> None:
        rows = [text for text, _ in drawn]
        marks = ["".join(str(seed >> i % 32 & 1) for i in range(len(text))) for text, seed in drawn]
        cut = [plain_without(text, mark, drop) for text, mark in zip(rows, marks, strict=True)]
        bodies, shorter = bodies_of(rows, marks), bodies_of([a for a, _ in cut], [b for _, b in cut])
        shorter.exact_only = bodies.exact_only
        made, full = makers[1].fingerprints(bodies), makers[0].fingerprints(bodies)
        expected = makers[0].fingerprints(shorter)
        for column in fields(made):
            of_simhash = column.name in ("simhashes", "has_simhash", "weak_bits")
            assert np.array_equal(
                getattr(made, column.name), getattr(expected if of_simhash else full, column.name)
            )
        packed = zip(makers[1].packed_features(bodies), makers[0].packed_features(shorter), strict=True)
        assert all(np.array_equal(one, other) for one, other in packed)

    check()


def test_two_prices_are_one_fingerprint_and_no_exact_duplicates() -> None:
    texts = ["新款iPhone15手机售价5999元起", "新款iPhone16手机售价6999元起"]
    _, made = Scheme(SchemeConfig(features=FeatureConfig(drop=DROP))).read(texts)
    assert np.array_equal(made.simhashes[0], made.simhashes[1])
    assert not np.array_equal(made.digests[0], made.digests[1])
    assert not np.array_equal(made.band_keys[0], made.band_keys[1])


def test_a_text_of_what_goes_alone_has_no_fingerprint() -> None:
    _, made = Scheme(SchemeConfig(features=FeatureConfig(drop=DROP))).read(["just latin and 12 digits"])
    assert not made.has_simhash[0]


def test_nothing_to_drop_copies_nothing() -> None:
    bodies = bodies_of(["今天天气很好吗"])
    assert without(bodies, ()) is bodies


def test_other_names_are_refused() -> None:
    with pytest.raises(UsageError, match=r"features\.drop holds 'greek'; use some of latin, digits"):
        FeatureConfig(drop=("greek",))  # type: ignore[arg-type]
