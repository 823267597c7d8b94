"""What every implementation of `ports.IdempotentProducer` and `ports.TransactionalProducer` must do."""

from __future__ import annotations

from random import Random

import pytest

from tests.broker.worlds import World, fresh, make_topic, messages, read_all, transact, until, write
from twinsieve.pipeline.broker.records import AbortableError, FatalError, Membership, Messages, Partition


def test_a_transaction_is_seen_whole_or_not_at_all(world: World) -> None:
    broker = world.broker()
    topic = make_topic(broker, 2)
    transactor = broker.transactor(fresh("tx"))
    transactor.begin()
    transactor.send(topic, 0, messages([b"a", b"b"]))
    transactor.send(topic, 1, messages([b"c"]))
    transactor.commit()
    transactor.begin()
    transactor.send(topic, 0, messages([b"never"]))
    transactor.abort()
    assert read_all(broker, Partition(topic, 0)).values == [b"a", b"b"]
    assert read_all(broker, Partition(topic, 1)).values == [b"c"]


def test_an_empty_transaction_is_one(world: World) -> None:
    transactor = world.broker().transactor(fresh("tx"))
    transactor.begin()
    transactor.commit()
    transactor.begin()
    transactor.abort()
    transactor.abort()


def test_calls_outside_a_transaction_are_misuse(world: World) -> None:
    broker = world.broker()
    topic = make_topic(broker)
    transactor = broker.transactor(fresh("tx"))
    with pytest.raises(RuntimeError):
        transactor.send(topic, 0, messages([b"a"]))
    with pytest.raises(RuntimeError):
        transactor.commit()


def test_equal_keys_go_to_one_partition_as_kafka_decides(world: World) -> None:
    broker = world.broker()
    topic = make_topic(broker, 4)
    transactor = broker.transactor(fresh("tx"))
    sent = Messages()
    for n in range(40):
        sent.add(b"key-%d" % (n % 8), b"%d" % n)
    transactor.begin()
    transactor.send(topic, None, sent)
    transactor.commit()
    where = {key: number for number in range(4) for key in read_all(broker, Partition(topic, number)).keys}
    assert len(where) == 8
    assert where == {key: (_murmur2(key) & 0x7FFFFFFF) % 4 for key in where if key is not None}


def _murmur2(data: bytes) -> int:
    word, mask = 0x5BD1E995, 0xFFFFFFFF
    value = (0x9747B28C ^ len(data)) & mask
    whole = len(data) // 4 * 4
    for start in range(0, whole, 4):
        k = int.from_bytes(data[start : start + 4], "little") * word & mask
        k = (k ^ k >> 24) * word & mask
        value = (value * word ^ k) & mask
    if whole < len(data):
        value = (value ^ int.from_bytes(data[whole:], "little")) * word & mask
    value = (value ^ value >> 13) * word & mask
    return value ^ value >> 15


def test_a_second_holder_of_a_slot_ends_the_first(world: World) -> None:
    topic = make_topic(world.broker())
    name = fresh("tx")
    first = world.broker().transactor(name)
    first.begin()
    first.send(topic, 0, messages([b"zombie"]))
    second_broker = world.broker()
    second = second_broker.transactor(name)
    transact(second, Partition(topic, 0), [b"heir"])
    for end in (first.commit, first.abort):
        with pytest.raises(FatalError):
            end()
    assert read_all(second_broker, Partition(topic, 0)).values == [b"heir"]


def test_offsets_of_a_process_outside_its_group_are_refused(world: World) -> None:
    broker = world.broker()
    topic = make_topic(broker)
    transactor = broker.transactor(fresh("tx"))
    transactor.begin()
    transactor.send(topic, 0, messages([b"never"]))
    with pytest.raises(AbortableError):
        transactor.send_offsets({}, Membership(-1))
    transactor.abort()
    assert read_all(broker, Partition(topic, 0)).values == []


def test_appends_stand_in_order_and_once(world: World) -> None:
    broker = world.broker()
    log = Partition(make_topic(broker), 0)
    appender = broker.appender()
    for start in range(0, 3000, 100):
        appender.append(log, messages(b"%d" % n for n in range(start, start + 100)))
    until(lambda: appender.confirm(1.0) == 0)
    assert read_all(broker, log).values == [b"%d" % n for n in range(3000)]


def test_an_append_that_fails_leaves_the_appender_good_for_new_ones(world: World) -> None:
    broker = world.broker()
    topic = make_topic(broker)
    appender = broker.appender()

    def fails() -> None:
        appender.append(Partition(topic, 7), messages([b"lost"]))
        while appender.confirm(1.0):
            pass

    with pytest.raises(AbortableError):
        fails()
    assert appender.confirm(0.0) == 0
    appender.append(Partition(topic, 0), messages([b"good"]))
    until(lambda: appender.confirm(1.0) == 0)
    assert read_all(broker, Partition(topic, 0)).values == [b"good"]


def test_a_message_above_the_limit_is_refused_before_anything_is_written(world: World) -> None:
    broker = world.broker()
    log = Partition(make_topic(broker, 1, max_message_bytes="300000"), 0)
    appender = broker.appender()
    with pytest.raises(AbortableError):
        appender.append(log, messages([b"small", Random(1).randbytes(400_000)]))
    assert appender.confirm(0.0) == 0
    appender.append(log, messages([b"good"]))
    until(lambda: appender.confirm(1.0) == 0)
    assert read_all(broker, log).values[-1] == b"good"


def test_what_cannot_be_sent_is_named_before_it_is_tried(world: World) -> None:
    broker = world.broker()
    topic = make_topic(broker, 1, max_message_bytes="300000")
    transactor = broker.transactor(fresh("tx"))
    batch = Messages()
    batch.add(b"k", b"good")
    batch.add(b"k", Random(1).randbytes(400_000))
    batch.add(b"k", b"v", [("name", None)])
    batch.add(None, None)
    batch.add(b"k", b"v", [("n", b"x" * 10)] * 10_000)
    batch.add(b"k", b"v", [(f"n{n}", b"") for n in range(10_000)])
    reasons = transactor.unsendable(topic, batch)
    assert reasons == {1: "too_large_for_topic"}
    kept = [row for row in range(len(batch)) if row not in reasons]
    sent = Messages()
    for row in kept:
        sent.add(batch.keys[row], batch.values[row], batch.headers[row])
    transactor.begin()
    transactor.send(topic, 0, sent)
    transactor.commit()
    found = read_all(broker, Partition(topic, 0))
    assert found.values == sent.values
    assert [len(headers) for headers in found.headers] == [len(headers) for headers in sent.headers]


def test_a_write_beside_a_transaction_is_not_part_of_it(world: World) -> None:
    broker = world.broker()
    topic = make_topic(broker)
    transactor = broker.transactor(fresh("tx"))
    transactor.begin()
    write(broker, Partition(topic, 0), [b"beside"])
    transactor.abort()
    assert read_all(broker, Partition(topic, 0)).values == [b"beside"]
