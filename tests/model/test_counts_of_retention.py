"""What retention took is counted once: before it was judged, and after."""

from __future__ import annotations

from tests.driver import OUTPUT, World, texts
from tests.model.test_passed_over import judged_not_emitted, trim
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.index.ledger import GivenUp
from twinsieve.pipeline.service.metrics import Metrics

IN = Partition("in", 0)


def test_offsets_that_retention_took_are_counted_and_logged_once() -> None:
    world = World(partitions=1)
    world.start("a")
    world.produce("in", 0, texts(0, 10))
    world.settle()
    world.kill_all()
    world.produce("in", 0, texts(10, 30))
    world.cluster.log(IN).trim(world.cluster.log(IN).beginning + 15)
    counted, said = [], []
    for slot in ("w", "v"):
        # The first has no index, begins again and again, and is killed.
        process = world.start(slot, roles="worker")
        if slot == "v":
            world.start("j", roles="index")
            world.settle()
        else:
            world.run(900)
            world.kill_all()
        assert process.worker is not None
        counted.append(process.worker.trimmed)
        said.append([one for one in process.notices if "retention" in one])
    assert counted == [0, 5]
    assert said == [[], [f"{IN}: retention deleted 5 messages before they were judged"]]


def test_messages_that_were_judged_and_that_retention_took_are_counted() -> None:
    world = judged_not_emitted([b"x", b"y"])
    trim(world)
    world.produce("in", 0, [b"z"])
    process = world.start("a")
    world.settle()
    assert world.cluster.values(OUTPUT) == [b"first", b"z"]
    assert process.index is not None
    metrics = Metrics(world.clock)
    for _ in range(2):
        metrics.count_index(process.index)
        given_up = {
            reason: metrics.registry.get_sample_value(
                "twinsieve_index_given_up_messages_total", {"reason": reason}
            )
            for reason in GivenUp
        }
        assert given_up == dict.fromkeys(GivenUp, 0) | {GivenUp.RETENTION: 2}
