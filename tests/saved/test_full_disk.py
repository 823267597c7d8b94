"""Segments that a disk does not take: tried alone, once a minute, and counted once."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.property.streams import table
from tests.saved.test_journal import Life, posts, small_pieces
from tests.saved.test_segment_files import CONFIG, drained, judged
from tests.stored import storage_at
from twinsieve.pipeline.saved import segment_files, tries
from twinsieve.stages.contract import Batch
from twinsieve.stages.judge.batch_sieve import BatchSieve

__all__ = ["posts", "small_pieces"]


class FullDisk:
    """A folder that refuses files of segments while `is_full`; `tried` are the first numbers of those."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_full = True
        self.now_s = 1_000.0
        self.tried: list[int] = []
        monkeypatch.setattr(tries, "monotonic", lambda: self.now_s)
        plain = segment_files.write_segment

        def write(stream: Any, scheme_id: str, sealed: Any, hashes: Callable[[], Any]) -> str:
            self.tried.append(sealed.first)
            if self.is_full:
                raise OSError(28, os.strerror(28))
            return plain(stream, scheme_id, sealed, hashes)

        monkeypatch.setattr(segment_files, "write_segment", write)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> FullDisk:
    return FullDisk(monkeypatch)


@pytest.fixture(params=["", "memory:/"])
def life(request: pytest.FixtureRequest, tmp_path: Path) -> Life:
    """A sieve whose segments go to its folder, or to scratch files."""
    return Life(storage_at(f"{request.param}{tmp_path}"), CONFIG)


def in_memory(life: Life) -> list[int]:
    """First numbers of the sealed segments that are in no file."""
    return [each.ring.first for each in life.sieve.near.segments.sealed if not each.is_mapped]


def test_one_is_tried_a_minute_and_counted_once(life: Life, disk: FullDisk, posts: Batch) -> None:
    lines: list[str] = []
    life.journal.segments.report = life.journal.segments.scratch._report = lines.append
    expected = table(BatchSieve(CONFIG).judge(posts))
    assert judged(life, posts, 400) == expected[:400]
    held = in_memory(life)
    assert len(held) >= 4
    assert disk.tried == held[:1], "the oldest, however many were sealed since"
    for _ in range(3):
        disk.now_s += tries.AGAIN_S - 1
        life.sieve.in_memory()
        drained(life)
        disk.now_s += 1
        for _ in range(2):
            life.sieve.in_memory()
            drained(life)
    assert disk.tried == held[:1] * 4
    assert life.journal.segments.failures == 1
    assert len(lines) == 4
    assert life.journal.segments.refuses
    disk.is_full = False
    disk.now_s += tries.AGAIN_S
    for _ in range(3):
        life.sieve.in_memory()
        drained(life)
    assert in_memory(life) == []
    assert disk.tried == held[:1] * 4 + held, "each of them once"
    assert not life.journal.segments.refuses
    assert judged(life, posts, len(posts) - 400) == expected[400:]


def test_those_that_wait_behind_one_that_fails_are_not_tried(
    life: Life, disk: FullDisk, posts: Batch
) -> None:
    """They were sealed while the first one was being written."""
    segments, goes_on = life.journal.segments, Event()
    thread = segments.thread if life.storage.is_mapped else segments.scratch._writer
    thread.submit(goes_on.wait)
    life.judge(posts, 300)
    assert len(in_memory(life)) >= 3
    goes_on.set()
    drained(life)
    assert disk.tried == in_memory(life)[:1]
    assert life.journal.segments.failures == 1


def test_the_next_one_is_tried_when_the_window_has_passed_the_oldest(
    life: Life, disk: FullDisk, posts: Batch
) -> None:
    judged(life, posts, 300)
    (oldest,) = disk.tried
    while oldest in in_memory(life):
        judged(life, posts, 30)
    disk.now_s += tries.AGAIN_S
    life.sieve.in_memory()
    drained(life)
    assert disk.tried == [oldest, in_memory(life)[0]]
    assert life.journal.segments.failures == 2
