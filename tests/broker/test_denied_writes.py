"""A transaction that may not write to a topic is refused by name, whichever of its calls meets the refusal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from kafka import errors
from kafka.structs import ConsumerGroupMetadata

from tests.broker.cluster import SecureCluster
from tests.broker.grants import allow
from tests.broker.worlds import assigned, fresh, messages, until
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.clocks import BrokerClock
from twinsieve.pipeline.broker.ports import Broker, TransactionalProducer
from twinsieve.pipeline.broker.records import (
    AbortableError,
    BrokerError,
    Committed,
    FatalError,
    Partition,
)
from twinsieve.pipeline.commands.kafka.connect import connect
from twinsieve.pipeline.kafka.broker import Access
from twinsieve.pipeline.kafka.confluent import transactions as confluent_transactor
from twinsieve.pipeline.kafka.confluent.group_consumer import ConfluentMembership
from twinsieve.pipeline.kafka.kafka_python import transactions as python_transactor
from twinsieve.pipeline.kafka.transactions import KafkaMembership
from twinsieve.pipeline.operate.acls import Grant
from twinsieve.pipeline.settings.model import KafkaSettings

_READ = ("Read", "Describe", "DescribeConfigs")
_GRANT = r"grant it \(twinsieve topics acls prints what is needed\)"
_FROM = Partition("free", 0)


class Denied:
    """An open transaction of a user who may write to topic `free`, and not to topic `shut`.

    seen: whether the user may at least read there
    """

    def __init__(self, client: str, cluster: SecureCluster, *, seen: bool) -> None:
        self._chief = connect(KafkaSettings(bootstrap=cluster.bootstrap))
        self.free, self.shut, group, name = fresh(), fresh(), fresh("g"), fresh("tx")
        for topic in (self.free, self.shut):
            self._chief.admin().create_topic(NewTopic(topic, 1))
        grants = [
            Grant("topic", self.free, (*_READ, "Write")),
            Grant("group", group, ("Read",)),
            Grant("transactional-id", name, ("Write", "Describe")),
        ]
        if seen:
            grants.append(Grant("topic", self.shut, _READ))
        allow(cluster.bootstrap, "User:nobody", grants)
        settings = {"client": client, "bootstrap": cluster.secure, "security": cluster.login("nobody")}
        self.broker: Broker = connect(KafkaSettings.model_validate(settings))
        consumer = self.broker.group_consumer(group, [self.free])
        self.membership = assigned(consumer, 1).membership
        self.transactor: TransactionalProducer = self.broker.transactor(name)
        self.transactor.begin()

    def send(self, topic: str) -> None:
        self.transactor.send(topic, 0, messages([b"a"]))

    def offsets(self) -> None:
        self.transactor.send_offsets({Partition(self.free, 0): Committed(1)}, self.membership)

    def close(self) -> None:
        self.broker.close()
        self._chief.close()


@pytest.fixture(params=[True, False], ids=["readable", "unknown"])
def denied(client: str, secure_broker: SecureCluster, request: pytest.FixtureRequest) -> Iterator[Denied]:
    made = Denied(client, secure_broker, seen=request.param)
    yield made
    made.close()


def check_denied(denied: Denied, call: Callable[[], None]) -> None:
    """In the end the call is refused for want of a right on the topic."""
    with pytest.raises(FatalError, match=denied.shut) as refused:
        until(call)
    assert refused.value.denied


def test_a_commit_of_what_may_not_be_written_is_denied(denied: Denied) -> None:
    def all_at_once() -> None:
        denied.send(denied.shut)
        denied.offsets()
        denied.transactor.commit()

    check_denied(denied, all_at_once)


def test_another_topic_is_denied_once_the_transaction_has_failed(denied: Denied) -> None:
    def send_on() -> None:
        denied.send(denied.shut)
        for _ in range(20):
            time.sleep(0.05)
            denied.send(denied.free)
        denied.transactor.commit()

    check_denied(denied, send_on)


class FailedProducer:
    """librdkafka's, in a transaction that has failed while its offsets were on their way."""

    def __init__(self, _: object) -> None:
        self._open = False

    def begin_transaction(self) -> None:
        if self._open:
            raise KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, "not added"))
        self._open = True

    def send_offsets_to_transaction(self, *_: object) -> None:
        raise KafkaException(KafkaError(KafkaError._STATE, "Failed to commit offsets to transaction"))

    def flush(self, _: float) -> int:
        return 0

    def nothing(self, *_: object, **__: object) -> None: ...

    init_transactions = list_topics = produce = poll = nothing


class OpenProducer(FailedProducer):
    """As before, but it only says that the state is wrong."""

    def begin_transaction(self) -> None:
        if self._open:
            raise KafkaException(KafkaError(KafkaError._STATE, "Operation not valid in state InTransaction"))
        self._open = True


def offsets_of(producer: type, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Sends offsets behind a message, with this in place of confluent-kafka's producer."""
    monkeypatch.setattr(confluent_transactor, "Producer", producer)
    transactor = confluent_transactor.ConfluentTransactionalProducer(
        Access(
            KafkaSettings(),
            {"socket.timeout.ms": 1},
            _nobody,
            BrokerClock(time.monotonic),
            nulls=True,
        ),
        "tx",
    )
    transactor.begin()
    transactor.send("shut", 0, messages([b"a"]))
    membership = ConfluentMembership(1, b"", lambda: False, "id", lambda: "id")
    return lambda: transactor.send_offsets({_FROM: Committed(1)}, membership)


def test_offsets_that_meet_a_failed_transaction_are_denied(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FatalError, match=rf"tx: offsets to shut: .*{_GRANT}") as refused:
        offsets_of(FailedProducer, monkeypatch)()
    assert refused.value.denied


def test_a_wrong_state_that_nothing_explains_aborts(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AbortableError, match="Failed to commit offsets"):
        offsets_of(OpenProducer, monkeypatch)()


def test_offsets_behind_a_failure_of_kafka_python_are_denied(monkeypatch: pytest.MonkeyPatch) -> None:
    first = errors.TopicAuthorizationFailedError({"shut"})

    def fail(*_: object) -> None:
        raise errors.KafkaError(
            f"Cannot execute transactional method because we are in an error state: {first}"
        )

    producer = SimpleNamespace(
        init_transactions=lambda: None,
        begin_transaction=lambda: None,
        send_offsets_to_transaction=fail,
        _transaction_manager=SimpleNamespace(last_error=first, _consumer_group_coordinator=None),
    )
    monkeypatch.setattr(python_transactor, "make_producer", lambda *_, **__: producer)
    transactor = python_transactor.PythonTransactionalProducer(
        Access(KafkaSettings(), {}, _nobody, BrokerClock(time.monotonic), nulls=True), "tx"
    )
    transactor.begin()
    membership = KafkaMembership(1, ConsumerGroupMetadata("free"), lambda: False)
    with pytest.raises(FatalError, match=rf"tx: offsets: not allowed for topic shut; {_GRANT}") as refused:
        transactor.send_offsets({_FROM: Committed(1)}, membership)
    assert refused.value.denied


def _nobody() -> Any:
    raise BrokerError("nobody to ask", retryable=True)
