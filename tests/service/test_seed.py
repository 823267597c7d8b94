"""`twinsieve seed`: windows filled from an existing output; nothing comes out, nothing is seeded twice."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.memory.broker import CrashError, ManualClock, MemoryBroker, MemoryCluster
from tests.memory.clients import MemoryAdmin
from tests.service.running import Service, came_out, wait_for
from tests.service.stepped import unlike
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.mark import Mark
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.ports import Broker
from twinsieve.pipeline.broker.records import BrokerError, Committed, GroupMember, Messages, Partition
from twinsieve.pipeline.operate.app_key import secret_of
from twinsieve.pipeline.operate.topic_checks import create
from twinsieve.pipeline.service.build import make_scheme, wire_scheme
from twinsieve.pipeline.service.run import SystemClock
from twinsieve.pipeline.service.seed import SeedResult, run_seed
from twinsieve.pipeline.service.seed_order import ordered_broker
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.wire.frame import What
from twinsieve.pipeline.wire.ruling import Ruling, Source, decode_ruling
from twinsieve.stages.contract import Kind
from twinsieve.stages.errors import UsageError

pytestmark = pytest.mark.matrix

OUTPUTS = ("fresh.unique", "posts.duplicates", "posts.dead")


def write(cluster: MemoryCluster, topic: str, partition: int, numbers: range, first_s: int = 0) -> None:
    messages = Messages()
    for row, number in enumerate(numbers):
        stamp = 1_600_000_000 + first_s + row
        value = b'{"id": "%d", "text": "%s", "created_at": %d}' % (number, unlike(number).encode(), stamp)
        messages.add(b"k", value, (), 1000 * stamp)
    cluster.write(Partition(topic, partition), messages)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.model_validate(
        {
            "app": "t",
            "state": {"dir": str(tmp_path / "state"), "snapshot_every": "1s"},
            "http": {"listen": "none"},
            "near": {"window": {"messages": 1_000, "age": "none"}},
            "exact": {"window": {"messages": 10_000, "age": "none"}},
            "output": {"topic": "fresh.unique"},
            "kafka": {"poll_messages": 5, "idle_report": "50ms"},
        }
    )


@pytest.fixture
def cluster(settings: Settings) -> MemoryCluster:
    """An output of another app with 90 and 60 posts, and all topics of ours."""
    made = MemoryCluster(SystemClock())
    made.create(NewTopic("posts", 2))
    made.create(NewTopic("posts.unique", 2))
    create(settings, MemoryBroker(made).admin())
    write(made, "posts.unique", 0, range(100, 190))
    write(made, "posts.unique", 1, range(200, 260))
    return made


def seed(settings: Settings, cluster: MemoryCluster, **more: object) -> SeedResult:
    def connect(_: Settings) -> Broker:
        return MemoryBroker(cluster)

    return run_seed(settings, "posts.unique", member="one", **{"connect": connect, **more})  # type: ignore[arg-type]


def begun(cluster: MemoryCluster) -> Committed:
    """What a worker commits before it begins with the topic."""
    return Mark(cluster.topics["posts"].topic_id, 0, 0, fresh=True).committed()


def run_on_input(settings: Settings, cluster: MemoryCluster) -> None:
    """The app runs until twenty messages that came in are out."""
    write(cluster, "posts", 0, range(250, 270), first_s=100)
    service = Service(settings, cluster, member="one")
    try:
        wait_for(lambda: came_out(cluster, *OUTPUTS) == 20, "all that came in is out")
    finally:
        service.end()


def decisions(settings: Settings, cluster: MemoryCluster) -> list[Ruling]:
    secret = secret_of(settings, MemoryBroker(cluster), cluster.clock)
    scheme = wire_scheme(settings, make_scheme(settings, secret))
    log = cluster.log(Partition("t.decisions", 0))
    return [decode_ruling(What.DECISION, entry.value or b"", scheme, "") for _, entry in log.visible()]


def judged(rulings: list[Ruling]) -> list[Kind]:
    """Kinds of every row that was judged, as opposed to answered again."""
    return [
        Kind(int(kind))
        for ruling in rulings
        for kind, source in zip(ruling.verdicts.kinds, ruling.sources, strict=True)
        if source == Source.NEW
    ]


def test_a_seed_emits_nothing_and_then_repeats_are_duplicates_of_it(
    settings: Settings, cluster: MemoryCluster
) -> None:
    seeded = seed(settings, cluster)
    assert (seeded.finished, seeded.kinds) == (True, {Kind.UNIQUE: 150})
    assert came_out(cluster, *OUTPUTS) == 0
    offsets = cluster.group(Names("t").seed).offsets
    assert {at: committed.offset for at, committed in offsets.items()} == {
        Partition("posts.unique", 0): 90,
        Partition("posts.unique", 1): 60,
    }
    run_on_input(settings, cluster)
    assert len(cluster.values("fresh.unique")) == 10
    duplicates = [entry for _, entry in cluster.log(Partition("posts.duplicates", 0)).visible()]
    leaders = [dict(entry.headers)["twinsieve-leader"] for entry in duplicates]
    assert leaders == [b"posts.unique[1]@%d" % number for number in range(50, 60)]


@pytest.mark.parametrize(
    "crash_at", ["transactor.commit.before", "transactor.commit.after", "appender.append.after"]
)
def test_a_seed_that_was_killed_goes_on_and_seeds_nothing_twice(
    settings: Settings, cluster: MemoryCluster, crash_at: str
) -> None:
    passed = 0

    def hook(step: str) -> None:
        nonlocal passed
        passed += step == crash_at
        if step == crash_at and passed >= 4:
            raise CrashError(step)

    with pytest.raises(CrashError):
        seed(settings, cluster, connect=lambda _: MemoryBroker(cluster, hook))
    before = len(judged(decisions(settings, cluster)))
    assert before < 150
    second = seed(settings, cluster)
    assert second.finished
    rulings = decisions(settings, cluster)
    assert judged(rulings) == [Kind.UNIQUE] * 150
    assert came_out(cluster, *OUTPUTS) == 0
    third = seed(settings, cluster)
    assert (third.finished, third.kept) == (True, 0)


def test_a_seed_begins_at_a_time(settings: Settings, cluster: MemoryCluster) -> None:
    seeded = seed(settings, cluster, since_ms=1_600_000_040_000)
    assert seeded.kinds == {Kind.UNIQUE: 50 + 20}


def test_a_seed_that_is_stopped_says_so(settings: Settings, cluster: MemoryCluster) -> None:
    stop = threading.Event()
    stop.set()
    seeded = seed(settings, cluster, stop=stop)
    assert not seeded.finished
    assert str(seeded).endswith("stopped; run it again to continue")
    assert seed(settings, cluster).kept == 150


def test_a_live_app_is_not_seeded(settings: Settings, cluster: MemoryCluster) -> None:
    cluster.group(Names("t").workers).offsets[Partition("posts", 0)] = begun(cluster)
    with pytest.raises(
        BrokerError, match=r"was already started by `run` .*seed a new app before its first run"
    ):
        seed(settings, cluster)


def test_a_missing_topic_is_named(settings: Settings, cluster: MemoryCluster) -> None:
    with pytest.raises(BrokerError, match="--topic nowhere: there is no such topic"):
        run_seed(settings, "nowhere", member="one", connect=lambda _: MemoryBroker(cluster))


def test_partitions_are_read_side_by_side_in_time() -> None:
    """One partition holds a day in 40 messages, the other in 400: neither runs ahead by more than a poll."""
    clock = ManualClock()
    cluster = MemoryCluster(clock)
    cluster.create(NewTopic("out", 2))
    ends = {}
    for number, count in ((0, 40), (1, 400)):
        messages = Messages()
        for row in range(count):
            messages.add(None, b"v", (), 86_400_000 * row // count)
        cluster.write(Partition("out", number), messages)
        ends[Partition("out", number)] = count
    broker = ordered_broker(MemoryBroker(cluster), clock, ends)
    consumer = broker.group_consumer("g", ["out"])
    consumer.poll(0.1, 1)
    for at in ends:
        consumer.seek(at, 0)
    times = dict.fromkeys(ends, 0)
    read = widest = 0
    while read < 440:
        for records in consumer.poll(0.1, 8).records:
            times[records.partition] = records.timestamps_ms[-1]
            read += len(records)
        if all(consumer.position(at) < end for at, end in ends.items()):
            widest = max(widest, abs(times[Partition("out", 0)] - times[Partition("out", 1)]))
    hour_ms = 3_600_000
    assert widest < 6 * hour_ms  # 8 messages of the thin partition are 4.8 h; unordered it is most of a day


def test_a_partition_that_brings_nothing_is_not_waited_for_for_ever() -> None:
    clock = ManualClock()
    cluster = MemoryCluster(clock)
    cluster.create(NewTopic("out", 2))
    for number in (0, 1):
        messages = Messages()
        for row in range(50):
            messages.add(None, b"v", (), 3_600_000 * row)
        cluster.write(Partition("out", number), messages)
    ends = {Partition("out", 0): 50, Partition("out", 1): 50}
    consumer = ordered_broker(MemoryBroker(cluster), clock, ends).group_consumer("g", ["out"])
    consumer.poll(0.1, 1)
    consumer.seek(Partition("out", 0), 0)
    read = 0
    for _ in range(400):
        read += sum(len(records) for records in consumer.poll(0.1, 5).records)
    assert read == 50


def test_a_run_says_that_it_starts_beside_a_seed(
    settings: Settings, cluster: MemoryCluster, caplog: pytest.LogCaptureFixture
) -> None:
    seeding = MemoryBroker(cluster).group_consumer(Names("t").seed, ["posts.unique"], "seeding")
    seeding.poll(0.0, 1)
    run_on_input(settings, cluster)
    assert "group t.seed has members, so `seed` for app t may still be running" in caplog.text


def test_a_run_that_cannot_tell_whether_it_is_seeded_starts_and_says_so(
    settings: Settings,
    cluster: MemoryCluster,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def members(_: MemoryAdmin, group: str) -> dict[str, GroupMember]:
        raise BrokerError(f"members of group {group}: no coordinator", retryable=True)

    monkeypatch.setattr(MemoryAdmin, "members", members)
    run_on_input(settings, cluster)
    assert (
        "cannot tell whether `seed` for app t is still running (members of group t.seed: no coord"
        in caplog.text
    )


def test_offsets_that_a_stranger_left_in_the_group_of_the_workers_do_not_refuse_a_seed(
    settings: Settings, cluster: MemoryCluster
) -> None:
    cluster.group(Names("t").workers).offsets[Partition("posts", 0)] = Committed(0)
    assert seed(settings, cluster).finished


def test_a_seed_ends_when_its_app_goes_live(settings: Settings, cluster: MemoryCluster) -> None:
    ended: list[BrokerError] = []

    def run() -> None:
        try:
            seed(settings, cluster)
        except BrokerError as error:
            ended.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    group = Names("t").seed
    wait_for(lambda: group in cluster.groups and bool(cluster.groups[group].members), "the seed has joined")
    cluster.group(Names("t").workers).offsets[Partition("posts", 0)] = begun(cluster)
    thread.join(300)
    assert not thread.is_alive()
    assert str(ended[0]).startswith(
        "app t was started by `run` during its seed (group t.workers has offsets)"
    )
    assert not ended[0].retryable


def test_an_input_topic_is_refused(settings: Settings, cluster: MemoryCluster) -> None:
    with pytest.raises(UsageError, match="--topic posts: is an input topic of app t"):
        run_seed(settings, "posts", lambda _: MemoryBroker(cluster), member="one")
    assert cluster.group(Names("t").seed).offsets == {}
