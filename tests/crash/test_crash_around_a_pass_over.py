"""The index crashes, once at each of its steps, while it passes over what never came out: the next one does the same.

Whatever it was that keeps the messages in: copies come out, once, and every restore agrees.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.crash.test_crash_at_every_step import Trap, crash
from tests.driver import DEAD, INDEX, OUTPUT, WORKER, World
from tests.model.checker import check_complete, check_output, rebuild
from tests.model.test_inputs_gone import LONG_S, pass_time
from tests.model.test_passed_over import recreate
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.index.config import IndexStep
from twinsieve.pipeline.index.ledger import GivenUp

pytestmark = pytest.mark.matrix

LOST: list[bytes | None] = [b"x" * 900, b"y" * 900]
BOTH = replace(WORKER, topics=("in", "in2"))
IN, IN2 = Partition("in", 0), Partition("in2", 0)


def trim(world: World) -> None:
    world.trim(IN, world.cluster.log(IN).end)


def skip(world: World) -> None:
    world.move_offset(IN, world.cluster.log(IN).end)


def compact(world: World) -> None:
    world.produce("in", 0, [b"newer"])
    world.compact(IN, [1, 2])


def refuse(world: World) -> None:
    world.limit(OUTPUT, 500)


CAUSES: dict[GivenUp, Callable[[World], None]] = {
    GivenUp.RETENTION: trim,
    GivenUp.RESET: skip,
    GivenUp.RECREATED: lambda world: recreate(world, 1),
    GivenUp.GONE: lambda world: world.delete("in2"),
    GivenUp.COMPACTED: compact,
    GivenUp.REFUSED: refuse,
}


@pytest.mark.parametrize("why", GivenUp)
@pytest.mark.parametrize("step", [step for step in IndexStep if step is not IndexStep.RESTORED])
def test_a_crash_while_messages_are_given_up_changes_nothing(why: GivenUp, step: str, tmp_path: Path) -> None:
    world = World(partitions=1, topics=("in", "in2"))
    often = replace(INDEX, snapshot_every_s=0.0)
    worker = world.start("w", roles="worker", worker_config=BOTH)
    index = world.start("i", roles="index")
    world.produce("in", 0, [b"first"])
    world.settle()
    world.produce("in2" if why is GivenUp.GONE else "in", 0, LOST)
    for process in (worker, worker, index, index):
        process.step()
    world.kill_all()
    CAUSES[why](world)
    config = replace(WORKER, topics=("in",)) if why is GivenUp.GONE else BOTH

    def start(slot: str) -> None:
        world.start(slot, worker_config=config, index_config=often, snapshots=str(tmp_path))

    start("a")
    if why is GivenUp.GONE:
        pass_time(world, LONG_S)
    trap = Trap(step, 1, crash)
    world.processes[-1].hook = trap
    # The first block that goes on is behind a start block, which is judged by itself.
    trap.left = 1 if why is GivenUp.GONE else 2
    world.produce("in", 0, [b"other"])
    for _ in range(100):
        world.run(1)
    assert trap.sprung, f"{step} was never reached"
    world.clock.sleep(20.0)
    start("a")
    if why is GivenUp.GONE:
        pass_time(world, LONG_S)
    world.settle()
    world.limit(OUTPUT, 5_000)
    world.produce("in", 0, [*LOST, *LOST])
    world.settle()
    came = [value for value in world.cluster.values(OUTPUT) if value in LOST]
    assert sorted(filter(None, came)) == LOST
    assert world.cluster.values(DEAD) == (LOST if why is GivenUp.REFUSED else [])
    world.kill_all()
    start("b")
    world.produce("in", 0, LOST)
    world.settle()
    assert [value for value in world.cluster.values(OUTPUT) if value in LOST] == came
    truth = rebuild(world)
    check_complete(world, truth, check_output(world, truth, in_order=False))
    assert world.stops == []
