"""An app whose index uses the answers of shards: what comes out is what one process without shards lets out,
whatever becomes of the shards."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.memory.broker import MemoryCluster, NewTopic
from tests.service.running import Service, came_out, wait_for
from tests.service.test_service import produce
from tests.service.test_shard_service import settings_in, texts
from tests.shards.holding_shards import count_taken
from twinsieve.pipeline.service.run import SystemClock
from twinsieve.pipeline.settings.model import KafkaSettings

_OUTPUTS = ("posts.unique", "posts.duplicates")
_POSTS = 40


def _out(cluster: MemoryCluster) -> list[list[tuple[bytes | None, Any]]]:
    """The messages of both outputs, with the headers that name leaders."""
    return [
        [(entry.value, entry.headers) for log in cluster.topics[name].logs for _, entry in log.visible()]
        for name in _OUTPUTS
    ]


def _run(
    folder: Path, shards: int, is_enough: Callable[[int], bool], *, more: int = 0
) -> tuple[MemoryCluster, int]:
    """Post in rounds, each after all before came out. returns: the broker, and how many rounds that took

    is_enough: takes the number of rounds so far; once it is true, all shards end
    more: rounds after that
    """
    cluster = MemoryCluster(SystemClock())
    # One partition, so that the log has one order.
    cluster.create(NewTopic("posts", 1))
    near = {"answers": "shards" if shards else "none", "patience": "10s"}
    kafka = KafkaSettings(session_timeout_ms=6_000)
    settings = settings_in(folder, **near).model_copy(update={"kafka": kafka})
    services = [Service(settings, cluster, member="one", role="both")]
    wait_for(lambda: "t.verdicts" in cluster.topics, "topics")
    services += [Service(settings, cluster, member=f"shard{n}", role="shard") for n in range(shards)]
    rounds, left = 0, more
    while left >= 0:
        produce(cluster, texts(_POSTS, rounds))
        rounds += 1
        wait_for(lambda all_posts=rounds * _POSTS: came_out(cluster, *_OUTPUTS) == all_posts, "all posts")  # type: ignore[misc]
        if not is_enough(rounds):
            continue
        for service in services[1:]:
            service.end()
        del services[1:]
        left -= 1
    services[0].end()
    return cluster, rounds


def test_verdicts_with_shards_are_those_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when all shards end in between, and never come back."""
    taken = count_taken(monkeypatch)
    shared, rounds = _run(tmp_path / "shared", 2, lambda _: taken[0] >= 50 * _POSTS)
    assert taken[1] == 0
    before = taken[0]
    alone, _ = _run(tmp_path / "alone", 0, lambda number: number == rounds)
    assert taken[0] == before
    assert _out(shared) == _out(alone)
    late, rounds = _run(tmp_path / "late", 2, lambda _: taken[0] >= before + 10 * _POSTS, more=5)
    longer, _ = _run(tmp_path / "longer", 0, lambda number: number == rounds)
    assert _out(late) == _out(longer)
