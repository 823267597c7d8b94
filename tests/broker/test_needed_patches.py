"""What kafka-python does where no patch of ours mends it: where a test fails, the library has been mended, and its
patch can go."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Coroutine, Iterator
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition, errors
from kafka.admin import ConfigResource, ConfigResourceType, NewTopic
from kafka.coordinator.base import BaseCoordinator
from kafka.future import Future
from kafka.producer.future import FutureProduceResult, FutureRecordMetadata
from kafka.producer.transaction_manager import TransactionManager, TransactionState, TxnOffsetCommitHandler
from kafka.protocol.consumer import HeartbeatResponse
from kafka.protocol.metadata import CoordinatorType, MetadataResponse
from kafka.structs import ConsumerGroupMetadata, MemberState

from tests.broker.stranger import add_partitions, limit_topics
from tests.broker.worlds import assigned, fresh, make_topic, until
from twinsieve.pipeline.broker.ports import Broker
from twinsieve.pipeline.broker.records import Committed, Partition
from twinsieve.pipeline.kafka import patches

_NOBODY = 99
"""A broker that is not there."""


class Network:
    """The network of a member of a group. joins: an answer to each join, which the test gives"""

    def __init__(self) -> None:
        self.joins: list[Future] = []
        self.cluster, self._net = None, self

    def call_soon(self, _: Callable[[], object]) -> Future:
        self.joins.append(Future())
        return self.joins[-1]

    async def wait_for(self, answer: Future, _: float | None) -> bytes:
        try:
            next(answer.__await__())
        except StopIteration as done:
            return cast(bytes, done.value)
        raise errors.KafkaTimeoutError

    async def send(self, *_: object, **__: object) -> HeartbeatResponse:
        """The answer to a heartbeat: another process has this member's name."""
        return HeartbeatResponse(error_code=errors.FencedInstanceIdError.errno, version=4)

    def call_soon_threadsafe(self, *_: object) -> None: ...


class Member(BaseCoordinator):  # type: ignore[misc]
    """A member of a group. shares: what it was given"""

    def __init__(self, network: Network) -> None:
        super().__init__(SimpleNamespace(_manager=network), api_version=(4, 0), group_instance_id="slot")
        self.shares: list[bytes] = []

    def coordinator_unknown(self) -> bool:
        return False

    async def _on_join_complete_async(self, *joined: Any) -> None:
        self.shares.append(joined[-1])

    protocol_type = group_protocols = _perform_assignment = None


def consumer_of(member: Member) -> KafkaConsumer:
    return cast(KafkaConsumer, SimpleNamespace(_coordinator=member))


def result(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Of a coroutine that waits for nothing."""
    with pytest.raises(StopIteration) as ended:
        coroutine.send(None)
    return ended.value.value


@pytest.mark.parametrize("patched", [False, True])
def test_an_answer_to_a_join_between_two_polls_is_dropped(patched: bool) -> None:
    """keep_finished_joins"""
    network = Network()
    member = Member(network)
    if patched:
        patches.keep_finished_joins(consumer_of(member))
    assert result(member.join_group_async(10)) is False
    member.state = MemberState.REBALANCING
    network.joins[0].success(b"share")
    assert result(member.join_group_async(10)) is patched
    assert (len(network.joins), member.shares) == ((1, [b"share"]) if patched else (2, []))


def test_a_member_whose_name_is_taken_does_not_hear_of_it() -> None:
    """watch_fencing"""
    member = Member(Network())
    is_fenced = patches.watch_fencing(consumer_of(member))
    result(member._do_heartbeat())
    assert not member._heartbeat_enabled
    member.poll_heartbeat()
    assert result(member.join_group_async(0)) is False
    assert is_fenced()


@pytest.fixture
def admin(bootstrap: str) -> Iterator[KafkaAdminClient]:
    made = KafkaAdminClient(bootstrap_servers=bootstrap)
    yield made
    made.close()


@pytest.fixture
def topic(broker: Broker) -> str:
    return make_topic(broker)


def test_an_admin_client_learns_no_broker_from_the_answer_that_names_it(
    admin: KafkaAdminClient, topic: str
) -> None:
    """forget_brokers"""
    at, cluster = TopicPartition(topic, 0), admin._manager.cluster
    (broker,) = until(cluster.brokers)
    before = MetadataResponse.MetadataResponseBroker(_NOBODY, broker.host, broker.port, None)
    cluster._brokers = {_NOBODY: before}
    for _ in range(2):
        with pytest.raises(errors.UnknownBrokerIdError):
            admin.list_partition_offsets({at: -1})
    patches.forget_brokers(admin)
    until(lambda: cluster.brokers() != [before])
    assert admin.list_partition_offsets({at: -1})[at].offset == 0


def test_an_admin_client_asks_coordinators_of_before_for_ever(
    admin: KafkaAdminClient, broker: Broker
) -> None:
    """forget_coordinators"""
    group, topic = fresh("g"), NewTopic(fresh(), 1, 1)
    # A coordinator is there, however new the broker is.
    assert broker.admin().group_offsets(group) == {}
    admin._manager.cluster._coordinators[CoordinatorType.GROUP, group] = _NOBODY
    admin._controller_id = _NOBODY
    for ask in (lambda: admin.list_group_offsets(group), lambda: admin.create_topics([topic])):
        for _ in range(2):
            with pytest.raises(errors.UnknownBrokerIdError):
                ask()
    patches.forget_coordinators(admin)
    assert admin.list_group_offsets(group) == {group: {}}
    admin.create_topics([topic])


def test_settings_of_a_topic_that_may_not_be_told_are_none(admin: KafkaAdminClient) -> None:
    """raise_refused_settings"""
    nowhere = ConfigResource(ConfigResourceType.TOPIC, fresh())
    assert admin.describe_configs([nowhere]) == {"topic": {nowhere.name: {}}}
    patches.raise_refused_settings(admin)
    with pytest.raises(errors.UnknownTopicOrPartitionError):
        admin.describe_configs([nowhere])


def test_an_admin_client_tells_offsets_that_an_open_transaction_moves(
    admin: KafkaAdminClient, broker: Broker
) -> None:
    """ask_for_stable_offsets"""
    log, group = Partition(make_topic(broker), 0), fresh("g")
    membership = assigned(broker.group_consumer(group, [log.topic]), 1).membership
    transactor = broker.transactor(fresh("tx"))
    transactor.begin()
    transactor.send_offsets({log: Committed(7)}, membership)
    assert list(inspect.signature(admin.list_group_offsets).parameters) == ["group_specs"]
    assert admin.list_group_offsets(group) == {group: {}}
    patches.ask_for_stable_offsets(admin, stable=True)
    with pytest.raises(errors.UnstableOffsetCommitError):
        admin.list_group_offsets({group: [TopicPartition(*log)]})
    transactor.abort()


def test_a_producer_that_is_closed_at_once_goes_on(bootstrap: str, topic: str) -> None:
    """cut_off"""
    producer = KafkaProducer(bootstrap_servers=bootstrap, linger_ms=60_000)
    producer.send(topic, b"never")
    with pytest.raises(errors.KafkaTimeoutError):
        producer.close(timeout=0)
    assert producer._sender.is_alive()
    assert producer._sender._running
    patches.cut_off(producer)
    until(lambda: not producer._sender.is_alive())


def test_a_failed_transaction_hands_out_its_first_error_as_text_alone() -> None:
    """first_error"""
    manager, first = TransactionManager("tx"), errors.TopicAuthorizationFailedError({"shut"})
    manager._current_state = TransactionState.IN_TRANSACTION
    manager.transition_to_abortable_error(first)
    with pytest.raises(errors.KafkaError) as later:
        manager.begin_commit()
    assert type(later.value) is errors.KafkaError
    assert first not in (*later.value.args, later.value.__cause__, later.value.__context__)
    assert patches.first_error(cast(KafkaProducer, SimpleNamespace(_transaction_manager=manager))) is first


def test_a_flush_does_not_outlive_a_batch_that_is_split(bootstrap: str, topic: str) -> None:
    """never_split"""
    limit_topics(bootstrap, [topic], 1_000)
    producer = KafkaProducer(bootstrap_servers=bootstrap, linger_ms=60_000, batch_size=1 << 20)
    for seed in range(10):
        producer.send(topic, Random(seed).randbytes(300))
    with pytest.raises(errors.UnknownError, match="Future not done"):
        producer.flush(60)
    patches.cut_off(producer)


def test_a_producer_does_not_look_for_a_partition_that_was_added(bootstrap: str, topic: str) -> None:
    """know_partition"""
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    producer.send(topic, b"a", partition=0).get(60)
    add_partitions(bootstrap, topic, 2)
    asked = threading.Event()
    producer._metadata.request_update = asked.set
    with pytest.raises(ValueError, match="Unrecognized partition 1"):
        producer.send(topic, b"b", partition=1)
    assert not asked.is_set()
    del producer._metadata.request_update

    def is_known() -> bool:
        patches.know_partition(producer, TopicPartition(topic, 1))
        return 1 in producer.partitions_for(topic)

    until(is_known)
    producer.send(topic, b"b", partition=1).get(60)
    producer.close()


def test_the_time_of_an_acknowledgement_does_not_say_whose_it_is() -> None:
    """append_time"""

    def acknowledged(written_ms: int, answered_ms: int) -> FutureRecordMetadata:
        batch = FutureProduceResult(TopicPartition("t", 0))
        record = FutureRecordMetadata(batch, 0, written_ms, None, -1, -1, -1)
        batch.success((0, answered_ms, None))
        return record

    producers, brokers = acknowledged(7, -1), acknowledged(5, 7)
    assert producers.value == brokers.value
    assert (patches.append_time(producers), patches.append_time(brokers)) == (None, 7)


def test_offsets_of_a_second_group_go_to_the_coordinator_of_the_first_one() -> None:
    manager = TransactionManager("tx", 10_000, 100, (4, 0), SimpleNamespace())
    manager._consumer_group_coordinator = 7
    other = TxnOffsetCommitHandler(manager, ConsumerGroupMetadata("other"), {}, None)
    assert manager.coordinator(other.coordinator_type) == 7

    brokers, asked = {"workers": 7, "record": 3}, []

    class Producer:
        """Sends offsets as the library does: it looks for the coordinator that it does not know."""

        _transaction_manager = manager

        def send_offsets_to_transaction(self, _: object, metadata: ConsumerGroupMetadata) -> None:
            asked.append(manager.coordinator(CoordinatorType.GROUP))
            manager._consumer_group_coordinator = brokers[metadata.group_id]

    known: dict[str, int | None] = {}
    for group in ["workers", "record"] * 2:
        patches.send_offsets(Producer(), {}, ConsumerGroupMetadata(group), known)  # type: ignore[arg-type]
    assert asked == [None, None, 7, 3]
