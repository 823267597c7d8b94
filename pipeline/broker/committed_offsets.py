"""Committed offsets of input partitions, without those that somebody else has committed."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from twinsieve.pipeline.broker.admin import Admin
from twinsieve.pipeline.broker.mark import on_record
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.ports import GroupConsumer, TransactionalProducer
from twinsieve.pipeline.broker.records import (
    AbortableError,
    BrokerError,
    Committed,
    Membership,
    Partition,
    UnstableError,
)


def committed_offsets(
    consumer: GroupConsumer,
    transactor: TransactionalProducer,
    membership: Membership,
    partitions: Collection[Partition],
    record: str = "",
) -> dict[Partition, Committed | None]:
    """Committed offset of each partition, None if there is none. If an offset is held back, this call fails
    and frees it, so that the next call may succeed.

    A broker may hold an offset back for a transaction that has ended (docs/GUARANTEES.md says when), and
    the next owner of the partition would wait forever. The end of any later transaction of the same
    transactional id frees the offset. So this function makes such a transaction and aborts it: neither its
    offset nor the one that was held back counts. Messages that the broker had already shown may come out
    twice; none is lost.

    record: as for `TransactionalProducer.send_offsets`
    raises: AbortableError
    """
    try:
        return consumer.committed(partitions)
    except UnstableError:
        _free(transactor, membership, partitions, record)
        raise


class Recorded(NamedTuple):
    """Where an input partition continues.

    committed: the offset that twinsieve committed last, None if there is none
    found: what the group has; it differs from `committed` if somebody else has committed it
    has_record: whether the second group has `committed` too
    """

    committed: Committed | None
    found: Committed | None
    has_record: bool

    @property
    def is_foreign(self) -> bool:
        """Whether somebody else has moved or deleted the offset."""
        return self.committed != self.found


def recorded_offsets(
    consumer: GroupConsumer,
    transactor: TransactionalProducer,
    membership: Membership,
    partitions: Collection[Partition],
    admin: Admin,
    record: str,
) -> dict[Partition, Recorded]:
    """Where each partition continues. As `committed_offsets`, with the offsets of the group `record`.

    The order of the two requests counts. A worker that was replaced may have an open transaction with offsets
    that the group accepted before. Once the first request is answered, that transaction has ended, or has
    begun to; so the second one returns its offset, or is refused.

    raises: AbortableError
    """
    found = committed_offsets(consumer, transactor, membership, partitions, record)
    try:
        records = admin.group_offsets(record, partitions)
    except AbortableError:
        raise
    except BrokerError as error:
        if error.retryable:
            _free(transactor, membership, partitions, record)
        raise AbortableError(str(error)) from error
    return {
        partition: Recorded(own, found[partition], own == records.get(partition))
        for partition in partitions
        for own in [on_record(found[partition], records.get(partition))]
    }


def read_recorded(admin: Admin, group: str, *, stable: bool = True) -> dict[Partition, Committed]:
    """Where each partition of a group of workers continues, for a caller that is no member of it.

    stable: as for `Admin.group_offsets`
    raises: as `Admin.group_offsets`
    """
    found = admin.group_offsets(group, stable=stable)
    records = admin.group_offsets(Names.emitted(group), stable=stable)
    both = {part: on_record(found.get(part), records.get(part)) for part in found.keys() | records.keys()}
    return {partition: committed for partition, committed in both.items() if committed is not None}


def _free(
    transactor: TransactionalProducer,
    membership: Membership,
    partitions: Collection[Partition],
    record: str,
) -> None:
    transactor.begin()
    transactor.send_offsets({min(partitions): Committed(0)}, membership, record)
    transactor.abort()
