"""A worker takes no answer but the one to what it asked."""

from __future__ import annotations

import numpy as np
import pytest

from tests.driver import SCHEME, VERDICTS, Process, World
from tests.model.checker import check_settled
from twinsieve.pipeline.broker.records import Messages, Partition
from twinsieve.pipeline.wire.ruling import Result, Ruling, Source, encode_ruling
from twinsieve.stages.contract import Kind, Verdicts

IN = Partition("in", 0)


def waiting() -> tuple[World, Process, Process]:
    """A worker that has asked about messages 3, 4 and 5, and an index that does nothing yet."""
    world = World(partitions=1)
    index = world.start("i", roles="index")
    worker = world.start("w", roles="worker")
    world.produce("in", 0, [b"a", b"b", b"c"])
    world.settle()
    world.produce("in", 0, [b"d", b"e", b"f"])
    while not worker.worker or not worker.worker.pending_rows[IN]:
        worker.step()
    return world, worker, index


@pytest.mark.parametrize(
    ("first", "end", "rows"),
    [(0, 3, 3), (3, 5, 3), (4, 6, 3), (3, 6, 2), (3, 6, 4), (6, 9, 3)],
    ids=["of before", "too short", "too late", "of fewer rows", "of more rows", "of what comes next"],
)
def test_an_answer_that_fits_no_question_is_not_taken(first: int, end: int, rows: int) -> None:
    world, worker, _ = waiting()
    session = next(world.sessions) - 1
    # Messages that are said to be out already would be dropped without a word.
    sources = np.full(rows, Source.REPLAYED, np.uint8)
    verdicts = Verdicts.blank(rows, fill={"kinds": Kind.REPLAYED})
    wrong = Ruling(99, session, Result.JUDGED, first, end, sources, verdicts)
    messages = Messages()
    messages.add(None, encode_ruling(wrong, SCHEME)[1])
    world.cluster.write(Partition(VERDICTS, 0), messages)
    for _ in range(5):
        worker.step()
    assert any("not what was asked" in notice for notice in worker.notices), worker.notices
    check_settled(world)
    assert len(world.cluster.values("out")) == 6


def test_an_answer_to_nothing_is_not_taken() -> None:
    world, worker, _ = waiting()
    world.settle()
    session = next(world.sessions) - 1
    wrong = Ruling(99, session, Result.JUDGED, 6, 6)
    messages = Messages()
    messages.add(None, encode_ruling(wrong, SCHEME)[1])
    world.cluster.write(Partition(VERDICTS, 0), messages)
    world.run(3)
    assert any("not what was asked" in notice for notice in worker.notices), worker.notices
