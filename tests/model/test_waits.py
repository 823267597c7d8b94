"""What keeps partitions from emitting is noted with its reason, until they emit again."""

from __future__ import annotations

from tests.driver import DUPLICATES, OUTPUT, World, texts
from tests.model.test_inputs_gone import pass_time
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.records import Partition


def test_a_deleted_output_is_the_reason_until_it_is_back() -> None:
    world = World(2)
    process = world.start("a")
    world.settle()
    world.cluster.delete(DUPLICATES)
    world.clock.sleep(2.0)  # the topics are checked once a second
    for number in range(2):
        world.produce("in", number, texts(10 * number, 10 * number + 5))
    pass_time(world, 20.0)
    assert process.worker is not None
    assert process.worker.waits.of.keys() == {Partition("in", 0), Partition("in", 1)}
    assert all("topic dup does not exist" in wait.why for wait in process.worker.waits.of.values())
    assert not process.worker.ready
    lines = process.worker.waits.lasting(2.0)
    assert len(lines) == 1
    assert lines[0].startswith("in[0], in[1]: ")
    world.cluster.create(NewTopic(DUPLICATES, 2))
    world.settle()
    assert process.worker.waits.of == {}
    assert process.worker.ready
    assert sum(len(world.cluster.values(OUTPUT, number)) for number in range(2)) == 10
