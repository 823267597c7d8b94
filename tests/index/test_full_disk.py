"""How much an index may still keep while its disk takes no segments: what `state.memory` and the machine allow."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.memory.broker import ManualClock
from twinsieve.pipeline.index.full_disk import FullDisk, Room
from twinsieve.stages.window.segments import InMemory

SEGMENT = 1_000
ROOM = 70
"""Messages for which the open segment has room."""


class Disk:
    """A full disk, beside a sieve with this many sealed segments in memory."""

    def __init__(self, sealed: int, memory: int = 0, spare: int | None = None) -> None:
        self.sealed = sealed
        self.writer = SimpleNamespace(refuses=True)
        self.notices: list[str] = []
        self.log_lines: list[str] = []
        self.clock = ManualClock()
        self.full = FullDisk(
            cast("Any", self), cast("Any", self.writer), memory, lambda: spare,
            self.clock, self.notices, self.log_lines,
        )  # fmt: skip

    def in_memory(self) -> InMemory:
        return InMemory(self.sealed, (self.sealed + 1) * SEGMENT, SEGMENT, ROOM)


@pytest.mark.parametrize(
    ("sealed", "memory", "spare", "is_last"),
    [
        (3, 5 * SEGMENT, None, False),
        (4, 5 * SEGMENT, None, True),
        (40, 0, None, False),
        (40, 0, SEGMENT, False),
        (40, 0, SEGMENT - 1, True),
        (1, 0, -SEGMENT, True),
        (1, 9 * SEGMENT, SEGMENT - 1, True),
        (40, 9 * SEGMENT, 9 * SEGMENT, True),
    ],
)
def test_the_next_segment_is_the_last_where_it_passes_one_of_both_limits(
    sealed: int, memory: int, spare: int | None, is_last: bool
) -> None:
    disk = Disk(sealed, memory, spare)
    assert disk.full.look() == Room(ROOM, is_last)
    assert disk.full.unwritten == sealed


def test_a_window_of_one_segment_has_nothing_to_write() -> None:
    disk = Disk(0, memory=1, spare=0)
    assert disk.full.look() is None
    assert not disk.full.is_full


def test_a_disk_that_takes_one_again_is_full_until_the_others_are_written() -> None:
    disk = Disk(4, 5 * SEGMENT)
    disk.full.look()
    assert disk.full.pause()
    assert not disk.full.pause(), "it is paused already"
    disk.full.has_handed_over = True
    disk.writer.refuses = False
    assert disk.full.look() == Room(ROOM, is_last=True), "none of them is written yet"
    disk.sealed = 3
    assert disk.full.look() == Room(ROOM, is_last=False)
    disk.clock.sleep(90.0)
    disk.sealed = 1
    assert disk.full.look() is None
    assert (disk.full.unwritten, disk.full.paused_ms, disk.full.has_handed_over) == (0, None, False)
    assert disk.full.remark == ""
    assert "90 s" in disk.log_lines[0]
    assert "retention" in disk.notices[0]
