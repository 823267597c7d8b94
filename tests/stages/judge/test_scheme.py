"""The scheme's name changes with everything that shapes fingerprints, and with nothing else."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from tests.generated_posts import generate
from twinsieve.stages.contract import BandLayout, Fingerprints
from twinsieve.stages.errors import UsageError
from twinsieve.stages.fingerprint.digest_config import DigestConfig
from twinsieve.stages.fingerprint.features import FeatureConfig
from twinsieve.stages.fingerprint.fingerprinter import Fingerprinter
from twinsieve.stages.fingerprint.secret import Secret
from twinsieve.stages.judge import scheme as scheme_module
from twinsieve.stages.judge.scheme import FieldLines, Scheme, SchemeConfig, SignatureConfig
from twinsieve.stages.text.normalizer import Normalizer
from twinsieve.stages.text.rules import TextConfig
from twinsieve.stages.window.chunk import probes_of

SECRET = Secret.of_seed(5)
BASE = SchemeConfig(fields=FieldLines(2, (0, 1)), signature=SignatureConfig("sentences", 3))
CHANGES: dict[str, list[tuple[str, object]]] = {
    "text": [("profile", "plain"), ("body_rule", "letters"), ("drop", ("广告",)), ("compare", ("links",))],
    "features": [
        ("features", "shingles"),
        ("unit", "words"),
        ("width", 4),
        ("top_k", 11),
        ("parts_of_speech", ("n",)),
        ("dictionary", ("雷神山",)),
        ("own_stop_words", ("的",)),
        ("drop", ("latin",)),
        ("min_features", 2),
        ("weights", "none"),
        ("idf", (("天", 1.0),)),
    ],
    "layout": [
        ("bands", 20),
        ("rows", 5),
        ("tables", 8),
        ("key_bits", 20),
        ("weak", 3),
        ("simhash_from", 32),
        ("grams", "chars"),
    ],
    "digest": [("method", "blake2b"), ("secret", Secret.of_seed(1)), ("secret", Secret.of_seed(2))],
    "fields": [("count", 3), ("compared", (1, 0))],
    "signature": [
        ("kind", "segments"),
        ("hashes", 4),
        ("joined", False),
        ("cut", "length"),
        ("rarest", 3.0),
        ("commonest", 1.0),
    ],
}
OF_KEYWORDS: list[tuple[str, object]] = [
    ("choose", "frequency"),
    ("drop_parts_of_speech", ("u",)),
    ("min_word", 1),
    ("stop_words", "none"),
]
"""Settings that change the schemes of keywords alone."""
# Needs the opencc extra: a test of its own.
WITH_EXTRA = {("text", "fold_variants")}


def id_of(config: SchemeConfig) -> str:
    return Scheme(config).scheme_id


def changed(part: str, name: str, value: object) -> SchemeConfig:
    return replace(BASE, **{part: replace(getattr(BASE, part), **{name: value})})


def test_every_setting_is_among_the_changes() -> None:
    named = {(part, name) for part, changes in CHANGES.items() for name, _ in changes}
    named |= {("features", name) for name, _ in OF_KEYWORDS}
    every = {
        (part.name, setting.name) for part in fields(BASE) for setting in fields(getattr(BASE, part.name))
    }
    assert named == every - WITH_EXTRA


def test_each_changed_setting_gives_another_id() -> None:
    ids = {id_of(changed(part, name, value)) for part, changes in CHANGES.items() for name, value in changes}
    assert len(ids) == sum(map(len, CHANGES.values()))
    assert id_of(BASE) not in ids


def test_a_setting_of_keywords_gives_another_id_to_keywords_alone() -> None:
    news = FeatureConfig("keywords")
    ids = {id_of(replace(BASE, features=replace(news, **{name: value}))) for name, value in OF_KEYWORDS}
    assert len(ids | {id_of(replace(BASE, features=news))}) == len(OF_KEYWORDS) + 1
    assert {id_of(changed("features", name, value)) for name, value in OF_KEYWORDS} == {id_of(BASE)}


def test_variant_folding_gives_another_id() -> None:
    assert id_of(changed("text", "fold_variants", "simplified")) != id_of(BASE)


@pytest.mark.parametrize("name", ["KERNEL_VERSION", "MIN_NEAR_LENGTH", "STORED_LENGTH"])
def test_another_kernel_or_length_gives_another_id(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = id_of(BASE)
    monkeypatch.setattr(scheme_module, name, getattr(scheme_module, name) + 1)
    assert id_of(BASE) != before


def test_another_version_of_the_text_rules_gives_another_id(monkeypatch: pytest.MonkeyPatch) -> None:
    before = id_of(BASE)
    monkeypatch.setattr(scheme_module, "text_version", lambda config: "rules 0, Unicode 1.1.0")
    assert id_of(BASE) != before


def test_jieba_data_counts_where_keywords_are_used_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    news = replace(BASE, features=FeatureConfig("keywords"))
    trained = replace(BASE, features=FeatureConfig("keywords", idf=(("武汉", 2.0),)))
    before = [id_of(config) for config in (BASE, news, trained)]
    monkeypatch.setattr(scheme_module.pkgutil, "get_data", lambda package, name: name.encode())
    changed_all = [id_of(config) for config in (BASE, news, trained)]
    assert [a == b for a, b in zip(before, changed_all, strict=True)] == [True, False, False]
    monkeypatch.setattr(
        scheme_module.pkgutil, "get_data", lambda package, name: b"" if "idf" in name else name.encode()
    )
    without_idf = [id_of(config) for config in (BASE, news, trained)]
    assert [a == b for a, b in zip(changed_all, without_idf, strict=True)] == [True, False, True]


def test_id_is_short_hex_and_the_same_in_another_process(root: Path) -> None:
    here = id_of(SchemeConfig())
    assert len(here) == 16
    assert int(here, 16) >= 0
    code = "from twinsieve.stages.judge.scheme import Scheme, SchemeConfig; print(Scheme(SchemeConfig()).scheme_id)"
    there = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True, timeout=300
    )
    assert there.stdout.strip() == here


def test_whoever_knows_the_name_of_a_secret_knows_the_id() -> None:
    assert id_of(changed("digest", "secret", Secret.named(SECRET.name))) == id_of(
        changed("digest", "secret", SECRET)
    )


def test_read_is_normaliser_then_fingerprinter() -> None:
    config = SchemeConfig(
        TextConfig("plain"), FeatureConfig(), BandLayout(bands=4), DigestConfig(secret=SECRET)
    )
    texts = ["今天天气很好，我们出去玩吧 https://example.org/1", "👍", ""]
    bodies, made = Scheme(config).read(texts)
    expected_bodies = Normalizer(config.text).bodies(texts)
    expected = Fingerprinter(config.features, config.layout, config.digest).fingerprints(expected_bodies)
    assert np.array_equal(bodies.chars, expected_bodies.chars)
    for column in fields(made):
        assert np.array_equal(getattr(made, column.name), getattr(expected, column.name))


def test_keys_reach_the_digest() -> None:
    reader = Scheme(BASE)
    one = reader.read(["一段文本", "另一段文本"], [b"a", b"a"])[1]
    assert np.array_equal(one.digests[0], one.digests[1])
    with pytest.raises(UsageError, match="one key per row"):
        reader.read(["一段文本"], [])


def test_without_a_near_stage_digests_are_the_same_and_nothing_else_is_made() -> None:
    texts = ["今天天气很好，我们出去玩吧", "👍", "", "The bridge is closed"]
    whole, digests_alone = Scheme(BASE), Scheme(BASE, near=False)
    assert digests_alone.scheme_id == whole.scheme_id
    for keys in (None, [b"a", b"b", b"a", b""], texts):
        bodies, made = digests_alone.read(texts, keys)
        assert np.array_equal(made.digests, whole.read(texts, keys)[1].digests)
        assert len(bodies) == len(texts)
        assert made.band_keys.size == made.bags.size == 0
        assert bodies.chars.size == 0 or keys is None


@pytest.mark.parametrize("kind", ["chars", "keywords"])
def test_bodies_whose_simhash_nobody_reads_get_none(kind: Literal["chars", "keywords"]) -> None:
    layout = BandLayout(simhash_from=20)
    config = SchemeConfig(features=FeatureConfig(features=kind), layout=layout)
    texts = [post["text"] for post in generate(300, 4)]
    bodies, all_of_them = Scheme(config).read(texts)
    _, needed = Scheme(config, simhash_from=layout.simhash_from).read(texts)
    long = bodies.body_lengths >= layout.simhash_from
    assert 0 < np.count_nonzero(long) < len(long)
    assert needed.has_simhash.tolist() == (all_of_them.has_simhash & long).tolist()
    for column in fields(Fingerprints):
        one, other = getattr(needed, column.name), getattr(all_of_them, column.name)
        if column.name in ("simhashes", "weak_bits"):
            assert np.array_equal(one[long], other[long])
        elif column.name != "has_simhash":
            assert np.array_equal(one, other), column.name
    lengths = bodies.body_lengths
    assert np.array_equal(
        *(probes_of(~bodies.exact_only, lengths, each.has_simhash, layout) for each in (needed, all_of_them))
    )
