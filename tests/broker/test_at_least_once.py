"""`delivery: at-least-once` of every implementation: sends go out at once, offsets follow."""

from __future__ import annotations

import pytest

from tests.broker.worlds import World, assigned, fetched, fresh, make_topic, messages, read_all, until, write
from twinsieve.pipeline.broker.ports import AbortableError, Committed, Membership, Partition


def test_what_was_sent_stays_and_offsets_come_with_the_commit(plain_world: World) -> None:
    broker = plain_world.broker()
    log, out = Partition(make_topic(broker), 0), Partition(make_topic(broker), 0)
    write(broker, log, [b"a", b"b"])
    group = fresh("g")
    consumer = broker.group_consumer(group, [log.topic], "m0")
    transactor = broker.transactor(fresh("tx"))
    assigned(consumer, 1)
    consumer.seek(log, 0)
    _, polled = fetched(consumer, 2)
    transactor.begin()
    transactor.send(out.topic, 0, messages([b"x"]))
    until(lambda: read_all(broker, out).values == [b"x"])
    transactor.send_offsets({log: Committed(1, "never")}, polled.membership)
    transactor.abort()
    assert consumer.committed([log]) == {log: None}
    transactor.begin()
    transactor.send(out.topic, 0, messages([b"y", b"z"]))
    transactor.send_offsets({log: Committed(2, "77")}, polled.membership)
    transactor.commit()
    assert consumer.committed([log]) == {log: Committed(2, "77")}
    assert read_all(broker, out).values == [b"x", b"y", b"z"]


def test_what_is_given_up_takes_nothing_along_that_is_sent_after_it(plain_world: World) -> None:
    broker = plain_world.broker()
    out = Partition(make_topic(broker), 0)
    transactor = broker.transactor(fresh("tx"))
    for _ in range(8):
        transactor.begin()
        transactor.send(out.topic, 0, messages([b"given up"]))
        transactor.abort()
        transactor.begin()
        transactor.send(out.topic, 0, messages([b"sent"]))
        transactor.commit()
    assert read_all(broker, out).values.count(b"sent") == 8


def test_keyed_messages_go_where_transactions_would_send_them(plain_world: World) -> None:
    broker = plain_world.broker()
    topic = make_topic(broker, 3)
    transactor = broker.transactor(fresh("tx"))
    for _ in range(2):
        batch = messages([b"1", b"2"])
        batch.keys[:] = [b"one", b"two"]
        transactor.begin()
        transactor.send(topic, None, batch)
        transactor.commit()
    found = [read_all(broker, Partition(topic, number)).values for number in range(3)]
    assert sorted(len(set(values)) for values in found if values) in ([1, 1], [2])
    assert sum(map(len, found)) == 4


def test_offsets_polled_before_a_rebalance_are_refused(plain_world: World) -> None:
    broker = plain_world.broker()
    log = Partition(make_topic(broker), 0)
    write(broker, log, [b"a"])
    group = fresh("g")
    first = broker.group_consumer(group, [log.topic])
    assigned(first, 1)
    first.seek(log, 0)
    _, stale = fetched(first, 1)
    second = plain_world.broker().group_consumer(group, [log.topic])

    def moved() -> bool:
        second.poll(0.1, 10)
        return first.poll(0.1, 10).epoch > stale.epoch

    until(moved)
    transactor = broker.transactor(fresh("tx"))
    transactor.begin()

    def commit() -> None:
        transactor.send_offsets({log: Committed(1)}, stale.membership)
        transactor.commit()

    with pytest.raises(AbortableError):
        commit()
    transactor.abort()
    assert broker.admin().group_offsets(group) == {}


def test_a_send_that_fails_keeps_the_offsets_back(plain_world: World) -> None:
    broker = plain_world.broker()
    log = Partition(make_topic(broker), 0)
    write(broker, log, [b"a"])
    group = fresh("g")
    consumer = broker.group_consumer(group, [log.topic])
    assigned(consumer, 1)
    consumer.seek(log, 0)
    _, polled = fetched(consumer, 1)
    transactor = broker.transactor(fresh("tx"))
    transactor.begin()

    def send() -> None:
        transactor.send(log.topic, 7, messages([b"to no partition"]))
        transactor.send_offsets({log: Committed(1)}, polled.membership)
        transactor.commit()

    with pytest.raises(AbortableError):
        send()
    transactor.abort()
    assert consumer.committed([log]) == {log: None}
    transactor.begin()
    transactor.send(log.topic, 0, messages([b"good"]))
    transactor.commit()
    assert read_all(broker, log).values == [b"a", b"good"]


def test_calls_out_of_turn_are_refused(plain_world: World) -> None:
    broker = plain_world.broker()
    topic = make_topic(broker)
    transactor = broker.transactor(fresh("tx"))
    with pytest.raises(RuntimeError):
        transactor.send(topic, 0, messages([b"never"]))
    with pytest.raises(RuntimeError):
        transactor.commit()
    transactor.abort()
    transactor.begin()
    with pytest.raises(AbortableError):
        transactor.send_offsets({}, Membership(-1))
    transactor.abort()
    assert read_all(broker, Partition(topic, 0)).values == []
