"""SIGTERM of whole processes: they finish, report, leave their groups and end with exit code 0."""

from __future__ import annotations

import signal
import uuid
from collections.abc import Iterator

import pytest
from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import MemberToRemove
from kafka.structs import OffsetAndMetadata

from tests.broker.deployment import Deployment, Watcher, in_thread, judge
from tests.broker.groups import shares
from tests.broker.load import PARTITIONS, Load
from tests.broker.stranger import admin
from tests.broker.worlds import DEADLINE_S, fresh, until
from twinsieve.pipeline.broker.mark import moved
from twinsieve.pipeline.broker.names import Names

_RATE = 200.0
_NO_CLEAN_END = ("stopped without", "not answered or not emitted", "could not leave it")


class Stage:
    """Processes of one app under a load; what the broker says of their groups comes from the broker alone."""

    def __init__(self, bootstrap: str, **kafka: object) -> None:
        self.deployment = Deployment(bootstrap, fresh("stop"), **kafka)
        self.deployment.create_topics()
        self.load = Load(bootstrap, f"{self.deployment.app}.in", int(600 * _RATE), _RATE)
        self.watcher = Watcher(bootstrap, self.deployment.outputs)
        self.watching = in_thread(self.watcher.run)
        self._bootstrap = bootstrap
        self._admin = admin(bootstrap)

    def shares(self, role: str) -> dict[str | None, set[int]]:
        """Partitions of each member of the workers' group (`workers`) or of the indexes' (`index`)."""
        return shares(self._admin, f"{self.deployment.app}.{role}")

    def terminate(self, name: str) -> str:
        """SIGTERM and the end of the process, with exit code 0; what it has said."""
        self.deployment.signal(name, signal.SIGTERM)
        code = self.deployment.processes[name].wait(DEADLINE_S)
        said = self.deployment.log(name).read_text()
        assert code == 0, said
        return said

    def wait_for(self, messages: int, partitions: set[int]) -> None:
        """So many more messages of each of these input partitions have come out."""

        def out(number: int) -> int:
            return sum(place[0] == number for place in list(self.watcher.seen))

        wanted = {number: out(number) + messages for number in partitions}
        until(lambda: all(out(number) >= count for number, count in wanted.items()))

    def wait_for_all(self) -> None:
        """Everything that was put in has come out."""
        until(lambda: self.load.sent_s.keys() <= self.watcher.seen.keys())

    def forget_offsets(self, *members: str) -> None:
        """Every offset back to 0 as `reset` moves it, and no record of what was emitted."""
        group = f"{self.deployment.app}.workers"
        tool = KafkaAdminClient(bootstrap_servers=self._bootstrap)
        rows = tool.describe_groups([group])[group]["members"]
        assert sorted(row["group_instance_id"] for row in rows) == sorted(members)
        tool.remove_group_members(
            group, [MemberToRemove(row["member_id"], row["group_instance_id"]) for row in rows]
        )
        parts = [TopicPartition(f"{self.deployment.app}.in", number) for number in range(PARTITIONS)]
        topic_id = uuid.UUID(tool.describe_topics([parts[0].topic])[0]["topic_id"]).bytes
        text = moved(None, topic_id, 0).metadata
        tool.alter_group_offsets(group, {at: OffsetAndMetadata(0, text, -1) for at in parts})
        tool.delete_groups([Names.emitted(group)])
        tool.close()

    def close(self) -> None:
        self.watcher.stop.set()
        self.load.stop.set()
        self.deployment.close()


@pytest.fixture
def stages() -> Iterator[list[Stage]]:
    """Stages that end with the test."""
    made: list[Stage] = []
    yield made
    for stage in made:
        stage.close()


def test_a_terminated_process_leaves_its_groups_and_its_share_to_the_other(
    bootstrap: str, stages: list[Stage]
) -> None:
    # Longer than anything here is waited for: a share that waits for the end of a session never comes.
    stage = Stage(bootstrap, session_timeout=f"{2 * DEADLINE_S:g}s")
    stages.append(stage)
    stage.deployment.start("a")
    until(lambda: set(stage.shares("index")) == {"a-index"})
    stage.deployment.start("b")
    loading = in_thread(stage.load.run)
    until(lambda: set(stage.shares("index")) == {"a-index", "b-index"})
    until(lambda: [len(share) for share in stage.shares("workers").values()] == [2, 2])
    share = stage.shares("workers")["a-worker"]
    stage.wait_for(1, set(range(PARTITIONS)))

    said = stage.terminate("a")

    assert set(stage.shares("workers")) == {"b-worker"}
    assert set(stage.shares("index")) == {"b-index"}
    assert not [line for line in said.splitlines() if any(each in line for each in _NO_CLEAN_END)]
    until(lambda: stage.shares("workers") == {"b-worker": set(range(PARTITIONS))})
    until(lambda: stage.shares("index") == {"b-index": {0}})
    stage.wait_for(int(_RATE / PARTITIONS), share)
    stage.load.stop.set()
    loading.join(DEADLINE_S)
    stage.wait_for_all()
    found = judge(stage.load, stage.watcher, stage.deployment.outputs[0])
    assert found.good, found
    assert found.messages > _RATE


def test_a_terminated_process_has_reported_all_it_emitted(bootstrap: str, stages: list[Stage]) -> None:
    # Nothing but the stop may report what the last blocks of each partition became.
    stage = Stage(bootstrap, idle_report="1h")
    stages.append(stage)
    stage.load.messages, stage.load.rate = 1_000, None
    stage.load.run()
    stage.deployment.start("a")
    stage.wait_for_all()
    stage.terminate("a")
    stage.forget_offsets("a-worker")
    later = Load(bootstrap, stage.load.topic, PARTITIONS, seed=2, sent_s=stage.load.sent_s)
    later.run()
    assert len(stage.load.sent_s) == 1_000 + PARTITIONS
    stage.deployment.start("a")
    stage.wait_for_all()
    stage.terminate("a")
    found = judge(stage.load, stage.watcher, stage.deployment.outputs[0])
    assert found.good, found
