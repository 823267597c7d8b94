"""Messages that were judged, and that retention took before they were emitted, are counted once."""

from __future__ import annotations

from pathlib import Path

from tests.driver import World
from tests.memory.broker import CrashError
from tests.model.checker import check_complete, check_output, rebuild
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.index.ledger import GivenUp
from twinsieve.pipeline.worker.config import WorkerStep

IN = Partition("in", 0)


def test_a_loss_between_verdict_and_output_is_counted_once(
    tmp_path: Path,
) -> None:
    world = World(partitions=1)
    worker = world.start("w", roles="worker")
    index = world.start("i", roles="index", snapshots=str(tmp_path))

    def crash(step: str) -> None:
        if step == WorkerStep.BEGUN:
            raise CrashError("judged, and never emitted")

    world.settle()
    world.produce("in", 0, [b"%d" % n for n in range(7)])
    worker.hook = crash
    while worker.running:
        world.run(1)
    world.produce("in", 0, [b"later %d" % n for n in range(2)])
    world.cluster.log(IN).trim(5)
    world.clock.sleep(20.0)
    world.start("w", roles="worker")
    world.settle()
    truth = rebuild(world)
    check_complete(world, truth, check_output(world, truth))
    assert len(truth.given_up) == 5
    assert index.index is not None
    assert index.index.given_up == {GivenUp.RETENTION: 5}
    index.terminate()
    again = world.start("i", roles="index", snapshots=str(tmp_path))
    world.produce("in", 0, [b"last"])
    world.settle()
    assert again.index is not None
    assert again.index.given_up.total() == 0, "it has judged none of them"
