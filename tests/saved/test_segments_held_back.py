"""Segments that a journal holds back, because another one writes the same to the storage."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.property.streams import table
from tests.saved.test_journal import Life, posts, small_pieces
from tests.saved.test_segment_files import CONFIG, drained, judged
from tests.stored import storage_at
from twinsieve.pipeline.saved.storage import Storage
from twinsieve.stages.contract import Batch
from twinsieve.stages.errors import StateError
from twinsieve.stages.judge.batch_sieve import BatchSieve

__all__ = ["posts", "small_pieces"]
AT_MOST = 400 // 60 + 1
"""Full segments in a window."""


@pytest.fixture(params=["", "memory:/"])
def life(request: pytest.FixtureRequest, tmp_path: Path) -> Life:
    life = Life(storage_at(f"{request.param}{tmp_path}"), CONFIG)
    life.journal.segments.holds_back = True
    return life


@pytest.fixture
def lines(life: Life) -> list[str]:
    """What is said of files that could not be written."""
    said: list[str] = []
    life.journal.segments.report = said.append
    return said


def files_of(storage: Storage) -> list[str]:
    """Files of segments, with their names and without."""
    return [name for name in storage.names() if name.startswith("segment-")]


def give(life: Life) -> None:
    """The journal writes to the storage from now on."""
    life.journal.segments.holds_back = False
    life.journal.publish(())
    drained(life)


def test_segments_that_the_window_has_passed_are_not_held(life: Life, posts: Batch) -> None:
    assert judged(life, posts, len(posts)) == table(BatchSieve(CONFIG).judge(posts))
    assert life.sieve.stats().bytes_mapped
    assert 2 <= len(life.journal.segments._held) <= AT_MOST
    assert not [name for name in files_of(life.storage) if name.endswith(".segment")]
    assert len(files_of(life.storage)) <= AT_MOST
    assert life.journal.has_unnamed_segment
    assert not life.journal.segments.being_written
    life.journal.close()
    assert not files_of(life.storage)


def test_a_segment_that_the_window_passes_before_it_is_in_a_file_is_not_held(
    life: Life, lines: list[str], posts: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged(life, posts, 450)
    assert life.journal.segments._held
    monkeypatch.setattr(life.journal, "_window", 0)
    expected = table(BatchSieve(CONFIG).judge(posts))
    assert judged(life, posts, 200) == expected[450:650]
    assert not life.journal.segments._held
    assert not lines
    assert not files_of(life.storage)


def test_what_was_held_back_is_in_the_next_state(life: Life, posts: Batch) -> None:
    expected = table(BatchSieve(CONFIG).judge(posts))
    judged(life, posts, 450)
    life.save()
    assert not [name for name in files_of(life.storage) if name.endswith(".segment")]
    give(life)
    files = life.save()
    assert sorted(files_of(life.storage)) == sorted(
        file.name for file in files if file.name.startswith("segment-")
    )
    life.restore()
    assert life.sieve.stats().bytes_mapped
    assert judged(life, posts, 200) == expected[450:650]


def test_segments_of_a_restore_that_failed_are_not_written(life: Life, posts: Batch) -> None:
    """The sieve begins again without its near window: other messages get these numbers."""
    judged(life, posts, 450)
    assert life.journal.segments._held
    life.journal.resume(0, ())
    give(life)
    assert not files_of(life.storage)


def test_a_storage_that_does_not_take_them_is_told(
    life: Life, lines: list[str], posts: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged(life, posts, 450)
    held = len(life.journal.segments._held)

    def refuse(*_: object) -> None:
        raise StateError("no space")

    monkeypatch.setattr("twinsieve.pipeline.saved.storage.NewFile.finish", refuse)
    give(life)
    assert len(lines) == life.journal.segments.failures == held
    assert "no space" in lines[0]
    assert not files_of(life.storage)
    assert life.judge(posts, 100) == table(BatchSieve(CONFIG).judge(posts))[450:550]
