"""A fingerprint taken apart is the fingerprint; the published sums come out of the same function."""

from __future__ import annotations

import pytest

from twinsieve.stages.fingerprint.features import FeatureConfig
from twinsieve.stages.fingerprint.seen import bits_of_sums, sums_of
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig

TEXTS = [
    "渡轮今天晚点，请在码头等候；渡轮今天晚点，请在码头等候！",
    "The ferry is late today, wait at the pier; the ferry is late 15 minutes.",
    "1200 马力的渡轮 ferry2，今天晚点",
]


def published(sums: list[int]) -> list[int]:
    """The sums of bits 5 … 0, highest first, as texts print them."""
    return sums[5::-1]


def binary(sums: list[int]) -> str:
    return f"{bits_of_sums(sums[::-1]):06b}"


def test_the_worked_example_of_words_with_five_weights() -> None:
    first, second = (0b100101, 4), (0b101011, 5)
    assert published(sums_of([first])) == [4, -4, -4, 4, -4, 4]
    assert published(sums_of([second])) == [5, -5, 5, -5, 5, 5]
    sums = published(sums_of([first, second]))
    assert sums == [9, -9, 1, -1, 1, 9]
    assert binary(sums) == "101011"


def test_the_worked_example_of_the_lecture() -> None:
    assert binary([13, 108, -22, -5, -32, 55]) == "110001"


def test_the_worked_example_of_jieba_keywords() -> None:
    assert published(sums_of([(0b010111, 5)])) == [-5, 5, -5, 5, 5, 5]
    assert binary([-7, 1, -9, 9, 3, 9]) == "010111"
    assert (0b10101 ^ 0b00110).bit_count() == 3


def test_an_even_split_is_0() -> None:
    sums = sums_of([(0b11, 2), (0b01, 2)])
    assert sums[:2] == [4, 0]
    assert bits_of_sums(sums) == 1


@pytest.mark.usefixtures("dictionary_read_once")
@pytest.mark.parametrize(
    "config",
    [
        FeatureConfig(),
        FeatureConfig(weights="position", drop=("latin", "digits")),
        FeatureConfig("shingles", "words", 2, weights="none"),
        FeatureConfig("shingles", "chars", 3, weights="tfidf", idf=(("渡轮今", 2.0),)),
        FeatureConfig("keywords", weights="tfidf", drop=("digits",)),
        FeatureConfig("keywords", weights="scale5", top_k=3),
    ],
)
def test_its_bits_are_those_of_the_fingerprint(config: FeatureConfig) -> None:
    scheme = Scheme(SchemeConfig(features=config))
    _, made = scheme.read(TEXTS)
    assert made.has_simhash.tolist() == [True, "latin" not in config.drop, True]
    for row, text in enumerate(TEXTS):
        _, seen = scheme.seen(text)
        assert seen.bits == (int(made.simhashes[row, 0]) if made.has_simhash[row] else None)
        assert len({feature.text for feature in seen.features}) == len(seen.features)
        assert seen.sums == [
            sum(f.weight if f.hashed >> bit & 1 else -f.weight for f in seen.features) for bit in range(64)
        ]


def test_features_are_told_as_text() -> None:
    _, seen = Scheme(SchemeConfig()).seen("好天 good day 好天 good day")
    assert [(one.text, one.weight) for one in seen.features] == [
        ("好", 2), ("天", 2), ("good", 2), ("day", 2), ("好天", 2), ("天good", 2), ("good day", 2), ("day好", 1),
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["短", "七个字的文字短"])
def test_a_text_without_features_has_no_bits(text: str) -> None:
    _, seen = Scheme(SchemeConfig()).seen(text)
    assert (seen.features, seen.sums, seen.bits) == ([], [0] * 64, None)
