"""The classic recipes on real texts: what docs/CLASSICS.md promises of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.accuracy.data_sets import ARTICLES, POOLED, WEIBO, DataSet, data_dir
from tests.stages.fingerprint.test_keywords import plain_keywords
from tests.stages.fingerprint.test_signatures import CONFIGS, check_signatures
from twinsieve import Sieve
from twinsieve.pipeline.tools.evaluate.evaluate import read_texts
from twinsieve.stages.fingerprint.features import FeatureConfig
from twinsieve.stages.fingerprint.keywords import Keywords
from twinsieve.stages.text.normalizer import Normalizer
from twinsieve.stages.text.rules import TextConfig

pytestmark = pytest.mark.usefixtures("data_dir")


def test_the_jieba_recipe_finds_the_planted_articles_and_drops_few_others(root: Path) -> None:
    lines = (data_dir() / "articles_dev.truth.tsv").read_text("utf-8").splitlines()[1:]
    planted = {frozenset(line.split("\t")) for line in lines}
    ids, texts = read_texts(ARTICLES.texts)
    verdicts = Sieve(settings=root / "config" / "classic-jieba.yaml").judge(texts, ids=ids)
    found = {
        frozenset((ids[row], verdicts[row].leader_id)) for row in range(len(ids)) if not verdicts.kept[row]
    }
    assert len(planted) == 10
    assert len(found & planted) >= 9
    assert len(found - planted) <= 2


@pytest.mark.parametrize("data", [WEIBO, *POOLED, ARTICLES], ids=lambda data: data.name)
def test_signatures_of_real_texts_equal_the_plain_rules(data: DataSet) -> None:
    texts = read_texts(data.texts)[1][:30]
    for config in CONFIGS:
        check_signatures(config, texts)


@pytest.mark.parametrize("data", [WEIBO, *POOLED, ARTICLES], ids=lambda data: data.name)
def test_features_of_real_texts_equal_the_plain_rules(data: DataSet) -> None:
    texts = read_texts(data.texts)[1][:300]
    config = FeatureConfig("keywords", drop_parts_of_speech=("u", "y", "r"), min_word=1, weights="scale5")
    bodies, keywords = Normalizer(TextConfig("plain")).bodies(texts), Keywords(config)
    for row in range(100):
        marks = bodies.word_starts[bodies.starts[row] : bodies.starts[row + 1]].tolist()
        body = "".join(" " * mark + char for char, mark in zip(bodies.text(row), marks, strict=True)).lstrip()
        if max(map(len, body.split()), default=0) <= 500:
            assert list(keywords.keywords(bodies, row).items()) == list(plain_keywords(config, body).items())
