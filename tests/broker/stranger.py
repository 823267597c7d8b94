"""Other people on a broker: clients of librdkafka, which share no code with the program's own client.

No other file of the tests and benchmarks imports them (`tests/house`).
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import (
    OFFSET_END,
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions

from twinsieve.pipeline.broker.records import Committed, Partition

_LIMIT_S = 60.0


def _options(bootstrap: str, given: Mapping[str, object]) -> dict[str, Any]:
    dotted = {name.replace("_", "."): value for name, value in given.items()}
    return {"bootstrap.servers": bootstrap, "log_level": 0, **dotted}


def producer(bootstrap: str, **options: object) -> Producer:
    """A producer. options: those of librdkafka, with an underscore for each dot"""
    return Producer(_options(bootstrap, options))


def transaction(bootstrap: str, transactional_id: str, **options: object) -> Producer:
    """A producer with an open transaction. options: as of `producer`"""
    made = producer(bootstrap, transactional_id=transactional_id, **options)
    made.init_transactions(_LIMIT_S)
    made.begin_transaction()
    return made


def consumer(bootstrap: str, group: str, **options: object) -> Consumer:
    """A consumer. options: as of `producer`"""
    return Consumer(_options(bootstrap, {"group_id": group, **options}))


def reader(
    bootstrap: str, topics: Sequence[str] = (), partitions: int = 1, *, new: bool = False, **options: object
) -> Consumer:
    """A consumer of the committed messages of these topics, in a group of its own; it commits nothing.

    partitions: of each topic; new: only what comes from now on; options: as of `producer`
    """
    made = consumer(
        bootstrap,
        f"reader-{uuid.uuid4().hex}",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        **options,
    )
    if topics:
        begin = OFFSET_END if new else 0
        made.assign([TopicPartition(topic, n, begin) for topic in topics for n in range(partitions)])
    return made


def arrived(reads: Consumer) -> list[Message]:
    """Messages that have come, without errors; waits a tenth of a second for the first one."""
    came = reads.consume(1, 0.1) + reads.consume(5_000, 0)
    return [message for message in came if message.error() is None]


def queue(writes: Producer, topic: str, value: bytes, key: bytes | None = None, **more: Any) -> None:
    """Give a message to a producer, once it has room for one. more: arguments of its `produce`"""
    while True:
        try:
            writes.produce(topic, value, key, **more)
            return
        except BufferError:
            writes.poll(0.1)


def admin(bootstrap: str) -> AdminClient:
    """An administrator. Its last reference ends it, whatever is on its way."""
    return AdminClient(_options(bootstrap, {}))


def produce(
    bootstrap: str,
    topic: str,
    *values: bytes,
    partition: int = 0,
    key: bytes | None = None,
    headers: Sequence[tuple[str, bytes | None]] = (),
    **options: object,
) -> None:
    """Write these, and wait until all are acknowledged. raises: KafkaException if one is refused"""
    refused: list[KafkaError] = []

    def told(error: KafkaError | None, _: Message) -> None:
        refused.extend([error] if error is not None else [])

    made = producer(bootstrap, **options)
    for value in values:
        made.produce(topic, value, key, partition, on_delivery=told, headers=list(headers))
    assert made.flush(_LIMIT_S) == 0, "the broker does not answer"
    for error in refused:
        raise KafkaException(error)


def add_partitions(bootstrap: str, topic: str, count: int) -> None:
    """Raise the number of partitions of a topic to this one, as an operator does."""
    operator = admin(bootstrap)
    operator.create_partitions([NewPartitions(topic, count)])[topic].result()


def delete_topics(bootstrap: str, *topics: str) -> None:
    """Delete these topics, as an operator does. The brokers may know them for a moment longer."""
    operator = admin(bootstrap)
    for done in operator.delete_topics(list(topics)).values():
        done.result(_LIMIT_S)


def set_topics(bootstrap: str, topics: Sequence[str], name: str, value: str) -> None:
    """Change one setting of these topics, as kafka-configs does."""
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resources = [ConfigResource("topic", topic, incremental_configs=[entry]) for topic in topics]
    operator = admin(bootstrap)
    for done in operator.incremental_alter_configs(resources).values():
        done.result()


def limit_topics(bootstrap: str, topics: Sequence[str], batch_bytes: int) -> None:
    """Have these topics refuse batches that are larger, as kafka-configs does."""
    set_topics(bootstrap, topics, "max.message.bytes", str(batch_bytes))


def committed(operator: AdminClient, group: str) -> dict[Partition, Committed]:
    """The offsets of a group with their texts. raises: KafkaException if the broker does not say"""
    asked = operator.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)], request_timeout=10)
    rows = asked[group].result().topic_partitions
    return {Partition(row.topic, row.partition): Committed(row.offset, row.metadata or "") for row in rows}


def commit(operator: AdminClient, group: str, offsets: Mapping[Partition, Committed]) -> None:
    """Set offsets of a group without members. raises: KafkaException if the broker refuses"""
    rows = [TopicPartition(*at, offset.offset, offset.metadata) for at, offset in offsets.items()]
    asked = operator.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, rows)])
    for row in asked[group].result().topic_partitions:
        if row.error is not None:
            raise KafkaException(row.error)


class Stranger:
    """Somebody's ordinary consumer: it joins the workers' group in a thread, reads its share and commits by itself,
    until `leave`.

    read: messages so far
    """

    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self.read = 0
        self._stop = threading.Event()
        self._consumer = consumer(
            bootstrap,
            group,
            client_id="console",
            partition_assignment_strategy="range",
            auto_commit_interval_ms=200,
        )
        self._consumer.subscribe([topic])
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            self.read += sum(message.error() is None for message in self._consumer.consume(500, 0.1))
        self._consumer.close()

    def leave(self) -> None:
        """Commit what was read, and go."""
        self._stop.set()
        self._thread.join(60.0)
