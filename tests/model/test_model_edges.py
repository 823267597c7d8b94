"""The edge rules of the protocol, one story each: what an operator or the world does, and what comes out."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.driver import DEAD, DUPLICATES, GROUP, LOG, OUTPUT, WORKER, Process, World, texts
from tests.memory.broker import MemoryBroker
from tests.memory.log import Entry
from tests.model.checker import check_complete, check_output, check_settled, rebuild
from tests.twins import HashSieve
from twinsieve.pipeline.broker.records import Committed, Messages, Partition
from twinsieve.pipeline.saved.storage import Storage
from twinsieve.pipeline.wire.ruling import Source
from twinsieve.stages.contract import Kind

IN = Partition("in", 0)


def settled(partitions: int = 1, count: int = 30, **settings: object) -> World:
    """A world in which one process has emitted some messages and was killed after its last report."""
    world = World(partitions=partitions)
    world.produce("in", 0, texts(0, count))
    world.start("a", **settings)
    world.settle()
    return world


def restart(world: World, **settings: object) -> Process:
    world.kill_all()
    return world.start("a", **settings)


def test_missing_offsets_stop_and_point_to_reset_once_something_was_judged() -> None:
    world = settled()
    world.forget_offsets()
    process = restart(world)
    world.run(80)
    assert not process.running
    assert "has no offset that twinsieve committed" in world.stops[0]
    assert "twinsieve reset" in world.stops[0]
    assert world.emitted() == list(range(30))


def test_a_topic_created_again_stops_until_reset_says_where_to_begin() -> None:
    world = settled()
    world.make_again("in", 1)
    world.produce("in", 0, texts(100, 110))
    process = restart(world)
    world.run(80)
    assert not process.running
    assert "created again" in world.stops[0]
    world.move_offset(IN, 0)
    world.stops.clear()
    restart(world)
    world.settle()
    assert world.emitted()[30:] == list(range(10))


def test_an_input_that_ends_before_what_was_judged_stops() -> None:
    world = settled()
    del world.cluster.log(IN).entries[10:]
    restart(world)
    world.run(80)
    assert "ends at 10, before the committed offset 30" in world.stops[0]
    world.stops.clear()
    world.move_offset(IN, 5)
    restart(world)
    world.run(80)
    assert "ends before what was judged" in world.stops[0]


@pytest.mark.parametrize("offset", [35, 40])
def test_an_offset_behind_an_open_input_transaction_waits_for_its_end(offset: int) -> None:
    """Also one that is the very end."""
    world = settled()
    process = restart(world)
    producer = MemoryBroker(world.cluster).transactor("a producer")
    producer.begin()
    held = Messages()
    for value in texts(30, 40):
        held.add(b"k", value)
    producer.send("in", 0, held)
    world.move_offset(IN, offset)
    world.run(10)
    assert process.running
    assert world.stops == []
    said = f"{offset} is committed, and a transaction of its producers is open from 30 on"
    assert any(said in notice for notice in process.notices)
    producer.commit()
    world.settle()
    assert world.emitted() == [*range(30), *range(offset, 40)]


@pytest.mark.parametrize("trimmed", ["stop", "continue"])
def test_input_that_retention_took_is_counted_and_stops_or_goes_on(trimmed: str) -> None:
    world = settled()
    world.processes[0].kill()
    world.produce("in", 0, texts(30, 60))
    world.cluster.log(IN).trim(40)
    process = restart(world, worker_config=replace(WORKER, trimmed=trimmed))
    if trimmed == "stop":
        world.run(80)
        assert "retention deleted 10 messages from 30 on" in world.stops[0]
        assert world.emitted() == list(range(30))
    else:
        world.settle()
        assert process.worker is not None
        assert process.worker.trimmed == 10
        assert world.emitted() == [*range(30), *range(40, 60)]


def test_offsets_moved_back_are_replayed_and_nothing_is_emitted_again() -> None:
    world = settled()
    world.processes[0].kill()
    world.move_offset(IN, 0)
    restart(world)
    world.settle()
    sources = [int(source) for ruling in rebuild(world).rulings for source in ruling.sources]
    assert sources.count(Source.REPLAYED) == 30
    assert world.emitted() == list(range(30))


def test_another_tool_moves_no_offset_back_after_a_clean_stop() -> None:
    world = settled()
    world.produce("in", 0, texts(30, 45))
    world.processes[0].step()
    world.processes[0].terminate()
    at = world.cluster.group(GROUP).offsets[IN].offset
    world.clock.sleep(20.0)
    world.cluster.group(GROUP).offsets[IN] = Committed(0)
    world.start("a")
    world.settle()
    assert world.emitted() == list(range(45))
    assert at > 0


def test_messages_skipped_by_an_operator_are_judged_when_he_moves_back() -> None:
    world = settled()
    world.processes[0].kill()
    world.produce("in", 0, texts(30, 90))
    world.move_offset(IN, 80)
    restart(world)
    world.settle()
    assert world.emitted() == [*range(30), *range(80, 90)]
    world.processes[-1].kill()
    world.move_offset(IN, 0)
    restart(world)
    world.settle()
    assert world.emitted() == [*range(30), *range(80, 90), *range(30, 80)]


def test_a_restore_applies_and_never_judges() -> None:
    sieves: list[HashSieve] = []

    def make() -> HashSieve:
        sieves.append(HashSieve())
        return sieves[-1]

    world = settled(sieve=make)
    assert sieves[-1].judged == 30
    restart(world, sieve=make)
    world.run(100)
    assert sieves[-1].judged == 0
    assert len(sieves[-1].kept) == 30


def test_a_changed_configuration_drops_nothing_for_an_unemitted_leader() -> None:
    """Judged under one rule, killed before it was emitted, restored under another, which then goes on."""
    for rounds in range(1, 12):
        world = World(partitions=1)
        world.produce("in", 0, [b"Abc", b"abc", b"ABC", b"x", b"X"] * 3)
        world.start("a", sieve=lambda: HashSieve(caseless=False))
        world.run(rounds)
        restart(world, sieve=lambda: HashSieve(caseless=True))
        world.produce("in", 0, [b"aBC", b"y", b"Y"])
        world.settle()
        truth = rebuild(world, judge=False)
        check_complete(world, truth, check_output(world, truth), str.lower)
        kept = set(world.emitted())
        for _, entry in world.cluster.log(Partition(DUPLICATES, 0)).visible():
            leader = dict(entry.headers)["twinsieve-leader"]
            assert leader is not None
            assert int(leader.decode().partition("@")[2]) in kept
        new = [kind for (_, _, offset), kind in truth.kinds.items() if offset >= 15]
        assert new == [Kind.EXACT, Kind.UNIQUE, Kind.EXACT]


def test_a_standby_is_warm_and_takes_over() -> None:
    world = World(partitions=1)
    world.start("a", roles="index")
    world.start("b")
    world.run(5)
    world.produce("in", 0, texts(0, 40))
    world.settle()
    world.run(10)
    first, second = world.processes
    assert first.index is not None
    assert second.index is not None
    assert first.index.live
    assert not second.index.live
    assert second.index.ready
    assert second.index.state.next_offset == first.index.state.next_offset
    first.kill()
    world.produce("in", 0, texts(20, 60))
    check_settled(world)
    assert second.index.live


def test_a_damaged_snapshot_is_named_and_the_log_does(tmp_path: Path) -> None:
    world = settled(snapshots=str(tmp_path))
    world.clock.sleep(5.0)
    world.produce("in", 0, texts(20, 50))
    world.settle()
    newest = max((tmp_path / "app").iterdir())
    content = bytearray(newest.read_bytes())
    content[len(content) // 2] ^= 1
    newest.write_bytes(bytes(content))
    process = restart(world, snapshots=str(tmp_path))
    process.step()
    assert process.index is not None
    (notice,) = process.index.notices
    assert notice.startswith(f"{newest}: is damaged or cut; ")
    world.produce("in", 0, texts(0, 60))
    check_settled(world)


def test_snapshots_are_private_and_only_the_newest_stay(tmp_path: Path) -> None:
    world = settled(snapshots=str(tmp_path))
    for first in range(4):
        world.clock.sleep(5.0)
        world.produce("in", 0, texts(first, first + 9))
        world.settle()
    kept = sorted((tmp_path / "app").iterdir())
    assert len(kept) == 2
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in kept)


def test_a_snapshot_that_cannot_be_written_is_a_notice(tmp_path: Path) -> None:
    (tmp_path / "app").write_text("in the way")
    world = settled(snapshots=str(tmp_path))
    world.clock.sleep(5.0)
    world.produce("in", 0, texts(30, 40))
    world.settle()
    index = world.processes[0].index
    assert index is not None
    assert any("snapshot cannot be written" in notice or "listed" in notice for notice in index.notices)
    assert world.emitted() == list(range(40))


def test_a_shadow_judges_and_emits_nothing() -> None:
    quiet = replace(WORKER, emit=replace(WORKER.emit, emit=False))
    world = settled(worker_config=quiet)
    assert world.emitted() == []
    assert len(rebuild(world).kinds) == 30


@pytest.mark.parametrize(("policy", "out", "dead"), [("pass", 3, 0), ("drop", 2, 0), ("dead_letter", 2, 1)])
def test_tombstones_go_where_the_settings_say(policy: str, out: int, dead: int) -> None:
    world = World(partitions=1)
    world.produce("in", 0, [b"one", None, b"two"])
    world.start("a", worker_config=replace(WORKER, emit=replace(WORKER.emit, null_value=policy)))
    world.settle()
    assert (len(world.cluster.values(OUTPUT)), len(world.cluster.values(DEAD))) == (out, dead)
    world.kill_all()
    world.move_offset(IN, 0)
    world.start("a", worker_config=replace(WORKER, emit=replace(WORKER.emit, null_value=policy)))
    world.settle()
    assert (len(world.cluster.values(OUTPUT)), len(world.cluster.values(DEAD))) == (out, dead), "once"


def test_a_message_too_large_to_write_is_a_dead_letter_with_its_origin() -> None:
    world = World(partitions=1)
    world.produce("in", 0, [b"one", b"x" * 50_000, b"two"])
    for topic in (OUTPUT, DEAD):
        world.cluster.topics[topic].settings["max.message.bytes"] = "10000"
    world.start("a")
    world.settle()
    ((_, dead),) = world.cluster.log(Partition(DEAD, 0)).visible()
    headers = dict(dead.headers)
    assert (headers["twinsieve-reason"], headers["twinsieve-origin"]) == (b"too_large_for_topic", b"in[0]@1")
    assert world.cluster.values(OUTPUT) == [b"one", b"two"]


def test_a_broker_away_for_a_minute_costs_nothing_but_time() -> None:
    world = settled()
    world.produce("in", 0, texts(30, 60))
    world.processes[0].step()
    world.cluster.reachable = False
    for _ in range(600):
        world.run(1)
    world.cluster.reachable = True
    world.settle()
    assert world.emitted() == list(range(60))
    assert len(world.processes[0].notices) < 50


def test_a_backfill_does_not_starve_a_live_partition() -> None:
    world = World(partitions=2)
    world.start("a")
    world.run(10)
    world.produce("in", 0, texts(0, 3_000))
    world.run(10)
    world.produce("in", 1, [b"live"])
    rounds = 0
    while not world.cluster.values(OUTPUT, 1):
        world.run(1)
        rounds += 1
    assert rounds < 40
    assert len(world.cluster.values(OUTPUT, 0)) < 1_000


def test_a_damaged_block_stops_the_index_with_what_to_do() -> None:
    world = settled()
    world.cluster.log(LOG).append(Entry(0, None, b"not a block at all, but long enough", (), None))
    world.run(5)
    assert "app.fingerprints[0]@" in world.stops[0]
    assert "start a new app" in world.stops[0]


def test_a_lost_decision_stops_the_index_instead_of_judging_again() -> None:
    world = settled()
    decisions = world.cluster.log(Partition("app.decisions", 0))
    decisions.compact(2)
    restart(world)
    world.run(20)
    assert "is missing" in world.stops[0]


def test_answers_that_retention_took_unread_are_asked_for_again() -> None:
    world = World(partitions=1)
    world.start("a", roles="worker")
    world.start("b", roles="index")
    world.run(10)
    world.produce("in", 0, texts(0, 30))
    worker, index = world.processes
    worker.step()
    worker.step()
    for _ in range(20):
        index.step()
    for log in world.cluster.topics["app.verdicts"].logs:
        log.trim(log.end)
    world.settle()
    assert world.emitted() == list(range(30))


def test_old_snapshots_that_cannot_be_deleted_are_one_notice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_storage: Storage, _name: str) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Storage, "remove", refuse)
    world = settled(snapshots=str(tmp_path))
    for first in range(5):
        world.clock.sleep(5.0)
        world.produce("in", 0, texts(first, first + 9))
        world.settle()
    assert len(list((tmp_path / "app").glob("*.snapshot"))) > 2
    index = world.processes[0].index
    assert index is not None
    assert [notice for notice in index.notices if "deleted" in notice] == [
        f"{tmp_path}/app: files of older snapshots cannot be deleted (Permission denied) and go on to take "
        "space; fix permissions"
    ]
