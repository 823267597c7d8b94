"""The broker's clock counts, as it is heard by whoever appends; the clocks of processes do not."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.broker.services import written_settings
from tests.broker.worlds import MemoryWorld, World, fresh, make_topic, messages, read_all, until, write
from twinsieve.pipeline.broker.admin import Admin, NewTopic, TopicInfo
from twinsieve.pipeline.broker.clocks import BrokerClock
from twinsieve.pipeline.broker.records import AbortableError, Messages, Partition
from twinsieve.pipeline.commands.kafka.connect import connect
from twinsieve.pipeline.kafka.limits import Limits
from twinsieve.pipeline.operate.topic_checks import create
from twinsieve.pipeline.settings.model import Settings

HOUR_MS = 3_600_000
STAMPED = {"message.timestamp.type": "LogAppendTime"}


def right_now_ms(world: World) -> int:
    """The clock that the broker under test has."""
    return world.cluster.clock.now_ms() if isinstance(world, MemoryWorld) else int(time.time() * 1000)


def test_an_append_to_a_topic_that_the_broker_stamps_tells_its_clock(world: World) -> None:
    broker = world.broker()
    plain, stamped = make_topic(broker), fresh()
    broker.admin().create_topic(NewTopic(stamped, 1, 1, STAMPED))
    assert broker.clock.now_ms() is None
    write(broker, Partition(plain, 0), [b"x"])
    assert broker.clock.now_ms() is None
    write(broker, Partition(stamped, 0), [b"x"])
    now_ms = broker.clock.now_ms()
    assert now_ms is not None
    assert abs(right_now_ms(world) - now_ms) < 30_000


def test_a_transaction_tells_it_too(world: World) -> None:
    broker = world.broker()
    stamped = fresh()
    broker.admin().create_topic(NewTopic(stamped, 1, 1, STAMPED))
    transactor = broker.transactor(fresh("tx"))
    transactor.begin()
    transactor.send(stamped, 0, messages([b"x"]))
    transactor.commit()
    now_ms = broker.clock.now_ms()
    assert now_ms is not None
    assert abs(right_now_ms(world) - now_ms) < 30_000


def test_records_say_whether_the_broker_stamped_them(world: World) -> None:
    broker, reader = world.broker(), world.broker()
    plain, stamped = make_topic(broker), fresh()
    broker.admin().create_topic(NewTopic(stamped, 1, 1, STAMPED))
    sent = Messages()
    sent.add(None, b"x", (), 1_000_000_000_000)
    for topic in (plain, stamped):
        appender = broker.appender()
        appender.append(Partition(topic, 0), sent)
        until(lambda appender=appender: appender.confirm(1.0) == 0)
    found = [read_all(reader, Partition(topic, 0)) for topic in (plain, stamped)]
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
    stamped, topic = fresh(), fresh()
    broker.admin().create_topic(NewTopic(stamped, 1, 1, STAMPED))
    limits = {"message.timestamp.after.max.ms": str(HOUR_MS), "message.timestamp.before.max.ms": str(HOUR_MS)}
    broker.admin().create_topic(NewTopic(topic, 1, 1, limits))
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
    write(broker, Partition(stamped, 0), [b"x"])
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
    limits = Limits(admin, clock, 1 << 20, "lz4", nulls=True)
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
        pytest.param(-7_200, 0, marks=pytest.mark.needs("minutes")),
        pytest.param(7_200, 3, marks=pytest.mark.needs("minutes")),
    ],
)
def test_one_of_two_processes_has_a_wrong_clock_and_all_comes_out_once(
    client: str, bootstrap: str, tmp_path: Path, ahead_s: int, every_s: int
) -> None:
    written = written_settings(client, bootstrap, tmp_path)
    file = tmp_path / "settings.yaml"
    file.write_text(yaml.safe_dump(written))
    settings = Settings.model_validate(written)
    broker = connect(settings.kafka)
    admin, source = broker.admin(), settings.input.topics[0]
    admin.create_topic(NewTopic(source, 2, 1))
    create(settings, admin)
    inputs = [Partition(source, number) for number in (0, 1)]
    group, count = f"{settings.app}.workers", 0

    def produce(more: int) -> None:
        nonlocal count
        for at in inputs:
            write(
                broker, at, [b'{"text": "a message of its own, %s"}' % fresh().encode() for _ in range(more)]
            )
        count += more

    def committed() -> bool:
        held = admin.group_offsets(group, stable=False)
        return all(at in held and held[at].offset == count for at in inputs)

    def logs() -> str:
        return "".join(path.read_text() for path in tmp_path.glob("*.log"))

    def start(member: str, ahead_s: int, every_s: int) -> subprocess.Popen[bytes]:
        log = (tmp_path / f"{member}.log").open("wb")
        clock = [str(ahead_s), str(every_s)]
        command = [sys.executable, "-m", "tests.broker.wrong_clock", *clock, "run", "-c", str(file)]
        command += ["--member", member]
        with log:
            return subprocess.Popen(command, stdout=log, stderr=log)

    produce(10)
    processes = [start("a", ahead_s, every_s)]
    try:
        until(committed, logs)
        processes.append(start("b", 0, 0))
        until(lambda: len(admin.members(group)) == 2, logs)
        for _ in range(5):
            produce(10)
            until(committed, logs)
        until(lambda: "the broker's" in (tmp_path / "a.log").read_text(), logs)
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(60)
    found = [read_all(broker, Partition(settings.output.topic, number)).values for number in (0, 1)]
    assert [len(values) for values in found] == [len(set(values)) for values in found] == [count, count]
    for topic in (settings.output.dead_letter, settings.output.duplicates):
        assert topic is not None
        assert sum(admin.end_offsets([Partition(topic, number) for number in (0, 1)]).values()) == 0
    said = (tmp_path / "a.log").read_text()
    told = re.findall(r"(\d+) s (?:ahead of|behind) the broker's", said)
    assert told, said
    # As exact as the answers of a busy broker are quick.
    assert all(abs(int(seconds) - 7_200) < 30 for seconds in told)
    assert "the broker's" not in (tmp_path / "b.log").read_text()
    broker.close()
