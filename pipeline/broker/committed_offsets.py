"""Committed offsets, even if the broker has forgotten to end the transaction that holds one of them back."""

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
    """Committed offset of each partition, None if there is none. If an offset is held back, this call fails
    and frees it, so that the next call may succeed.

    A broker may hold an offset back for a transaction that has ended (docs/GUARANTEES.md says when), and
    the next owner of the partition would wait forever. The end of any later transaction of the same
    transactional id frees the offset. So this function makes such a transaction and aborts it: neither its
    offset nor the one that was held back counts. Messages that the broker had already shown may come out
    twice; none is lost.

    raises: AbortableError
    """
    try:
        return consumer.committed(partitions)
    except UnstableError:
        transactor.begin()
        transactor.send_offsets({min(partitions): Committed(0)}, membership)
        transactor.abort()
        raise
