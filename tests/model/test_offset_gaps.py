"""A compacted input may leave any number of offsets unused between two messages."""

from __future__ import annotations

import pytest

from tests.driver import OUTPUT, World, texts
from tests.memory.log import PartitionLog
from twinsieve.pipeline.broker.records import NO_EPOCH, Partition, Records
from twinsieve.pipeline.wire.block import MAX_SPAN

_BEFORE = 3


class Gapped(PartitionLog):
    """A log whose first three records stand before a gap, and all others from the offset `behind` on."""

    def __init__(self, behind: int) -> None:
        super().__init__()
        self._gap = behind - _BEFORE

    def _offset(self, place: int) -> int:
        is_behind = place >= _BEFORE and len(self.entries) > _BEFORE
        return place + self._gap if is_behind else place

    @property
    def end(self) -> int:
        return self._offset(len(self.entries))

    def read(
        self, partition: Partition, position: int, most: int, before: int | None = None
    ) -> tuple[Records, int]:
        plain = PartitionLog()
        plain.entries = self.entries
        place = position if position <= _BEFORE else max(_BEFORE, position - self._gap)
        records, place = plain.read(partition, place, most)
        records.columns.offsets[:] = [self._offset(offset) for offset in records.offsets]
        return records, self._offset(place)

    def epoch_before(self, offset: int) -> int:
        return 0 if offset else NO_EPOCH


@pytest.mark.parametrize("waiting", [True, False])
@pytest.mark.parametrize("behind", [MAX_SPAN, MAX_SPAN + 1, MAX_SPAN + _BEFORE + 1, 2 * MAX_SPAN + 9])
def test_a_gap_of_any_length_stops_nobody(behind: int, waiting: bool) -> None:
    """waiting: all messages are there when the worker begins, so that one poll has both sides of the gap"""
    world = World(partitions=1)
    world.cluster.topics["in"].logs[0] = Gapped(behind)
    world.produce("in", 0, texts(0, 3))
    if not waiting:
        world.start("a")
        world.settle()
    world.produce("in", 0, texts(3, 7))
    if waiting:
        world.start("a")
    world.settle()
    assert world.stops == []
    assert world.cluster.values(OUTPUT) == texts(0, 7)
    assert world.emitted() == [0, 1, 2, *range(behind, behind + 4)]
    world.kill_all()
    world.start("b")
    world.produce("in", 0, texts(5, 8))
    world.settle()
    assert world.cluster.values(OUTPUT) == texts(0, 8)
    assert world.stops == []
