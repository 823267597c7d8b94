"""The classic recipes on real texts: what docs/CLASSICS.md promises of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.accuracy.data_sets import ARTICLES, data_dir
from twinsieve import Sieve
from twinsieve.pipeline.evaluate.evaluate import read_texts

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
