"""`twinsieve status`: who judges and what waits, as the broker tells it."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.calling import Run
from tests.driver import World
from tests.memory.broker import LocalClock, ManualClock, MemoryBroker, MemoryCluster
from twinsieve.pipeline.basics.shown_time import shown_time
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.mark import Mark
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.records import BrokerError, Committed, Messages, Partition
from twinsieve.pipeline.commands.kafka import connect
from twinsieve.pipeline.index.ends import Alone, Late, Unanswered, committed_record
from twinsieve.pipeline.operate import status as status_module
from twinsieve.pipeline.operate.shard_members import ShardsStatus
from twinsieve.pipeline.operate.status import InputStatus, Status, status_of
from twinsieve.pipeline.settings.model import DigestSettings, InputSettings, NearSettings, Settings

SETTINGS = Settings(app="t", input=InputSettings(topics=("posts",)))
NAMES = Names("t")
_GROUPS = ((NAMES.workers, ["posts"]), (NAMES.index, [NAMES.fingerprints]))
BEGAN_MS = 1_600_000_000_000


def write(cluster: MemoryCluster, partition: Partition, count: int) -> None:
    messages = Messages()
    for row in range(count):
        messages.add(None, b"%d" % row, (), BEGAN_MS + 1_000 * row)
    cluster.write(partition, messages)


@pytest.fixture
def cluster() -> MemoryCluster:
    """Partition 0 holds 10 to 100, 60 came out; partition 1 holds 40, none came out; partition 2 is empty."""
    made = MemoryCluster(ManualClock())
    made.create(NewTopic("posts", 3))
    made.create(NewTopic(NAMES.fingerprints, 1))
    write(made, Partition("posts", 0), 100)
    write(made, Partition("posts", 1), 40)
    made.log(Partition("posts", 0)).trim(10)
    topic_id = made.topics["posts"].topic_id
    made.group(NAMES.workers).offsets[Partition("posts", 0)] = Committed(60, Mark(topic_id, 20, 60).text())
    return made


def asked(cluster: MemoryCluster) -> Status:
    return status_of(SETTINGS, MemoryBroker(cluster), cluster.clock)


def test_an_app_that_never_ran_has_all_its_input_waiting(cluster: MemoryCluster) -> None:
    status = asked(cluster)
    assert status.inputs == [
        InputStatus("posts[0]", 60, 100, 40, BEGAN_MS + 60_000, None),
        InputStatus("posts[1]", None, 40, 40, BEGAN_MS, None),
        InputStatus("posts[2]", None, 0, 0, None, None),
    ]
    assert (status.judge, status.standbys, status.workers) == (None, [], [])
    assert (status.blocks, status.decided_ms, status.waiting) == (None, None, 80)
    assert [line.split(":")[0] for line in status.problems(79)] == [
        "nobody judges",
        "no worker has posts[0], posts[1], posts[2]",
        "80 messages wait, more than 79",
    ]
    assert len(status.problems(80)) == 2


def test_what_retention_took_does_not_wait(cluster: MemoryCluster) -> None:
    cluster.log(Partition("posts", 0)).trim(75)
    first = asked(cluster).inputs[0]
    assert (first.waiting, first.since_ms) == (25, BEGAN_MS + 75_000)


def test_in_a_topic_that_was_created_again_everything_waits(cluster: MemoryCluster) -> None:
    committed = cluster.group(NAMES.workers).offsets[Partition("posts", 0)]
    cluster.delete("posts")
    cluster.create(NewTopic("posts", 3))
    write(cluster, Partition("posts", 0), 7)
    # Some brokers keep the offset of a deleted topic for a while.
    cluster.group(NAMES.workers).offsets[Partition("posts", 0)] = committed
    status = asked(cluster)
    assert status.inputs[0] == InputStatus("posts[0]", None, 7, 7, BEGAN_MS, None, recreated=True)
    assert [one.recreated for one in status.inputs] == [True, False, False]
    told = (
        "posts[0]: the topic was deleted and created again since an offset was committed: stop the app, and "
    )
    assert told + "set the offset to begin at with `twinsieve reset`" in status.problems(None)


def test_a_running_app_names_its_judge_and_its_workers() -> None:
    world = World()
    settings = Settings(app="app", input=InputSettings(topics=("in",)))
    world.produce("in", 0, [b"one text", b"another one"])
    for slot in ("a", "b"):
        world.start(slot)
    world.settle()

    def told() -> Status:
        return status_of(settings, MemoryBroker(world.cluster), world.clock)

    status = told()
    assert status.problems(0) == []
    assert status.judge is not None
    assert len({status.judge, *status.standbys}) == 2
    assert {one.worker for one in status.inputs} == set(status.workers)
    assert (len(status.workers), status.blocks, status.inputs[0].came_out_up_to) == (2, 0, 2)
    assert status.decided_ms is not None
    assert 0 <= world.clock.now_ms() - status.decided_ms < 600_000
    world.kill_all()
    world.produce("in", 1, [b"nobody reads this"])
    status = told()
    assert [line.split(":")[0] for line in status.problems(0)] == [
        "nobody judges",
        "no worker has in[0], in[1], in[2]",
        "1 messages wait, more than 0",
    ]
    assert [one.since_ms for one in status.inputs] == [None, world.clock.now_ms(), None]


class Working(LocalClock):
    """A clock that lets the processes of a world work while somebody sleeps."""

    def __init__(self, world: World) -> None:
        super().__init__(world.clock)
        self._world = world

    def sleep(self, seconds: float) -> None:
        self._world.run(3)
        super().sleep(seconds)


def test_messages_that_wait_and_never_come_out_are_a_problem_and_others_are_not() -> None:
    world = World(2)
    settings = Settings(app="app", input=InputSettings(topics=("in",)))
    world.start("a")
    world.settle()

    def problems() -> list[str]:
        return status_of(settings, MemoryBroker(world.cluster), Working(world)).problems(None)

    world.cluster.faults.unreadable[Partition("in", 1)] = [range(3)]
    for number in range(2):
        world.produce("in", number, [b"%d %d" % (number, row) for row in range(50)])
    assert problems() == [
        "in[1]: messages wait, and none came out within 10 s: the page /readyz and the log of the worker say why"
    ]
    # What another program commits there did not come out.
    offsets = world.cluster.group(Names("app").workers).offsets
    offsets[Partition("in", 1)] = Committed(50)
    assert [line.split(",")[0] for line in problems()] == ["in[1]: messages wait"]
    world.cluster.faults.unreadable.clear()
    world.settle()
    assert problems() == []


class Ending(LocalClock):
    """A clock during whose first sleep a transaction ends."""

    def __init__(self, clock: ManualClock, end: Callable[[], None]) -> None:
        super().__init__(clock)
        self._end: Callable[[], None] | None = end

    def sleep(self, seconds: float) -> None:
        if self._end is not None:
            self._end()
            self._end = None
        super().sleep(seconds)


@pytest.mark.parametrize("ends", [False, True])
def test_a_transaction_that_stays_open_in_the_input_is_a_problem(cluster: MemoryCluster, ends: bool) -> None:
    transactor = MemoryBroker(cluster).transactor("a producer")
    transactor.begin()
    message = Messages()
    message.add(None, b"never committed")
    transactor.send("posts", 2, message)
    write(cluster, Partition("posts", 2), 3)
    clock = Ending(cluster.clock, transactor.commit) if ends else cluster.clock
    status = status_of(SETTINGS, MemoryBroker(cluster), clock)
    last = status.inputs[-1]
    assert (last.end, last.waiting, last.open_at) == (0, 0, None if ends else 0)
    said = [line for line in status.problems(None) if "transaction" in line]
    told = "posts[2]: a transaction that began at offset 0 is open, and nobody can read what lies behind it: let "
    assert said == ([] if ends else [told + "its producer end it, or abort it with kafka-transactions"])


_WITH_SHARDS = SETTINGS.model_copy(
    update={
        "digest": DigestSettings(key="none"),
        "near": NearSettings.model_validate(
            {"window": {"messages": 400}, "segment": 50, "answers": "shards"}
        ),
    }
)


def test_shards_are_named_and_those_of_other_settings_apart(cluster: MemoryCluster) -> None:
    broker = MemoryBroker(cluster)
    without = status_of(_WITH_SHARDS, broker, cluster.clock)
    assert without.shards is not None
    own, other = without.shards.group, NAMES.shards(bytes(16))
    assert without.shards == ShardsStatus(own, [], {}, has_topic=False)
    assert any("`twinsieve topics create`" in line for line in without.problems(None))
    cluster.create(NewTopic(NAMES.answers, 1))
    # The last one is of another app.
    for group, name in ((own, "b-shard"), (own, "a-shard"), (other, "old-shard"), ("tt.shards-0", "x-shard")):
        broker.group_consumer(group, [NAMES.answers], name).poll(0, 1)
    status = status_of(_WITH_SHARDS, broker, cluster.clock)
    assert status.shards == ShardsStatus(own, ["a-shard", "b-shard"], {other: ["old-shard"]}, has_topic=True)
    assert not any("answers" in line for line in status.problems(None))
    # A rule of comparison that the index asks about makes another group; the number of shards does not.
    stricter = _WITH_SHARDS.near.model_copy(update={"similarity": 0.93})
    changed = status_of(_WITH_SHARDS.model_copy(update={"near": stricter}), broker, cluster.clock).shards
    assert changed is not None
    assert changed.members == []
    assert set(changed.others) == {own, other}
    assert asked(cluster).shards is None


def test_the_command_prints_shards(on_memory: MemoryCluster, run: Run) -> None:
    flags = ("--set", "app=t", "--set", "near.answers=shards", "--set", "digest.key=none")
    assert "\nshards: none" in run("status", *flags).out
    group = json.loads(run("status", *flags, "--json").out)["shards"]["group"]
    other = NAMES.shards(bytes(16))
    for each, name in ((group, "one-shard"), (other, "old-shard\x1b")):
        MemoryBroker(on_memory).group_consumer(each, ["posts"], name).poll(0, 1)
    out = run("status", *flags).out
    assert "\nshards: one-shard\n" in out
    assert f"(group {other})\n" in out
    assert "\x1b" not in out


def test_the_command_says_in_which_segments_the_index_looks_up_itself(
    on_memory: MemoryCluster, run: Run
) -> None:
    flags, log = ("--set", "app=t", "--set", "near.answers=shards"), Partition(NAMES.fingerprints, 0)
    alone = Alone(4, tuple(Unanswered(at, at + 50, BEGAN_MS + at) for at in (0, 50, 100, 150)))
    on_memory.group(NAMES.index).offsets[log] = committed_record(0, 0, alone=alone)
    assert "no shard answers" not in run("status", *flags).out, "said by an index that is gone"
    MemoryBroker(on_memory).group_consumer(NAMES.index, [NAMES.fingerprints], "one").poll(0, 1)
    out = run("status", *flags).out
    assert f"\nno shard answers for 4 segments (0 to 50 since {shown_time(BEGAN_MS)}, 50 to 100 since " in out
    assert ", …): the index looks up in them itself\n" in out
    told = json.loads(run("status", *flags, "--json").out)["shards"]["alone"]
    assert told["count"] == 4
    assert told["segments"][2] == {"first": 100, "end": 150, "since_ms": BEGAN_MS + 100}
    late = Alone(late=(Late("old-shard\x1b", 3, BEGAN_MS),))
    on_memory.group(NAMES.index).offsets[log] = committed_record(0, 0, alone=late)
    out = run("status", *flags).out
    assert f" for 3 segments since {shown_time(BEGAN_MS)}: the index looks up in them itself\n" in out
    assert "\x1b" not in out
    on_memory.group(NAMES.index).offsets[log] = committed_record(0, 0)
    assert "no shard answers" not in run("status", *flags).out


def test_asking_changes_nothing_on_the_broker(cluster: MemoryCluster) -> None:
    groups = {name: (dict(group.offsets), dict(group.members)) for name, group in cluster.groups.items()}
    asked(cluster)
    after = {name: (dict(group.offsets), dict(group.members)) for name, group in cluster.groups.items()}
    assert {name: after[name] for name in groups} == groups
    assert all(
        offsets == {} and members == {} for name, (offsets, members) in after.items() if name not in groups
    )


@pytest.fixture
def on_memory(cluster: MemoryCluster, monkeypatch: pytest.MonkeyPatch) -> MemoryCluster:
    monkeypatch.setattr(connect, "connect_by_settings", lambda *_, **__: MemoryBroker(cluster))
    monkeypatch.setattr(status_module, "_OBSERVE_S", 0.1)
    return cluster


def test_the_command_ends_with_3_where_something_is_wrong(on_memory: MemoryCluster, run: Run) -> None:
    found = run("status", "--set", "app=t", "--max-waiting", "5")
    assert found.code == 3
    assert found.out.startswith("t: nobody judges\nstanding by: nobody; workers: none\n")
    assert "2020-09-13 12:27:40 UTC" in found.out
    assert found.out.endswith("\n80 messages wait, more than 5\n")
    said = json.loads(run("status", "--set", "app=t", "--json", "--max-waiting", "5").out)
    assert said["waiting"] == 80
    assert said["inputs"][0]["waiting"] == 40
    assert len(said["problems"]) == 3
    broker = MemoryBroker(on_memory)
    for (name, topics), member in zip(_GROUPS, ("a-worker", "a-index"), strict=True):
        broker.group_consumer(name, topics, member).poll(0, 1)
    assert "posts[0], posts[1]: messages wait, and none came out" in run("status", "--set", "app=t").out
    for number in range(2):
        place = Partition("posts", number)
        end = on_memory.log(place).end
        mark = Mark(on_memory.topics["posts"].topic_id, 0, end)
        on_memory.group(NAMES.workers).offsets[place] = Committed(end, mark.text())
    assert run("status", "--set", "app=t").code == 0
    write(on_memory, Partition("posts", 0), 80)
    assert run("status", "--set", "app=t", "--max-waiting", "79").code == 3
    other = broker.group_consumer(NAMES.workers, ["posts"])
    other.poll(0, 1)
    found = run("status", "--set", "app=t")
    assert found.code == 3
    assert "group t.workers has a foreign member" in found.out


def test_a_time_that_no_calendar_has_is_shown_as_a_number(on_memory: MemoryCluster, run: Run) -> None:
    messages = Messages()
    messages.add(None, b"x", (), (1 << 63) - 1)
    on_memory.write(Partition("posts", 2), messages)
    assert f"{(1 << 63) - 1} ms" in run("status", "--set", "app=t").out


def test_a_missing_input_topic_is_named() -> None:
    with pytest.raises(BrokerError, match="posts: input topic does not exist; correct input"):
        asked(MemoryCluster(ManualClock()))
