"""An app with shards that lacks something for a while: a leader of the topic of the answers, the store, or the answers
for some blocks. What comes out is what comes out without shards."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from tests.crash.sharded_app import ANSWERS, App, files_at_once, settings_in
from tests.crash.test_crash_with_shards import check, copies, judge_first
from tests.service.conftest import scheme as scheme
from tests.service.test_changed_settings import posts, with_section
from tests.shards.conftest import small_pieces
from tests.shards.holding_shards import count_taken
from tests.shared_store import PROTOCOL
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.saved.storage import Storage
from twinsieve.pipeline.shards import shard
from twinsieve.pipeline.wire.segment_answers import AnswersRecord, encode_answers
from twinsieve.stages.judge.scheme import Scheme

__all__ = ["small_pieces"]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch, small_pieces: None) -> None:
    files_at_once(monkeypatch)


def more(app: App, texts: list[str]) -> None:
    """All of these come out, and shards have time to answer for new segments."""
    app.world.produce(iter(texts))
    app.run()
    app.turn(8.0)


def check_equal(app: App, folder: Path, *later: list[str], **exact: object) -> None:
    """What came out is what one process lets out of the first posts and these."""
    alone = App(app.world.scheme, with_section(settings_in(str(folder), answers="none"), "exact", **exact))
    alone.judging("one")
    judge_first(alone)
    for texts in later:
        more(alone, texts)
    alone.end_all()
    check(app, alone.out())


def test_no_partition_of_the_answers_has_a_leader_for_a_while(
    scheme: Scheme, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = count_taken(monkeypatch)
    app = App(scheme, settings_in(str(tmp_path / "state")))
    index = app.judging("one")
    app.shard("a")
    judge_first(app)
    leaderless = app.world.cluster.faults.leaderless
    leaderless.update(Partition(ANSWERS, n) for n in range(len(app.world.cluster.topics[ANSWERS].logs)))
    app.turn(6.0)
    before = taken[0]
    more(app, copies())
    more(app, list(posts(2, 40)))
    assert taken[0] == before
    assert list(index.index.unanswered or ()) == index.index._sealed
    leaderless.clear()
    app.turn(8.0)
    more(app, copies())
    assert taken[0] > before
    check_equal(app, tmp_path / "alone", copies(), list(posts(2, 40)), copies())


def test_a_store_that_is_away_leaves_the_answers_for_what_shards_hold(
    scheme: Scheme, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = count_taken(monkeypatch)
    app = App(scheme, settings_in(f"{PROTOCOL}://{tmp_path}/state"))
    index = app.judging("one")
    app.shard("a")
    judge_first(app)
    app.run(lambda: index.index.unanswered is not None)

    def away(_store: Storage, doing: str) -> NoReturn:
        raise OSError(f"cannot {doing}: the store is away")

    with monkeypatch.context() as patch:
        patch.setattr(Storage, "_calling", away)
        before = taken[0]
        held = set(index.index._sealed) - set(index.index.unanswered or ())
        more(app, copies())
        assert taken[0] > before, "it answers for what it holds"
        more(app, list(posts(2, 40)))
        assert set(index.index.unanswered or ()) == set(index.index._sealed) - held != set()
    # The next snapshot writes the segments that are missing in the store.
    more(app, list(posts(3, 5)))
    app.run(lambda: index.index.unanswered == {})
    check_equal(app, tmp_path / "alone", copies(), list(posts(2, 40)), list(posts(3, 5)))


@pytest.mark.parametrize("method", ["bloom", "trie"])
def test_a_copy_is_found_where_answers_are_left_out(
    method: str, scheme: Scheme, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hit of the exact stage inside the near window counts as false unless each segment was asked."""

    def left_out(scheme: bytes, record: AnswersRecord, most_bytes: int) -> list[bytes]:
        parts = [
            part._replace(
                blocks=[one._replace(answer=one.answer if one.offset % 2 else None) for one in part.blocks]
            )
            for part in record.parts
        ]
        return encode_answers(scheme, replace(record, parts=parts), most_bytes)

    monkeypatch.setattr(shard, "encode_answers", left_out)
    taken = count_taken(monkeypatch)
    app = App(scheme, with_section(settings_in(str(tmp_path / "state")), "exact", method=method))
    app.judging("one")
    app.shard("a")
    judge_first(app)
    more(app, copies())
    assert taken[0]
    check_equal(app, tmp_path / "alone", copies(), method=method)
