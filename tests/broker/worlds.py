"""One way to hold the memory broker and a real one to the same claims.

A world makes brokers (each stands for a process), topics nobody else uses, and waits until something holds.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

import numpy as np

from tests.broker.stranger import add_partitions, transaction
from tests.memory.broker import ManualClock, MemoryBroker, MemoryCluster
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.ports import Broker, GroupConsumer, Reader, TransactionalProducer
from twinsieve.pipeline.broker.records import BrokerError, Messages, Partition, PollResult, Records
from twinsieve.pipeline.kafka.broker import KafkaBroker
from twinsieve.pipeline.settings.model import KafkaSettings

_T = TypeVar("_T")
DEADLINE_S = 90.0
Connect = Callable[..., Broker]
"""Fixture `connect`: makes a broker of an address and settings of the section `kafka`, closed with the test."""
_SESSION_S = 120.0
"""Members are never expired: one whose share moves has left."""
_TRANSACTION_S = 30.0
"""No call waits that long beside an open transaction: none runs out of time while a test looks at it."""


class World(Protocol):
    """A cluster under test."""

    name: str

    def broker(self) -> Broker:
        """The broker as one more process sees it."""

    def grow(self, topic: str, partitions: int) -> None:
        """Raise the number of partitions of a topic."""

    def open_transaction(self, at: Partition, value: bytes) -> Callable[[], object]:
        """Somebody's transaction that has written this and is open; returns what commits it."""

    def close(self) -> None:
        """Close every broker made."""


class MemoryWorld:
    """The embedded broker, on a clock that moves only when polls find nothing."""

    name = "memory"

    def __init__(self) -> None:
        self.cluster = MemoryCluster(ManualClock(), session_timeout_s=1e9)

    def broker(self) -> Broker:
        return MemoryBroker(self.cluster)

    def grow(self, topic: str, partitions: int) -> None:
        self.cluster.add_partitions(topic, partitions)

    def open_transaction(self, at: Partition, value: bytes) -> Callable[[], object]:
        opened = self.broker().transactor(fresh("tx"))
        opened.begin()
        opened.send(at.topic, at.number, messages([value]))
        return opened.commit

    def close(self) -> None:
        pass


class KafkaWorld:
    """A real broker through the program's client."""

    name = "kafka"

    def __init__(self, bootstrap: str, **more: object) -> None:
        times = {"session_timeout": f"{_SESSION_S:g}s", "transaction_timeout": f"{_TRANSACTION_S:g}s"}
        self._settings = {"bootstrap": bootstrap, **times, **more}
        self._brokers: list[Broker] = []

    def broker(self, **other: object) -> Broker:
        """other: settings that this one has and the others have not"""
        self._brokers.append(KafkaBroker(KafkaSettings.model_validate(self._settings | other)))
        return self._brokers[-1]

    def grow(self, topic: str, partitions: int) -> None:
        add_partitions(str(self._settings["bootstrap"]), topic, partitions)

    def open_transaction(self, at: Partition, value: bytes) -> Callable[[], object]:
        # Not with our own producer, which writes nothing before it is asked to commit.
        opened = transaction(str(self._settings["bootstrap"]), fresh("tx"))
        opened.produce(at.topic, value, partition=at.number)
        opened.flush()
        return opened.commit_transaction

    def close(self) -> None:
        for broker in self._brokers:
            broker.close()


_OWN_S = 0.002
_PAUSE_S = 0.05
"""What takes less time than the first asks the memory broker; what takes more than the second waits itself."""


def until(what: Callable[[], _T | None], said: Callable[[], str] = lambda: "") -> _T:
    """The first thing `what` returns that is true and not empty; asks again until the deadline.

    said: what to show where it never is

    On the memory broker every call moves the clock, so the deadline never comes.
    """
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        asked_s = time.monotonic()
        found = what()
        if found:
            return found
        if _OWN_S < time.monotonic() - asked_s < _PAUSE_S:
            # A broker was asked, and has something else to do.
            time.sleep(_PAUSE_S)
    raise AssertionError(f"did not happen within {DEADLINE_S:g} s {said()}")


def until_done(call: Callable[[], object]) -> None:
    """Make the call again and again until the broker does not refuse it."""

    def is_done() -> bool:
        try:
            call()
        except BrokerError:
            return False
        return True

    until(is_done)


def fresh(kind: str = "t") -> str:
    """A name that no other test uses."""
    return f"{kind}-{uuid.uuid4().hex[:12]}"


def make_topic(broker: Broker, partitions: int = 1, **settings: str) -> str:
    """A new empty topic; dots of settings are written as underscores."""
    name = fresh()
    held = {key.replace("_", "."): value for key, value in settings.items()}
    broker.admin().create_topic(NewTopic(name, partitions, 1, held))
    return name


def messages(values: Iterable[bytes]) -> Messages:
    """Keyless messages with these values."""
    made = Messages()
    for value in values:
        made.add(None, value)
    return made


def write(broker: Broker, partition: Partition, sent: Iterable[bytes] | Messages) -> None:
    """Append these values, or whole messages, and wait until all is acknowledged."""
    appender = broker.appender()
    appender.append(partition, sent if isinstance(sent, Messages) else messages(sent))
    until(lambda: appender.confirm(1.0) == 0)
    appender.close()


def transact(transactor: TransactionalProducer, partition: Partition, values: Iterable[bytes]) -> None:
    """Write these in a transaction of their own."""
    transactor.begin()
    transactor.send(partition.topic, partition.number, messages(values))
    transactor.commit()


def reader_at(broker: Broker, *partitions: Partition, offset: int = 0) -> Reader:
    """A reader of these partitions that begins at this offset of each."""
    reader = broker.reader()
    reader.assign(partitions)
    for partition in partitions:
        reader.seek(partition, offset)
    return reader


def read(reader: Reader, target: int, partition: Partition, at_once: int = 1000) -> Records:
    """Everything of a partition until the reader's position reaches the target."""
    found: list[Records] = []

    def done() -> bool:
        found.extend(each for each in reader.poll(0.1, at_once) if each.partition == partition)
        return reader.position(partition) >= target

    until(done)
    size = sum(end - begin for begin, end in (each.span for each in found))
    return Records.joined(partition, found, np.empty(size, np.uint8)) if found else Records.none(partition)


def read_all(broker: Broker, partition: Partition) -> Records:
    """Everything committed in a partition, once no transaction is open on it.

    Kafka answers a commit before its markers are written, so the end offset is waited for.
    """
    reader, admin = broker.reader(), broker.admin()
    until(lambda: reader.end_offsets([partition]) == admin.end_offsets([partition]))
    reader.assign([partition])
    first = reader.beginning_offsets([partition])[partition]
    end = reader.end_offsets([partition])[partition]
    reader.seek(partition, first)
    found = read(reader, end, partition)
    reader.close()
    return found


def assigned(consumer: GroupConsumer, count: int) -> PollResult:
    """The first poll of a group consumer that owns `count` partitions."""

    def poll() -> PollResult | None:
        polled = consumer.poll(0.1, 1000)
        return polled if len(polled.assignment) == count else None

    return until(poll)


def joined(
    broker: Broker, topic: str, count: int = 1, *, group: str = "", member: str | None = None
) -> GroupConsumer:
    """A member of a group (without a name: a new one) that owns `count` partitions of a topic, not sought yet."""
    consumer = broker.group_consumer(group or fresh("g"), [topic], member)
    assigned(consumer, count)
    return consumer


def reading(broker: Broker, log: Partition, *, group: str = "", member: str | None = None) -> GroupConsumer:
    """As `joined`, the only member, which reads the only partition of a topic from its beginning."""
    consumer = joined(broker, log.topic, group=group, member=member)
    consumer.seek(log, 0)
    return consumer


def fetched(consumer: GroupConsumer, count: int) -> tuple[list[bytes | None], PollResult]:
    """Values of `count` records, and the poll that brought the last of them."""
    values: list[bytes | None] = []

    def poll() -> PollResult | None:
        polled = consumer.poll(0.1, 1000)
        for records in polled.records:
            values.extend(records.values)
        return polled if len(values) >= count else None

    return values, until(poll)
