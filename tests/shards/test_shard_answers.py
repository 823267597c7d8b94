"""A shard answers each block of the log for each segment that it answers for, as the index would look up itself."""

from __future__ import annotations

from contextlib import suppress
from unittest.mock import patch

import pytest

from tests.memory.broker import NewTopic
from tests.shards.holding_shards import ANSWERS, LOG, SCHEME, App, same
from twinsieve.pipeline.broker.records import AbortableError, Messages, Partition
from twinsieve.pipeline.shards.config import Problem
from twinsieve.pipeline.wire import frame
from twinsieve.pipeline.wire.block import encode_block
from twinsieve.pipeline.wire.segment_answers import MOST_BLOCKS_AHEAD
from twinsieve.stages.errors import StateError


def test_every_block_is_answered_as_the_index_would(app: App) -> None:
    shard = app.shard()
    app.ask(6)
    app.turn(shard)
    assert shard.ready, shard.remark
    found = app.answers()
    assert sorted(found) == sorted(app.sealed())
    entries = 0
    for segment, blocks in found.items():
        assert sorted(blocks) == list(range(20, 26)), "nothing below the committed offset, nothing left out"
        for number, answer in blocks.items():
            assert same(answer, app.expected(segment, number))
            entries += len(answer.rows) + len(answer.copy_rows)
    assert entries, "the posts are alike"
    assert shard.counts["blocks"] == 6 * len(found)
    app.ask(3)
    app.turn(shard)
    assert all(sorted(blocks) == list(range(20, 29)) for blocks in app.answers().values())


def test_the_segments_are_divided_among_the_members(app: App) -> None:
    shards = [app.shard(name) for name in "abc"]
    app.turn(*shards)
    app.ask(4)
    app.turn(*shards)
    by = {name: set(app.answers(name)) for name in "abc"}
    assert set.union(*by.values()) == set(app.sealed())
    blocks = [(part.segment, one.offset) for part in app.parts() for one in part.blocks]
    assert len(blocks) == len(set(blocks)), "nobody answers twice"
    assert sum(shard.answered for shard in shards) == len(app.sealed())


def test_who_has_nothing_to_answer_says_that_it_is_there(app: App) -> None:
    shard = app.shard()
    app.turn(shard)
    before = len(app.said())
    app.turn(shard, seconds=14.0)
    told = app.said()[before:]
    assert 3 <= len(told) <= 5
    for record in told:
        assert {part.segment for part in record.parts} == set(app.sealed())
        assert not any(part.blocks for part in record.parts)


def test_the_answers_for_all_segments_are_written_together(app: App) -> None:
    shard = app.shard()
    app.turn(shard)
    before = len(app.said())
    app.ask(3)
    app.turn(shard, seconds=0.5)
    (record,) = app.said()[before:]
    assert {part.segment for part in record.parts} == set(app.sealed())
    assert all(len(part.blocks) == 3 for part in record.parts)


def test_answers_go_to_a_partition_with_a_leader(app: App) -> None:
    shards = [app.shard(name) for name in "abc"]
    app.turn(*shards)
    before = [log.end for log in app.cluster.topics[ANSWERS].logs]
    used = {number for number, end in enumerate(before) if end}
    assert len(used) > 1
    lost = min(used)
    app.cluster.faults.leaderless.add(Partition(ANSWERS, lost))
    app.turn(*shards, seconds=6.0)
    at = app.asked
    app.ask(2)
    app.turn(*shards)
    wanted = {at, at + 1}
    assert all(wanted <= blocks.keys() for blocks in app.answers().values())


def test_it_is_only_so_far_ahead_of_the_index(app: App) -> None:
    shard = app.shard()
    app.ask(MOST_BLOCKS_AHEAD + 30)
    app.turn(shard, seconds=20.0)
    assert {max(blocks) for blocks in app.answers().values()} == {20 + MOST_BLOCKS_AHEAD - 1}
    app.commit(50)
    app.turn(shard, seconds=20.0)
    assert {max(blocks) for blocks in app.answers().values()} == {app.asked - 1}


def test_a_block_that_it_cannot_read_is_passed_over(app: App) -> None:
    shard = app.shard()
    app.turn(shard)
    bad = Messages()
    bad.add(None, b"no block")
    bad.add(None, None)
    app.cluster.write(LOG, bad)
    app.asked += 2
    app.ask(2)
    app.turn(shard)
    assert all(sorted(blocks) == [22, 23] for blocks in app.answers().values())
    assert shard.problems[Problem.BLOCK] == 2


def test_answers_are_written_again_if_nothing_is_committed_for_long(app: App) -> None:
    shard = app.shard()
    app.ask(2)
    app.turn(shard)
    before = len([1 for part in app.parts() if part.blocks])
    app.clock.sleep(1_700)
    app.turn(shard)
    assert len([1 for part in app.parts() if part.blocks]) == before
    app.clock.sleep(200)
    app.turn(shard)
    assert len([1 for part in app.parts() if part.blocks]) > before


def test_after_a_failed_write_it_answers_again(app: App) -> None:
    shard = app.shard()
    app.turn(shard)
    app.cluster.faults.append_failure = lambda waiting: 0
    app.cluster.faults.append_latency_s = lambda: 1.0
    app.ask(3)
    with pytest.raises(AbortableError):
        app.turn(shard)
    app.cluster.faults = type(app.cluster.faults)()
    app.turn(shard)
    assert all(sorted(blocks) == [20, 21, 22] for blocks in app.answers().values())
    assert len(app.answers()) == len(app.sealed())


@pytest.mark.parametrize("beginning", [22, 26])
def test_it_goes_on_at_the_beginning_of_a_trimmed_log(app: App, beginning: int) -> None:
    app.ask(8)
    app.cluster.log(LOG).trim(beginning)
    shard = app.shard()
    app.turn(shard)
    assert all(sorted(blocks) == list(range(beginning, 28)) for blocks in app.answers().values())
    assert app.answers()


def test_a_log_that_lost_its_end_is_answered_again(app: App) -> None:
    shard = app.shard()
    app.ask(5)
    app.turn(shard)
    app.cluster.log(LOG).truncate(22)
    app.asked = 22
    app.ask(2, rows=9)
    for _ in range(3):
        try:
            app.turn(shard)
        except AbortableError:
            continue
    for blocks in app.answers().values():
        assert {len(app.rows_of(number, 9)) for number in (22, 23)} == {9}
        assert sorted(blocks) == [20, 21, 22, 23, 24]
    rows = [one.rows for part in app.parts() for one in part.blocks if one.offset == 23]
    assert rows[-1] == 9


def test_a_broker_that_is_away_stops_nothing_for_good(app: App) -> None:
    shard = app.shard()
    app.turn(shard)
    app.cluster.reachable = False
    for _ in range(5):
        with pytest.raises(AbortableError):
            app.turn(shard)
    app.cluster.reachable = True
    app.ask(2)
    app.turn(shard)
    assert all(sorted(blocks) == [20, 21] for blocks in app.answers().values())


@pytest.mark.parametrize("late", [False, True])
def test_a_batch_that_nobody_can_read_is_passed_over(app: App, late: bool) -> None:
    shard = app.shard()
    app.turn(shard)
    app.cluster.faults.unreadable[LOG] = [range(21, 23)]
    app.ask(5)
    app.turn(shard)
    if late:
        app.ask(2)
        app.turn(shard)
    assert all(sorted(blocks) == [20, *range(23, app.asked)] for blocks in app.answers().values())
    assert app.answers()
    assert shard.problems[Problem.BLOCK] == 1


def test_a_log_that_was_created_again_ends_the_process(app: App) -> None:
    shard = app.shard()
    app.turn(shard)
    app.cluster.delete(LOG.topic)
    app.cluster.create(NewTopic(LOG.topic, 3))

    def go_on() -> None:
        for _ in range(300):
            with suppress(AbortableError):
                app.turn(shard, seconds=0.2)
            app.clock.sleep(0.1)

    with pytest.raises(StateError, match="created again"):
        go_on()


def test_answers_come_as_soon_as_the_index_moves_although_blocks_are_small(app: App) -> None:
    """At the bound the committed offset is asked for often: hundreds of small blocks a second are answered."""
    shard = app.shard()
    app.turn(shard)
    app.ask(300, rows=1)

    def judged() -> int:
        return min((max(blocks, default=19) + 1 for blocks in app.answers().values()), default=20)

    began_s = app.clock.monotonic_s()
    while judged() < app.asked:
        shard.step(0.05)
        app.commit(judged())
    assert app.clock.monotonic_s() - began_s < 1.5


def test_a_segment_that_comes_later_is_answered_from_the_committed_offset(app: App) -> None:
    shard = app.shard()
    app.turn(shard, seconds=5.0)
    before = set(app.sealed())
    app.judge(6)
    app.save()
    app.commit(24)
    app.ask(6)
    app.turn(shard, seconds=10.0)
    new = set(app.sealed()) - before
    assert new
    assert all(sorted(app.answers()[segment]) == list(range(24, 32)) for segment in new)


def test_it_says_up_to_where_it_has_read_whatever_is_committed(app: App) -> None:
    shard = app.shard()
    app.turn(shard)
    app.ask(3)
    app.turn(shard)
    assert {part.read_to for part in app.parts()} == {20, 23}
    assert shard.lag() == 0
    with patch.object(shard._reader, "poll", lambda *_: []):
        app.ask(5)
        app.commit(28)
        before = len(app.parts())
        app.turn(shard, seconds=10.0)
        assert {part.read_to for part in app.parts()[before:]} == {23}
        assert shard.lag() == 5
    app.turn(shard)
    app.turn(shard, seconds=4.0)
    assert app.parts()[-1].read_to == 28
    assert shard.lag() == 0


def test_who_begins_again_where_the_index_is_says_so_when_there_is_nothing_to_read(app: App) -> None:
    shard = app.shard()
    app.turn(shard)
    with patch.object(shard._reader, "poll", lambda *_: []):
        app.ask(2 * MOST_BLOCKS_AHEAD)
        app.commit(app.asked)
        app.turn(shard)
    app.turn(shard, seconds=5.0)
    assert app.parts()[-1].read_to == app.asked


def test_blocks_that_the_index_has_yet_to_judge_are_no_lag(app: App) -> None:
    shard = app.shard()
    app.ask(MOST_BLOCKS_AHEAD + 30)
    app.turn(shard)
    assert shard.waits
    assert shard.lag() == 0


def test_who_cannot_read_the_blocks_does_not_say_that_it_is_there(app: App) -> None:
    shard = app.shard()
    app.turn(shard)
    messages = Messages()
    with patch.object(frame, "VERSION", frame.VERSION + 1):
        for number in range(3):
            messages.add(None, encode_block(app.block(number), SCHEME))
    app.cluster.write(LOG, messages)
    app.asked += 3
    app.turn(shard)
    before = len(app.said())
    app.turn(shard, seconds=60.0)
    assert len(app.said()) == before
    assert not shard.ready
    assert f"{LOG}@22: format version" in shard.remark
    assert [line for line in shard.notices if "does not say that it is there" in line] == shard.notices[-1:]
    app.ask(1)
    app.turn(shard)
    assert shard.ready
    assert app.parts()[-1].read_to == app.asked
    assert all(sorted(blocks) == [23] for blocks in app.answers().values())
