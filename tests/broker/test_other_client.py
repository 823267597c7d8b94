"""An app that ran with librdkafka's client goes on with this one, and back: each reads what the other has committed."""

from __future__ import annotations

from kafka import KafkaAdminClient, errors
from kafka import TopicPartition as KafkaPartition
from kafka.structs import OffsetAndMetadata

from tests.broker.stranger import TopicPartition, admin, commit, committed, consumer, transaction
from tests.broker.worlds import DEADLINE_S, assigned, fresh, joined, make_topic, until, until_done
from twinsieve.pipeline.broker.mark import Mark, read_mark
from twinsieve.pipeline.broker.ports import Broker
from twinsieve.pipeline.broker.records import Committed, Partition

_MARK = Mark(bytes(range(16)), 3, 7, read=6, epoch=2)
_MANY = 100


def of_all_lengths(topic: str) -> dict[Partition, Committed]:
    """A text of each length up to 99, in a partition of its own."""
    return {Partition(topic, length): Committed(length, "m" * length) for length in range(_MANY)}


def test_the_mark_of_a_transaction_of_librdkafka_is_read(broker: Broker, bootstrap: str) -> None:
    log, group = Partition(make_topic(broker), 0), fresh("g")
    theirs = consumer(bootstrap, group, enable_auto_commit=False)
    theirs.subscribe([log.topic])
    until(lambda: theirs.poll(0.1) or theirs.assignment())
    opened = transaction(bootstrap, fresh("tx"))
    at = TopicPartition(*log, _MARK.end, _MARK.text())
    opened.send_offsets_to_transaction([at], theirs.consumer_group_metadata(), DEADLINE_S)
    opened.commit_transaction(DEADLINE_S)
    theirs.close()
    until(lambda: broker.admin().group_offsets(group) == {log: _MARK.committed()})
    ours = joined(broker, log.topic, group=group)
    assert ours.committed([log]) == {log: _MARK.committed()}


def test_our_mark_is_read_by_librdkafka(broker: Broker, bootstrap: str) -> None:
    log, group = Partition(make_topic(broker), 0), fresh("g")
    ours = broker.group_consumer(group, [log.topic])
    transactor = broker.transactor(fresh("tx"))
    transactor.begin()
    transactor.send_offsets({log: _MARK.committed()}, assigned(ours, 1).membership)
    transactor.commit()
    until(lambda: committed(admin(bootstrap), group) == {log: _MARK.committed()})
    (found,) = consumer(bootstrap, group).committed([TopicPartition(*log)], DEADLINE_S)
    assert (found.offset, found.metadata) == (_MARK.end, _MARK.text())


def test_texts_of_any_length_are_read_as_librdkafka_wrote_them(broker: Broker, bootstrap: str) -> None:
    topic, group = make_topic(broker, _MANY), fresh("g")
    held = of_all_lengths(topic)
    commit(admin(bootstrap), group, held)
    assert broker.admin().group_offsets(group) == held
    ours = joined(broker, topic, _MANY, group=group)
    assert ours.committed(list(held)) == held


def test_our_texts_of_any_length_are_read_by_librdkafka(broker: Broker, bootstrap: str) -> None:
    """Without an end of our own it would read on into foreign bytes."""
    topic, group = make_topic(broker, _MANY), fresh("g")
    held = of_all_lengths(topic)
    until_done(lambda: broker.admin().set_group_offsets(group, held))
    assert committed(admin(bootstrap), group) == held


def test_a_text_without_an_end_is_read_too(broker: Broker, bootstrap: str) -> None:
    """As other programs write it, and Java's."""
    topic, group = make_topic(broker, _MANY), fresh("g")
    theirs = KafkaAdminClient(bootstrap_servers=bootstrap)
    written = {
        KafkaPartition(topic, number): OffsetAndMetadata(number, "é" * (number + 1), -1)
        for number in range(_MANY)
    }
    until(lambda: set(theirs.alter_group_offsets(group, written).values()) == {errors.NoError})
    theirs.close()
    ours = joined(broker, topic, _MANY, group=group)
    found = ours.committed([Partition(topic, number) for number in range(_MANY)])
    assert found == {at: Committed(at.number, "é" * (at.number + 1)) for at in found}
    assert not any(read_mark(row.metadata) for row in found.values() if row is not None)
