"""`twinsieve reset`: what it says, what it moves, and what comes out afterwards."""

from __future__ import annotations

from dataclasses import replace

import pytest
from click.testing import CliRunner

from tests.driver import GROUP, OUTPUT, WORKER, World
from tests.memory.broker import ManualClock, MemoryBroker, MemoryCluster
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.mark import Mark, read_mark
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.records import BrokerError, Committed, Messages, Partition
from twinsieve.pipeline.commands.kafka import reset as reset_command
from twinsieve.pipeline.operate.reset import apply, plan
from twinsieve.pipeline.operate.reset_targets import read_targets
from twinsieve.pipeline.settings import ConfigError
from twinsieve.pipeline.settings.model import InputSettings, Settings
from twinsieve.stages.errors import UsageError

SETTINGS = Settings(app="t", input=InputSettings(topics=("posts",)))
WORKERS = Names("t").workers
NONE = "none was committed: what was judged before is passed over as replayed"


@pytest.fixture
def cluster() -> MemoryCluster:
    """Two partitions; 100 and 40 messages, one a second; the first 10 of partition 0 are gone."""
    made = MemoryCluster(ManualClock())
    made.create(NewTopic("posts", 2))
    for number, count in ((0, 100), (1, 40)):
        messages = Messages()
        for row in range(count):
            messages.add(None, b"%d" % row, (), 1_600_000_000_000 + 1_000 * row)
        made.write(Partition("posts", number), messages)
    made.log(Partition("posts", 0)).trim(10)
    topic_id = made.topics["posts"].topic_id
    made.group(WORKERS).offsets[Partition("posts", 0)] = Committed(60, Mark(topic_id, 20, 60).text())
    return made


def planned(cluster: MemoryCluster, *targets: str) -> list[str]:
    return [str(move) for move in plan(SETTINGS, MemoryBroker(cluster), read_targets(targets))]


def test_every_kind_of_target_says_where_it_leads_and_what_that_means(cluster: MemoryCluster) -> None:
    back = "what was emitted is passed over as replayed, what never was is judged"
    assert planned(cluster, "earliest") == [
        f"posts[0]: 60 -> 10, goes back 50: {back}",
        f"posts[1]: none -> 0, {NONE}",
    ]
    assert planned(cluster, "latest")[0] == (
        "posts[0]: 60 -> 100, skips 40: not judged unless the offset is moved back"
    )
    assert planned(cluster, "25") == [
        f"posts[0]: 60 -> 25, goes back 35: {back}",
        f"posts[1]: none -> 25, {NONE}",
    ]
    assert planned(cluster, "posts[0]=60") == ["posts[0]: 60 -> 60, stays"]
    assert planned(cluster, "2020-09-13T12:27:00Z")[0].startswith("posts[0]: 60 -> 20,")
    assert planned(cluster, "2030-01-01", "posts[1]=earliest") == [
        "posts[0]: 60 -> 100, skips 40: not judged unless the offset is moved back",
        f"posts[1]: none -> 0, {NONE}",
    ]


def test_planning_moves_nothing_and_applying_keeps_the_mark(cluster: MemoryCluster) -> None:
    broker, at = MemoryBroker(cluster), Partition("posts", 0)
    before = cluster.group(WORKERS).offsets[at]
    moves = plan(SETTINGS, broker, read_targets(["12"]))
    assert cluster.group(WORKERS).offsets == {at: before}
    apply(SETTINGS, broker, moves)
    mark = read_mark(before.metadata)
    assert mark is not None
    assert cluster.group(WORKERS).offsets[at] == Committed(12, mark._replace(reset=True).text())


def test_a_running_group_is_refused_with_what_to_do(cluster: MemoryCluster) -> None:
    broker = MemoryBroker(cluster)
    consumer = broker.group_consumer(WORKERS, ["posts"])
    consumer.poll(0.1, 1)
    moves = plan(SETTINGS, broker, read_targets(["earliest"]))
    with pytest.raises(BrokerError, match=r"SIGTERM, wait for kafka\.session_timeout") as refused:
        apply(SETTINGS, broker, moves)
    assert not refused.value.retryable
    assert not cluster.group(Names.emitted(WORKERS)).offsets, "a refused reset leaves nothing"
    consumer.close()
    apply(SETTINGS, broker, moves)
    assert cluster.group(WORKERS).offsets[Partition("posts", 0)].offset == 10


@pytest.mark.parametrize(
    ("targets", "says"),
    [
        (["5"], "--to 5: posts[0] holds 10 to 100; choose from these"),
        (["posts[1]=41"], "--to 41: posts[1] holds 0 to 40; choose from these"),
        (["posts[7]=1"], "--to posts[7]: no such input partition"),
    ],
)
def test_targets_that_do_not_fit_are_named(cluster: MemoryCluster, targets: list[str], says: str) -> None:
    with pytest.raises(ConfigError) as refused:
        planned(cluster, *targets)
    assert list(refused.value.findings) == [says]


@pytest.mark.parametrize(
    ("targets", "says"),
    [
        ([], "--to is missing"),
        (["yesterday"], "'yesterday' is not a target; write earliest"),
        (["-5"], "'-5' is not a target"),
        (["1" * 30], "is not a target"),
        (["posts[0]=soon"], "'soon' is not a target"),
        (["earliest", "latest"], "all partitions have a target already"),
        (["p[0]=1", "p[0]=2"], "p[0] has a target already"),
    ],
)
def test_what_is_no_target_is_misuse(targets: list[str], says: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_targets(targets)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_missing_input_topic_is_named(cluster: MemoryCluster) -> None:
    other = SETTINGS.model_copy(update={"input": InputSettings(topics=("posts", "nowhere"))})
    with pytest.raises(BrokerError, match="nowhere: input topic does not exist"):
        plan(other, MemoryBroker(cluster), read_targets(["earliest"]))


def test_latest_stops_before_an_open_transaction(cluster: MemoryCluster) -> None:
    transactor = MemoryBroker(cluster).transactor("other")
    transactor.begin()
    open_ones = Messages()
    open_ones.add(None, b"open")
    transactor.send("posts", 0, open_ones)
    for target in ("latest", "2030-01-01"):
        assert planned(cluster, target)[0].startswith("posts[0]: 60 -> 100,")


def test_a_topic_that_lost_messages_cannot_be_helped_by_a_reset(cluster: MemoryCluster) -> None:
    del cluster.log(Partition("posts", 0)).entries[30:]
    with pytest.raises(ConfigError) as refused:
        planned(cluster, "earliest")
    assert "ends at 40, but was emitted up to 60" in refused.value.findings[0]
    assert "start a new app" in refused.value.findings[0]


def test_an_offset_of_an_earlier_topic_of_that_name_loses_its_mark(cluster: MemoryCluster) -> None:
    at = Partition("posts", 0)
    cluster.group(WORKERS).offsets[at] = Committed(60, Mark(b"another topic id", 20, 60).text())
    assert planned(cluster, "posts[0]=earliest") == [
        "posts[0]: 60 -> 10, in the topic that was created again: all of it counts as new"
    ]
    (move,) = plan(SETTINGS, MemoryBroker(cluster), read_targets(["posts[0]=earliest"]))
    assert move.after == Committed(10, Mark(cluster.topics["posts"].topic_id, 10, 10, reset=True).text())


def test_all_of_a_topic_that_was_created_again_comes_out_after_a_reset() -> None:
    world = World(partitions=1)
    world.produce("in", 0, [b"a", b"b"])
    world.start("a")
    world.settle()
    world.cluster.delete("in")
    world.cluster.create(NewTopic("in", 1))
    world.topic_ids["in"].add(world.cluster.topics["in"].topic_id)
    world.produce("in", 0, [b"c", b"d", b"e"])
    world.run(200)
    assert "with `twinsieve reset`" in world.stops[0]
    world.clock.sleep(20.0)
    settings = Settings(app="t", input=InputSettings(topics=("in",)))
    offsets = world.cluster.group(GROUP).offsets
    world.cluster.group(WORKERS).offsets.update(offsets)
    (move,) = plan(settings, MemoryBroker(world.cluster), read_targets(["earliest"]))
    # The worker went on reading behind offset 2, as a real client does, before it saw that the topic is another.
    assert str(move) == "in[0]: 3 -> 0, in the topic that was created again: all of it counts as new"
    apply(settings, MemoryBroker(world.cluster), [move])
    offsets.update(world.cluster.group(WORKERS).offsets)
    world.start("a")
    world.settle()
    assert sorted(map(bytes, filter(None, world.cluster.values(OUTPUT)))) == [b"a", b"b", b"c", b"d", b"e"]


def test_a_reset_sets_offsets_that_are_gone_and_nothing_comes_out_twice() -> None:
    world = World(partitions=1)
    world.produce("in", 0, [b"a", b"b", b"c"])
    process = world.start("a", worker_config=replace(WORKER, group=WORKERS))
    world.run(60)
    process.terminate()
    world.clock.sleep(20.0)
    world.forget_offsets(WORKERS)
    settings = Settings(app="t", input=InputSettings(topics=("in",)))
    broker = MemoryBroker(world.cluster)
    apply(settings, broker, plan(settings, broker, read_targets(["earliest"])))
    world.produce("in", 0, [b"d"])
    world.start("a", worker_config=replace(WORKER, group=WORKERS))
    world.run(80)
    assert not world.stops
    assert world.cluster.values(OUTPUT) == [b"a", b"b", b"c", b"d"]


@pytest.mark.parametrize("left", [Committed(4), None])
def test_a_reset_stays_if_others_move_the_offset_before_the_next_start(left: Committed | None) -> None:
    world = World(partitions=1)
    world.produce("in", 0, [b"a", b"b"])
    process = world.start("a", worker_config=replace(WORKER, group=WORKERS))
    world.run(60)
    process.terminate()
    world.clock.sleep(20.0)
    world.produce("in", 0, [b"c", b"d", b"e"])
    settings = Settings(app="t", input=InputSettings(topics=("in",)))
    broker = MemoryBroker(world.cluster)
    apply(settings, broker, plan(settings, broker, read_targets(["3"])))
    offsets = world.cluster.group(WORKERS).offsets
    offsets.clear()
    if left is not None:
        offsets[Partition("in", 0)] = left
    world.start("a", worker_config=replace(WORKER, group=WORKERS))
    world.run(80)
    assert not world.stops
    assert world.cluster.values(OUTPUT) == [b"a", b"b", b"d", b"e"]


@pytest.mark.parametrize("sure", [False, True])
def test_the_command_moves_only_with_yes(
    cluster: MemoryCluster, monkeypatch: pytest.MonkeyPatch, sure: bool
) -> None:
    monkeypatch.setattr(
        "twinsieve.pipeline.commands.kafka.connect.connect_by_settings",
        lambda *_, **__: MemoryBroker(cluster),
    )
    arguments = ["--set", "app=t", "--to", "earliest", *(["--yes"] if sure else [])]
    result = CliRunner().invoke(reset_command.command, arguments)
    assert result.exit_code == 0, result.output
    assert "posts[0]: 60 -> 10, goes back 50" in result.stdout
    assert ("moved; start" if sure else "repeat this with --yes") in result.stderr
    assert cluster.group(WORKERS).offsets[Partition("posts", 0)].offset == (10 if sure else 60)
