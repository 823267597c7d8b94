"""States that earlier programs wrote are read and go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.property.streams import batch_of, part_of, table
from twinsieve.pipeline.generate.stream import generate
from twinsieve.stages.contract import ExactConfig, NearConfig, SieveConfig, Window
from twinsieve.stages.judge.sieve import Sieve

GOLDEN = Path(__file__).parents[2] / "golden"
JUDGED = 80
"""Of 120 generated posts, those that an earlier program had judged when it saved."""


def _config(method: str, window: int) -> SieveConfig:
    near = NearConfig(method=method, window=Window(window))  # type: ignore[arg-type]
    return SieveConfig(near=near, exact=ExactConfig(window=Window(500)), scheme_id="golden")


@pytest.mark.parametrize("window", [1_000, 50_000])
@pytest.mark.parametrize("method", ["text", "hamming"])
def test_state_of_format_1_goes_on(method: str, window: int) -> None:
    saved = (GOLDEN / f"state_version_1_{method}.bin").read_bytes()
    assert saved[8] == 1
    batch = batch_of([(post["text"], None, 0, 0) for post in generate(120, 4)])
    config = _config(method, window)
    never_saved = Sieve(config)
    never_saved.judge(part_of(batch, 0, JUDGED))
    old = Sieve.from_bytes(saved, config)
    again = Sieve.from_bytes(old.to_bytes(), config)
    expected = table(never_saved.judge(part_of(batch, JUDGED, len(batch))))
    assert {row[0] for row in expected} >= ({0, 1, 2} if method == "text" else {0, 1})
    assert table(old.judge(part_of(batch, JUDGED, len(batch)))) == expected
    assert table(again.judge(part_of(batch, JUDGED, len(batch)))) == expected
