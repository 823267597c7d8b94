"""Faults of a cluster look the same on the memory broker and on a real one."""

from __future__ import annotations

import pytest

from tests.broker.harmed import HarmedWorld
from tests.broker.worlds import (
    assigned,
    fetched,
    fresh,
    messages,
    read,
    read_all,
    reader_at,
    transact,
    until,
    until_done,
    write,
)
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.ports import TransactionalProducer
from twinsieve.pipeline.broker.records import (
    AbortableError,
    BrokerError,
    Committed,
    FatalError,
    Partition,
    TruncatedError,
)
from twinsieve.pipeline.kafka import admin as python_admin


def test_a_partition_without_a_leader_stops_what_needs_it_and_nothing_else(
    harmed: HarmedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Ten seconds otherwise.
    monkeypatch.setattr(python_admin, "RETRY_S", 3.0)
    dead, alive = harmed.topic()
    broker = harmed.broker()
    for partition in (dead, alive):
        write(broker, partition, [b"before"])
    reader, admin = reader_at(broker, dead, alive), broker.admin()
    appender = harmed.patient_broker().appender()
    for partition in (dead, alive):
        read(reader, 1, partition)
    harmed.lose_leader(dead)

    for question in (reader.end_offsets, reader.beginning_offsets):
        with pytest.raises(AbortableError):
            question([dead])
        with pytest.raises(AbortableError):
            question([alive, dead])
    with pytest.raises(BrokerError) as refused:
        admin.end_offsets([dead])
    assert refused.value.retryable
    assert reader.end_offsets([alive]) == admin.end_offsets([alive]) == {alive: 1}
    assert admin.topics([dead.topic])[dead.topic] is not None
    assert reader.position(dead) == 1

    write(broker, alive, [b"meanwhile"])
    assert read(reader, 2, alive).values == [b"meanwhile"]
    appender.append(dead, messages([b"after"]))
    assert appender.confirm(0.3) == 1
    harmed.find_leaders()
    until(lambda: appender.confirm(1.0) == 0)
    assert read(reader, 2, dead).values == [b"after"]
    assert reader.end_offsets([dead]) == {dead: 2}
    until_done(lambda: admin.end_offsets([dead]))


def test_a_transaction_that_finds_no_leader_leaves_nothing_to_be_seen(harmed: HarmedWorld) -> None:
    dead, alive = harmed.topic()
    broker, name = harmed.broker(), fresh("tx")
    transactor = broker.transactor(name)
    transact(transactor, alive, [b"warm-up"])
    harmed.lose_leader(dead)
    transactor.begin()
    with pytest.raises(BrokerError) as refused:
        _write_to_both(transactor, alive, dead)
    errors = [refused.value]
    if isinstance(refused.value, AbortableError):
        try:
            transactor.abort()
        except FatalError as error:
            # The broker ended the transaction first, because it was open for too long.
            errors.append(error)
    assert not any(isinstance(error, FatalError) and error.fenced for error in errors)
    harmed.find_leaders()
    again = harmed.broker()

    def write_again() -> None:
        newer = again.transactor(name)
        newer.begin()
        for partition in (dead, alive):
            newer.send(partition.topic, partition.number, messages([b"again"]))
        newer.commit()

    until_done(write_again)
    assert read_all(again, dead).values == [b"again"]
    assert read_all(again, alive).values == [b"warm-up", b"again"]


def _write_to_both(transactor: TransactionalProducer, alive: Partition, dead: Partition) -> None:
    for partition in (alive, dead):
        transactor.send(partition.topic, partition.number, messages([b"never"]))
    transactor.commit()


def test_only_the_first_of_the_appends_that_were_given_up_may_land_later(harmed: HarmedWorld) -> None:
    slow, _ = harmed.topic()
    broker = harmed.broker()
    write(broker, slow, [b"before"])
    appender = broker.appender()
    appender.append(slow, messages([b"warm-up"]))
    until(lambda: appender.confirm(1.0) == 0)
    harmed.delay_writes(slow)
    given_up = [b"%d" % n for n in range(6)]
    for value in given_up:
        appender.append(slow, messages([value]))
    with pytest.raises(AbortableError):
        until(lambda: appender.confirm(0.5) == 0)
    assert appender.confirm(0) == 0
    harmed.find_leaders()
    write(harmed.broker(), slow, [b"after"])
    came = read_all(broker, slow).values
    late = [value for value in came if value in given_up]
    assert late == given_up[: len(late)]
    assert [value for value in came if value not in given_up] == [b"before", b"warm-up", b"after"]


def test_a_log_that_lost_its_tail_ends_earlier_and_gives_its_offsets_again(harmed: HarmedWorld) -> None:
    log, _ = harmed.topic()
    broker = harmed.broker()
    for n in range(5):
        write(broker, log, [b"%d" % n])
    reader = reader_at(broker, log)
    read(reader, 5, log)
    harmed.truncate(log, 3)
    assert until(lambda: reader.end_offsets([log]))[log] == 3
    with pytest.raises(AbortableError):
        until(lambda: reader.poll(0.1, 10))
    write(broker, log, [b"new"])
    reader.seek(log, 2)
    found = read(reader, 4, log)
    assert (found.offsets, found.values) == ([2, 3], [b"2", b"new"])


def test_a_position_with_an_epoch_detects_a_log_that_was_cut_before_it(harmed: HarmedWorld) -> None:
    log, other = harmed.topic()
    broker, group = harmed.broker(), fresh("g")
    for n in range(5):
        write(broker, log, [b"%d" % n])
    reader = reader_at(broker, log)
    epochs = read(reader, 5, log).epochs
    assert len(set(epochs)) == 1
    assert epochs[0] >= 0
    harmed.truncate(log, 3)
    for n in range(4):
        write(harmed.broker(), log, [b"new %d" % n])

    # Whoever was reading then.
    with pytest.raises(TruncatedError) as lost:
        until(lambda: reader.poll(0.1, 10))
    assert lost.value.partition == log
    # Whoever comes later, and knows what was read.
    consumer = broker.group_consumer(group, [log.topic])
    assigned(consumer, 2)
    consumer.seek(other, 0)
    for offset in (5, 4):
        consumer.seek(log, offset, epochs[0])
        with pytest.raises(TruncatedError) as lost:
            until(lambda: consumer.poll(0.1, 10).records)
        assert lost.value.partition == log
        again = broker.reader()
        again.assign([log])
        again.seek(log, offset, epochs[0])
        with pytest.raises(TruncatedError):
            until(lambda again=again: again.poll(0.1, 10))  # type: ignore[misc]
    # What came before is still there.
    consumer.seek(log, 3, epochs[0])
    values, _ = fetched(consumer, 4)
    assert values == [b"new %d" % n for n in range(4)]
    # Whoever was told may go on as if it knew of nothing.
    reader.seek(log, 5)
    found = read(reader, 7, log)
    assert (found.offsets, found.values) == ([5, 6], [b"new 2", b"new 3"])
    assert min(found.epochs) > epochs[0]


def test_a_position_with_an_epoch_outlives_leaders_that_lose_nothing(harmed: HarmedWorld) -> None:
    log, _ = harmed.topic()
    broker = harmed.broker()
    for n in range(3):
        write(broker, log, [b"%d" % n])
    reader = reader_at(broker, log)
    old = read(reader, 3, log).epochs[-1]
    harmed.lose_leader(log)
    reader.pause([log])
    harmed.find_leaders()
    write(harmed.broker(), log, [b"new"])
    reader.resume([log])
    found = read(reader, 4, log)
    assert found.values == [b"new"]
    assert found.epochs[-1] > old
    for offset, epoch, value in ((4, found.epochs[-1], b"newer"), (3, old, b"new")):
        again = broker.reader()
        again.assign([log])
        again.seek(log, offset, epoch)
        write(harmed.broker(), log, [b"newer"])
        assert until(lambda again=again: again.poll(0.1, 1))[0].values == [value]  # type: ignore[misc]


def test_retention_moves_the_beginning_of_any_log(harmed: HarmedWorld) -> None:
    log, _ = harmed.topic()
    broker = harmed.broker()
    transactor = broker.transactor(fresh("tx"))
    for n in range(3):
        transact(transactor, log, [b"%d" % n])
    reader = broker.reader()
    until(lambda: reader.end_offsets([log]) == {log: 6})
    broker.admin().delete_records({log: 3})
    assert until(lambda: reader.beginning_offsets([log])) == {log: 3}
    reader = reader_at(broker, log)
    with pytest.raises(AbortableError):
        until(lambda: reader.poll(0.1, 1))
    reader.seek(log, 3)
    assert read(reader, 6, log).values == [b"2"]
    broker.admin().delete_records({log: 6})
    assert reader.end_offsets([log]) == {log: 6}
    assert until(lambda: reader.beginning_offsets([log]))[log] == 6


def test_a_deleted_topic_takes_offsets_and_id_with_it(harmed: HarmedWorld) -> None:
    log, _ = harmed.topic()
    broker, group = harmed.broker(), fresh("g")
    write(broker, log, [b"old", b"older"])
    admin, reader = broker.admin(), broker.reader()
    until_done(lambda: admin.set_group_offsets(group, {log: Committed(2, "mark")}))
    assert admin.group_offsets(group) == {log: Committed(2, "mark")}
    before = admin.topics([log.topic])[log.topic]
    harmed.delete(log.topic)
    with pytest.raises(AbortableError):
        # The node that led the partition may hear of the deletion last.
        until(lambda: not reader.end_offsets([log]))
    until_done(lambda: admin.create_topic(NewTopic(log.topic, 2)))
    assert before is not None

    def is_another() -> bool:
        # Any of the nodes answers; the last of them hears of the deletion, and of the new topic, later.
        after = admin.topics([log.topic])[log.topic]
        return after is not None and after.topic_id != before.topic_id

    until(is_another)
    until(lambda: not admin.group_offsets(group))
    write(broker, log, [b"new"])
    assert read_all(harmed.broker(), log).values == [b"new"]


def test_a_process_that_stalls_in_a_transaction_is_timed_out_and_not_fenced(
    harmed: HarmedWorld,
) -> None:
    log, _ = harmed.topic()
    broker, name = harmed.broker(), fresh("tx")
    membership = assigned(broker.group_consumer(fresh("g"), [log.topic]), 2).membership
    transactor = broker.transactor(name)
    transactor.begin()
    transactor.send(log.topic, log.number, messages([b"never"]))
    # A client may keep the messages until here.
    transactor.send_offsets({log: Committed(0)}, membership)
    reader, admin = broker.reader(), broker.admin()
    until(lambda: admin.end_offsets([log])[log] > 0)

    def timed_out() -> bool:
        harmed.pass_time(2.0)
        return reader.end_offsets([log]) == admin.end_offsets([log])

    # A coordinator looks only every ten seconds for what is too old.
    harmed.pass_time(7.0)
    if harmed.name != "memory":
        until(timed_out)
    with pytest.raises(FatalError) as refused:
        transactor.commit()
    assert not refused.value.fenced
    transact(harmed.broker().transactor(name), log, [b"by new clients"])
    assert read_all(broker, log).values == [b"by new clients"]
