"""An index that stands still after it took the right to write, and wakes when another one has judged on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.driver import DECISIONS, DUPLICATES, LOG, Process, World, texts
from tests.model.checker import check_settled
from twinsieve.pipeline.broker.ports import no_hook

STEPS = [
    ("reader.end_offsets", 1),
    ("reader.end_offsets", 2),
    ("consumer.committed", 1),
    ("reader.beginning_offsets", 1),
]
"""What an index asks between the moment it takes the right to write and the moment it judges."""


class Freeze:
    """Once an index has the right to write, its n-th call of `step` takes 9 s, in which `meanwhile` happens."""

    def __init__(self, world: World, step: str, nth: int, meanwhile: Callable[[], None]) -> None:
        self.world = world
        self.step = step
        self.left = nth
        self.meanwhile = meanwhile
        self.writes = False
        self.happened = False

    def __call__(self, step: str) -> None:
        self.writes = self.writes or step == "broker.transactor"
        if self.writes and step == self.step and not self.happened:
            self.left -= 1
            if self.left == 0:
                self.happened = True
                self.world.clock.sleep(9.0)
                self.meanwhile()


def frozen(step: str, nth: int, *, slot: str, decisions_deleted: bool = False) -> tuple[World, Process]:
    """The first index has died; the next one freezes before it judges, a third one judges on."""
    world = World(partitions=1)
    world.start("w", roles="worker")
    first = world.start("first", roles="index")
    world.produce("in", 0, texts(0, 30))
    world.settle()
    first.kill()
    world.clock.sleep(9.0)
    if decisions_deleted:
        world.cluster.log(DECISIONS).trim(world.cluster.log(DECISIONS).end)

    def others_judge() -> None:
        world.start(slot, roles="index")
        world.produce("in", 0, texts(30, 60))
        others = [process for process in world.processes if process is not second]
        for _ in range(150):
            for process in others:
                process.step()

    freeze = Freeze(world, step, nth, others_judge)
    second = world.start("second", roles="index", hook=freeze)
    for _ in range(60):
        second.step()
        if freeze.happened:
            break
    assert freeze.happened, f"{step} was not reached {nth} times"
    second.hook = no_hook
    world.settle()
    return world, second


@pytest.mark.parametrize(("step", "nth"), STEPS)
def test_it_follows_again_and_never_says_that_decisions_were_lost(step: str, nth: int) -> None:
    world, second = frozen(step, nth, slot="third")
    assert not world.stops
    assert second.running
    world.processes[-1].kill()
    world.produce("in", 0, texts(20, 70))
    check_settled(world)
    assert second.index is not None
    assert second.index.live


@pytest.mark.parametrize(("step", "nth"), STEPS)
def test_it_passes_over_nothing_that_the_other_one_has_recorded(step: str, nth: int) -> None:
    world, second = frozen(step, nth, slot="third", decisions_deleted=True)
    assert not world.stops
    world.processes[-1].kill()
    world.produce("in", 0, texts(30, 60))
    world.settle()
    assert second.index is not None
    assert second.index.live
    came = world.emitted()
    again = world.emitted(DUPLICATES)
    assert came == list(range(60))
    assert again == list(range(60, 90)), "it knows what the other one kept"


@pytest.mark.parametrize(("step", "nth"), STEPS)
def test_it_ends_without_a_word_of_loss_when_its_own_slot_was_taken(step: str, nth: int) -> None:
    world, second = frozen(step, nth, slot="second")
    world.run(30)
    assert not world.stops
    assert not second.running
    assert world.cluster.log(LOG).end
