"""A minute's soak of whole processes; `make soak` runs ten."""

from __future__ import annotations

from bench import quality_data
from bench.kafka_soak import soak


def test_killed_frozen_and_joining_processes_lose_and_double_nothing(client: str) -> None:
    """Real posts where there are any, else generated ones: what is checked is the same."""
    posts = quality_data.data_dir() / "weibo_dev.jsonl.gz"
    found, done = soak(
        client, seconds=60.0, rate=3_000.0, seed=1, pause_s=4.0, posts=posts if posts.is_file() else None
    )
    assert found.good, f"{found} after {done}"
    assert found.messages > 60 * 1_000
