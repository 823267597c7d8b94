"""Short soaks of whole processes, one with real posts (`make long`); `make soak` runs ten minutes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.accuracy.data_sets import WEIBO
from tests.broker.soak import soak

_RATE = 1_000.0
_PAUSE_S = 1.5
"""Between two troubles: as many of them in a short time as can be, the next before the last is over."""


def lose_and_double_nothing(seconds: float, posts: Path | None = None, *, shards: int = 0) -> None:
    found, done = soak(
        seconds=seconds, rate=_RATE, seed=1, pause_s=_PAUSE_S, posts=posts, hard=True, shards=shards
    )
    assert found.answered != 0, f"no shard answered after {done}"
    assert found.good, f"{found} after {done}"
    # Less than `make soak` asks for: here other tests have one of the two cores.
    assert found.timed >= seconds * _RATE * 2 / 3


@pytest.mark.minutes
@pytest.mark.needs("own broker")
def test_killed_frozen_and_joining_processes_lose_and_double_nothing() -> None:
    lose_and_double_nothing(10.0)


@pytest.mark.minutes
@pytest.mark.needs("own broker")
def test_killed_frozen_and_joining_processes_lose_and_double_no_real_post(data_dir: Path) -> None:
    lose_and_double_nothing(8.0, WEIBO.texts)


@pytest.mark.minutes
@pytest.mark.needs("own broker")
def test_killed_frozen_and_joining_processes_with_shards_lose_and_double_nothing() -> None:
    lose_and_double_nothing(20.0, shards=2)
