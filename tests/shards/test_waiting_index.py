"""An index that waits for the answers of a shard, and what it does meanwhile."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.crash.sharded_app import LOG, PATIENCE_S, App, files_at_once, settings_in
from tests.service.conftest import scheme as scheme
from tests.service.test_changed_settings import posts
from tests.shards.conftest import small_pieces
from twinsieve.pipeline.broker.records import PollResult
from twinsieve.stages.judge.scheme import Scheme

__all__ = ["small_pieces"]


def test_a_block_that_waits_is_read_once(
    scheme: Scheme, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_pieces: None
) -> None:
    files_at_once(monkeypatch)
    app = App(scheme, settings_in(str(tmp_path)))
    index = app.judging("one")
    app.shard("a")
    first = list(posts(1, 110))
    app.world.produce(first)
    app.run()
    app.turn(8.0)
    consumer = index.index._consumer
    assert consumer is not None
    read, poll = Counter[int](), consumer.poll

    def counting(timeout_s: float, max_records: int) -> PollResult:
        polled = poll(timeout_s, max_records)
        read.update(offset for records in polled.records for offset in records.offsets)
        return polled

    monkeypatch.setattr(consumer, "poll", counting)
    app.freeze("a", 2 * PATIENCE_S)
    app.world.produce(first[-30:])
    app.run(lambda: index.waits)
    began_s = app.world.clock.monotonic_s()
    app.run()
    assert app.world.clock.monotonic_s() - began_s > 0.5
    assert set(read.values()) == {1}
    assert max(read) == app.world.cluster.log(LOG).end - 1
    app.end_all()
