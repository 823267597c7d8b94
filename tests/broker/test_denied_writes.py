"""A transaction that may not write to a topic is refused by name, whichever of its calls meets the refusal."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import errors
from kafka.structs import ConsumerGroupMetadata

from tests.broker.cluster import SecureCluster
from tests.broker.grants import allow
from tests.broker.worlds import Connect, assigned, fresh, messages, until
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
from twinsieve.pipeline.kafka import transactions
from twinsieve.pipeline.kafka.access import Access
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

    def __init__(self, cluster: SecureCluster, connect: Connect, *, seen: bool) -> None:
        admin = connect(cluster.bootstrap).admin()
        self.free, self.shut, group, name = fresh(), fresh(), fresh("g"), fresh("tx")
        for topic in (self.free, self.shut):
            admin.create_topic(NewTopic(topic, 1))
        grants = [
            Grant("topic", self.free, (*_READ, "Write")),
            Grant("group", group, ("Read",)),
            Grant("transactional-id", name, ("Write", "Describe")),
        ]
        if seen:
            grants.append(Grant("topic", self.shut, _READ))
        allow(cluster.bootstrap, "User:nobody", grants)
        broker: Broker = connect(cluster.secure, security=cluster.login("nobody"))
        self.membership = assigned(broker.group_consumer(group, [self.free]), 1).membership
        self.transactor: TransactionalProducer = broker.transactor(name)
        self.transactor.begin()

    def send(self, topic: str) -> None:
        self.transactor.send(topic, 0, messages([b"a"]))

    def offsets(self) -> None:
        self.transactor.send_offsets({Partition(self.free, 0): Committed(1)}, self.membership)


@pytest.fixture(params=[True, False], ids=["readable", "unknown"])
def denied(secure_broker: SecureCluster, connect: Connect, request: pytest.FixtureRequest) -> Denied:
    return Denied(secure_broker, connect, seen=request.param)


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


def offsets_behind(first: errors.KafkaError | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sends the offsets of a transaction that has failed with this error, which the library then only hints at."""

    def fail(*_: object) -> None:
        raise errors.KafkaError("Cannot execute transactional method because we are in an error state")

    producer = SimpleNamespace(
        init_transactions=lambda: None,
        begin_transaction=lambda: None,
        send_offsets_to_transaction=fail,
        _transaction_manager=SimpleNamespace(last_error=first),
    )
    monkeypatch.setattr(transactions, "make_producer", lambda *_, **__: producer)
    access = Access(KafkaSettings(), {}, _nobody, BrokerClock(time.monotonic))
    transactor = transactions.KafkaTransactionalProducer(access, "tx")
    transactor.begin()
    membership = KafkaMembership(1, ConsumerGroupMetadata("free"), lambda: False)
    transactor.send_offsets({_FROM: Committed(1)}, membership)


def test_offsets_that_meet_a_failed_transaction_are_denied(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FatalError, match=rf"tx: offsets: not allowed for topic shut; {_GRANT}") as refused:
        offsets_behind(errors.TopicAuthorizationFailedError({"shut"}), monkeypatch)
    assert refused.value.denied


def test_a_wrong_state_that_nothing_explains_aborts(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AbortableError, match=r"tx: offsets: .*in an error state"):
        offsets_behind(None, monkeypatch)


def _nobody() -> Any:
    raise BrokerError("nobody to ask", retryable=True)
