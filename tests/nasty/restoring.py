"""A cluster that is put back to an earlier moment, while the state folders of its processes stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.memory.backup import Backup

if TYPE_CHECKING:
    from tests.nasty.chaos import NastyChaos

_MOST_ACTIONS = 60


def put_back(chaos: NastyChaos) -> None:
    """The disks are copied, the app goes on for a while, and all of that is undone. An app that is seeded is spared: the
    end of a seed is not on record."""
    if chaos.seeds:
        return
    backup = Backup(chaos.world.cluster)
    undone = (chaos.produce, chaos.step, chaos.step, chaos.step, chaos.kill, chaos.revive, chaos.wait)
    for _ in range(chaos.random.randint(1, _MOST_ACTIONS)):
        chaos.random.choice(undone)()
    chaos.all_down()
    backup.restore(chaos.world.cluster)
    # Seeds that ran since the backup are undone with the cluster, so nothing has to be left of them.
    chaos.seeds.clear()
    chaos.world.clock.sleep(20.0)
    chaos.world.cluster.tick()
    chaos.revive()
