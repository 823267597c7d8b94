"""The plain loop and the truth were made independently; they must agree on every row."""

from __future__ import annotations

import gzip
from collections.abc import Sequence

import orjson
import pytest

from tests.accuracy.data_sets import POOLED, WEIBO, DataSet, truth_body
from tests.generated import LANGUAGES, plain_bodies, stream, true_pairs
from tests.oracle import Oracle, Row
from twinsieve.pipeline.tools.evaluate.truth import Truth, ideal_pass, read_pairs
from twinsieve.stages.contract import (
    MIN_NEAR_LENGTH,
    OFF,
    Differences,
    ExactConfig,
    Kind,
    NearConfig,
    SieveConfig,
    Window,
)

ROWS = {"weibo": 800, "sms": 800, "tweets": 800, "titles": 1_400, "comments": 800}
"""First rows compared; the first title to drop at .85 is row 1,369."""
GENERATED_ROWS = 450


def wrong_rows(rows: Sequence[Row], truth: Truth, similarity: int) -> list[int]:
    """Rows that the plain loop drops and the ideal pass keeps, or the other way round."""
    forever = Window(len(rows))
    oracle = Oracle(
        SieveConfig(
            exact=ExactConfig(window=forever),
            near=NearConfig(window=forever, similarity=similarity, differences=Differences(OFF)),
        )
    )
    dropped = [oracle.judge(row).kind is not Kind.UNIQUE for row in rows]
    return [row for row in range(len(rows)) if dropped[row] != (truth.leaders[row] >= 0)]


@pytest.mark.parametrize("similarity", [8_500, 8_000])
@pytest.mark.parametrize("data", [WEIBO, *POOLED], ids=lambda data: data.name)
@pytest.mark.usefixtures("data_dir")
def test_plain_loop_drops_what_the_ideal_leader_pass_drops(data: DataSet, similarity: int) -> None:
    body_of = truth_body(data.profile)
    with gzip.open(data.texts) as lines:
        posts = [orjson.loads(line) for line, _ in zip(lines, range(ROWS[data.name]), strict=False)]
    truth = ideal_pass([post["id"] for post in posts], read_pairs(data.pairs), similarity)
    bodies = [body_of(post["text"]) for post in posts]
    rows = [
        Row(body, key=body or post["text"], exact_only=len(body) < MIN_NEAR_LENGTH, position=position)
        for position, (body, post) in enumerate(zip(bodies, posts, strict=True))
    ]
    assert wrong_rows(rows, truth, similarity) == []
    assert sum(leader >= 0 for leader in truth.leaders) >= (1 if data.name == "titles" else 30)


@pytest.mark.parametrize("language", LANGUAGES)
def test_plain_loop_drops_what_a_full_comparison_of_generated_posts_drops(language: str) -> None:
    bodies = plain_bodies(stream(language, GENERATED_ROWS, seed=6).texts, language, "letters")
    ids = [str(row) for row in range(GENERATED_ROWS)]
    pairs = true_pairs(ids, bodies, 8_000)
    rows = [
        Row(body.key, exact_only=body.body_length < MIN_NEAR_LENGTH, position=position)
        for position, body in enumerate(bodies)
    ]
    for similarity in (8_500, 8_000):
        truth = ideal_pass(ids, pairs, similarity)
        assert wrong_rows(rows, truth, similarity) == []
        assert sum(leader >= 0 for leader in truth.leaders) > 125
