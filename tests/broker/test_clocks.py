"""The broker's clock counts, as it is heard by whoever appends; the clocks of processes do not."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest

from tests.broker.deployment import Deployment
from tests.broker.load import PARTITIONS
from tests.broker.services import value_of
from tests.broker.worlds import MemoryWorld, World, fresh, make_topic, read_all, transact, until, write
from twinsieve.pipeline.broker.admin import Admin, TopicInfo
from twinsieve.pipeline.broker.clocks import BrokerClock
from twinsieve.pipeline.broker.ports import Broker
from twinsieve.pipeline.broker.records import AbortableError, Messages, Partition
from twinsieve.pipeline.kafka.size_limits import Limits

HOUR_MS = 3_600_000


def right_now_ms(world: World) -> int:
    """The clock that the broker under test has."""
    return world.cluster.clock.now_ms() if isinstance(world, MemoryWorld) else int(time.time() * 1000)


def make_stamped(broker: Broker) -> Partition:
    """In it each record has the broker's time."""
    return Partition(make_topic(broker, message_timestamp_type="LogAppendTime"), 0)


def check_known(broker: Broker, world: World) -> None:
    """The broker's clock is known to this process."""
    now_ms = broker.clock.now_ms()
    assert now_ms is not None
    assert abs(right_now_ms(world) - now_ms) < 30_000


def test_an_append_to_a_topic_that_the_broker_stamps_tells_its_clock(world: World) -> None:
    broker = world.broker()
    plain, stamped = Partition(make_topic(broker), 0), make_stamped(broker)
    assert broker.clock.now_ms() is None
    write(broker, plain, [b"x"])
    assert broker.clock.now_ms() is None
    write(broker, stamped, [b"x"])
    check_known(broker, world)


def test_a_transaction_tells_it_too(world: World) -> None:
    broker = world.broker()
    transact(broker.transactor(fresh("tx")), make_stamped(broker), [b"x"])
    check_known(broker, world)


def test_records_say_whether_the_broker_stamped_them(world: World) -> None:
    broker, reader = world.broker(), world.broker()
    both = Partition(make_topic(broker), 0), make_stamped(broker)
    sent = Messages()
    sent.add(None, b"x", (), 1_000_000_000_000)
    for at in both:
        write(broker, at, sent)
    found = [read_all(reader, at) for at in both]
    assert [records.stamped_by_broker for records in found] == [False, True]
    assert found[0].timestamps_ms == sent.timestamps_ms
    assert abs(found[1].timestamps_ms[0] - right_now_ms(world)) < 30_000
    # Who only reads knows of a clock that is behind, and of no other.
    ahead_ms = [reader.clock.ahead_ms(right_now_ms(world) + ms) for ms in (-2 * HOUR_MS, 2 * HOUR_MS)]
    assert ahead_ms[0] is not None
    assert abs(ahead_ms[0] + 2 * HOUR_MS) < 30_000
    assert ahead_ms[1] is None


def test_a_time_that_the_broker_refuses_is_named_once_its_clock_is_known(world: World) -> None:
    broker = world.broker()
    limits = dict.fromkeys(
        ("message_timestamp_after_max_ms", "message_timestamp_before_max_ms"), str(HOUR_MS)
    )
    stamped, topic = make_stamped(broker), make_topic(broker, **limits)
    now_ms = right_now_ms(world)
    hours = (-2, 2, 0)
    batch = Messages()
    for each in hours:
        batch.add(b"k", b"v", (), now_ms + each * HOUR_MS)
    batch.add(b"k", b"without")
    assert broker.transactor(fresh("tx")).unsendable(topic, batch) == {}

    def taken(row: int) -> bool:
        one, transactor = Messages(), broker.transactor(fresh("tx"))
        one.add(b"k", b"v", (), batch.timestamps_ms[row])
        try:
            transactor.begin()
            transactor.send(topic, 0, one)
            transactor.commit()
        except AbortableError:
            return False
        finally:
            transactor.close()
        return True

    assert [taken(row) for row in range(3)] == [False, False, True]
    write(broker, stamped, [b"x"])
    found = broker.transactor(fresh("tx")).unsendable(topic, batch)
    assert found == dict.fromkeys((0, 1), "bad_timestamp")


class Described:
    """An admin client that knows one thing of each topic."""

    def __init__(self, **limits: int) -> None:
        self._shown = {f"message.timestamp.{side}.max.ms": str(ms) for side, ms in limits.items()}

    def topics(self, names: list[str], *, settings: bool) -> dict[str, TopicInfo]:
        assert settings
        return {name: TopicInfo(name, b"t" * 16, 1, settings=self._shown) for name in names}


@pytest.mark.parametrize("behind_s", [0, 3_000, 3_600, 7_200, 86_400, -7_200])
def test_the_clock_of_the_process_says_nothing_of_what_a_broker_takes(
    behind_s: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, now_ms = time.time, round(time.time() * 1000)
    monkeypatch.setattr(time, "time", lambda: real() - behind_s)
    clock = BrokerClock(time.monotonic)
    admin: Callable[[], Admin] = lambda: Described(after=HOUR_MS, before=HOUR_MS)  # type: ignore[assignment,return-value]  # noqa: E731
    limits = Limits(admin, clock, 1 << 20, "lz4")
    batch = Messages()
    for stamp in (
        now_ms - 5_000,
        now_ms,
        now_ms + HOUR_MS - 5_000,
        now_ms + 2 * HOUR_MS,
        now_ms - 2 * HOUR_MS,
    ):
        batch.add(b"k", b"v", (), stamp)
    assert limits.unsendable("posts", batch) == {}
    clock.acknowledged(now_ms, time.monotonic())
    assert limits.unsendable("posts", batch) == {3: "bad_timestamp", 4: "bad_timestamp"}


@pytest.mark.needs("broker")
@pytest.mark.parametrize(
    ("ahead_s", "every_s"),
    [
        (7_200, 0),
        pytest.param(-7_200, 0, marks=pytest.mark.minutes),
        pytest.param(7_200, 3, marks=pytest.mark.minutes),
    ],
)
def test_one_of_two_processes_has_a_wrong_clock_and_all_comes_out_once(
    bootstrap: str, broker: Broker, ahead_s: int, every_s: int
) -> None:
    clocks = {"a": (ahead_s, every_s)}
    deployment = Deployment(bootstrap, fresh("clock"), clocks=clocks, source={"time_field": "none"})
    deployment.create_topics()
    admin, group = broker.admin(), f"{deployment.app}.workers"
    inputs, kept, dropped, dead = (
        [Partition(topic, number) for number in range(PARTITIONS)]
        for topic in (f"{deployment.app}.in", *deployment.outputs)
    )
    count = 0

    def produce(more: int) -> None:
        nonlocal count
        for at in inputs:
            write(broker, at, [value_of(f"a message of its own, {fresh()}") for _ in range(more)])
        count += more

    def committed() -> bool:
        held = admin.group_offsets(group, stable=False)
        return all(at in held and held[at].offset == count for at in inputs)

    def log_of(member: str) -> str:
        return deployment.log(member).read_text()

    def logs() -> str:
        return "".join(map(log_of, deployment.processes))

    try:
        produce(10)
        deployment.start("a")
        until(committed, logs)
        deployment.start("b")
        until(lambda: len(admin.members(group)) == 2, logs)
        for _ in range(5):
            produce(10)
            until(committed, logs)
        until(lambda: "the broker's" in log_of("a"), logs)
        said, of_b = log_of("a"), log_of("b")
    finally:
        deployment.close()
    found = [read_all(broker, at).values for at in kept]
    assert [len(values) for values in found] == [len(set(values)) for values in found] == [count] * PARTITIONS
    assert sum(admin.end_offsets([*dropped, *dead]).values()) == 0
    told = re.findall(r"(\d+) s (?:ahead of|behind) the broker's", said)
    assert told, said
    # As exact as the answers of a busy broker are quick.
    assert all(abs(int(seconds) - 7_200) < 30 for seconds in told)
    assert "the broker's" not in of_b
