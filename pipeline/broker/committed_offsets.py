"""Committed offsets, also when the broker has forgotten to end the transaction that holds one back."""

from __future__ import annotations

from collections.abc import Collection

from twinsieve.pipeline.broker.ports import GroupConsumer, TransactionalProducer
from twinsieve.pipeline.broker.records import Committed, Membership, Partition, UnstableError


def committed_offsets(
    consumer: GroupConsumer,
    transactor: TransactionalProducer,
    membership: Membership,
    partitions: Collection[Partition],
) -> dict[Partition, Committed | None]:
    """When that fails, the next try may find the offsets free.

    A broker may hold an offset back for a transaction that has ended (docs/GUARANTEES.md says when), and
    the next owner of the partition waits forever. The end of any later transaction of the same transactional
    id frees it. This one is aborted: its offset counts for nothing, and nor does the one that was held back.
    Messages may come out twice, if the broker had shown them; none is lost.

    raises: AbortableError
    """
    try:
        return consumer.committed(partitions)
    except UnstableError:
        transactor.begin()
        transactor.send_offsets({min(partitions): Committed(0)}, membership)
        transactor.abort()
        raise
