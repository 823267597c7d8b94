"""What every implementation of `ports.GroupConsumer` must do."""

from __future__ import annotations

import time
from itertools import count

import pytest

from tests.broker.worlds import (
    World,
    assigned,
    fetched,
    fresh,
    joined,
    make_topic,
    messages,
    read_all,
    reading,
    transact,
    until,
    until_done,
    write,
)
from twinsieve.pipeline.broker.ports import GroupConsumer
from twinsieve.pipeline.broker.records import (
    AbortableError,
    BrokerError,
    Committed,
    FatalError,
    Partition,
)


def until_shared(*members: GroupConsumer) -> None:
    """Wait until each of these has one partition."""
    until(lambda: [len(each.poll(0.1, 10).assignment) for each in members] == [1] * len(members))


def test_an_assigned_partition_is_silent_until_it_is_sought(world: World) -> None:
    broker = world.broker()
    log = Partition(make_topic(broker), 0)
    write(broker, log, [b"a", b"b"])
    consumer = broker.group_consumer(fresh("g"), [log.topic])
    polled = assigned(consumer, 1)
    assert polled.assignment == {log}
    assert polled.membership.generation >= 0
    assert consumer.committed([log]) == {log: None}
    assert [consumer.poll(0.1, 10).records for _ in range(3)] == [[], [], []]
    consumer.seek(log, 1)
    values, _ = fetched(consumer, 1)
    assert values == [b"b"]
    assert consumer.position(log) == 2


def test_a_poll_has_what_came_since_the_poll_before(world: World) -> None:
    """Not only what was fetched ahead, right behind it. A slow answer may miss a poll, but not all of them."""
    broker = world.broker()
    log = Partition(make_topic(broker), 0)
    consumer = reading(broker, log)
    rounds = count()

    def has_all() -> bool:
        last = b"last of round %d" % next(rounds)
        write(broker, log, [b"first"])
        # A client that fetches ahead gets the first one now.
        consumer.poll(0.0, 1000)
        time.sleep(0.1)
        write(broker, log, [b"second", last])
        time.sleep(0.1)
        return last in [row for records in consumer.poll(1.0, 1000).records for row in records.values]

    until(has_all)


def test_offsets_and_messages_are_committed_together(world: World) -> None:
    broker = world.broker()
    log, out = Partition(make_topic(broker), 0), Partition(make_topic(broker), 0)
    write(broker, log, [b"a", b"b"])
    group = fresh("g")
    consumer = reading(broker, log, group=group, member="m0")
    transactor = broker.transactor(fresh("tx"))
    _, polled = fetched(consumer, 2)
    transactor.begin()
    transactor.send(out.topic, 0, messages([b"x"]))
    transactor.send_offsets({log: Committed(1, "lost")}, polled.membership)
    transactor.abort()
    assert consumer.committed([log]) == {log: None}
    transactor.begin()
    transactor.send(out.topic, 0, messages([b"y"]))
    transactor.send_offsets({log: Committed(2, "77")}, polled.membership)
    transactor.commit()
    assert consumer.committed([log]) == {log: Committed(2, "77")}
    assert broker.admin().group_offsets(group) == {log: Committed(2, "77")}
    assert read_all(broker, out).values == [b"y"]


def test_an_offset_that_an_open_transaction_moves_is_never_told_as_it_was(world: World) -> None:
    broker = world.broker()
    log = Partition(make_topic(broker), 0)
    write(broker, log, [b"a", b"b", b"c"])
    group = fresh("g")
    consumer = broker.group_consumer(group, [log.topic], "m0")
    transactor = broker.transactor(fresh("tx"))
    polled = assigned(consumer, 1)
    transactor.begin()
    transactor.send_offsets({log: Committed(1, "one")}, polled.membership)
    transactor.commit()
    admin = broker.admin()
    until(lambda: consumer.committed([log]) == {log: Committed(1, "one")})
    assert admin.group_offsets(group) == {log: Committed(1, "one")}
    transactor.begin()
    transactor.send_offsets({log: Committed(2, "two")}, polled.membership)
    with pytest.raises(BrokerError) as said:
        admin.group_offsets(group)
    assert said.value.retryable
    # Who only needs the mark of a group that may have died in its transaction does not wait for its end.
    assert admin.group_offsets(group, stable=False) == {log: Committed(1, "one")}
    transactor.commit()
    assert admin.group_offsets(group) == {log: Committed(2, "two")}


def test_a_group_tells_its_members_and_their_shares(world: World) -> None:
    broker = world.broker()
    topic, group = make_topic(broker, 2), fresh("g")
    admin = broker.admin()
    assert admin.members(group) == {}
    joined(broker, topic, 2, group=group, member="m0")
    whole = frozenset({Partition(topic, 0), Partition(topic, 1)})
    until(lambda: [(each.name, each.partitions) for each in admin.members(group).values()] == [("m0", whole)])
    (member,) = admin.members(group).values()
    assert world.name == "memory" or (member.client_id, member.host) == ("twinsieve", "127.0.0.1")


def test_a_member_that_joins_takes_a_share_and_everybody_hears_of_it(world: World) -> None:
    topic = make_topic(world.broker(), 2)
    group = fresh("g")
    first = world.broker().group_consumer(group, [topic])
    before = assigned(first, 2)
    for number in (0, 1):
        first.seek(Partition(topic, number), 0)
    second = world.broker().group_consumer(group, [topic])
    shares: dict[str, frozenset[Partition]] = {}
    epochs: list[int] = []

    def shared() -> bool:
        polled = first.poll(0.1, 10)
        epochs.append(polled.epoch)
        shares["first"] = polled.assignment
        shares["second"] = second.poll(0.1, 10).assignment
        return len(shares["first"]) == len(shares["second"]) == 1

    until(shared)
    assert shares["first"] | shares["second"] == {Partition(topic, 0), Partition(topic, 1)}
    assert epochs[-1] > before.epoch
    assert epochs == sorted(epochs)


def test_a_join_that_ends_between_two_polls_counts(world: World) -> None:
    topic = make_topic(world.broker(), 2)
    group = fresh("g")
    members = [world.broker().group_consumer(group, [topic]) for _ in range(2)]
    generations: set[int] = set()

    def shared() -> bool:
        # Nobody waits: whatever a poll begins, ends before the next one.
        shares = []
        for member in members:
            polled = member.poll(0.0, 10)
            generations.add(polled.membership.generation)
            shares.append(len(polled.assignment))
            time.sleep(0.1)
        return shares == [1, 1]

    until(shared)
    assert len(generations - {-1}) <= 3


def test_what_was_polled_before_a_rebalance_cannot_be_committed_after_it(world: World) -> None:
    broker = world.broker()
    log, out = Partition(make_topic(broker), 0), Partition(make_topic(broker), 0)
    write(broker, log, [b"a"])
    group = fresh("g")
    first = reading(broker, log, group=group)
    _, stale = fetched(first, 1)
    second = world.broker().group_consumer(group, [log.topic])

    def moved() -> bool:
        second.poll(0.1, 10)
        return first.poll(0.1, 10).epoch > stale.epoch

    until(moved)

    def settled() -> bool:
        one, two = first.poll(0.1, 10), second.poll(0.1, 10)
        return len(one.assignment) + len(two.assignment) == 1

    until(settled)
    transactor = broker.transactor(fresh("tx"))
    transactor.begin()
    transactor.send(out.topic, 0, messages([b"never"]))
    with pytest.raises(AbortableError):
        transactor.send_offsets({log: Committed(1)}, stale.membership)
    transactor.abort()
    assert read_all(broker, out).values == []
    assert broker.admin().group_offsets(group) == {}


def test_a_send_that_fails_keeps_the_offsets_back(world: World) -> None:
    broker = world.broker()
    log = Partition(make_topic(broker), 0)
    write(broker, log, [b"a"])
    consumer = reading(broker, log)
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
    transact(transactor, log, [b"good"])
    assert read_all(broker, log).values == [b"a", b"good"]


def test_after_a_rebalance_partitions_are_silent_again(world: World) -> None:
    broker = world.broker()
    topic = make_topic(broker, 2)
    group = fresh("g")
    first = joined(broker, topic, 2, group=group)
    for number in (0, 1):
        first.seek(Partition(topic, number), 0)
    second = world.broker().group_consumer(group, [topic])
    until_shared(second, first)
    for number in (0, 1):
        write(broker, Partition(topic, number), [b"new"])
    for _ in range(5):
        assert first.poll(0.1, 10).records == []
        assert second.poll(0.1, 10).records == []


def test_a_second_process_with_a_member_name_ends_the_first(world: World) -> None:
    broker = world.broker()
    log, out = Partition(make_topic(broker), 0), Partition(make_topic(broker), 0)
    write(broker, log, [b"a"])
    group = fresh("g")
    first = reading(broker, log, group=group, member="slot")
    transactor = broker.transactor(fresh("tx"))
    _, polled = fetched(first, 1)
    joined(world.broker(), log.topic, group=group, member="slot")

    def displaced() -> None:
        transactor.begin()
        transactor.send(out.topic, 0, messages([b"never"]))
        transactor.send_offsets({log: Committed(1)}, polled.membership)

    with pytest.raises(FatalError) as refused:
        displaced()
    assert refused.value.fenced

    def first_hears_of_it() -> bool:
        first.poll(0.1, 10)
        return False

    if world.name != "memory":
        with pytest.raises(FatalError) as heard:
            until(first_hears_of_it)
        assert heard.value.fenced
    transactor.close()
    assert read_all(broker, out).values == []


def test_a_member_that_comes_back_under_its_name_finds_its_partitions(world: World) -> None:
    topic = make_topic(world.broker(), 2)
    group = fresh("g")
    first_broker = world.broker()
    first = first_broker.group_consumer(group, [topic], "slot")
    before = assigned(first, 2)
    first.close()
    second = world.broker().group_consumer(group, [topic], "slot")
    after = assigned(second, 2)
    assert after.assignment == before.assignment


def test_a_member_that_leaves_gives_its_share_away_at_once(world: World) -> None:
    topic = make_topic(world.broker(), 2)
    group = fresh("g")
    staying = world.broker().group_consumer(group, [topic], "staying")
    leaving = world.broker().group_consumer(group, [topic], "leaving")
    until_shared(staying, leaving)
    leaving.leave()
    # Sessions of a world outlast every test.
    assigned(staying, 2)
    leaving.close()


def test_a_member_that_leaves_alone_stays_known(world: World) -> None:
    topic = make_topic(world.broker(), 2)
    group = fresh("g")
    alone = world.broker().group_consumer(group, [topic], "alone")
    before = assigned(alone, 2)
    alone.leave()
    again = assigned(world.broker().group_consumer(group, [topic], "alone"), 2)
    # The first of a new generation would wait for others: the broker has forgotten nobody.
    assert again.membership.generation == before.membership.generation


def test_a_displaced_member_takes_nothing_from_its_successor_when_it_leaves(world: World) -> None:
    topic = make_topic(world.broker(), 2)
    group = fresh("g")
    older = world.broker().group_consumer(group, [topic], "slot")
    other = world.broker().group_consumer(group, [topic], "other")
    until_shared(older, other)
    newer = world.broker().group_consumer(group, [topic], "slot")
    until_shared(newer, other)
    before = newer.poll(0.1, 10)
    older.leave()
    for _ in range(20):
        other.poll(0.1, 10)
        after = newer.poll(0.1, 10)
        assert (after.assignment, after.epoch) == (before.assignment, before.epoch)


def test_unknown_topics_are_refused_at_once(world: World) -> None:
    with pytest.raises(BrokerError, match="does not exist"):
        world.broker().group_consumer(fresh("g"), [fresh("nowhere")])


def test_offsets_of_a_running_group_cannot_be_moved(world: World) -> None:
    broker = world.broker()
    log = Partition(make_topic(broker), 0)
    group = fresh("g")
    consumer = joined(broker, log.topic, group=group)
    admin = broker.admin()
    with pytest.raises(BrokerError) as refused:
        admin.set_group_offsets(group, {log: Committed(0)})
    assert not refused.value.retryable
    consumer.close()
    until_done(lambda: admin.set_group_offsets(group, {log: Committed(0, "by hand")}))
    assert admin.group_offsets(group) == {log: Committed(0, "by hand")}


def test_pauses_and_seeks_of_foreign_partitions_are_ignored(world: World) -> None:
    broker = world.broker()
    topic, other = make_topic(broker), make_topic(broker)
    consumer = joined(broker, topic)
    foreign = Partition(other, 0)
    consumer.seek(foreign, 0)
    consumer.pause([foreign])
    consumer.resume([foreign])
    assert consumer.poll(0.0, 10).records == []


def test_a_group_member_goes_on_after_an_offset_out_of_range(world: World) -> None:
    broker = world.broker()
    topic = make_topic(broker, 2)
    one, two = Partition(topic, 0), Partition(topic, 1)
    for partition in (one, two):
        write(broker, partition, [b"%d" % n for n in range(10)])
    consumer = joined(broker, topic, 2)
    consumer.seek(one, 99)
    consumer.seek(two, 0)

    def fails() -> None:
        while True:
            consumer.poll(0.1, 100)

    with pytest.raises(AbortableError):
        fails()
    consumer.seek(one, 8)
    consumer.seek(two, 5)
    values, _ = fetched(consumer, 7)
    assert sorted(values, key=str) == [b"5", b"6", b"7", b"8", b"8", b"9", b"9"]
