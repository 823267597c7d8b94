"""Sealed segments in an object store: a restart maps copies of them, and keeps only the newest messages again."""

from __future__ import annotations

import io
import shutil
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest

import tests.shared_store  # (registers its address)
from tests.property.streams import table
from tests.saved.test_journal import Life, posts, small_pieces
from tests.saved.test_segment_files import CONFIG, drained, judged
from tests.stored import storage_at
from twinsieve.pipeline.saved import UnreadableError
from twinsieve.pipeline.saved.manifest import Holds
from twinsieve.pipeline.saved.saved_files import SavedFiles
from twinsieve.pipeline.saved.storage import Storage
from twinsieve.stages.contract import Batch
from twinsieve.stages.judge.batch_sieve import BatchSieve

__all__ = ["posts", "small_pieces"]


@pytest.fixture(params=["memory", tests.shared_store.PROTOCOL])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return storage_at(f"{request.param}://{tmp_path}")


@pytest.fixture
def expected(posts: Batch) -> list[Any]:
    return table(BatchSieve(CONFIG).judge(posts))


def _segments(life: Life) -> list[str]:
    return [name for name in life.storage.names() if name.endswith(".segment")]


def test_a_restart_maps_copies_of_the_segments(store: Storage, posts: Batch, expected: list[Any]) -> None:
    life = Life(store, CONFIG)
    assert judged(life, posts, 500) == expected[:500]
    files = life.save()
    held = [file.holds for file in files if file.holds is not Holds.PART]
    assert held.count(Holds.SEGMENT) >= 5
    for _ in range(2):
        life.restore()
        mapped = life.sieve.stats().bytes_mapped
        assert mapped > life.sieve.stats().bytes_used / 2
        with SavedFiles(store, files, "") as parts:
            again = sum(len(messages) for _, messages in parts.kept_messages())
        assert again < life.sieve.stats().held / 2, "only what is behind the segments is kept again"
    assert judged(life, posts, len(posts) - 500) == expected[500:]
    files = life.save()
    assert sorted(_segments(life)) == sorted(file.name for file in files if file.holds is Holds.SEGMENT)


@pytest.mark.parametrize("back", [False, True])
def test_a_state_with_segments_moves_between_a_folder_and_a_store(
    back: bool, store: Storage, posts: Batch, expected: list[Any], tmp_path: Path
) -> None:
    folder = storage_at(str(tmp_path / "folder"))
    here, there = (store, folder) if back else (folder, store)
    life = Life(here, CONFIG)
    judged(life, posts, 400)
    life.save()
    for name in here.names():
        with here.open(name) as source:
            file = there.create(name)
            shutil.copyfileobj(source, file.stream)
            file.finish()
            file.release()
    life.storage = there
    life.restore()
    assert life.sieve.stats().bytes_mapped > 0
    assert judged(life, posts, 200) == expected[400:600]


@pytest.mark.parametrize("fault", ["refused", "cut off", "hangs"])
def test_a_store_that_does_not_take_a_segment_stops_nothing(
    fault: str, store: Storage, posts: Batch, expected: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    life = Life(store, CONFIG)
    lines: list[str] = []
    life.journal.segments.report = lines.append
    flows, create = Event(), store.create

    def created(name: str) -> Any:
        if not name.startswith("segment-"):
            return create(name)
        if fault == "refused":
            raise ConnectionError("s3://me:secret@place")
        file = create(name)
        file.stream = _Stream(file.stream, flows if fault == "hangs" else None)
        return file

    monkeypatch.setattr(store, "create", created)
    if fault == "hangs":
        assert life.judge(posts, 400) == expected[:400]
        life.journal.segments.scratch._writer.submit(int).result()
    else:
        # One batch could move the window past segments before their turn comes, and nobody wants those.
        assert judged(life, posts, 400) == expected[:400]
    assert life.judge(posts, 1) == expected[400:401]
    assert life.sieve.stats().bytes_mapped > 0, "its memory is free all the same"
    files = life.save()
    assert {file.holds for file in files} <= {Holds.KEPT, Holds.PART}
    monkeypatch.undo()
    flows.set()
    drained(life)
    if fault == "hangs":
        assert not lines
        assert any(file.holds is Holds.SEGMENT for file in life.save())
    else:
        assert all("is only on this machine" in line and "secret" not in line for line in lines)
        assert len(lines) >= 4
        assert not _segments(life)
        assert not [name for name in store.names() if name.endswith(".partial")]
    assert not life.journal.segments.being_written
    life.restore()
    assert life.judge(posts, 200) == expected[401:601]


class _Stream:
    """A stream that breaks after its first bytes, or waits before them."""

    def __init__(self, stream: Any, flows: Event | None) -> None:
        self._stream = stream
        self._flows = flows
        self._broken = False

    def write(self, data: bytes) -> int:
        if self._flows is not None:
            self._flows.wait()
            return int(self._stream.write(data))
        self._stream.write(data[: len(data) // 2])
        raise ConnectionResetError("s3://me:secret@place")

    def close(self) -> None:
        self._stream.close()


def test_segments_that_the_window_has_passed_are_not_uploaded(
    store: Storage, posts: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = replace(CONFIG, near=replace(CONFIG.near, window=replace(CONFIG.near.window, messages=100)))
    life = Life(store, config)
    flows = Event()
    life.journal.segments.thread.submit(flows.wait)
    life.judge(posts, len(posts))
    life.journal._hand_over()
    life.journal.segments.scratch._writer.submit(int).result()
    flows.set()
    drained(life)
    assert 0 < len(_segments(life)) <= 3


@pytest.mark.parametrize("harm", ["missing", "cut", "one bit"])
def test_a_damaged_segment_is_named(harm: str, posts: Batch, tmp_path: Path) -> None:
    store = storage_at(f"memory://{tmp_path}")
    life = Life(store, CONFIG)
    judged(life, posts, 400)
    life.save()
    name = sorted(_segments(life))[0]
    path, files = store.path(name), store._files
    content = files.cat_file(path)
    place = len(content) // 2
    if harm == "missing":
        files.rm(path)
    else:
        flipped = content[:place] + bytes([content[place] ^ 8]) + content[place + 1 :]
        files.pipe_file(path, content[:-4096] if harm == "cut" else flipped)
    with pytest.raises(UnreadableError, match=f"{name}: .*; restore it from a copy"):
        life.restore()


def test_a_folder_for_copies_that_cannot_be_used_is_named(posts: Batch, tmp_path: Path) -> None:
    store = storage_at(f"memory://{tmp_path}")
    life = Life(store, CONFIG)
    judged(life, posts, 400)
    life.save()
    assert life.manifest is not None
    _, small, listed = life.manifest
    missing = str(tmp_path / "none")
    with (
        SavedFiles(store, listed, "", scratch=missing) as parts,
        pytest.raises(
            UnreadableError,
            match=r"cannot be copied there \(No such file or directory\); free space, or"
            r" set state\.scratch",
        ) as refused,
    ):
        BatchSieve.load(io.BytesIO(small), CONFIG, parts=parts)
    assert str(refused.value).startswith(missing)
    assert not refused.value.lasting
