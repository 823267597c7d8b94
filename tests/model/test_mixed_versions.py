"""A rolling upgrade: processes of two format versions side by side. Who is not understood waits; nobody ends."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from types import ModuleType

import pytest

from tests.driver import DECISIONS, LOG, OUTPUT, SCHEME, Process, World, texts
from tests.model.checker import check_settled
from twinsieve.pipeline.broker.records import Messages
from twinsieve.pipeline.index import follower
from twinsieve.pipeline.index import transaction as index_record
from twinsieve.pipeline.wire.block import Block, encode_block
from twinsieve.pipeline.wire.frame import ENVELOPE_BYTES, VERSION, What, seal
from twinsieve.pipeline.wire.ruling import Result, Ruling, decode_ruling, encode_ruling
from twinsieve.pipeline.worker import asks as worker_asks

NEWER = VERSION + 1


def resealed(data: bytes, version: int) -> bytes:
    """The same record as a program of another version would seal it."""
    head, content = (
        data[:4] + version.to_bytes(2, "little") + data[6 : ENVELOPE_BYTES - 4],
        data[ENVELOPE_BYTES:],
    )
    return head + zlib.crc32(content, zlib.crc32(head)).to_bytes(4, "little") + content


def newer_block(block: Block, scheme: bytes) -> bytes:
    return resealed(encode_block(block, scheme), NEWER)


def newer_answer(ruling: Ruling, scheme: bytes) -> tuple[bytes, bytes]:
    decision, answer = encode_ruling(ruling, scheme)
    return decision, resealed(answer, NEWER)


def newer_decision(ruling: Ruling, scheme: bytes) -> tuple[bytes, bytes]:
    decision, answer = encode_ruling(ruling, scheme)
    return resealed(decision, NEWER), answer


def read_by_newer(what: What, data: bytes, scheme: bytes, where: str) -> Ruling:
    """What a newer program reads in a decision of its own version."""
    return decode_ruling(what, resealed(data, VERSION), scheme, where)


def uses(
    process: Process, monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str, encode: object
) -> Callable[[], None]:
    """Let one process have another function of that name in a module; returns what ends that."""
    step, changed = process.step, True

    def stepped(timeout_s: float = 0.1) -> None:
        with monkeypatch.context() as patch:
            if changed:
                patch.setattr(module, name, encode)
            step(timeout_s)

    def end() -> None:
        nonlocal changed
        changed = False

    monkeypatch.setattr(process, "step", stepped)
    return end


def whole(world: World, count: int) -> None:
    """Every message came out, and a restore of the record says the same."""
    check_settled(world)
    assert sum(len(world.cluster.values(OUTPUT, number)) for number in range(2)) == count
    world.kill_all()
    heir = world.start("z")
    world.run(100)
    assert heir.index is not None
    assert heir.index.live
    assert not world.stops


def test_a_newer_worker_beside_this_index_waits_and_ends_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(partitions=2)
    world.start("a")
    world.produce("in", 0, texts(0, 5))
    world.produce("in", 1, texts(5, 10))
    world.settle()
    newer = world.start("b", roles="worker")
    upgraded = uses(newer, monkeypatch, worker_asks, "encode_block", newer_block)
    world.run(30)
    world.produce("in", 0, texts(10, 15))
    world.produce("in", 1, texts(15, 20))
    world.run(200)
    assert not world.stops
    assert all(process.running for process in world.processes)
    index = world.processes[0].index
    assert index is not None
    assert any(f"format version {NEWER}" in notice for notice in index.notices)
    assert any("another version" in notice for notice in newer.notices)
    assert sum(len(world.cluster.values(OUTPUT, number)) for number in range(2)) == 15, (
        "the other one goes on"
    )
    refused = [ruling for ruling in recorded(world) if ruling.result is Result.FOREIGN]
    assert refused
    assert all(ruling.session for ruling in refused)
    upgraded()
    world.settle()
    whole(world, 20)


def recorded(world: World) -> list[Ruling]:
    visible = world.cluster.log(DECISIONS).visible()
    return [decode_ruling(What.DECISION, entry.value or b"", SCHEME, "") for _, entry in visible]


def test_this_worker_waits_beside_a_newer_index_until_the_upgrade(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(partitions=2)
    world.start("i", roles="index")
    worker = world.start("w", roles="worker")
    with monkeypatch.context() as patch:
        patch.setattr(index_record, "encode_ruling", newer_answer)
        world.produce("in", 0, texts(0, 10))
        world.run(200)
        assert not world.stops
        assert worker.running
        assert any("another version" in notice for notice in worker.notices)
        assert not world.cluster.values(OUTPUT)
    world.settle()
    whole(world, 10)


def test_a_standby_that_cannot_follow_newer_decisions_ends_itself_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(partitions=1)
    newer = world.start("a")
    world.run(20)
    uses(newer, monkeypatch, index_record, "encode_ruling", newer_decision)
    # When the standby ends, it leaves the group. The index joins again, and reads its own decisions.
    uses(newer, monkeypatch, follower, "decode_ruling", read_by_newer)
    standby = world.start("b", roles="index")
    world.run(10)
    world.produce("in", 0, texts(0, 10))
    world.settle()
    world.run(20)
    (stop,) = world.stops
    assert not standby.running
    assert "run the program version that wrote it" in stop
    world.produce("in", 0, texts(10, 20))
    world.settle()
    assert len(world.cluster.values(OUTPUT)) == 20


def test_a_block_of_no_known_version_and_of_no_length_is_refused() -> None:
    """Its header may be anything; whoever wrote it gets no answer."""
    world = World(partitions=1)
    world.start("a")
    world.settle()
    broker = world.processes[0]._broker
    appender = broker.appender()
    messages = Messages()
    messages.add(None, resealed(seal(What.BLOCK, SCHEME, b"short"), 999))
    appender.append(LOG, messages)
    appender.confirm(0)
    world.produce("in", 0, texts(0, 10))
    world.settle()
    assert not world.stops
    assert recorded(world)[-1].result is Result.JUDGED
