"""Generated articles are what their truth says."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import Indel

from tests.calling import Run
from twinsieve.pipeline.messages.spelling import to_json
from twinsieve.pipeline.tools.generate.articles import (
    CHUNK,
    LOOKALIKE_SHARES,
    REPRINTS,
    ArticleKind,
    article_id,
    generate_articles,
)

COUNT = 1_500
FIELDS = ["id", "title", "lead", "text", "created_at"]
Article = dict[str, str]


@pytest.fixture(scope="module")
def articles() -> list[Article]:
    return list(generate_articles(COUNT, seed=11, truth=True))


@pytest.fixture(scope="module")
def reprints(articles: list[Article]) -> dict[str, list[tuple[Article, Article]]]:
    """(source, reprint) pairs by kind."""
    by_id = {article["id"]: article for article in articles}
    pairs: dict[str, list[tuple[Article, Article]]] = {kind.name.lower(): [] for kind in REPRINTS}
    for article in articles:
        if "duplicate_of" in article:
            pairs[article["kind"]].append((by_id[article["duplicate_of"]], article))
    return pairs


def test_the_same_seed_gives_the_same_articles_everywhere() -> None:
    rows = b"".join(map(to_json, generate_articles(300, seed=1, truth=True)))
    assert hashlib.sha256(rows).hexdigest()[:16] == "e17f386d607ca5de"


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 2**63 - 1), fewer=st.integers(0, CHUNK + 9), repeats=st.sampled_from([0.0, 0.28, 0.9])
)
def test_fewer_articles_are_a_prefix_of_more(seed: int, fewer: int, repeats: float) -> None:
    more = list(generate_articles(CHUNK + 9, seed, repeats=repeats))
    assert list(generate_articles(fewer, seed, repeats=repeats)) == more[:fewer]


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**63 - 1))
def test_articles_have_all_fields_paragraphs_and_500_to_3000_characters(seed: int) -> None:
    for number, article in enumerate(generate_articles(CHUNK, seed, repeats=0.9)):
        assert list(article) == FIELDS
        assert article["id"] == article_id(number)
        assert 500 <= len(article["text"]) <= 3_000
        assert article["text"].count("\n") >= 1
        assert all(article[field].strip() == article[field] != "" for field in FIELDS)
        assert not re.search(r"[{}_]|\b[A-Z]{3,}\b", article["title"] + article["lead"] + article["text"])


def test_times_ascend_a_minute_apart(articles: list[Article]) -> None:
    times = [datetime.fromisoformat(article["created_at"]) for article in articles]
    assert times == sorted(times)
    assert (times[-1] - times[0]).total_seconds() == pytest.approx(60 * COUNT, rel=0.1)


def test_every_kind_occurs_at_about_its_share(articles: list[Article]) -> None:
    kinds = Counter(article["kind"] for article in articles)
    expected = {kind: 0.28 / len(REPRINTS) for kind in REPRINTS} | LOOKALIKE_SHARES
    for kind, share in expected.items():
        assert kinds[kind.name.lower()] / COUNT == pytest.approx(share, abs=0.015), kind
    assert set(kinds) == {kind.name.lower() for kind in ArticleKind}


def test_most_articles_are_chinese_and_some_english(articles: list[Article]) -> None:
    english = sum(article["text"].isascii() or " the " in article["text"] for article in articles)
    assert 0.1 < english / COUNT < 0.2


def test_reprints_name_an_earlier_original(articles: list[Article]) -> None:
    kinds: dict[str, str] = {}
    for article in articles:
        assert ("duplicate_of" in article) == (ArticleKind[article["kind"].upper()] in REPRINTS)
        if "duplicate_of" in article:
            assert kinds[article["duplicate_of"]] == "fresh"
        kinds[article["id"]] = article["kind"]


def content(article: Article, *names: str) -> list[str]:
    return [article[name] for name in names]


def test_whole_and_retitled_reprints(reprints: dict[str, list[tuple[Article, Article]]]) -> None:
    for source, reprint in reprints["whole"]:
        assert content(source, "title", "lead", "text") == content(reprint, "title", "lead", "text")
    for source, reprint in reprints["new_title"]:
        assert content(source, "lead", "text") == content(reprint, "lead", "text")
    renamed = sum(source["title"] != reprint["title"] for source, reprint in reprints["new_title"])
    assert renamed == len(reprints["new_title"])


def test_cut_and_moved_reprints_keep_whole_paragraphs(
    reprints: dict[str, list[tuple[Article, Article]]],
) -> None:
    for source, reprint in reprints["cut"]:
        assert source["text"].startswith(reprint["text"] + "\n")
    for source, reprint in reprints["moved"]:
        assert sorted(source["text"].split("\n")) == sorted(reprint["text"].split("\n"))
        assert source["text"] != reprint["text"]


def test_agency_reprints_hold_the_text_between_two_lines(
    reprints: dict[str, list[tuple[Article, Article]]],
) -> None:
    for source, reprint in reprints["agency"]:
        before, text, behind = reprint["text"].partition(source["text"])
        assert text
        assert 5 < len(before) < 60
        assert behind.startswith("\n")
        assert 5 < len(behind) < 60


def test_a_later_report_has_another_number_in_every_place(articles: list[Article]) -> None:
    sources: dict[str, list[Article]] = {}
    reports = 0
    for article in articles:
        without = re.sub(r"[0-9]+", "0", "\n".join(content(article, "title", "lead", "text")))
        if article["kind"] == "numbers":
            reports += 1
            (source,) = [one for one in sources[without] if one["kind"] == "fresh"]
            numbers = [
                re.findall(r"[0-9]+", "\n".join(content(one, *FIELDS[1:4]))) for one in (source, article)
            ]
            assert numbers[0]
            assert all(before != after for before, after in zip(*numbers, strict=True))
        sources.setdefault(without, []).append(article)
    assert reports > 30


def test_articles_that_are_no_reprints_are_unlike_in_characters(articles: list[Article]) -> None:
    texts = [article["text"] for article in articles[:400] if article["kind"] in ("fresh", "topic")]
    alike = [
        (row, other)
        for row in range(len(texts))
        for other in range(row)
        if Indel.normalized_similarity(texts[row], texts[other], score_cutoff=0.8)
    ]
    assert alike == []


@pytest.mark.parametrize("wrong", [{"count": -1}, {"repeats": 0.95}, {"repeats": -0.1}])
def test_values_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="generate: count"):
        next(generate_articles(**{"count": 5, **wrong}))  # type: ignore[arg-type]


def test_the_command_writes_articles(run: Run) -> None:
    rows = list(generate_articles(40, seed=3, truth=True, repeats=0.5))
    options = ["--messages", "40", "--seed", "3", "--truth", "--repeats", "0.5"]
    out = run("generate", "--articles", *options).out
    assert out.encode() == b"".join(to_json(row) + b"\n" for row in rows)
