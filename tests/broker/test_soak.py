"""A short soak of whole processes; `make soak` runs the long one at the full rate."""

from __future__ import annotations

import pytest

from bench.kafka_soak import soak


@pytest.mark.parametrize("seed", [1])
def test_killed_frozen_and_joining_processes_lose_and_double_nothing(client: str, seed: int) -> None:
    found, done = soak(client, seconds=30.0, rate=800.0, seed=seed, pause_s=3.0)
    assert found.good, f"{found} after {done}"
    assert found.messages > 5_000
