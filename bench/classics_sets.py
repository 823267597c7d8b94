"""The data sets of docs/CLASSICS.md with their true pairs: generated posts and articles, and real ones.

Generated sets are there on every machine; real ones where TWINSIEVE_DATA names their folder. The truth of
posts is a full comparison of bodies (Indel ratio from .85 on); that of articles is what they were made from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bench.articles import generate_articles
from bench.classics_data import posts
from tests.accuracy.data_sets import ARTICLES, POOLED, WEIBO, DataSet, data_dir, named_dir
from tests.accuracy.labels import PROFILES
from tests.generated import plain_bodies, true_pairs
from twinsieve.pipeline.tools.evaluate.evaluate import read_texts
from twinsieve.pipeline.tools.evaluate.truth import Pair, read_pairs
from twinsieve.stages.contract import SIMILARITY_SCALE

AT = 8_500
"""Similarity from which two bodies are a true pair, out of SIMILARITY_SCALE."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Texts in order with their true pairs.

    profile: of the settings; true_pairs: their `later` stands behind their `earlier`
    """

    name: str
    profile: str
    ids: list[str]
    texts: list[str]
    true_pairs: list[Pair]


def generated_posts(rows: int) -> Rows:
    """Posts; true pairs by comparing each with each."""
    texts = posts(rows)
    ids = [str(row) for row in range(rows)]
    return Rows("posts", "microblog", ids, texts, true_pairs(ids, plain_bodies(texts, "zh", "letters"), AT))


def generated_articles(rows: int) -> Rows:
    """Title, lead and text of articles; true pairs are reprints with their sources."""
    articles = list(generate_articles(rows, truth=True))
    texts = {row["id"]: "\n".join((row["title"], row["lead"], row["text"])) for row in articles}
    pairs = [
        Pair(row["id"], source, SIMILARITY_SCALE, texts[row["id"]] == texts[source])
        for row in articles
        if (source := row.get("duplicate_of")) is not None
    ]
    return Rows("articles", "plain", list(texts), list(texts.values()), pairs)


def real(data: DataSet, rows: int) -> Rows:
    """The first rows of a set that its pairs cover."""
    ids, texts = (column[: min(rows, data.rows)] for column in read_texts(data.texts))
    name = f"{data.name}_dev"
    return Rows(name, PROFILES[name], ids, texts, read_pairs(data.pairs))


def real_articles() -> Rows:
    """All English articles; ten pairs of them are planted."""
    ids, texts = read_texts(ARTICLES.texts)
    place = {name: row for row, name in enumerate(ids)}
    lines = (data_dir() / "articles_dev.truth.tsv").read_text().splitlines()[1:]
    pairs = [
        Pair(*sorted(line.split("\t"), key=place.__getitem__, reverse=True), AT, False) for line in lines
    ]
    return Rows("articles_dev", "plain", ids, texts, pairs)


def every_set(rows: int) -> Iterator[Callable[[], Rows]]:
    """What makes each set, of at most this many rows; a third of them where articles are generated."""
    yield lambda: generated_posts(rows)
    yield lambda: generated_articles(rows // 3)
    if named_dir() is not None:
        for data in (WEIBO, *POOLED):
            yield lambda data=data: real(data, rows)  # type: ignore[misc]
        yield real_articles
