"""A copy of a cluster has the ids of its topics. Its processes write to the folder of the other ones, under the same names:
neither deletes a snapshot of the other, and each goes on from its own: what these cover is deleted in the log."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crash.test_restored_clusters import BEFORE, Drill
from tests.driver import Process
from tests.memory.backup import Backup

pytestmark = pytest.mark.matrix
QUIET_S = 1e9
"""One process writes no snapshot of its own accord."""


class Side:
    """One of the two clusters. own: names of the snapshots that it may delete"""

    def __init__(self, drill: Drill) -> None:
        self.drill = drill
        self.own: set[str] = set()

    def content(self) -> dict[str, bytes]:
        """The snapshots in the folder."""
        return {path.name: path.read_bytes() for path in self.drill.state("a").glob("app/*.snapshot")}

    def acts(self, act: Callable[[], object]) -> None:
        """While this cluster does something, the snapshots of the other one stay as they are."""
        before = self.content()
        act()
        after = self.content()
        assert {
            name: value for name, value in before.items() if name not in self.own
        }.items() <= after.items()
        self.own |= after.keys() - before.keys()

    def works(self, numbers: range, process: Process | None = None) -> None:
        """A process works and ends, one that is there or a new one."""
        worker = process or self.drill.start("a")
        self.acts(lambda: self.drill.write(numbers))
        self.acts(lambda: self.drill.stop(worker))

    def takes_over(self, process: Process) -> None:
        """One that judges is killed while another stands by."""
        process.kill()
        self.drill.world.clock.sleep(20.0)
        self.acts(lambda: self.drill.world.run(60))


@pytest.mark.parametrize("quiet", ["the first", "the copy"])
def test_neither_deletes_a_snapshot_of_the_other(quiet: str, tmp_path: Path) -> None:
    first, copy = (Side(Drill(tmp_path, shared=True, trims=True)) for _ in range(2))
    first.works(BEFORE)
    Backup(first.drill.world.cluster).restore(copy.drill.world.cluster)
    copy.drill.world.clock.sleep(20.0)
    copy.own |= first.own
    slow, fast = (first, copy) if quiet == "the first" else (copy, first)
    slow.works(range(30, 37))
    fast.works(range(100, 150))
    fast.works(range(150, 190))
    slow.works(range(40, 47))
    judging, standby = fast.drill.start("a"), fast.drill.start("b", snapshot_every_s=QUIET_S)
    fast.acts(lambda: fast.drill.world.run(60))
    slow.works(range(50, 57))
    fast.acts(lambda: fast.drill.write(range(200, 230)))
    fast.takes_over(judging)
    fast.works(range(230, 250), standby)
    slow.works(range(60, 67))
    for side in (slow, fast):
        assert len(side.own & side.content().keys()) <= 4
        side.drill.check()
