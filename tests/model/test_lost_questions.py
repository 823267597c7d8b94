"""A question that the log has lost is asked again."""

from __future__ import annotations

from tests.driver import LOG, World
from tests.model.checker import check_settled
from twinsieve.pipeline.broker.records import Partition

IN = Partition("in", 0)


def test_what_was_asked_and_never_judged_is_asked_again_after_a_while() -> None:
    world = World(partitions=1)
    worker = world.start("w", roles="worker")
    index = world.start("i", roles="index")
    world.settle()
    world.produce("in", 0, [b"a", b"b", b"a"])
    while not worker.worker or not worker.worker.pending_rows.get(IN):
        worker.step()
    judged = index.index.state.next_offset if index.index is not None else 0
    assert world.cluster.log(LOG).end > judged
    assert not world.truncate(LOG, judged)
    check_settled(world)
    assert any("asking again" in notice for notice in worker.notices), worker.notices
