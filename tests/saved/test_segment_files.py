"""Sealed segments lie in files: the verdicts are those of a sieve that has all of them in memory."""

from __future__ import annotations

import io
import os
from dataclasses import replace
from pathlib import Path
from random import Random
from threading import Event

import numpy as np
import pytest

from tests.property.streams import table
from tests.saved.test_journal import Life, posts, small_pieces
from tests.stored import storage_at
from twinsieve.pipeline.saved import UnreadableError, segment_files
from twinsieve.pipeline.saved.journal import Journal, MissingError
from twinsieve.pipeline.saved.manifest import Holds, StateFile, covering_files
from twinsieve.pipeline.saved.saved_files import SavedFiles
from twinsieve.pipeline.saved.segment_files import ScratchSegments, Uncached
from twinsieve.stages.contract import Batch, ExactConfig, NearConfig, SieveConfig, Window
from twinsieve.stages.errors import StateError
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.segment_reader import SegmentReader

__all__ = ["posts", "small_pieces"]

CONFIG = SieveConfig(
    ExactConfig(window=Window(2_000)), NearConfig(window=Window(400), segment=60, details=True)
)


def drained(life: Life) -> None:
    """Wait until all sealed segments are in files."""
    life.journal.segments.scratch._writer.submit(int).result()
    life.journal.segments.thread.submit(int).result()


def judged(life: Life, posts: Batch, rows: int, step: int = 30) -> list[object]:
    said: list[object] = []
    end = life.at + rows
    while life.at < end:
        said += life.judge(posts, min(step, end - life.at))
        drained(life)
    return said


def test_segments_in_files_answer_as_those_in_memory(posts: Batch, tmp_path: Path) -> None:
    expected = table(BatchSieve(CONFIG).judge(posts))
    life = Life(storage_at(str(tmp_path)), CONFIG)
    assert judged(life, posts, 500) == expected[:500]
    stats = life.sieve.stats()
    assert stats.bytes_mapped > stats.bytes_used / 2
    files = life.save()
    held = [file.holds for file in files if file.holds is not Holds.PART]
    assert held.count(Holds.SEGMENT) >= 5
    assert held == sorted(held, key=[Holds.SEGMENT, Holds.KEPT].index)
    kept = [file for file in files if file.holds is Holds.KEPT]
    assert kept[0].first > files[0].end
    life.restore()
    assert life.sieve.stats().bytes_mapped > 0
    assert judged(life, posts, len(posts) - 500) == expected[500:]
    names = {file.name for file in life.save()}
    assert {path.name for path in (tmp_path / "app").iterdir()} == names, "what the window passed is deleted"


@pytest.mark.parametrize("held", [0, 2, 5])
def test_what_look_ups_read_stays_in_memory_as_long_as_there_is_enough(
    held: int, posts: Batch, tmp_path: Path
) -> None:
    """Enough for the open segment and for the hot arrays of `held` sealed ones; the newest keep theirs."""
    first = BatchSieve(CONFIG)
    expected = table(first.judge(posts))
    sealed, opened = first.near.segments.sealed[0], first.near.segments.open
    memory = opened.bytes_used + held * sealed.bytes_hot + sealed.bytes_hot // 2 if held else 0
    config = replace(CONFIG, near=replace(CONFIG.near, memory=memory))
    life = Life(storage_at(str(tmp_path)), config)

    def check() -> None:
        segments = life.sieve.near.segments
        segments.use_files()
        holding = [segment.holds_memory for segment in segments.sealed]
        assert holding == sorted(holding), "the newest ones"
        assert all(segment.is_mapped for segment in segments.sealed)
        # The texts of the open segment have some room ahead.
        assert max(0, held - 1) <= sum(holding) <= held + 1
        assert segments.bytes_used == segments.open.bytes_used + sum(holding) * sealed.bytes_hot
        assert segments.bytes_used <= max(memory, segments.open.bytes_used)
        every = sum(segment.bytes_used for segment in segments.all)
        assert segments.bytes_used + segments.bytes_mapped == every

    assert judged(life, posts, 500) == expected[:500]
    check()
    life.save()
    life.restore()
    check()
    assert judged(life, posts, len(posts) - 500) == expected[500:]
    check()


def test_no_memory_is_held_for_segments_that_others_answer_for(posts: Batch, tmp_path: Path) -> None:
    expected = table(BatchSieve(CONFIG).judge(posts))
    config = replace(CONFIG, near=replace(CONFIG.near, memory=1 << 30))
    life = Life(storage_at(str(tmp_path)), config)
    assert judged(life, posts, 500) == expected[:500]
    segments = life.sieve.near.segments
    segments.wait_for_files()
    ids = life.sieve.sealed_ids()
    mapped = [segment for segment in segments.sealed if segment.is_mapped]
    assert len(mapped) >= 3
    assert life.sieve.hold(ids) is None
    assert not any(segment.holds_memory for segment in mapped)
    assert life.sieve.hold(ids) is None, "nothing is taken while all are answered for"
    left = mapped[-3:-1]
    answered = [each for each in ids if each not in {segment.id for segment in left}]
    for segment in reversed(left):
        take = life.sieve.hold(answered)
        assert take is not None
        take()
        assert segment.holds_memory, "the newest first"
    assert life.sieve.hold(answered) is None
    assert [segment for segment in mapped if segment.holds_memory] == left
    assert judged(life, posts, len(posts) - 500) == expected[500:]


def test_after_a_restart_answers_fit_the_segment_in_which_the_window_begins(
    posts: Batch, tmp_path: Path
) -> None:
    """Who answers for its file has all that is in it."""
    expected = table(BatchSieve(CONFIG).judge(posts))
    life, reader = Life(storage_at(str(tmp_path)), CONFIG), SegmentReader(CONFIG)
    judged(life, posts, 500)
    while life.sieve.sealed_ids()[0].first >= life.sieve.stats().kept - CONFIG.near.window.messages:
        judged(life, posts, 30)
    with SavedFiles(life.storage, life.save(), "") as files:
        held = [reader.add(sealed) for sealed in files.segments()]
    life.restore()
    part = posts.slice(life.at, life.at + 30)
    answers = {segment.id: reader.answer(part, segment) for segment in held}
    assert life.sieve.sealed_ids() == list(answers)
    assert table(life.sieve.judge(part, answers=answers)) == expected[life.at : life.at + 30]
    assert (life.sieve.near.answered_rows, life.sieve.near.left_rows) == (30 * len(held), 0)


def test_segments_that_become_full_in_a_restore_are_written(posts: Batch, tmp_path: Path) -> None:
    expected = table(BatchSieve(CONFIG).judge(posts))
    life = Life(storage_at(str(tmp_path)), CONFIG)
    life.sieve.seal_into(None)
    life.judge(posts, 500)
    files = life.save()
    assert not any(file.holds is Holds.SEGMENT for file in files)
    assert life.manifest is not None
    scratch = ScratchSegments("", str(tmp_path))
    with SavedFiles(life.storage, files, "") as parts:
        sieve = BatchSieve.load(io.BytesIO(life.manifest[1]), CONFIG, parts=parts, seal_into=scratch.write)
    segments = sieve.near.segments.sealed
    assert len(segments) >= 5
    assert all(segment.is_mapped for segment in segments[:-1])
    assert table(sieve.judge(posts.slice(500, len(posts)))) == expected[500:]
    scratch.close()


@pytest.mark.parametrize("restored", [False, True])
def test_a_message_in_a_file_can_be_forgotten(restored: bool, posts: Batch, tmp_path: Path) -> None:
    life, twin = Life(storage_at(str(tmp_path)), CONFIG), BatchSieve(CONFIG)
    judged(life, posts, 300)
    twin.judge(posts.slice(0, 300))
    gone = np.arange(100, 160)
    for sieve in (life.sieve, twin):
        sieve.forget(posts.positions[gone], posts.fingerprints.digests[gone, 0])
    if restored:
        life.save()
        life.restore()
    again = posts.take(gone)
    said = table(life.sieve.judge(again))
    assert said == table(twin.judge(again))
    assert sum(row[0] == 0 for row in said) > 20, "their copies are kept"


def test_a_message_that_is_forgotten_while_its_segment_is_written_stays_forgotten(
    posts: Batch, tmp_path: Path
) -> None:
    life, twin = Life(storage_at(str(tmp_path)), CONFIG), BatchSieve(CONFIG)
    life.journal.segments.thread.submit(lambda: life.storage.names())
    life.judge(posts, 200)
    twin.judge(posts.slice(0, 200))
    gone = np.arange(20, 80)
    for sieve in (life.sieve, twin):
        sieve.forget(posts.positions[gone], posts.fingerprints.digests[gone, 0])
    drained(life)
    again = posts.take(gone)
    assert table(life.sieve.judge(again)) == table(twin.judge(again))
    assert life.sieve.stats().bytes_mapped > 0


def test_a_segment_that_cannot_be_written_stays_in_memory_and_is_told(
    posts: Batch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = table(BatchSieve(CONFIG).judge(posts))
    life = Life(storage_at(str(tmp_path)), CONFIG)
    lines: list[str] = []
    life.journal.segments.report = lines.append
    create = life.storage.create

    def refused(name: str) -> object:
        if name.startswith("segment-"):
            raise OSError(28, os.strerror(28))
        return create(name)

    monkeypatch.setattr(life.storage, "create", refused)
    assert judged(life, posts, 400) == expected[:400]
    assert life.sieve.stats().bytes_mapped == 0
    assert lines
    assert all("No space left on device" in line and "stays in memory" in line for line in lines)
    files = life.save()
    assert not any(file.holds is Holds.SEGMENT for file in files)
    monkeypatch.undo()
    life.restore()
    assert judged(life, posts, 300) == expected[400:700]


def test_a_segment_in_a_file_has_what_was_lost_before(posts: Batch, tmp_path: Path) -> None:
    expected = table(BatchSieve(CONFIG).judge(posts))
    life = Life(storage_at(str(tmp_path)), CONFIG)
    judged(life, posts, 330)
    while life.sieve.stats().kept % 60 > 20:
        judged(life, posts, 5)
    life.lose()
    judged(life, posts, 5)
    with pytest.raises(MissingError, match="lost"):
        life.save()
    sealed = life.sieve.stats().kept // 60 * 60 + 60
    while life.sieve.stats().kept <= sealed:
        judged(life, posts, 5)
    drained(life)
    chosen = [file for file in life.save() if file.holds is not Holds.PART]
    assert [file.holds for file in chosen] == [Holds.SEGMENT] * (len(chosen) - 1) + [Holds.KEPT]
    life.restore()
    at = life.at
    assert judged(life, posts, len(posts) - at) == expected[at:]


@pytest.mark.parametrize("patience_s", [None, 5.0])
def test_a_segment_that_is_being_written_has_what_was_lost(
    patience_s: float | None, posts: Batch, tmp_path: Path
) -> None:
    """A sieve that may wait waits for it; another one is not restored for that."""
    life = Life(storage_at(str(tmp_path)), CONFIG)
    life.journal._limit_s = patience_s
    life.judge(posts, 50)
    life.lose()
    flows = Event()
    life.journal.segments.thread.submit(flows.wait)
    while life.sieve.stats().kept < 2 * 60:
        life.judge(posts, 10)
    if patience_s is None:
        life.journal._writer.submit(flows.set)
    else:
        waiting = r"\(lost, and the segment that has them is still being written\)"
        with pytest.raises(MissingError, match=waiting) as missing:
            life.save()
        assert not missing.value.is_over
        flows.set()
        drained(life)
    files = life.save()
    assert next(file.holds for file in files if file.holds is not Holds.PART) is Holds.SEGMENT
    assert not life.journal.segments.being_written


@pytest.mark.parametrize("fails", [False, True])
def test_segments_are_written_before_a_restore_is_complete(fails: bool, posts: Batch, tmp_path: Path) -> None:
    """The journal is there before the sieve, and knows only then what the sieve has kept."""
    expected = table(BatchSieve(CONFIG).judge(posts))
    life = Life(storage_at(str(tmp_path)), CONFIG)
    life.sieve.seal_into(None)
    life.judge(posts, 450)
    pieces = life.save()
    assert not any(file.holds is Holds.SEGMENT for file in pieces)
    assert life.manifest is not None
    journal = Journal(life.storage, "", 400)
    with SavedFiles(life.storage, pieces, "") as parts:
        sieve = BatchSieve.load(
            io.BytesIO(life.manifest[1]), CONFIG, parts=parts, seal_into=journal.write_segment
        )
    journal.segments.thread.submit(int).result()
    if fails:
        sieve, pieces, life.at = BatchSieve(CONFIG), [], 0
    journal.resume(sieve.stats().kept, pieces)
    sieve.on_kept = journal.take
    life.journal.close()
    life.sieve, life.journal = sieve, journal
    files = life.save()
    assert any(file.holds is Holds.SEGMENT for file in files) == (not fails)
    assert {path.name for path in (tmp_path / "app").glob("segment-*")} == {
        file.name for file in files if file.holds is Holds.SEGMENT
    }
    life.restore()
    assert judged(life, posts, len(posts) - life.at) == expected[450 * (not fails) :]


def test_scratch_files_have_no_name(posts: Batch, tmp_path: Path) -> None:
    expected = table(BatchSieve(CONFIG).judge(posts))
    sieve, scratch = BatchSieve(CONFIG), ScratchSegments("", str(tmp_path))
    sieve.seal_into(scratch.write)
    said = []
    for low in range(0, len(posts), 50):
        said += table(sieve.judge(posts.slice(low, low + 50)))
        scratch._writer.submit(int).result()
    assert said == expected
    assert sieve.stats().bytes_mapped > 0
    assert list(tmp_path.iterdir()) == []
    scratch.close()


def test_a_scratch_folder_that_is_missing_is_told(posts: Batch, tmp_path: Path) -> None:
    lines: list[str] = []
    sieve, scratch = BatchSieve(CONFIG), ScratchSegments("", str(tmp_path / "none"), lines.append)
    sieve.seal_into(scratch.write)
    expected = table(BatchSieve(CONFIG).judge(posts))
    assert table(sieve.judge(posts)) == expected
    scratch._writer.submit(int).result()
    assert str(tmp_path / "none") in lines[0]
    assert "state.scratch" in lines[0]


def test_a_segment_does_not_stay_in_the_page_cache_while_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go: list[int] = []
    monkeypatch.setattr(segment_files, "_CACHED", 1000)
    monkeypatch.setattr(os, "posix_fadvise", lambda file, *_: let_go.append(os.fstat(file).st_size))
    content = Random(1).randbytes(10_000)
    with (tmp_path / "file").open("w+b") as file:
        uncached = Uncached(file)
        for low in range(0, len(content), 300):
            uncached.write(content[low : low + 300])
        uncached.seek(0)
        uncached.write(b"head")
    assert (tmp_path / "file").read_bytes() == b"head" + content[4:]
    # All that was written before is in the file when its pages go.
    assert let_go == list(range(900, 10_000, 1200))


@pytest.mark.parametrize("harm", ["missing", "cut", "one bit", "another segment"])
def test_a_damaged_segment_is_named(harm: str, posts: Batch, tmp_path: Path) -> None:
    life = Life(storage_at(str(tmp_path)), CONFIG)
    judged(life, posts, 400)
    life.save()
    first, second = sorted((tmp_path / "app").glob("segment-*"))[:2]
    content = first.read_bytes()
    if harm == "missing":
        first.unlink()
    elif harm == "another segment":
        first.write_bytes(second.read_bytes())
    else:
        place = len(content) // 2
        flipped = content[:place] + bytes([content[place] ^ 8]) + content[place + 1 :]
        first.write_bytes(content[:-4096] if harm == "cut" else flipped)
    with pytest.raises(UnreadableError, match=first.name) as refused:
        life.restore()
    assert "restore it from a copy" in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("window", [50, 200, 400, 700])
def test_a_window_of_another_size_uses_the_same_files(window: int, posts: Batch, tmp_path: Path) -> None:
    life = Life(storage_at(str(tmp_path)), CONFIG)
    judged(life, posts, 700)
    life.save()
    assert life.manifest is not None
    config = replace(CONFIG, near=replace(CONFIG.near, window=Window(window)))
    with SavedFiles(life.storage, life.manifest[2], "") as parts:
        resized = BatchSieve.load(io.BytesIO(life.manifest[1]), config, parts=parts)
    assert resized.stats().held == min(window, life.sieve.stats().held)
    twin, rest = BatchSieve(config), posts.slice(life.at, 900)
    twin.apply(posts.slice(0, life.at), BatchSieve(CONFIG).judge(posts.slice(0, life.at)))
    found, expected = resized.judge(rest), twin.judge(rest)
    if window <= 400:
        assert table(found) == table(expected)
    else:
        # The twin still has what the window of the saved sieve has passed.
        is_held = expected.leaders >= 0
        assert np.count_nonzero(found.leaders[is_held] == expected.leaders[is_held]) > is_held.sum() / 2


def test_another_size_of_segments_is_refused_with_what_to_do(posts: Batch, tmp_path: Path) -> None:
    life = Life(storage_at(str(tmp_path)), CONFIG)
    judged(life, posts, 300)
    life.save()
    assert life.manifest is not None
    config = replace(CONFIG, near=replace(CONFIG.near, segment=70))
    with (
        SavedFiles(life.storage, life.manifest[2], "") as parts,
        pytest.raises(StateError, match=r"near\.segment=60, the configuration says near\.segment=70; set it"),
    ):
        BatchSieve.load(io.BytesIO(life.manifest[1]), config, parts=parts)


def test_segments_come_first_as_far_as_they_follow_each_other() -> None:
    def file(holds: Holds, first: int, end: int) -> StateFile:
        return StateFile(f"{holds}-{first}", holds, 1, "", first=first, end=end)

    segments = [file(Holds.SEGMENT, at, at + 10) for at in (0, 10, 30)]
    pieces = [file(Holds.KEPT, 0, 17), file(Holds.KEPT, 17, 45)]
    chosen = covering_files([*pieces, *segments], 3, 45)
    assert chosen is not None
    assert [(part.holds, part.first) for part in chosen] == [
        (Holds.SEGMENT, 0),
        (Holds.SEGMENT, 10),
        (Holds.KEPT, 17),
    ]
    assert covering_files([*segments, pieces[0]], 3, 45) is None
    assert covering_files(segments, 3, 20) == segments[:2]
