"""SimHashes of every kind of feature and weight equal the plain loop."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.stages.fingerprint import twin
from tests.stages.fingerprint.bodies import bodies_of
from twinsieve.stages.contract import BandLayout, Bodies
from twinsieve.stages.errors import UsageError
from twinsieve.stages.fingerprint.dictionary import dictionary_entries
from twinsieve.stages.fingerprint.digest_config import DigestConfig
from twinsieve.stages.fingerprint.features import FeatureConfig
from twinsieve.stages.fingerprint.fingerprinter import Fingerprinter
from twinsieve.stages.fingerprint.idf import runs_as_text

LAYOUT = BandLayout(bands=0, tables=4, key_bits=20, weak=2)
IDF = (("天", 0.5), ("天气", 2.25), ("good day", 3.0), ("day", 1.0), ("气好ab", 4.0), ("三个字", 9.0))
few = st.text(alphabet="天气好ab的 ", max_size=60).map(lambda text: text + "天气 good day 好")


def simhash_of(config: FeatureConfig, bodies: Bodies) -> list[tuple[int, ...] | None]:
    made = Fingerprinter(config, LAYOUT, DigestConfig()).fingerprints(bodies)
    return [
        tuple(made.simhashes[row].tolist()) if made.has_simhash[row] else None for row in range(len(made))
    ]


def plain_weights(config: FeatureConfig, text: str, marks: str) -> dict[tuple[str, ...], int]:
    by_words = config.features == "chars" or config.unit == "words"
    widths = [1, 2] if config.features == "chars" else [config.width]
    features = twin.runs(twin.tokens(text, marks, by_words), widths)
    idf = {}
    for term, value in config.idf or ():
        pieces = term.split(" ")
        term_marks = "".join("1" + "0" * (len(piece) - 1) for piece in pieces)
        idf[tuple(twin.tokens("".join(pieces), term_marks, by_words))] = round(value * 256)
    values = sorted(round(value * 256) for _, value in config.idf or ())
    weights: dict[tuple[str, ...], int] = {}
    for feature, position in features:
        match config.weights:
            case "none":
                weights[feature] = 1
            case "tf":
                weights[feature] = weights.get(feature, 0) + 1
            case "tfidf":
                weight = idf.get(feature, values[len(values) // 2])
                weights[feature] = weights.get(feature, 0) + weight
            case "position":
                weights[feature] = weights.get(feature, 0) + position
    return weights


def plain_features(config: FeatureConfig, bodies: Bodies, row: int) -> list[tuple[int, int]]:
    """Hash and weight of each distinct feature, in the order of their first occurrence; none if too few."""
    if bodies.exact_only[row]:
        return []
    marks = "".join(map(str, bodies.word_starts[bodies.starts[row] : bodies.starts[row + 1]].tolist()))
    weights = plain_weights(config, bodies.text(row), marks)
    if len(weights) < config.min_features:
        return []
    return [(twin.run_hash(feature), weight) for feature, weight in weights.items()]


def plain_simhash(config: FeatureConfig, bodies: Bodies, row: int) -> tuple[int, int] | None:
    hashed = dict(plain_features(config, bodies, row))
    if not hashed:
        return None
    return twin.simhash(twin.simhash_sums(hashed))


@pytest.mark.parametrize("weights", ["none", "tf", "tfidf", "position"])
@pytest.mark.parametrize(
    ("features", "unit", "width"),
    [
        ("chars", "chars", 3),
        ("shingles", "chars", 1),
        ("shingles", "chars", 4),
        ("shingles", "words", 2),
        ("shingles", "words", 3),
        ("shingles", "chars", 20),
    ],
)
def test_every_feature_and_weight_equals_the_plain_loop(
    features: str, unit: str, width: int, weights: str
) -> None:
    @settings(max_examples=examples(8))
    @given(texts=st.lists(few, min_size=1, max_size=4), min_features=st.sampled_from([1, 1, 8]))
    def check(texts: list[str], min_features: int) -> None:
        config = FeatureConfig(features, unit, width, min_features=min_features, weights=weights, idf=IDF)  # type: ignore[arg-type]
        bodies = bodies_of(texts)
        assert simhash_of(config, bodies) == [plain_simhash(config, bodies, row) for row in range(len(texts))]
        packed = Fingerprinter(config, LAYOUT, DigestConfig()).packed_features(bodies)
        for row in range(len(texts)):
            part = slice(packed.starts[row], packed.starts[row + 1])
            weighted = list(zip(packed.features[part].tolist(), packed.weights[part].tolist(), strict=True))
            assert weighted == plain_features(config, bodies, row)

    check()


def test_features_of_no_weight_still_count() -> None:
    config = FeatureConfig(weights="tfidf", idf=(("天", 0.0),))
    assert simhash_of(config, bodies_of(["天" * 8])) != [(0, 0)]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"features": "grams"}, "features.kind is 'grams'; use one of chars, shingles, keywords"),
        ({"unit": "bytes"}, "features.unit is 'bytes'"),
        ({"weights": "bm25"}, "features.weights is 'bm25'"),
        ({"width": 0}, "features.width is 0"),
        ({"top_k": 0}, "features.top_k is 0"),
        ({"min_features": 0}, "features.min_features is 0"),
        ({"weights": "tfidf"}, "tfidf without an IDF table for chars"),
        ({"idf": ()}, "IDF table is empty"),
        ({"idf": (("天", math.nan),)}, "IDF of '天' is nan"),
        ({"idf": (("天", -1.0),)}, "IDF of '天' is -1.0"),
        ({"dictionary": ("方舱医院 0",)}, "not a dictionary entry"),
        ({"dictionary": ("a b c d",)}, "not a dictionary entry"),
        ({"dictionary": ("",)}, "not a dictionary entry"),
    ],
)
def test_a_setting_that_does_not_exist_is_refused_by_name(change: dict[str, object], what: str) -> None:
    with pytest.raises(UsageError, match=what):
        FeatureConfig(**change)  # type: ignore[arg-type]


def test_dictionary_words_are_folded_as_bodies_are() -> None:
    assert dictionary_entries(["ＡＢ超 3 nz", "雷神山"]) == [("ab超", 3, "nz"), ("雷神山", None, None)]


@pytest.mark.parametrize(
    ("config", "text"),
    [
        (FeatureConfig(), "stay 在家 home 好 day today"),
        (FeatureConfig("shingles", "words", 3), "stay 在家 home 好 day today"),
        (FeatureConfig("shingles", "chars", 3), "stay 在家 home 好 day today"),
    ],
)
def test_every_feature_as_text_is_found_again_in_its_text(config: FeatureConfig, text: str) -> None:
    """A table that gives everything it knows weight 1 and the rest the median of large ones."""
    bodies = bodies_of([text])
    features = dict.fromkeys(next(runs_as_text(bodies, config)))
    strangers = tuple((f"陌生字词{i}", 4000.0) for i in range(2 * len(features)))
    known = tuple((feature, 1 / 256) for feature in features)
    settings_of = {"features": config.features, "unit": config.unit, "width": config.width}
    plain = FeatureConfig(**settings_of, weights="tf")
    weighted = FeatureConfig(**settings_of, weights="tfidf", idf=known + strangers)
    one_missing = FeatureConfig(**settings_of, weights="tfidf", idf=known[1:] + strangers)
    assert simhash_of(weighted, bodies) == simhash_of(plain, bodies)
    assert simhash_of(one_missing, bodies) != simhash_of(plain, bodies)
