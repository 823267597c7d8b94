"""Traps of kafka-python 3.0.12 that a real broker springs: each would lose a message or hang a process."""

from __future__ import annotations

import time
from random import Random
from types import SimpleNamespace
from typing import Any

import kafka
import pytest
from kafka import KafkaAdminClient, TopicPartition
from kafka.errors import IllegalStateError, UnknownBrokerIdError

from tests.broker.cluster import SecureCluster
from tests.broker.grants import allow
from tests.broker.stranger import limit_topics
from tests.broker.worlds import (
    Connect,
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
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.clocks import BrokerClock
from twinsieve.pipeline.broker.ports import Broker
from twinsieve.pipeline.broker.records import AbortableError, BrokerError, Committed, FatalError, Partition
from twinsieve.pipeline.kafka import admin as python_admin
from twinsieve.pipeline.kafka.access import Access
from twinsieve.pipeline.kafka.admin import KafkaAdmin
from twinsieve.pipeline.kafka.broker import KafkaBroker
from twinsieve.pipeline.kafka.group_consumer import KafkaGroupConsumer
from twinsieve.pipeline.kafka.options import common_options
from twinsieve.pipeline.kafka.patches import fetch_late
from twinsieve.pipeline.operate.acls import Grant
from twinsieve.pipeline.settings import ConfigError
from twinsieve.pipeline.settings.model import KafkaSettings

_POLL_INTERVAL_MS = 2_500


def test_a_worker_that_polls_too_late_commits_nothing_of_others(bootstrap: str, broker: Any) -> None:
    settings = KafkaSettings(bootstrap=bootstrap)
    options = common_options(settings, "test", 15.0) | {"max_poll_interval_ms": _POLL_INTERVAL_MS}
    access = Access(settings, options, broker._shared_admin, BrokerClock(time.monotonic))
    log, out = Partition(make_topic(broker), 0), Partition(make_topic(broker), 0)
    write(broker, log, [b"a", b"b"])
    group = fresh("g")
    slow = KafkaGroupConsumer(access, group, [log.topic], None)
    assigned(slow, 1)
    slow.seek(log, 0)
    _, held = fetched(slow, 2)
    transactor = broker.transactor(fresh("tx"))
    heir = joined(broker, log.topic, group=group)
    # What the client says of itself now is accepted by the broker, whoever owns the partition.
    metadata = slow._consumer.group_metadata()
    assert metadata.generation_id == -1
    transactor.begin()
    transactor.send(out.topic, 0, messages([b"never"]))
    with pytest.raises(AbortableError):
        transactor.send_offsets({log: Committed(2)}, held.membership)
    transactor.abort()
    assert heir.committed([log]) == {log: None}
    assert read_all(broker, out).values == []
    late = slow.poll(0.0, 10)
    assert late.epoch > held.epoch, "it hears that it has lost its partitions"
    assert late.records == []
    slow.close()


def test_a_poll_brings_all_that_came_since_the_one_before(broker: Broker) -> None:
    """By itself kafka-python asks for more when it returns what it had, and is answered by the first message."""
    log = Partition(make_topic(broker), 0)
    consumer: Any = reading(broker, log)
    consumer.poll(0.0, 10)  # a request that waits at the broker
    write(broker, log, [b"a"])
    until(consumer.prefetch)
    assert fetched(consumer, 1)[0] == [b"a"]
    write(broker, log, [b"b"])
    write(broker, log, [b"c"])
    until(consumer.prefetch)
    (records,) = consumer.poll(0.0, 10).records
    assert list(records.values) == [b"b", b"c"]


@pytest.mark.parametrize(("highwater", "asks"), [(5, False), (6, True), (None, True)])
def test_a_poll_asks_for_more_where_more_is_there(highwater: int | None, asks: bool) -> None:
    at, sent = TopicPartition("posts", 0), []
    state = SimpleNamespace(position=SimpleNamespace(offset=5), highwater=highwater)
    fetcher = SimpleNamespace(fetched_records=lambda most: ({at: ["record"]} if most else {}, False))
    fetcher.send_fetches = lambda: sent.append(1)
    consumer: Any = SimpleNamespace(_fetcher=fetcher, _subscription=SimpleNamespace(assignment={at: state}))
    fetch_late(consumer)
    fetcher.fetched_records(10)
    fetcher.send_fetches()
    assert bool(sent) is asks
    fetcher.fetched_records(0)
    fetcher.send_fetches()
    assert len(sent) == 1 + asks, "a poll that has found nothing asks"


def test_a_transaction_on_a_topic_one_may_not_write_ends_in_an_answer(
    secure_broker: SecureCluster, connect: Connect
) -> None:
    """Without a flush before the commit more than half of them wait for ever (3.0.12)."""
    chief = connect(secure_broker.bootstrap)
    topic, name = make_topic(chief), fresh("tx")
    allow(
        secure_broker.bootstrap,
        "User:nobody",
        [Grant("topic", topic, ("Describe",)), Grant("transactional-id", name, ("Write", "Describe"))],
    )
    broker = connect(secure_broker.secure, security=secure_broker.login("nobody"), request_timeout="10s")
    for _ in range(10):
        transactor = broker.transactor(name)
        with pytest.raises(FatalError, match=f"not allowed for topic {topic}"):
            transact(transactor, Partition(topic, 0), [b"never"])
        transactor.close()
    assert read_all(chief, Partition(topic, 0)).values == []


def test_a_timed_out_transaction_ends_its_producer_and_is_not_seen(bootstrap: str, connect: Connect) -> None:
    """The client takes a new epoch by itself, after which neither send nor abort fits its state."""
    broker = connect(bootstrap, transaction_timeout="1s")
    out, name = Partition(make_topic(broker), 0), fresh("tx")
    transactor: Any = broker.transactor(name)
    transactor.begin()

    def send_again() -> None:
        transactor.send(out.topic, 0, messages([b"never"]))
        # As `send_offsets` does first: until then the client holds what is sent.
        transactor._call("send", transactor._send_unsent)
        time.sleep(0.2)

    with pytest.raises(FatalError) as refused:
        # The broker looks for such transactions every ten seconds.
        until(send_again)
    assert isinstance(refused.value.__cause__, IllegalStateError)
    with pytest.raises(FatalError):
        transactor.abort()
    transactor.close()
    transact(broker.transactor(name), out, [b"after"])
    assert read_all(broker, out).values == [b"after"]


def test_a_leader_the_admin_client_does_not_know_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its metadata may lose a broker between the question who leads and the question to that leader."""
    admin: Any = object.__new__(KafkaAdmin)
    looked: list[str] = []
    cluster = SimpleNamespace(request_update=lambda: looked.append("anew"), _coordinators={("group", "g"): 2})
    admin._client = SimpleNamespace(_manager=SimpleNamespace(cluster=cluster), _controller_id=2)
    answers: list[Exception | int] = [UnknownBrokerIdError(2), 7]

    def ask() -> int:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert admin._ask("offsets of a[0]", ask) == 7
    assert cluster._coordinators == {}
    assert admin._client._controller_id is None
    assert looked == ["anew"], "its list of brokers is five minutes old"
    monkeypatch.setattr(python_admin, "RETRY_S", 0.0)
    answers = [UnknownBrokerIdError(2)]
    with pytest.raises(BrokerError, match=r"offsets of a\[0\]: UnknownBrokerIdError") as said:
        admin._ask("offsets of a[0]", ask)
    assert said.value.retryable


def test_a_topic_that_is_back_is_shared_out_again_though_nobody_waits(bootstrap: str, broker: Broker) -> None:
    """A leader that joins for a changed topic no longer needs to join once it has shared the topic out."""
    topic = make_topic(broker)
    consumer = joined(broker, topic)

    def assignment() -> frozenset[Partition]:
        time.sleep(0.05)
        return consumer.poll(0.0, 10).assignment

    brokers = KafkaAdminClient(bootstrap_servers=bootstrap)
    brokers.delete_topics([topic])
    brokers.close()
    until(lambda: not assignment())
    until_done(lambda: broker.admin().create_topic(NewTopic(topic, 1)))
    until(assignment)


@pytest.mark.parametrize("version", ["2.3.1", "3.0.11", "3.1.0", "4.0"])
def test_a_version_that_the_patches_do_not_fit_is_refused(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka, "__version__", version)
    with pytest.raises(ConfigError, match=rf"kafka-python {version} is installed.*install 'kafka-python>=3"):
        KafkaBroker(KafkaSettings())


def test_later_versions_of_3_0_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka, "__version__", "3.0.20")
    KafkaBroker(KafkaSettings()).close()


def test_a_transaction_refused_for_its_size_ends_also_while_the_epoch_rises(
    bootstrap: str, broker: Broker
) -> None:
    log = Partition(make_topic(broker), 0)
    transactor: Any = broker.transactor(fresh("tx"), [log.topic])
    limit_topics(bootstrap, [log.topic], 1_000)
    with pytest.raises(AbortableError, match=r"(?i)too ?large"):
        transact(transactor, log, [Random(1).randbytes(5_000)])
    # What the answer to a batch behind the refused one does, where it comes before the abort.
    transactor._producer._transaction_manager.bump_producer_id_and_epoch()
    transactor.abort()
    transact(transactor, log, [b"next"])
    assert read_all(broker, log).values == [b"next"]
    transactor.close()


def test_all_partitions_of_a_transaction_are_added_with_one_request(broker: Any) -> None:
    """While the broker adds one, it refuses the batches of the others, which then wait to be sent again."""
    topic = make_topic(broker, partitions=20)
    log = Partition(make_topic(broker), 0)
    consumer = broker.group_consumer(fresh("g"), [log.topic])
    member = assigned(consumer, 1)
    transactor: Any = broker.transactor(fresh("tx"))
    manager = transactor._producer._transaction_manager
    handler, added = manager._add_partitions_to_transaction_handler, []

    def counted() -> Any:
        added.append(set(manager._new_partitions_in_transaction))
        return handler()

    manager._add_partitions_to_transaction_handler = counted
    transactor.begin()
    for number in range(20):
        transactor.send(topic, number, messages([b"%d" % number]))
    transactor.send_offsets({log: Committed(0)}, member.membership)
    transactor.commit()
    assert [len(each) for each in added] == [20]
    values = [read_all(broker, Partition(topic, number)).values for number in range(20)]
    assert values == [[b"%d" % number] for number in range(20)]
