"""Short soaks of whole processes, one with real posts (`make long`); `make soak` runs ten minutes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.accuracy.data_sets import WEIBO
from tests.broker.deployment import Findings
from tests.broker.soak import MAX_P99_S, shortcomings, soak

_RATE = 1_000.0
_PAUSE_S = 1.5
"""Between two troubles: as many of them in a short time as can be, the next before the last is over."""


def lose_and_double_nothing(client: str, seconds: float, posts: Path | None = None) -> None:
    found, done = soak(client, seconds=seconds, rate=_RATE, seed=1, pause_s=_PAUSE_S, posts=posts, hard=True)
    assert found.good, f"{found} after {done}"
    # Less than `make soak` asks for: here other tests have one of the two cores.
    assert found.timed >= seconds * _RATE * 2 / 3


@pytest.mark.needs("own broker", "minutes")
def test_killed_frozen_and_joining_processes_lose_and_double_nothing(client: str) -> None:
    lose_and_double_nothing(client, 10.0)


@pytest.mark.needs("own broker", "minutes")
def test_killed_frozen_and_joining_processes_lose_and_double_no_real_post(data_dir: Path) -> None:
    lose_and_double_nothing("confluent", 8.0, WEIBO.texts)


@pytest.mark.parametrize(
    ("found", "client", "said"),
    [
        ({"p99_ms": 4_999.0}, "confluent", []),
        ({"p99_ms": 5_001.0}, "confluent", ["p99 5.0 s is above 5 s"]),
        ({"p99_ms": 15_001.0}, "kafka-python", ["p99 15.0 s is above 15 s"]),
        ({"p99_ms": 14_999.0}, "kafka-python", []),
        (
            {"timed": 16_199},
            "confluent",
            ["only 16199 messages of 18000 were sent: a slower load was measured"],
        ),
    ],
)
def test_a_soak_is_red_for_a_slow_tail_and_a_small_load(
    found: dict[str, float], client: str, said: list[str]
) -> None:
    good = Findings(20_000, 18_000, 12_000, 0, 0, 0, 0, 10.0, 100.0, 1.0, 1.0)
    assert shortcomings(replace(good, **found), 18_000, MAX_P99_S[client]) == said  # type: ignore[arg-type]


def test_a_soak_is_red_for_a_lost_message() -> None:
    good = Findings(20_000, 18_000, 12_000, 0, 0, 0, 0, 10.0, 100.0, 1.0, 1.0)
    assert good.good
    assert not replace(good, lost=1).good
