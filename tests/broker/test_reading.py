"""What every implementation of `ports.Reader` and `ports.Admin` must do."""

from __future__ import annotations

import pytest

from tests.broker.worlds import (
    World,
    fresh,
    make_topic,
    messages,
    read,
    read_all,
    reader_at,
    until,
    write,
)
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.records import AbortableError, BrokerError, Messages, Partition


def test_everything_appended_comes_back_as_it_was(world: World) -> None:
    broker = world.broker()
    log = Partition(make_topic(broker), 0)
    sent = Messages()
    sent.add(b"key", b"value", [("a", b"1"), ("a", b""), ("b", b"\xff")], 1_600_000_000_123)
    sent.add(None, b"", [], 1_600_000_000_124)
    sent.add(b"", "微博".encode(), [("名", b"x")], 1_600_000_000_125)
    sent.add(b"deleted", None, [], 1_600_000_000_126)
    write(broker, log, sent)
    found = read_all(broker, log)
    assert found.keys == sent.keys
    assert found.values == sent.values
    assert found.timestamps_ms == sent.timestamps_ms
    assert [list(headers) for headers in found.headers] == [list(headers) for headers in sent.headers]
    assert found.offsets == [0, 1, 2, 3]


def test_a_partition_is_silent_until_it_is_sought(world: World) -> None:
    broker = world.broker()
    topic = make_topic(broker, 2)
    write(broker, Partition(topic, 0), [b"a"])
    write(broker, Partition(topic, 1), [b"b"])
    reader = broker.reader()
    reader.assign([Partition(topic, 0), Partition(topic, 1)])
    reader.seek(Partition(topic, 1), 0)
    assert read(reader, 1, Partition(topic, 1)).values == [b"b"]
    assert [records.partition.number for _ in range(3) for records in reader.poll(0.1, 10)] == []


def test_seek_forgets_what_was_fetched_ahead(world: World) -> None:
    broker = world.broker()
    log = Partition(make_topic(broker), 0)
    write(broker, log, [b"%d" % n for n in range(500)])
    reader = reader_at(broker, log)
    first = until(lambda: reader.poll(0.1, 10))[0]
    assert first.offsets[0] == 0
    assert len(first) <= 10
    reader.seek(log, 300)
    assert until(lambda: reader.poll(0.1, 10))[0].offsets[0] == 300
    reader.seek(log, 5)
    assert read(reader, 500, log).offsets == list(range(5, 500))


def test_a_partition_that_stays_assigned_keeps_its_position(world: World) -> None:
    broker = world.broker()
    topic = make_topic(broker, 2)
    one, two = Partition(topic, 0), Partition(topic, 1)
    write(broker, one, [b"%d" % n for n in range(20)])
    write(broker, two, [b"x"])
    reader = reader_at(broker, one)
    read(reader, 20, one)
    write(broker, one, [b"new"])
    reader.assign([one, two])
    reader.seek(two, 0)
    seen: list[bytes | None] = []

    def both() -> bool:
        for records in reader.poll(0.1, 100):
            seen.extend(records.values)
        return len(seen) >= 2

    until(both)
    assert sorted(seen, key=str) == [b"new", b"x"]


def test_paused_partitions_deliver_nothing_until_resumed(world: World) -> None:
    broker = world.broker()
    topic = make_topic(broker, 2)
    one, two = Partition(topic, 0), Partition(topic, 1)
    for partition in (one, two):
        write(broker, partition, [b"%d" % n for n in range(50)])
    reader = reader_at(broker, one, two)
    reader.pause([one])
    read(reader, 50, two)
    reader.pause([one])
    assert reader.position(one) == 0
    reader.resume([one, two])
    reader.resume([one])
    assert read(reader, 50, one).offsets == list(range(50))


def test_an_offset_out_of_range_is_an_error_and_no_jump(world: World) -> None:
    broker = world.broker()
    log = Partition(make_topic(broker), 0)
    write(broker, log, [b"a", b"b", b"c"])
    broker.admin().delete_records({log: 2})
    for wrong in (0, 99):
        reader = reader_at(broker, log, offset=wrong)
        with pytest.raises(AbortableError):
            until(lambda reader=reader: reader.poll(0.1, 10))
        reader.seek(log, 2)
        assert read(reader, 3, log).values == [b"c"]


def test_the_position_passes_markers_and_aborted_messages(world: World) -> None:
    broker = world.broker()
    log = Partition(make_topic(broker), 0)
    transactor = broker.transactor(fresh("tx"))
    for commit in (True, False, False):
        transactor.begin()
        transactor.send(log.topic, 0, messages([b"kept" if commit else b"never"]))
        transactor.commit() if commit else transactor.abort()
    reader, admin = reader_at(broker, log), broker.admin()
    # A commit is answered before its marker is written.
    until(lambda: reader.end_offsets([log]) == admin.end_offsets([log]))
    end = reader.end_offsets([log])[log]
    assert end > 1
    assert read(reader, end, log).values == [b"kept"]
    assert reader.position(log) == end


def test_nothing_past_an_open_transaction_is_read(world: World) -> None:
    broker = world.broker()
    log = Partition(make_topic(broker), 0)
    write(broker, log, [b"before"])
    commit = world.open_transaction(log, b"open")
    write(broker, log, [b"after"])
    reader = reader_at(broker, log)
    assert reader.end_offsets([log]) == {log: 1}
    assert read(reader, 1, log).values == [b"before"]
    assert [reader.poll(0.1, 10) for _ in range(3)] == [[], [], []]
    commit()
    end = reader.end_offsets([log])[log]
    assert sorted(read(reader, end, log).values, key=str) == [b"after", b"open"]


def test_missing_topics_are_errors_and_no_waiting(world: World) -> None:
    broker = world.broker()
    nowhere = Partition(fresh("nowhere"), 0)
    reader = broker.reader()
    with pytest.raises(AbortableError):
        reader.end_offsets([nowhere])
    with pytest.raises(AbortableError):
        reader.beginning_offsets([nowhere])
    with pytest.raises(BrokerError):
        broker.admin().end_offsets([nowhere])
    assert broker.admin().topics([nowhere.topic]) == {nowhere.topic: None}


def test_a_topic_made_again_is_another_topic(world: World) -> None:
    broker = world.broker()
    admin = broker.admin()
    first, second = make_topic(broker, 3), make_topic(broker, 2)
    infos = admin.topics([first, second], settings=True)
    one, two = infos[first], infos[second]
    assert one is not None
    assert two is not None
    assert (one.partitions, two.partitions) == (3, 2)
    assert one.replication == 1
    assert one.topic_id != two.topic_id
    assert len(one.topic_id) == 16
    again = admin.topics([first])[first]
    assert again is not None
    assert again.topic_id == one.topic_id
    with pytest.raises(BrokerError, match="exist"):
        admin.create_topic(NewTopic(first, 3))


def test_settings_of_a_topic_are_told(world: World) -> None:
    broker = world.broker()
    topic = make_topic(broker, 1, retention_ms="123456789", cleanup_policy="delete")
    info = broker.admin().topics([topic], settings=True)[topic]
    assert info is not None
    assert info.settings["retention.ms"] == "123456789"


def test_offsets_are_found_by_time(world: World) -> None:
    broker = world.broker()
    log = Partition(make_topic(broker), 0)
    sent = Messages()
    for n in range(10):
        sent.add(None, b"x", [], 1_600_000_000_000 + 1000 * n)
    write(broker, log, sent)
    admin = broker.admin()
    assert admin.offsets_at({log: 1_600_000_004_500}) == {log: 5}
    assert admin.offsets_at({log: 1_700_000_000_000}) == {log: 10}
    assert admin.beginning_offsets([log]) == {log: 0}
    assert admin.end_offsets([log]) == {log: 10}


def test_a_partition_paused_in_the_middle_of_a_fetch_goes_on(world: World) -> None:
    broker = world.broker()
    topic = make_topic(broker, 2)
    one, two = Partition(topic, 0), Partition(topic, 1)
    for partition in (one, two):
        write(broker, partition, [b"%d" % n for n in range(300)])
    reader = reader_at(broker, one, two)
    seen: dict[Partition, list[int]] = {one: [], two: []}
    paused, other = one, two

    def all_there() -> bool:
        nonlocal paused, other
        reader.resume([one, two])
        reader.pause([paused])
        paused, other = other, paused
        for records in reader.poll(0.1, 7):
            seen[records.partition] += records.offsets
        return min(map(len, seen.values())) == 300

    until(all_there)
    assert seen == {one: list(range(300)), two: list(range(300))}
