"""Members of the app's groups that are not twinsieve are seen by every process, and named."""

from __future__ import annotations

import logging

import pytest

from tests.memory.broker import ManualClock, MemoryBroker, MemoryCluster
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.service.member_watch import ForeignMembers

NAMES = Names("t")
POSTS = Partition("posts", 0)


@pytest.fixture
def cluster() -> MemoryCluster:
    made = MemoryCluster(ManualClock())
    made.create(NewTopic("posts", 1))
    made.create(NewTopic(NAMES.fingerprints, 1))
    return made


@pytest.mark.parametrize("group", NAMES.run_groups)
def test_a_foreign_member_of_any_group_is_told_once_and_until_it_leaves(
    cluster: MemoryCluster, group: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "twinsieve")
    broker, counts = MemoryBroker(cluster), list[int]()
    seen = ForeignMembers("t", counts.append)
    for name, member, topic in (
        (NAMES.workers, "a-worker", "posts"),
        (NAMES.index, "a-index", NAMES.fingerprints),
    ):
        broker.group_consumer(name, [topic], member)
    seen.look(broker.admin())
    assert (counts, seen.remark) == ([0], "")
    foreign = broker.group_consumer(group, ["posts"])
    seen.look(broker.admin())
    seen.look(broker.admin())
    assert counts == [0, 1, 1]
    assert f"group {group} has a foreign member" in seen.remark
    assert len([each for each in caplog.records if group in each.getMessage()]) == 1
    foreign.close()
    seen.look(broker.admin())
    assert (counts[-1], seen.remark) == (0, "")


def test_who_had_a_partition_is_known_after_he_has_left(cluster: MemoryCluster) -> None:
    broker = MemoryBroker(cluster)
    seen = ForeignMembers("t", lambda _: None)
    foreign = broker.group_consumer(NAMES.workers, ["posts"])
    assert seen.who_had(POSTS) == ""
    seen.look(broker.admin())
    foreign.close()
    seen.look(broker.admin())
    assert "posts[0]" in seen.who_had(POSTS)


def test_what_a_foreign_client_calls_itself_reaches_no_page_unescaped(cluster: MemoryCluster) -> None:
    broker = MemoryBroker(cluster)
    seen = ForeignMembers("t", lambda _: None)
    cluster.group(NAMES.workers).join(("posts",), None, 0.0).client_id = "\x1b[2J\nevil"
    seen.look(broker.admin())
    assert "evil" in seen.remark
    assert "\x1b" not in seen.remark
    assert "\n" not in seen.remark
