"""How an index ends."""

from __future__ import annotations

import pytest

from tests.driver import World
from tests.memory.broker import MemoryBroker
from twinsieve.pipeline.broker.records import AbortableError


def test_clients_are_closed_though_leaving_the_group_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = []
    close = MemoryBroker.close
    monkeypatch.setattr(MemoryBroker, "close", lambda self: (closed.append(self), close(self)))
    world = World(partitions=1)
    process = world.start("a")
    world.run(20)
    index = process.index
    assert index is not None
    assert index.live

    def refuse(step: str) -> None:
        if step == "consumer.leave":
            raise AbortableError("the coordinator does not answer")

    process.hook = refuse
    with pytest.raises(AbortableError, match="coordinator"):
        index.close()
    assert len(closed) == 1
