"""An offset that stays open for ever, made by hand: in a transaction that the coordinator knows nothing of."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.protocol.producer.transaction import InitProducerIdRequest, TxnOffsetCommitRequest

from tests.broker.cluster import Cluster
from tests.broker.worlds import Connect, assigned, fresh, make_topic, until
from twinsieve.pipeline.broker.committed_offsets import committed_offsets
from twinsieve.pipeline.broker.records import Partition, UnstableError

_NODE = 1


@contextmanager
def unverified(cluster: Cluster) -> Iterator[None]:
    """The broker takes offsets without asking whether they belong to a transaction, as all did before 4.0."""
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    changed = {"transaction.partition.verification.enable": "false"}
    node = ConfigResource(ConfigResourceType.BROKER, str(_NODE), changed)
    admin.alter_configs([node])
    try:
        yield
    finally:
        admin.reset_configs([node])
        admin.close()


def commit_for_ever(cluster: Cluster, group: str, transactional_id: str, at: Partition) -> None:
    """An offset in a transaction that nobody has begun, and so nobody ends."""
    client = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)

    async def ask(request: Any) -> Any:
        return await client._manager.send(request, node_id=_NODE)

    start = InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=10_000, producer_id=-1, producer_epoch=-1
    )
    producer = client._manager.run(ask, start)
    assert producer.error_code == 0
    topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
    row = topic.TxnOffsetCommitRequestPartition(
        partition_index=at.number, committed_offset=5, committed_leader_epoch=-1, committed_metadata=""
    )
    commit = TxnOffsetCommitRequest(
        transactional_id=transactional_id, group_id=group, producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch, generation_id=-1, member_id="", group_instance_id=None,
        topics=[topic(name=at.topic, partitions=[row])], max_version=4,
    )  # fmt: skip

    def taken() -> bool:
        answer = client._manager.run(ask, commit)
        return [part.error_code for each in answer.topics for part in each.partitions] == [0]

    until(taken)
    client.close()


def test_the_next_transaction_of_its_id_frees_it(mortal_broker: Cluster, connect: Connect) -> None:
    broker = connect(mortal_broker.bootstrap)
    at, group, name = Partition(make_topic(broker), 0), fresh("g"), fresh("tx")
    broker.transactor(name).close()
    assert broker.admin().group_offsets(group) == {}
    with unverified(mortal_broker):
        commit_for_ever(mortal_broker, group, name, at)
    consumer, transactor = broker.group_consumer(group, [at.topic], "slot"), broker.transactor(name)
    membership = assigned(consumer, 1).membership
    with pytest.raises(UnstableError):
        committed_offsets(consumer, transactor, membership, [at])
    assert committed_offsets(consumer, transactor, membership, [at]) == {at: None}
