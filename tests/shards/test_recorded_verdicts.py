"""What an index that uses answers of shards records and tells its workers is what one process does, in every column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.crash.sharded_app import App, files_at_once, settings_in
from tests.service.conftest import scheme as scheme
from tests.service.test_changed_settings import posts
from tests.shards.conftest import small_pieces
from tests.shards.holding_shards import count_taken
from twinsieve.pipeline.service.build import wire_scheme
from twinsieve.pipeline.wire.frame import What
from twinsieve.pipeline.wire.ruling import decode_ruling
from twinsieve.stages.judge.scheme import Scheme

__all__ = ["small_pieces"]
Rows = dict[tuple[What, int], tuple[Any, ...]]
"""By the kind of record and the offset of the message: the source of its verdict, each value of that, and what differs."""


def _recorded(app: App) -> Rows:
    found: Rows = {}
    answers = [
        entry.value for log in app.world.cluster.topics["t.verdicts"].logs for _, entry in log.visible()
    ]
    decisions = [entry.value for entry in app.world.decisions.values()]
    wire = wire_scheme(app.settings, app.world.scheme)
    for what, records in ((What.ANSWER, answers), (What.DECISION, decisions)):
        for value in records:
            ruling = decode_ruling(what, value or b"", wire, "")
            verdicts = ruling.verdicts
            assert len(ruling) == ruling.end - ruling.first, "every offset of the input is a message"
            for row in range(len(ruling)):
                one = verdicts.slice(row, row + 1)
                values = [getattr(one, name).tolist() for name in one.__dataclass_fields__]
                found[what, ruling.first + row] = (int(ruling.sources[row]), values)
    return found


def _run(scheme: Scheme, folder: Path, *, shards: int) -> Rows:
    app = App(scheme, settings_in(str(folder), answers="shards" if shards else "none"))
    app.judging("one")
    for number in range(shards):
        app.shard(f"shard{number}")
    first = list(posts(1, 110))
    for some in (first, first[-40:], list(posts(2, 60)), first[-80:]):
        app.world.produce(some)
        app.run()
        app.turn(4.0)
    app.end_all()
    return _recorded(app)


@pytest.mark.parametrize("shards", [1, 3])
def test_records_are_those_of_one_process(
    shards: int, scheme: Scheme, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_pieces: None
) -> None:
    files_at_once(monkeypatch)
    taken = count_taken(monkeypatch)
    alone = _run(scheme, tmp_path / "alone", shards=0)
    assert not taken[0]
    shared = _run(scheme, tmp_path / "shared", shards=shards)
    assert taken[0] > 100
    assert shared == alone
    assert len(alone) == 2 * 290
