"""A process of `run --role shard` beside one with worker and index: it answers for the segments of their window."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.generated_posts import generate
from tests.memory.broker import MemoryCluster
from tests.service.running import Service, came_out, wait_for
from tests.service.test_service import produce
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.wire.frame import scheme_in
from twinsieve.pipeline.wire.segment_answers import decode_answers
from twinsieve.stages.errors import UsageError


def settings_in(folder: Path, **near: Any) -> Settings:
    """Of an app with shards, whose window of a few hundred messages has several segments. near: other keys"""
    return Settings.model_validate(
        {
            "app": "t",
            "topics": {"auto_create": True},
            "state": {"dir": str(folder), "snapshot_every": "500ms", "memory": "1GiB"},
            "http": {"listen": "none"},
            "near": {"window": {"messages": 400}, "segment": 50, "answers": "shards", "grace": "1s"} | near,
            "exact": {"window": {"messages": 10_000}},
        }
    )


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return settings_in(tmp_path / "state")


def texts(count: int, seed: int) -> list[str]:
    return [
        post["text"].replace('"', "").replace("\\", "").replace("\n", " ")
        for post in generate(count, seed=seed)
    ]


@pytest.mark.parametrize("together", [False, True])
def test_a_shard_answers_for_the_segments_of_a_running_app(
    settings: Settings, cluster: MemoryCluster, together: bool
) -> None:
    role = "worker,index,shard" if together else "both"
    services = [Service(settings, cluster, member="one", role=role)]
    if not together:
        wait_for(lambda: "t.answers" in cluster.topics, "topics")
        services.append(Service(settings, cluster, member="two", role="shard"))

    def answered() -> set[tuple[int, int]]:
        logs = cluster.topics["t.answers"].logs if "t.answers" in cluster.topics else []
        values = [entry.value or b"" for log in logs for _, entry in log.visible()]
        said = [decode_answers(scheme_in(value), value, "answers") for value in values]
        return {part.segment[:2] for record in said for part in record.parts if part.blocks}

    written = 0

    def goes_on() -> bool:
        nonlocal written
        produce(cluster, texts(40, written))
        written += 40
        before = came_out(cluster, "posts.unique", "posts.duplicates")
        wait_for(lambda: came_out(cluster, "posts.unique", "posts.duplicates") > before, "verdicts")
        return len(answered()) >= 2

    wait_for(goes_on, "answers for two segments")
    for service in reversed(services):
        service.end()
    assert came_out(cluster, "posts.unique", "posts.duplicates") == written


def test_a_shard_of_a_window_without_segments_is_refused(settings: Settings, cluster: MemoryCluster) -> None:
    near = settings.near.model_copy(update={"answers": "none"})
    service = Service(settings.model_copy(update={"near": near}), cluster, role="shard")
    service.join()
    assert isinstance(service.error, UsageError)


@pytest.mark.parametrize("role", ["shard", "index,shard"])
def test_a_shard_with_a_folder_of_its_own_machine_warns(
    role: str, settings: Settings, cluster: MemoryCluster, caplog: pytest.LogCaptureFixture
) -> None:
    service = Service(settings, cluster, member="one", role=role)
    wait_for(lambda: "t.fingerprints" in cluster.topics, "topics")
    service.end()
    told = [line for line in caplog.messages if "shards on other machines cannot read this folder" in line]
    assert len(told) == (role == "shard")
    assert all(settings.state.dir in line for line in told)
