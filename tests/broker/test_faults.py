"""Brokers that die, freeze and come back while clients are in the middle of something."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from tests.broker.cluster import Cluster
from tests.broker.worlds import (
    DEADLINE_S,
    Connect,
    assigned,
    fresh,
    joined,
    make_topic,
    messages,
    read_all,
    reader_at,
    transact,
    until,
    until_done,
    write,
)
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.ports import Broker
from twinsieve.pipeline.broker.records import (
    AbortableError,
    BrokerError,
    Committed,
    FatalError,
    Partition,
)

_QUICK = {"request_timeout": "20s", "transaction_timeout": "6s", "session_timeout": "6s"}
"""Clients give up after seconds."""


def transacted(broker: Broker, name: str, topic: str, value: bytes) -> None:
    """One message in a transaction of its own, tried again with new clients as a role would."""

    def attempt() -> None:
        transactor = broker.transactor(name)
        try:
            transact(transactor, Partition(topic, 0), [value])
        finally:
            transactor.close()

    until_done(attempt)


def test_a_broker_restart_inside_a_transaction_ends_in_an_answer(
    mortal_broker: Cluster, connect: Connect
) -> None:
    broker = connect(mortal_broker.bootstrap, **_QUICK)
    topic, name = make_topic(broker), fresh("tx")
    transactor = broker.transactor(name)
    transactor.begin()
    transactor.send(topic, 0, messages([b"first"]))
    mortal_broker.restart()
    start = time.monotonic()
    try:
        transactor.send(topic, 0, messages([b"second"]))
        transactor.commit()
        came = [b"first", b"second"]
    except BrokerError:
        came = []
    assert time.monotonic() - start < DEADLINE_S
    transactor.close()
    transacted(broker, name, topic, b"third")
    assert read_all(broker, Partition(topic, 0)).values == [*came, b"third"]


def test_a_broker_that_is_away_delivers_nothing_and_then_the_rest(
    mortal_broker: Cluster, connect: Connect
) -> None:
    broker = connect(mortal_broker.bootstrap, **_QUICK)
    log = Partition(make_topic(broker), 0)
    write(broker, log, [b"a"])
    reader = reader_at(broker, log)
    assert until(lambda: reader.poll(0.1, 10))[0].values == [b"a"]
    mortal_broker.nodes[0].kill()
    assert [reader.poll(0.1, 10) for _ in range(10)] == [[]] * 10
    mortal_broker.restart()
    other = connect(mortal_broker.bootstrap, **_QUICK)
    write(other, log, [b"b"])
    assert until(lambda: reader.poll(0.1, 10))[0].values == [b"b"]


def test_an_admin_request_waits_for_a_broker_that_stands_still_for_seconds(
    mortal_broker: Cluster, connect: Connect
) -> None:
    broker = connect(mortal_broker.bootstrap, **_QUICK)
    topic, admin = make_topic(broker), broker.admin()
    node = mortal_broker.nodes[0]
    thaw = threading.Timer(4.0, node.thaw)
    node.freeze()
    thaw.start()
    try:
        assert admin.topics([topic])[topic] is not None
    finally:
        thaw.join()


def test_appends_wait_for_a_broker_that_comes_back(mortal_broker: Cluster, connect: Connect) -> None:
    broker = connect(mortal_broker.bootstrap)
    log = Partition(make_topic(broker), 0)
    appender = broker.appender()
    appender.append(log, messages([b"a"]))
    until(lambda: appender.confirm(1.0) == 0)
    mortal_broker.nodes[0].kill()
    appender.append(log, messages([b"b", b"c"]))
    assert appender.confirm(0.2) == 2
    mortal_broker.restart()
    until(lambda: appender.confirm(1.0) == 0)
    assert read_all(broker, log).values == [b"a", b"b", b"c"]


def test_an_outage_is_told_in_lines_and_not_in_thousands(
    mortal_broker: Cluster, caplog: pytest.LogCaptureFixture, connect: Connect
) -> None:
    broker = connect(mortal_broker.bootstrap, **_QUICK)
    log = Partition(make_topic(broker), 0)
    reader = reader_at(broker, log)
    reader.poll(0.1, 10)
    caplog.clear()
    mortal_broker.nodes[0].kill()
    end = time.monotonic() + 3.0
    while time.monotonic() < end:
        reader.poll(0.1, 10)
    assert len(caplog.records) < 25
    mortal_broker.restart()


def test_nothing_is_lost_or_doubled_when_leaders_die(three_brokers: Cluster, connect: Connect) -> None:
    broker = connect(three_brokers.bootstrap, **_QUICK)
    topic = fresh()
    broker.admin().create_topic(NewTopic(topic, 3, 3, {"min.insync.replicas": "2"}))
    appender = broker.appender()
    for node in range(3):
        for number in range(3):
            appender.append(Partition(topic, number), messages([b"%d" % node]))
        three_brokers.nodes[node].kill()
        for number in range(3):
            appender.append(Partition(topic, number), messages([b"%d, leader gone" % node]))
        until(lambda: appender.confirm(1.0) == 0)
        transacted(broker, fresh("tx"), topic, b"transaction %d" % node)
        three_brokers.restart(node)
    expected = [value for node in range(3) for value in (b"%d" % node, b"%d, leader gone" % node)]
    for number in range(1, 3):
        assert read_all(broker, Partition(topic, number)).values == expected
    first = read_all(broker, Partition(topic, 0)).values
    assert sorted(map(bytes, first)) == sorted([*expected, *(b"transaction %d" % node for node in range(3))])


def test_offsets_that_are_never_answered_end_the_transactor(mortal_broker: Cluster, connect: Connect) -> None:
    released = threading.Event()
    broker = connect(mortal_broker.bootstrap, **_QUICK)
    topic, name = make_topic(broker), fresh("tx")
    consumer = broker.group_consumer(fresh("g"), [topic])
    at = Partition(topic, 0)
    membership = assigned(consumer, 1).membership
    transactor: Any = broker.transactor(name)
    transactor._producer.send_offsets_to_transaction = lambda *_: released.wait()
    transactor.begin()
    with pytest.raises(FatalError, match="this producer must be replaced"):
        transactor.send_offsets({at: Committed(0)}, membership)
    with pytest.raises(FatalError):
        transactor.abort()
    transactor.close()
    transacted(broker, name, topic, b"by new clients")
    released.set()


def test_a_session_that_ends_in_an_outage_is_no_displacement(
    mortal_broker: Cluster, connect: Connect
) -> None:
    broker = connect(mortal_broker.bootstrap, **_QUICK)
    group, topic = fresh("g"), make_topic(broker)
    consumer = joined(broker, topic, group=group, member="one")
    mortal_broker.nodes[0].kill()
    # Nobody polls, as in a worker that waits for a transaction, until the session of 6 s is over.
    time.sleep(8.0)
    mortal_broker.restart()
    transactor = broker.transactor(fresh("tx"))

    def commits() -> bool:
        # A poll raises an error where the member takes itself for displaced.
        membership = consumer.poll(0.1, 1).membership
        transactor.begin()
        try:
            transactor.send_offsets({Partition(topic, 0): Committed(0)}, membership)
        except AbortableError:
            transactor.abort()
            return False
        transactor.commit()
        return True

    until(commits)


def test_an_outage_does_not_keep_a_displaced_member_from_ending(
    mortal_broker: Cluster, connect: Connect
) -> None:
    broker, other = (connect(mortal_broker.bootstrap, **_QUICK) for _ in range(2))
    group, topic = fresh("g"), make_topic(broker)
    older = joined(broker, topic, group=group, member="one")
    mortal_broker.restart()
    newer = joined(other, topic, group=group, member="one")

    def displaced() -> bool:
        newer.poll(0, 1)
        try:
            older.poll(0.1, 1)
        except FatalError as error:
            return error.fenced
        return False

    until(displaced)


def test_offsets_are_waited_for_as_long_as_their_transaction_lives(
    mortal_broker: Cluster, connect: Connect
) -> None:
    times = {"transaction_timeout": "2s", "request_timeout": "300s"}
    broker = connect(mortal_broker.bootstrap, **times)
    log = Partition(make_topic(broker), 0)
    consumer = broker.group_consumer(fresh("g"), [log.topic])
    membership = assigned(consumer, 1).membership
    transactor = broker.transactor(fresh("tx"))
    transactor.begin()
    mortal_broker.nodes[0].freeze()
    start = time.monotonic()
    try:
        with pytest.raises(BrokerError):
            transactor.send_offsets({log: Committed(0)}, membership)
    finally:
        mortal_broker.nodes[0].thaw()
    assert time.monotonic() - start < DEADLINE_S, "kafka.request_timeout is three times as long"
    transactor.close()
