"""Members of the app's groups that are not twinsieve are seen by every process, and named."""

from __future__ import annotations

import logging
import time

import pytest

from tests.memory.broker import ManualClock, MemoryBroker, MemoryCluster
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.ports import Broker
from twinsieve.pipeline.broker.records import FatalError, Partition
from twinsieve.pipeline.service.member_watch import ForeignMembers
from twinsieve.pipeline.service.watching import watching

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
    broker, counts = MemoryBroker(cluster), list[int | None]()
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


def test_a_broker_that_refuses_the_question_is_told_once_and_its_last_answer_no_longer_counts(
    cluster: MemoryCluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "twinsieve")
    broker, counts, clients = MemoryBroker(cluster), list[int | None](), list[float]()
    seen = ForeignMembers("t", counts.append)
    broker.group_consumer(NAMES.workers, ["posts"])
    seen.look(broker.admin())
    assert seen.remark

    def refused() -> Broker:
        clients.append(time.monotonic())
        raise FatalError("group t.workers: not allowed", denied=True)

    deadline_s = time.monotonic() + 60
    with watching(
        "watch", seen.look, refused, cluster.clock, every_s=0.01, problem="members", on_failure=seen.forget
    ):
        while len(clients) < 5:
            assert time.monotonic() < deadline_s
            time.sleep(0.01)
    assert (counts[-1], seen.remark) == (None, "")
    assert [line for line in caplog.messages if "not allowed" in line] == [
        "members: group t.workers: not allowed"
    ]
    assert clients[4] - clients[3] >= 0.08, "each pause is twice as long as the one before"


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
