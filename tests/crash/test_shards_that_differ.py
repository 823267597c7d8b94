"""Shards of other settings, rules or versions, whose answers would change verdicts: none is used, and each is
counted. What comes out is what comes out without shards."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.crash.sharded_app import App, files_at_once, settings_in
from tests.crash.test_crash_with_shards import check, first_posts, judge_first
from tests.model.test_mixed_versions import resealed
from tests.service.conftest import scheme as scheme
from tests.service.test_changed_settings import with_section
from tests.shards.conftest import small_pieces
from twinsieve.pipeline.index.segment_answers import Unused
from twinsieve.pipeline.shards import shard
from twinsieve.pipeline.wire.frame import SEGMENTS_VERSION
from twinsieve.pipeline.wire.segment_answers import AnswersRecord, encode_answers
from twinsieve.stages.judge.scheme import Scheme
from twinsieve.stages.near.answers import part_of

__all__ = ["small_pieces"]
pytestmark = pytest.mark.matrix
OTHERS: dict[str, dict[str, object]] = {
    "lower similarity": {"similarity": 6_000},
    "higher similarity": {"similarity": 9_900},
    "other rules": {"differences": "off"},
}
"""Settings of `near`; the index has a similarity of 9,000, and the differences of `guards`."""


def similar_posts() -> list[str]:
    """The last of the first posts again, with some characters or the number changed: which of them are near
    duplicates depends on the settings."""
    dice, made = random.Random(5), []
    for post in 3 * first_posts()[-24:]:
        text = list(post)
        for _ in range(dice.randrange(3)):
            text[dice.randrange(24)] = chr(0x4E00 + dice.randrange(2_000))
        made.append("".join(text).replace("新增1", f"新增{dice.randrange(1, 3)}"))
    return made


@pytest.fixture
def app(scheme: Scheme, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_pieces: None) -> App:
    files_at_once(monkeypatch)
    return App(scheme, settings_in(str(tmp_path / "state")))


def alone(app: App, folder: Path) -> App:
    """Another app, which uses no answers."""
    return App(app.world.scheme, settings_in(str(folder), answers="none"))


def judge_similar(app: App) -> None:
    app.world.produce(similar_posts())
    app.run()


def check_equal(app: App, folder: Path) -> None:
    """What came out is what one process lets out."""
    one = alone(app, folder)
    one.judging("one")
    judge_first(one)
    judge_similar(one)
    one.end_all()
    check(app, one.out())


@pytest.mark.parametrize("near", OTHERS.values(), ids=OTHERS)
def test_answers_of_a_shard_with_other_settings_are_not_used(
    near: dict[str, object], app: App, tmp_path: Path
) -> None:
    app.judging("one")
    app.shard("a", **near)
    judge_first(app)
    judge_similar(app)
    check_equal(app, tmp_path / "alone")
    assert app.unused_answers()[Unused.OTHER_QUESTION]


def test_answers_of_another_version_are_not_used(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have the form of this version, and say that no segment has anything."""

    def newer(scheme: bytes, record: AnswersRecord, most_bytes: int) -> list[bytes]:
        parts = [
            part._replace(
                blocks=[one._replace(answer=one.answer and part_of(one.answer, 0, 0)) for one in part.blocks]
            )
            for part in record.parts
        ]
        encoded = encode_answers(scheme, replace(record, parts=parts), most_bytes)
        return [resealed(one, SEGMENTS_VERSION + 1) for one in encoded]

    monkeypatch.setattr(shard, "encode_answers", newer)
    app.judging("one")
    app.shard("a")
    judge_first(app)
    judge_similar(app)
    check_equal(app, tmp_path / "alone")
    assert app.unused_answers()[Unused.OTHER_VERSION]


def restart_with(app: App, near: dict[str, Any], *, has_shard: bool) -> None:
    """An index is killed before it judges blocks that a shard has answered; the next one has other settings."""
    one = app.judging("one")
    if has_shard:
        app.shard("a")
    judge_first(app)
    app.world.produce(similar_posts())
    assert one.worker is not None
    for _ in range(len(similar_posts()) // 9):
        one.worker.step(0.05)
    if has_shard:
        app.freeze("one", 4.0)
        app.turn(3.0)
        app.kill("a")
    app.kill("one")
    app.settings = with_section(app.settings, "near", **near)
    app.judging("one")
    app.run()
    app.end_all()


@pytest.mark.parametrize("near", OTHERS.values(), ids=OTHERS)
def test_an_index_with_other_settings_uses_no_answer_from_before(
    near: dict[str, Any], app: App, tmp_path: Path
) -> None:
    restart_with(app, near, has_shard=True)
    one = alone(app, tmp_path / "alone")
    restart_with(one, near, has_shard=False)
    assert app.out() == one.out()
    assert not app.stops
    assert app.unused_answers()[Unused.OTHER_QUESTION]
