"""The service as one process runs it: real threads and the real sieve on the memory broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.memory.broker import MemoryBroker, MemoryCluster
from tests.service.running import Service, came_out, wait_for
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.records import BrokerError, FatalError, Messages, Partition
from twinsieve.pipeline.settings.model import (
    ExactSettings,
    ExactWindowSettings,
    HttpSettings,
    NearSettings,
    Settings,
    StateSettings,
    TopicSettings,
    WindowSettings,
)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(
        app="t",
        topics=TopicSettings(auto_create=True),
        state=StateSettings(dir=str(tmp_path / "state")),
        http=HttpSettings(listen=None),
        near=NearSettings(window=WindowSettings(messages=1_000)),
        exact=ExactSettings(window=ExactWindowSettings(messages=10_000)),
    )


def produce(cluster: MemoryCluster, texts: list[str], partition: int = 0) -> None:
    messages = Messages()
    for text in texts:
        messages.add(b"k", b'{"id": "1", "text": "%s"}' % text.encode())
    MemoryBroker(cluster).appender().append(Partition("posts", partition), messages)


POSTS = [
    "武汉加油！中国加油！我们一定能赢",
    "今天天气很好，适合出门散步看花",
    "武汉加油！中国加油！我们一定能赢",
]


def test_uniques_come_out_and_a_stop_reports_and_leaves_a_snapshot(
    settings: Settings, cluster: MemoryCluster, tmp_path: Path
) -> None:
    service = Service(settings, cluster, member="one")
    produce(cluster, POSTS)
    wait_for(lambda: came_out(cluster, "posts.unique") == 2, "two uniques")
    service.end()
    offsets = cluster.group(Names("t").workers).offsets
    assert offsets[Partition("posts", 0)].offset == 3
    assert len(cluster.values("posts.duplicates")) == 1
    assert list((tmp_path / "state" / "t").iterdir())
    again = Service(settings, cluster, member="one")
    produce(cluster, [POSTS[1], "完全不同的一条消息，从来没有出现过"])
    wait_for(lambda: came_out(cluster, "posts.unique") == 3, "one more unique")
    again.end()
    assert len(cluster.values("posts.duplicates")) == 2


def test_a_dry_run_makes_and_touches_nothing_but_its_own_topics(
    settings: Settings, cluster: MemoryCluster
) -> None:
    strict = settings.model_copy(update={"topics": TopicSettings(auto_create=False)})
    service = Service(strict, cluster, member="one", dry_run=True)
    produce(cluster, POSTS)
    group = Names("t-shadow").workers
    at = Partition("posts", 0)
    wait_for(lambda: group in cluster.groups and at in cluster.group(group).offsets
             and cluster.group(group).offsets[at].offset == 3, "the shadow has judged")  # fmt: skip
    service.end()
    own = {f"t-shadow.{name}" for name in ("fingerprints", "decisions", "verdicts", "key")}
    assert set(cluster.topics) == {"posts"} | own
    assert set(cluster.groups) == set(Names("t-shadow").run_groups)


def test_missing_topics_are_named_and_never_made_silently(settings: Settings, cluster: MemoryCluster) -> None:
    strict = settings.model_copy(update={"topics": TopicSettings(auto_create=False)})
    service = Service(strict, cluster, member="one")
    service.join()
    assert isinstance(service.error, BrokerError)
    assert "t.fingerprints: does not exist; run: twinsieve topics create" in str(service.error)
    assert "t.fingerprints" not in cluster.topics


def test_the_newer_process_of_a_slot_wins_and_the_older_exits(
    settings: Settings, cluster: MemoryCluster
) -> None:
    older = Service(settings, cluster, member="one")
    produce(cluster, POSTS)
    wait_for(lambda: came_out(cluster, "posts.unique") == 2, "two uniques")
    newer = Service(settings, cluster, member="one")
    older.join()
    assert isinstance(older.error, FatalError)
    produce(cluster, ["完全不同的一条消息，从来没有出现过"])
    wait_for(lambda: came_out(cluster, "posts.unique") == 3, "the newer one goes on")
    newer.end()
