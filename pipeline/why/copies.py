"""Finds what an input message came out as, by the header that names its origin."""

from __future__ import annotations

from collections.abc import Iterator

from twinsieve.pipeline.broker.admin import TopicInfo
from twinsieve.pipeline.broker.excerpts import Excerpts, Row
from twinsieve.pipeline.broker.input_position import InputPosition
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.wire.headers import origin_of

_NEAR = 64


def copy_of(excerpts: Excerpts, topic: TopicInfo, wanted: InputPosition) -> tuple[InputPosition, Row] | None:
    """The message of an output topic that this input message came out as, with its position there; None if
    none is found.

    In each partition of the topic, the messages of one input partition stand in the order of their offsets,
    so a search by halves finds it. It may miss a message that came out behind later ones of its partition:
    one that `reset` had skipped, or one that was redriven.

    raises: as `Excerpts.rows`
    """
    numbers = list(range(topic.partitions))
    # Where both topics have as many partitions, a message keeps its number.
    for number in sorted(numbers, key=lambda number: number != wanted.partition.number):
        partition = Partition(topic.name, number)
        row = _in_partition(excerpts, partition, wanted)
        if row is not None:
            return InputPosition(partition, row.offset), row
    return None


def next_copy(
    excerpts: Excerpts, after: InputPosition, wanted: InputPosition
) -> tuple[InputPosition, Row] | None:
    """The first message behind `after`, in the same partition, that names `wanted` as its origin.

    raises: as `Excerpts.rows`
    """
    _, end = excerpts.bounds(after.partition)
    for row, offset in _own(excerpts, after.partition, wanted, after.offset + 1, end):
        if offset == wanted.offset:
            return InputPosition(after.partition, row.offset), row
    return None


def _in_partition(excerpts: Excerpts, partition: Partition, wanted: InputPosition) -> Row | None:
    low, high = excerpts.bounds(partition)
    while high - low > _NEAR:
        middle = (low + high) // 2
        row, offset = next(_own(excerpts, partition, wanted, middle, high), (None, wanted.offset + 1))
        if row is not None and offset == wanted.offset:
            return row
        if row is not None and offset < wanted.offset:
            low = row.offset + 1
        else:
            high = middle
    for row, offset in _own(excerpts, partition, wanted, low, high):
        if offset == wanted.offset:
            return row
    return None


def _own(
    excerpts: Excerpts, partition: Partition, wanted: InputPosition, first: int, end: int
) -> Iterator[tuple[Row, int]]:
    """The messages in [first, end) that come from the wanted one's partition, each with its offset there."""
    for row in excerpts.rows(partition, first, end):
        origin = origin_of(row.headers)
        if origin is not None and origin.partition == wanted.partition:
            yield row, origin.offset
