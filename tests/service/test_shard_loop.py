"""The loop of a shard: it becomes ready, is counted, survives failures of a broker, and hands over at a stop."""

from __future__ import annotations

import threading
from pathlib import Path
from unittest.mock import patch

import pytest

from tests.memory.broker import ManualClock
from tests.saved.test_journal import small_pieces
from tests.service.turned import _Stop
from tests.shards.holding_shards import ANSWERS, App
from twinsieve.pipeline.broker.ports import Hook
from twinsieve.pipeline.broker.records import FatalError
from twinsieve.pipeline.saved.store_calls import StoreCalls
from twinsieve.pipeline.service.loop import LoopPhase
from twinsieve.pipeline.service.metrics import Metrics
from twinsieve.pipeline.service.shard_loop import ShardLoop
from twinsieve.pipeline.shards.config import Problem
from twinsieve.pipeline.shards.shard import Shard
from twinsieve.pipeline.wire.segment_answers import MOST_BLOCKS_AHEAD

__all__ = ["small_pieces"]


class Process:
    """A process with a shard; its holdings outlive a shard that failed."""

    def __init__(self, app: App, name: str) -> None:
        self.app = app
        self.metrics = Metrics(app.clock)
        self.calls = StoreCalls()
        self.made = 0
        self.refuses = False
        self._name = name
        self._holdings = app.holdings(app.log_id)
        self.loop = ShardLoop(self._shard, app.clock, self.metrics, self.calls)
        self.loop._stop = _Stop(app.clock)

    def _shard(self, hook: Hook) -> Shard:
        def stepped(step: str) -> None:
            if self.refuses:
                self.refuses = False
                raise FatalError("the client is lost")
            hook(step)

        self.made += 1
        return self.app.shard(self._name, hook=stepped, holdings=self._holdings)

    def turn(self, rounds: int = 40) -> None:
        for _ in range(rounds):
            self.loop._turn()
            self.app.clock.sleep(0.1)


@pytest.fixture
def app(tmp_path: Path) -> App:
    return App.judged(tmp_path)


def test_it_becomes_ready_and_is_counted(app: App) -> None:
    process = Process(app, "a")
    assert not process.loop.ready
    app.ask(3)
    process.turn()
    assert process.loop.ready
    assert process.loop.phase.now is LoopPhase.WORKING
    metrics = process.metrics
    segments = len(app.sealed())
    assert metrics.shard_segments._value.get() == segments
    assert metrics.shard_copies._value.get() == segments
    assert metrics.shard_waiting._value.get() == 0
    assert metrics.shard_blocks._value.get() == 3 * segments
    assert metrics.shard_rows._value.get() == 75 * segments
    assert metrics.shard_bytes._value.get() > 0
    assert metrics.shard_memory._value.get() > 0


def test_it_says_what_it_waits_for(app: App) -> None:
    for path in Path(app.life.storage.folder).glob("*.segment"):
        path.unlink()
    process = Process(app, "a")
    process.turn()
    assert f"waits for {len(app.sealed())} of" in process.loop.remark
    assert process.metrics.shard_problems.labels(Problem.SEGMENT)._value.get() >= len(app.sealed())


def test_it_says_that_its_store_is_not_that_of_the_index(app: App, caplog: pytest.LogCaptureFixture) -> None:
    for path in Path(app.life.storage.folder).glob("*.snapshot"):
        path.unlink()
    app.commit(0)
    process = Process(app, "a")

    def told() -> list[str]:
        return [line for line in caplog.messages if "has no snapshot of this log" in line]

    process.turn(1_000)
    assert process.loop.remark == "", "nothing is judged, so there is none"
    app.commit(20)
    process.turn(300)
    assert f"{app.life.storage.folder} has no snapshot of this log" in process.loop.remark
    assert "judged 20 blocks" in process.loop.remark
    assert not told(), "the index may not have written one yet"
    process.turn(900)
    assert len(told()) == 1
    app.save()
    process.turn(100)
    assert process.loop.remark == ""
    assert process.loop.ready


def test_a_shard_whose_client_failed_is_made_again_with_what_it_held(app: App) -> None:
    process = Process(app, "a")
    process.turn()
    process.refuses = True
    process.loop._turn()
    assert process.loop.phase.now is LoopPhase.RETRYING
    app.ask(2)
    process.turn(10)
    assert process.made == 2
    assert process.loop.ready
    assert all(sorted(blocks) == [20, 21] for blocks in app.answers().values())


def test_a_shard_whose_client_has_gone_deaf_is_made_again(app: App) -> None:
    process = Process(app, "a")
    process.turn()
    shard = process.loop._shard
    assert shard is not None
    with patch.object(shard._reader, "poll", lambda timeout_s, _: app.clock.sleep(timeout_s) or []):
        process.turn(400)
        assert process.made == 1, "there is nothing to read"
        app.ask(2)
        process.turn(400)
    assert process.made == 2
    assert process.loop.ready
    assert all(sorted(blocks) == [20, 21] for blocks in app.answers().values())


def test_a_shard_that_waits_for_the_index_is_left_alone(app: App) -> None:
    process = Process(app, "a")
    process.turn()
    app.ask(MOST_BLOCKS_AHEAD + 10)
    process.turn(1_000)
    assert process.made == 1


def test_a_topic_that_takes_smaller_records_than_before_gets_smaller_ones(app: App) -> None:
    process = Process(app, "a")
    process.turn()
    app.cluster.topics[ANSWERS].settings["max.message.bytes"] = "1700"
    app.ask(40)
    process.turn(100)
    assert process.loop.ready
    assert all(sorted(blocks) == list(range(20, 60)) for blocks in app.answers().values())
    assert process.made == 2, "its client makes smaller batches too"


def test_a_broker_that_is_away_makes_it_not_ready_and_no_new_process(app: App) -> None:
    process = Process(app, "a")
    process.turn()
    app.cluster.reachable = False
    process.turn(400)
    assert not process.loop.ready
    app.cluster.reachable = True
    process.turn()
    assert process.loop.ready


def test_a_stop_ends_when_others_answer(app: App) -> None:
    one, two = Process(app, "a"), Process(app, "b")
    for _ in range(60):
        one.turn(1)
        two.turn(1)
    stop = threading.Thread(target=lambda: (one.loop.stop(), one.loop.run()))
    stop.start()
    while stop.is_alive():
        two.turn(1)
    stop.join()
    assert one.loop.error is None
    assert isinstance(app.clock, ManualClock)
    app.ask(1)
    two.turn()
    assert len([1 for blocks in app.answers("b").values() if 20 in blocks]) == len(app.sealed())
