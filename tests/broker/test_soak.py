"""Short soaks of whole processes, one with real posts; `make soak` runs ten minutes."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.accuracy.data_sets import WEIBO
from tests.broker import soak as kafka_soak
from tests.broker.deployment import Findings
from tests.broker.soak import soak

_RATE = 2_000.0
_PAUSE_S = 1.5
"""Between two troubles: as many of them in a short time as can be, the next before the last is over."""


def lose_and_double_nothing(client: str, seconds: float, posts: Path | None = None) -> None:
    found, done = soak(client, seconds=seconds, rate=_RATE, seed=1, pause_s=_PAUSE_S, posts=posts)
    assert found.good, f"{found} after {done}"
    # Less than `make soak` asks for: here other tests have one of the two cores.
    assert found.timed >= seconds * _RATE * 2 / 3


@pytest.mark.needs("own broker")
def test_killed_frozen_and_joining_processes_lose_and_double_nothing(client: str) -> None:
    lose_and_double_nothing(client, 25.0)


@pytest.mark.needs("own broker")
def test_killed_frozen_and_joining_processes_lose_and_double_none_of_the_real_posts(data_dir: Path) -> None:
    lose_and_double_nothing("confluent", 12.0, WEIBO.texts)


@pytest.mark.parametrize(
    ("found", "more", "code"),
    [
        ({"p99_ms": 4_999.0}, [], 0),
        ({"p99_ms": 5_001.0}, [], 1),
        ({"p99_ms": 5_001.0}, ["--p99", "6"], 0),
        ({"p99_ms": 15_001.0}, ["--client", "kafka-python"], 1),
        ({"p99_ms": 14_999.0}, ["--client", "kafka-python"], 0),
        ({"timed": 16_199}, [], 1),
        ({"lost": 1}, [], 1),
    ],
)
def test_a_soak_is_red_for_a_slow_tail_and_a_small_load(
    monkeypatch: pytest.MonkeyPatch, found: dict[str, float], more: list[str], code: int
) -> None:
    good = Findings(20_000, 18_000, 12_000, 0, 0, 0, 0, 10.0, 100.0, 1.0, 1.0)
    monkeypatch.setattr(kafka_soak, "soak", lambda *_, **__: (replace(good, **found), "nothing"))
    client = [] if "--client" in more else ["--client", "confluent"]
    monkeypatch.setattr(sys, "argv", ["soak", "--seconds", "6", "--rate", "3000", *client, *more])
    with pytest.raises(SystemExit) as ended:
        kafka_soak.main()
    assert ended.value.code == code
