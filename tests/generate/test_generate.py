"""The made-up stream is what it says it is."""

from __future__ import annotations

import hashlib
from datetime import datetime

import numpy as np
import pytest

from tests.oracle import Oracle, Row, indel, is_near
from twinsieve import Sieve
from twinsieve.pipeline.tools.generate.stream import CHUNK, Origin, generate, generate_columns, post_id
from twinsieve.stages.contract import (
    MIN_NEAR_LENGTH,
    Bodies,
    ExactConfig,
    Kind,
    NearConfig,
    SieveConfig,
    Window,
)
from twinsieve.stages.text.normalizer import Normalizer
from twinsieve.stages.text.rules import TextConfig

COUNT = 20_000


@pytest.fixture(scope="module")
def posts() -> list[dict[str, str]]:
    return list(generate(COUNT, seed=11, truth=True))


@pytest.fixture(scope="module")
def bodies(posts: list[dict[str, str]]) -> Bodies:
    return Normalizer(TextConfig()).bodies([post["text"] for post in posts])


def test_the_same_seed_gives_the_same_posts_everywhere() -> None:
    texts = "\n".join(post["text"] + post["created_at"] for post in generate(2_000, seed=1))
    assert hashlib.sha256(texts.encode()).hexdigest()[:16] == "2e158403b290e7d6"
    assert next(generate(1, seed=2))["text"] != next(generate(1, seed=1))["text"]


def test_fewer_posts_are_a_prefix_of_more() -> None:
    assert list(generate(CHUNK + 50, seed=3))[: CHUNK - 7] == list(generate(CHUNK - 7, seed=3))


def test_ids_are_unique_and_times_ascend(posts: list[dict[str, str]]) -> None:
    assert [post["id"] for post in posts] == [post_id(number) for number in range(COUNT)]
    times = [datetime.fromisoformat(post["created_at"]) for post in posts]
    assert times == sorted(times)
    assert 90 < (times[-1] - times[0]).total_seconds() < 110


def test_every_origin_occurs_at_about_its_share(posts: list[dict[str, str]]) -> None:
    kinds = [post["kind"] for post in posts]
    shares = {origin: kinds.count(origin.name.lower()) / COUNT for origin in Origin}
    expected = {"FRESH": 0.64, "COPY": 0.09, "DRESSED": 0.067, "EDIT": 0.10, "CHAIN": 0.022, "SHORT": 0.05}
    for name, share in expected.items():
        assert shares[Origin[name]] == pytest.approx(share, abs=0.012), name
    assert shares[Origin.POLL] > 0.007
    assert shares[Origin.REPORT] > 0.015


def test_lengths_are_those_of_short_posts_with_a_long_tail(bodies: Bodies) -> None:
    lengths = bodies.body_lengths[bodies.body_lengths >= MIN_NEAR_LENGTH]
    low, middle, high = np.percentile(lengths, [10, 50, 90])
    assert 55 < lengths.mean() < 65
    assert low < 18
    assert 35 < middle < 50
    assert high > 105
    assert 400 < lengths.max() <= 600


def test_sources_are_earlier_posts_and_repeats_are_what_they_say(
    posts: list[dict[str, str]], bodies: Bodies
) -> None:
    numbers = {post["id"]: number for number, post in enumerate(posts)}
    seen = dict.fromkeys(("copy", "dressed", "edit", "chain", "short"), 0)
    alike = 0
    for number, post in enumerate(posts):
        if "duplicate_of" not in post:
            continue
        source = numbers[post["duplicate_of"]]
        assert source < number
        kind = post["kind"]
        seen[kind] += 1
        if kind in {"copy", "short"}:
            assert post["text"] == posts[source]["text"]
        elif kind == "dressed":
            assert bodies.text(number) == bodies.text(source)
        else:
            alike += is_near(*indel(bodies.text(number), bodies.text(source)), 8_500)
    assert min(seen.values()) > 300
    assert alike > 0.85 * (seen["edit"] + seen["chain"])


def test_posts_without_repeats_are_unlike_each_other() -> None:
    texts = next(generate_columns(1_500, seed=7, repeats=0)).texts
    bodies = Normalizer(TextConfig()).bodies(texts)
    oracle = Oracle(
        SieveConfig(exact=ExactConfig(window=Window(1_500)), near=NearConfig(window=Window(1_500)))
    )
    rows = [Row(bodies.text(row), exact_only=bool(bodies.exact_only[row])) for row in range(len(texts))]
    dropped = sum(oracle.judge(row).kind is not Kind.UNIQUE for row in rows)
    assert dropped <= 2


@pytest.mark.parametrize("wrong", [{"count": -1}, {"repeats": 0.95}, {"repeats": -0.1}, {"rate": 0}])
def test_values_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="generate: count"):
        next(generate(**{"count": 5, **wrong}))  # type: ignore[arg-type]


def test_posts_of_one_language_repeat_each_other_as_the_truth_says() -> None:
    posts = list(generate(3_000, 2, truth=True, language="en"))
    texts = {post["id"]: post["text"] for post in posts}
    assert not any("\u4e00" <= char <= "\u9fff" for text in texts.values() for char in text)
    assert {post["kind"] for post in posts} == {"fresh", "copy", "dressed", "edit", "chain", "report"}
    bodies = Normalizer(TextConfig(profile="plain")).bodies(list(texts.values()))
    body = {id_: bodies.text(row) for row, id_ in enumerate(texts)}
    same = [post for post in posts if post["kind"] in ("copy", "dressed", "chain")]
    assert len(same) > 300
    assert [post["id"] for post in same if body[post["id"]] != body[post["duplicate_of"]]] == []


def test_english_posts_are_dropped_where_they_repeat_another_and_hardly_elsewhere() -> None:
    """Sentences of few patterns would be near duplicates of each other, and reports of the posts they renumber."""
    posts = list(generate(5_000, 3, truth=True, language="en"))
    kept = Sieve(profile="plain").judge([post["text"] for post in posts]).kept.tolist()
    others = [keeps for keeps, post in zip(kept, posts, strict=True) if "duplicate_of" not in post]
    repeats = [keeps for keeps, post in zip(kept, posts, strict=True) if "duplicate_of" in post]
    assert others.count(False) < 0.005 * len(others)
    assert repeats.count(False) > 0.95 * len(repeats)
