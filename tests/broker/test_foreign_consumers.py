"""Somebody uses the workers' consumer group on a real broker: no offset but the app's own counts."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
from kafka import KafkaAdminClient, TopicPartition
from kafka.structs import OffsetAndMetadata

from tests.broker.deployment import Deployment, Watcher, in_thread, judge
from tests.broker.load import PARTITIONS, Load
from tests.broker.stranger import Stranger
from tests.broker.worlds import until, until_done

_RATE = 200.0
_NUMBERS = itertools.count()


class Scene:
    """Two processes under a steady load."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.deployment = Deployment(bootstrap, f"foreign-{next(_NUMBERS)}", session_timeout="6s")
        self.deployment.create_topics()
        self.group = f"{self.deployment.app}.workers"
        self.topic = f"{self.deployment.app}.in"
        self.load = Load(bootstrap, self.topic, 100_000, _RATE)
        self.watcher = Watcher(bootstrap, self.deployment.outputs)
        in_thread(self.watcher.run)

    def status(self) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "twinsieve", "status", "-c", str(self.deployment.file), "--json"]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def finish(self) -> str:
        """Stops the load, waits until all is out, and says what the topics alone show."""
        self.load.stop.set()
        until(lambda: not self.loading.is_alive())
        until(lambda: self.load.sent_s.keys() <= self.watcher.seen.keys())
        found = judge(self.load, self.watcher, self.deployment.outputs[0])
        assert found.good, str(found)
        return self.deployment.log("a").read_text()

    def run(self) -> None:
        self.loading = in_thread(self.load.run)

    def close(self) -> None:
        self.watcher.stop.set()
        self.load.stop.set()
        self.deployment.close()


@pytest.fixture
def scene(bootstrap: str) -> Iterator[Scene]:
    made = Scene(bootstrap)
    yield made
    made.close()


def test_an_ordinary_consumer_in_the_group_moves_nothing_and_is_said(scene: Scene) -> None:
    """It takes partitions, commits in them, and leaves; a process of ours is killed meanwhile."""
    pages = scene.deployment.start_shown("a")
    scene.deployment.start("b")
    scene.run()
    until(lambda: {place[0] for place in list(scene.watcher.seen)} == set(range(PARTITIONS)))

    stranger = Stranger(scene.bootstrap, scene.group, scene.topic)
    until(lambda: stranger.read > 300)
    until(lambda: pages.total("foreign_members") == 1)
    status, text = pages.page("/readyz")
    assert status == 200
    assert f"group {scene.group} has a foreign member: client console" in text
    told = scene.status()
    assert told.returncode == 3
    assert any("client console" in line for line in json.loads(told.stdout)["problems"])
    scene.deployment.kill("b")
    read = stranger.read
    until(lambda: stranger.read > read + 300)
    stranger.leave()

    scene.deployment.start("b")
    said = scene.finish() + scene.deployment.log("b").read_text()
    assert "was not committed by twinsieve" in said
    until(lambda: pages.total("foreign_members") == 0)


def test_offsets_that_a_tool_moves_or_deletes_in_the_empty_group_do_not_count(scene: Scene) -> None:
    scene.deployment.start("a")
    scene.run()
    until(lambda: {place[0] for place in list(scene.watcher.seen)} == set(range(PARTITIONS)))
    scene.deployment.kill("a")
    admin = KafkaAdminClient(bootstrap_servers=scene.bootstrap)
    until(lambda: not admin.describe_groups([scene.group])[scene.group]["members"])
    # A copy, because the thread of the load still adds to it.
    sent = list(scene.load.sent_s)
    ends = [sum(place[0] == number for place in sent) for number in range(PARTITIONS)]
    moved = {0: 0, 1: ends[1], 2: ends[2] + 10_000}
    offsets = {
        TopicPartition(scene.topic, number): OffsetAndMetadata(at, "", -1) for number, at in moved.items()
    }
    until_done(lambda: admin.alter_group_offsets(scene.group, offsets))
    until_done(lambda: admin.delete_group_offsets(scene.group, [TopicPartition(scene.topic, 3)]))
    admin.close()
    scene.deployment.start("a")
    said = [line for line in scene.finish().splitlines() if "by twinsieve in group" in line]
    for number in range(PARTITIONS):
        assert any(f"{scene.topic}[{number}]: " in line for line in said), said
