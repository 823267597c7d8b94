"""The plain loop and the truth files were made independently; they must agree on every row."""

from __future__ import annotations

import gzip

import orjson
import pytest

from bench.quality_data import POOLED, WEIBO, DataSet, truth_body
from tests.oracle import Oracle, Row
from twinsieve.pipeline.evaluate_truth import ideal_pass, read_pairs
from twinsieve.stages.contract import MIN_NEAR_LENGTH, ExactConfig, Kind, NearConfig, SieveConfig, Window

pytestmark = pytest.mark.usefixtures("data_dir")

ROWS = {"weibo": 1_200, "sms": 1_200, "tweets": 1_200, "titles": 2_000, "comments": 1_200}
"""First rows compared; the first title to drop at .85 is row 1,369."""


@pytest.mark.parametrize("similarity", [8_500, 8_000])
@pytest.mark.parametrize("data", [WEIBO, *POOLED], ids=lambda data: data.name)
def test_plain_loop_drops_what_the_ideal_leader_pass_drops(data: DataSet, similarity: int) -> None:
    body_of = truth_body(data.profile)
    with gzip.open(data.texts) as lines:
        rows = [orjson.loads(line) for line, _ in zip(lines, range(ROWS[data.name]), strict=False)]
    truth = ideal_pass([row["id"] for row in rows], read_pairs(data.pairs), similarity)
    forever = Window(len(rows))
    oracle = Oracle(
        SieveConfig(
            exact=ExactConfig(window=forever),
            near=NearConfig(window=forever, similarity=similarity, number_guard=False, card_guard=False),
        )
    )
    leaders = []
    for position, row in enumerate(rows):
        body = body_of(row["text"])
        short = len(body) < MIN_NEAR_LENGTH
        judgement = oracle.judge(Row(body, key=body or row["text"], exact_only=short, position=position))
        leaders.append(-1 if judgement.kind is Kind.UNIQUE else judgement.leader)
    wrong = [row for row in range(len(rows)) if (leaders[row] >= 0) != (truth.leaders[row] >= 0)]
    assert wrong == []
    assert sum(leader >= 0 for leader in truth.leaders) >= (1 if data.name == "titles" else 30)
