"""A minute's soak of whole processes; `make soak` runs ten."""

from __future__ import annotations

from pathlib import Path

from bench.kafka_soak import soak


def test_killed_frozen_and_joining_processes_lose_and_double_nothing(
    client: str, real_posts: Path | None
) -> None:
    found, done = soak(client, seconds=60.0, rate=3_000.0, seed=1, pause_s=4.0, posts=real_posts)
    assert found.good, f"{found} after {done}"
    assert found.messages > 60 * 1_000
