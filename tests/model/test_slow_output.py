"""Blocks and transactions are bounded by the bytes of their originals, and become smaller where they fail."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from tests.driver import DUPLICATES, LOG, OUTPUT, SCHEME, WORKER, World
from tests.memory.clients import MemoryTransactionalProducer
from tests.memory.received import listed
from tests.model.checker import check_settled
from twinsieve.pipeline.broker.records import AbortableError, Copies, Messages, Partition
from twinsieve.pipeline.wire.block import decode_block
from twinsieve.pipeline.worker import asks as asks_module
from twinsieve.pipeline.worker import worker as worker_module

_KIB = 1 << 10
_BOUND = 8 * _KIB
"""Of one transaction; of one block half of it."""
_CONFIG = replace(WORKER, poll_messages=40, block_bytes=900 << 10, max_pending=200, max_emitted=1_000)


class SlowOutput:
    """An output that takes `rate` bytes a second of the manual clock.

    sent: bytes of the originals of each transaction that was begun; refusing: it takes nothing
    """

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch, rate: float = 1e12) -> None:
        self.rate, self.refusing = rate, False
        self.sent: list[int] = []
        begin, send = MemoryTransactionalProducer.begin, MemoryTransactionalProducer.send

        def begun(producer: MemoryTransactionalProducer) -> None:
            self.sent.append(0)
            begin(producer)

        def slowly(
            producer: MemoryTransactionalProducer,
            topic: str,
            partition: int | None,
            messages: Messages | Copies,
        ) -> None:
            if topic in (OUTPUT, DUPLICATES):
                size = sum(len(value or b"") for value in listed([messages]).values)
                self.sent[-1] += size
                world.clock.sleep(size / self.rate)
                if self.refusing:
                    raise AbortableError(f"{topic}: not enough replicas")
            send(producer, topic, partition, messages)

        monkeypatch.setattr(MemoryTransactionalProducer, "begin", begun)
        monkeypatch.setattr(MemoryTransactionalProducer, "send", slowly)


@pytest.fixture(autouse=True)
def small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "MAX_EMITTED_BYTES", _BOUND)
    monkeypatch.setattr(asks_module, "MAX_ASKED_BYTES", _BOUND // 2)


def large(count: int, size: int = _KIB, first: int = 0) -> list[bytes | None]:
    """Texts that differ, each of about that size."""
    return [b"%06d " % row + b"x" * size for row in range(first, first + count)]


def settled_well(world: World, count: int) -> None:
    check_settled(world)
    assert world.emitted() == list(range(count))


def asked_rows(world: World) -> list[tuple[int, list[int]]]:
    """Session and offsets of each block that asks for any."""
    blocks = [
        decode_block(entry.value or b"", SCHEME, "block") for _, entry in world.cluster.log(LOG).visible()
    ]
    return [(block.session, [int(row) for row in block.offsets]) for block in blocks if len(block)]


def test_blocks_and_transactions_keep_within_their_bytes_of_originals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(partitions=1)
    output = SlowOutput(world, monkeypatch)
    values = large(30) + large(40, 10, 30) + large(2, 20 * _KIB, 70)
    world.start("a", worker_config=_CONFIG)
    world.produce("in", 0, values)
    settled_well(world, len(values))
    blocks = asked_rows(world)
    sizes = [sum(len(values[row] or b"") for row in rows) for _, rows in blocks]
    assert all(size <= _BOUND // 2 or len(rows) == 1 for size, (_, rows) in zip(sizes, blocks, strict=True))
    assert [row for _, rows in blocks for row in rows] == list(range(len(values))), "in order, none twice"
    largest = 20 * _KIB + 100
    assert max(output.sent) <= _BOUND + largest
    assert any(len(rows) > 5 for _, rows in blocks), "small ones go together"


def test_what_takes_longer_than_a_transaction_may_goes_out_in_smaller_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(partitions=1)
    # In the time of a transaction it takes one message and a half.
    output = SlowOutput(world, monkeypatch, rate=1.5 * _KIB / world.cluster.transaction_timeout_s)
    world.start("a", worker_config=_CONFIG)
    world.produce("in", 0, large(30))
    settled_well(world, 30)
    assert max(output.sent) > 3 * _KIB, "the first ones are too large"


def test_what_fails_repeatedly_is_asked_for_in_ever_smaller_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(partitions=1)
    output = SlowOutput(world, monkeypatch)
    output.refusing = True
    world.start("a", worker_config=_CONFIG)
    world.produce("in", 0, large(60))
    while sum(map(bool, output.sent)) < 6:
        world.run(1)
    halves = [after <= before for before, after in pairwise(size for size in output.sent if size)]
    assert all(halves)
    last = asked_rows(world)[-1]
    assert len(last[1]) == 1
    output.refusing, output.sent = False, []
    settled_well(world, 60)
    world.produce("in", 0, large(30, first=60))
    world.settle()
    assert max(output.sent) > _BOUND // 2, "as large as ever, after a while"


def test_a_partition_that_takes_small_steps_leaves_the_others_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(partitions=2)
    output = SlowOutput(world, monkeypatch)
    send = MemoryTransactionalProducer.send

    def refuse(
        producer: MemoryTransactionalProducer,
        topic: str,
        partition: int | None,
        messages: Messages | Copies,
    ) -> None:
        if (topic, partition) == (OUTPUT, 1):
            raise AbortableError("out[1]: not enough replicas")
        send(producer, topic, partition, messages)

    monkeypatch.setattr(MemoryTransactionalProducer, "send", refuse)
    world.start("a", worker_config=_CONFIG)
    world.produce("in", 1, large(3, first=100))
    world.run(40)
    world.produce("in", 0, large(30))
    for _ in range(300):
        world.run(1)
    assert world.emitted(OUTPUT, 0) == list(range(30))
    assert max(output.sent) > _BOUND // 2
    assert not world.cluster.values(OUTPUT, 1)
    assert world.stops == []
    assert Partition("in", 1) in world.processes[0].worker.refused  # type: ignore[union-attr]
