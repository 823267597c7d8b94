"""A sieve that is saved, thrown away and restored at any time answers as one that lives for ever."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.generated_posts import generate
from tests.property.streams import Rows, batch_of, table
from tests.saved.small_runs import small_runs
from tests.stored import storage_at
from twinsieve.pipeline.saved import UnreadableError, journal, piece_bytes, storage
from twinsieve.pipeline.saved.journal import Journal, MissingError
from twinsieve.pipeline.saved.manifest import Holds, StateFile, covering_files
from twinsieve.pipeline.saved.saved_files import SavedFiles
from twinsieve.pipeline.saved.storage import Storage
from twinsieve.stages.contract import Batch, ExactConfig, NearConfig, SieveConfig, Window
from twinsieve.stages.errors import StateError
from twinsieve.stages.judge.batch_sieve import BatchSieve

_POSTS: Rows = [(post["text"], number // 40, 0, 0) for number, post in enumerate(generate(900, seed=5))]


@cache
def _all_posts() -> Batch:
    """Generated posts, whose times go on."""
    return batch_of(_POSTS)


@pytest.fixture
def posts() -> Batch:
    return _all_posts()


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records of some messages, pieces of some records, four pieces make one."""
    monkeypatch.setattr(journal, "RECORD_MESSAGES", 7)
    monkeypatch.setattr(piece_bytes, "SMALLEST_PIECE", 25)
    small_runs(monkeypatch)


class Life:
    """A sieve whose state is saved in a folder, as its owner does it; `at` rows are judged so far."""

    def __init__(self, place: Storage, config: SieveConfig) -> None:
        self.config = config
        self.storage = place
        self.sieve = BatchSieve(config)
        self.journal = self._journal(())
        self.at = 0
        self.manifest: tuple[int, bytes, list[StateFile]] | None = None

    def _journal(self, files: tuple[StateFile, ...]) -> Journal:
        window = self.config.near.window.messages
        made = Journal(self.storage, "", window, self.sieve.stats().kept, files)
        self.sieve.on_kept = made.take
        self.sieve.seal_into(made.write_segment)
        return made

    def judge(self, posts: Batch, rows: int) -> list[Any]:
        end = min(self.at + rows, len(posts))
        said = table(self.sieve.judge(posts.slice(self.at, end)))
        self.at = end
        return said

    def save(self, *, announce: bool = True) -> list[StateFile]:
        """Save; without `announce`, everything but the manifest is written."""
        cut = self.journal.cut(self.sieve.freeze(self.journal.parts))
        files = self.journal.write(cut)
        if announce:
            small = io.BytesIO()
            cut.frozen.write(small)
            self.manifest = self.at, small.getvalue(), files
            self.journal.announced(files, {file.name for file in files})
        return files

    def lose(self) -> None:
        """What was kept so far, and is in no segment, is in no file."""
        lose(self.journal, self.sieve.stats().kept)

    def restore(self, *, killed: bool = True) -> None:
        """Begin again from the last manifest; the old sieve ends or is killed."""
        if not killed:
            self.journal.close()
        # A killed process writes no more, but this one would.
        self.journal._writer.shutdown()
        self.journal.segments.scratch._writer.shutdown()
        self.journal.segments.thread.shutdown()
        self.sieve.on_kept = None
        del self.journal
        if self.manifest is None:
            self.at, files, self.sieve = 0, [], BatchSieve(self.config)
        else:
            self.at, small, files = self.manifest
            with SavedFiles(self.storage, files, "") as parts:
                self.sieve = BatchSieve.load(io.BytesIO(small), self.config, parts=parts)
        self.journal = self._journal(tuple(files))


def lose(journal: Journal, kept: int) -> None:
    """Of the messages that this journal has taken, lose those before this number that are in no segment."""
    journal._hand_over()
    journal._writer.submit(journal._discard_open).result()
    journal._files = [file for file in journal._files if file.holds is Holds.SEGMENT]
    journal._lose(kept, StateError("lost"))


def _config(method: Any, exact: Any, near: int, exact_window: int, segment: int = 16_000_000) -> SieveConfig:
    return SieveConfig(
        ExactConfig(exact, window=Window(exact_window, 15_000)),
        NearConfig(method=method, window=Window(near, 12_000), distances=((8, 3),), segment=segment),
    )


_EVENTS = st.lists(
    st.one_of(
        st.integers(1, 120),
        st.sampled_from(["save", "save", "save", "half a save", "lose", "kill", "stop"]),
    ),
    min_size=4,
    max_size=25,
)


@settings(max_examples=examples(60), deadline=None)
@given(
    events=_EVENTS,
    config=st.builds(
        _config,
        st.sampled_from(["text", "text", "hamming", "none"]),
        st.sampled_from(["bloom", "trie"]),
        st.sampled_from([30, 150, 2_000]),
        st.sampled_from([60, 300]),
        st.sampled_from([20, 70, 16_000_000]),
    ),
)
def test_saves_and_deaths_at_any_time_change_no_verdict(
    events: list[int | str], config: SieveConfig, tmp_path_factory: pytest.TempPathFactory
) -> None:
    posts = _all_posts()
    expected = table(BatchSieve(config).judge(posts))
    folder = tmp_path_factory.mktemp("state")
    life = Life(storage_at(str(folder)), config)
    for event in [*events, "kill", len(posts)]:
        if isinstance(event, int):
            at = life.at
            assert life.judge(posts, event) == expected[at : life.at]
        elif event == "save":
            life.journal.segments.thread.submit(int).result()
            try:
                files = life.save()
            except MissingError:
                # The window has not passed what was lost.
                continue
            assert covering_files(files, *_needed(life)) is not None
            there = {path.name for path in (folder / "app").glob("*")}
            # A segment that the state cannot use yet, because the one before it is in pieces, waits for the next.
            waiting = {name for name in there if name.startswith("segment-")}
            assert there - waiting == {file.name for file in files} - waiting
            assert {file.name for file in files} <= there
        elif event == "half a save":
            with suppress(MissingError):
                life.save(announce=False)
        elif event == "lose":
            life.lose()
        else:
            life.restore(killed=event == "kill")
    life.restore()
    life.judge(posts, len(posts))
    life.save()
    segments = [name for name in os.listdir(folder / "app") if name.startswith("segment-")]
    near = config.near
    assert len(segments) <= near.window.messages // near.segment + 2
    assert len(os.listdir(folder / "app")) - len(segments) <= 8 + 12 + 15


def _needed(life: Life) -> tuple[int, int]:
    frozen = life.sieve.freeze()
    return frozen.oldest, frozen.kept


def test_a_save_writes_what_is_new_and_nothing_but_the_manifest_where_nothing_is(
    posts: Batch, tmp_path: Path
) -> None:
    life = Life(storage_at(str(tmp_path)), _config("text", "bloom", 5_000, 5_000))
    sizes = []
    for rows in (300, 100, 0, 100):
        before = life.journal.written
        life.judge(posts, rows)
        life.save()
        sizes.append(life.journal.written - before)
    first, second, nothing, third = sizes
    assert nothing == 0
    assert 0 < second < first / 2
    assert 0 < third < first / 2


def test_pieces_are_merged_and_those_that_the_window_has_passed_are_deleted(
    posts: Batch, tmp_path: Path
) -> None:
    life = Life(storage_at(str(tmp_path)), _config("text", "none", 200, 10))
    counts, firsts = [], []
    while life.at < len(posts):
        life.judge(posts, 9)
        files = life.save()
        counts.append(len(files))
        firsts.append(min((file.first for file in files), default=0))
    assert max(counts) <= 12
    assert firsts == sorted(firsts)
    assert firsts[-1] > 100
    assert sum(file.end - file.first for file in files) < 300


class _Disk:
    """A disk that is full while `full` says so, from a number of bytes on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.full = False
        plain = storage.private_file

        def made(path: str) -> Any:
            file = plain(path)
            write = file.write

            def written(data: bytes) -> int:
                if self.full:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                return write(data)

            return _Proxy(file, written)

        monkeypatch.setattr(storage, "private_file", made)


class _Proxy:
    """A file with another `write`."""

    def __init__(self, file: Any, write: Callable[[bytes], int]) -> None:
        self._file = file
        self.write = write

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@pytest.mark.parametrize("when", ["in the midst", "at the save"])
def test_after_a_full_disk_a_restore_from_the_last_save_mends_what_is_missing(
    when: str, posts: Batch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = _Disk(monkeypatch)
    config = _config("text", "bloom", 400, 400)
    expected = table(BatchSieve(config).judge(posts))
    life = Life(storage_at(str(tmp_path)), config)
    life.judge(posts, 200)
    life.save()
    old = {path.name for path in (tmp_path / "app").iterdir()}
    if when == "at the save":
        life.judge(posts, 100)
    disk.full = True
    if when == "in the midst":
        life.judge(posts, 100)
    for _ in range(2):
        full = r"cannot be written \(No space left on device\); free space"
        with pytest.raises(MissingError, match=full) as missing:
            life.save()
        assert not missing.value.is_over
        life.judge(posts, 10)
    assert old <= {path.name for path in (tmp_path / "app").iterdir()}, "the state of the manifest is whole"
    disk.full = False
    life.judge(posts, 30)
    with pytest.raises(MissingError, match="No space left on device") as missing:
        life.save()
    assert missing.value.is_over
    assert missing.value.in_state
    life.restore(killed=False)
    assert life.at == 200
    assert life.judge(posts, 150) == expected[200:350]
    files = life.save()
    assert {path.name for path in (tmp_path / "app").iterdir()} == {file.name for file in files}
    life.restore()
    assert life.judge(posts, len(posts)) == expected[350:]


def test_after_a_full_disk_saves_go_on_when_the_window_has_passed_what_is_missing(
    posts: Batch, tmp_path: Path
) -> None:
    config = _config("text", "bloom", 100, 400)
    expected = table(BatchSieve(config).judge(posts))
    life = Life(storage_at(str(tmp_path)), config)
    life.judge(posts, 200)
    life.lose()
    lost = life.sieve.stats().kept
    while life.sieve.freeze().oldest < lost:
        life.judge(posts, 5)
        if life.sieve.freeze().oldest < lost:
            with pytest.raises(MissingError, match="lost"):
                life.save()
    life.save()
    life.restore()
    at = life.at
    assert life.judge(posts, len(posts)) == expected[at:]


@pytest.mark.parametrize("harm", ["missing", "cut", "one bit", "another run", "another scheme", "empty"])
@pytest.mark.parametrize("holds", ["kept", "bloom", "keys"])
def test_a_file_that_is_damaged_is_named(harm: str, holds: str, posts: Batch, tmp_path: Path) -> None:
    life = Life(storage_at(str(tmp_path)), _config("text", "bloom", 400, 100))
    life.judge(posts, 150)
    life.save()
    life.judge(posts, 150)
    life.save()
    paths = sorted((tmp_path / "app").glob(f"{holds}-*"))
    assert paths
    path = paths[0]
    content = path.read_bytes()
    if harm == "missing":
        path.unlink()
    elif harm == "another run":
        other = Life(storage_at(str(tmp_path / "other")), _config("text", "bloom", 400, 100))
        other.judge(posts.slice(300, 600), 150)
        other.save()
        found = sorted((tmp_path / "other" / "app").glob(f"{holds}-*"))[0].read_bytes()
        path.write_bytes(found[: len(content)].ljust(len(content), b"\0"))
    elif harm == "another scheme":
        path.write_bytes(
            content.replace(b'"scheme":""', b'"scheme":"x"').replace(b'"scheme": ""', b'"scheme": "x"')
        )
    else:
        changed = {
            "cut": content[:-20],
            "one bit": content[: len(content) // 2]
            + bytes([content[len(content) // 2] ^ 4])
            + content[len(content) // 2 + 1 :],
            "empty": b"",
        }
        path.write_bytes(changed[harm])
    with pytest.raises(UnreadableError, match=path.name) as refused:
        life.restore()
    assert "restore it from a copy" in str(refused.value) or "restore the right file" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_files_that_another_process_deleted_are_replaced(posts: Batch, tmp_path: Path) -> None:
    """A standby that takes over finds that the process before it has merged and deleted files."""
    config = _config("text", "bloom", 300, 300)
    expected = table(BatchSieve(config).judge(posts))
    leader = Life(storage_at(str(tmp_path)), config)
    leader.judge(posts, 100)
    leader.save()
    standby = Life(storage_at(str(tmp_path)), config)
    standby.manifest = leader.manifest
    standby.restore()
    for _ in range(12):
        leader.judge(posts, 25)
        leader.save()
        standby.judge(posts, 25)
    assert leader.manifest is not None
    standby.judge(posts, 40)
    cut = standby.journal.cut(standby.sieve.freeze(standby.journal.parts))
    newest = leader.manifest[2]
    files = standby.journal.write(cut, newest)
    assert {file.name for file in files} & {file.name for file in newest}
    small = io.BytesIO()
    cut.frozen.write(small)
    standby.manifest = standby.at, small.getvalue(), files
    standby.journal.announced(files, {file.name for file in [*files, *newest]})
    standby.restore()
    at = standby.at
    assert standby.judge(posts, 500) == expected[at : standby.at]


def test_two_processes_in_one_folder_leave_each_other_alone(posts: Batch, tmp_path: Path) -> None:
    config = _config("text", "bloom", 300, 300)
    one, other = Life(storage_at(str(tmp_path)), config), Life(storage_at(str(tmp_path)), config)
    for _ in range(10):
        for life in (one, other):
            life.judge(posts, 40)
            life.save(announce=False)
    cut = one.journal.cut(one.sieve.freeze(one.journal.parts))
    files = one.journal.write(cut)
    one.journal.announced(files, {file.name for file in files})
    assert other.save(), "its files are still there: it has their locks"
    other.restore()


def test_kept_messages_survive_their_encoding(posts: Batch) -> None:
    """Every column, to the last character."""
    from twinsieve.pipeline.saved.kept_file import messages_of, record_of
    from twinsieve.stages.judge.kept_messages import KeptMessages

    sieve = BatchSieve(SieveConfig())
    got: list[tuple[int, KeptMessages]] = []
    sieve.on_kept = lambda first, messages: got.append((first, messages))
    sieve.judge(posts)
    for first, messages in got:
        again = messages_of(record_of(first, messages), "here")
        for name in KeptMessages.__dataclass_fields__:
            assert np.array_equal(getattr(again, name), getattr(messages, name)), name
