"""The copy of an input message in an output topic is found by halves."""

from __future__ import annotations

import random

import pytest

from tests.memory.broker import ManualClock, MemoryBroker, MemoryCluster
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.excerpts import Excerpts
from twinsieve.pipeline.broker.input_position import InputPosition
from twinsieve.pipeline.broker.records import Messages, Partition
from twinsieve.pipeline.why.copies import copy_of

INPUTS = [Partition("posts", 0), Partition("posts", 1), Partition("news", 0)]


@pytest.mark.parametrize("seed", range(4))
def test_every_copy_is_found_and_nothing_else(seed: int) -> None:
    """In two partitions, in the order of each input partition, between messages of others; transactions end."""
    dice = random.Random(seed)
    cluster = MemoryCluster(ManualClock())
    cluster.create(NewTopic("out", 2))
    transactor = MemoryBroker(cluster).transactor("t")
    written: dict[InputPosition, tuple[int, bytes]] = {}
    offsets = dict.fromkeys(INPUTS, 0)
    for number in range(60):
        transactor.begin()
        for _ in range(dice.randrange(1, 20)):
            source = dice.choice(INPUTS[: dice.choice([1, 3])])
            offsets[source] += dice.randrange(1, 4)
            at, value = InputPosition(source, offsets[source]), b"%d" % dice.randrange(1 << 40)
            partition = dice.randrange(2)
            messages = Messages()
            messages.add(None, value, [("twinsieve-origin", str(at).encode())] if dice.random() < 0.9 else [])
            transactor.send("out", partition, messages)
            if messages.headers[0] and number % 7:
                written[at] = partition, value
        if number % 7:
            transactor.commit()
        else:
            transactor.abort()
    info = MemoryBroker(cluster).admin().topics(["out"])["out"]
    assert info is not None
    for source, last in offsets.items():
        for offset in range(0, last + 3, 5 if seed else 1):
            excerpts = Excerpts(MemoryBroker(cluster), cluster.clock, 10_000)
            found = copy_of(excerpts, info, InputPosition(source, offset))
            expected = written.get(InputPosition(source, offset))
            assert (found[1].value if found is not None else None) == (expected[1] if expected else None)
            assert excerpts.records < 400
