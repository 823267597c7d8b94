"""`--state`: tomorrow's file against today's window, as if both were one."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.calling import SMALL, Ran, Run, setting
from tests.generated_posts import generate
from tests.row_files import read_lines, write_rows
from twinsieve.pipeline.dedup.inputs import content_digest
from twinsieve.pipeline.dedup.leaders import Leader, LeaderBook
from twinsieve.stages.errors import NEW_STATE, StateError


def _without_places(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if not name.endswith(("source", "line"))}


@pytest.mark.parametrize("cut", [0, 1, 700, 1500])
def test_two_runs_say_what_one_would(tmp_path: Path, run: Run, cut: int) -> None:
    posts = list(generate(1500, seed=11))
    whole = write_rows(tmp_path / "whole.jsonl", posts)
    parts = [write_rows(tmp_path / "one.jsonl", posts[:cut]), write_rows(tmp_path / "two.jsonl", posts[cut:])]
    run("dedup", whole, "-o", tmp_path / "whole.out", "--duplicates", tmp_path / "whole.d", *SMALL)
    for part in parts:
        files = ("-o", f"{part}.out", "--duplicates", f"{part}.d", "--state", tmp_path / "state")
        assert run("dedup", part, *files, *SMALL).code == 0
    assert (
        b"".join(Path(f"{part}.out").read_bytes() for part in parts) == (tmp_path / "whole.out").read_bytes()
    )
    expected = read_lines(tmp_path / "whole.d")
    places = [
        (str(part), line)
        for part, count in zip(parts, (cut, 1500 - cut), strict=True)
        for line in range(1, count + 1)
    ]
    for entry in expected:
        entry["source"], entry["line"] = places[entry["position"] - 1]
        entry["leader_source"], entry["leader_line"] = places[entry["duplicate_of"] - 1]
    assert [entry for part in parts for entry in read_lines(Path(f"{part}.d"))] == expected
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in (tmp_path / "state").iterdir())


def test_a_run_under_other_rules_goes_on_and_says_so_once(tmp_path: Path, run: Run) -> None:
    posts, words = list(generate(60, seed=3)), tmp_path / "words.yaml"
    words.write_text("light: foo\n", "utf-8")
    reported = []
    limit, own = setting("near.limits.longest=9"), setting(f"near.words_file={words}")
    full = (*SMALL, *setting("near.differences=full"))
    for number, more in enumerate([(), limit, limit, (*limit, *own), (*limit, *own)]):
        part = write_rows(tmp_path / f"{number}.jsonl", posts[number * 12 : number * 12 + 12])
        done = run("dedup", part, "-o", f"{part}.out", "--state", tmp_path / "state", *full, *more)
        assert done.code == 0, done.err
        reported.append(done.err.count("other rules"))
    assert reported == [0, 1, 0, 1, 0]


def test_a_damaged_foreign_or_other_state_is_refused_with_what_to_do(tmp_path: Path, run: Run) -> None:
    source = write_rows(tmp_path / "in.jsonl", list(generate(20, seed=1)))
    call = ("dedup", source, "-o", tmp_path / "out", "--state", tmp_path / "state")
    assert run(*call, *SMALL).code == 0
    state = tmp_path / "state" / "state"
    saved = state.read_bytes()
    damaged = [saved[:-1], saved[:30], saved[:10], b"", b"text"]
    damaged += [
        saved[:at] + bytes([saved[at] ^ 1]) + saved[at + 1 :]
        for at in (18, 25, 40, len(saved) // 2, len(saved) - 9)
    ]
    for content in damaged:
        state.write_bytes(content)
        (tmp_path / "out").unlink(missing_ok=True)
        ran = run(*call, *SMALL)
        assert ran.code == 1
        assert len(ran.err.splitlines()) == 1
        assert ran.err.startswith(f"twinsieve: {state}: ")
        assert NEW_STATE in ran.err
        assert not (tmp_path / "out").exists()
        assert state.read_bytes() == content
    state.write_bytes(saved)
    for other in (
        ("--profile", "plain"),
        ("--profile", "microblog"),
        setting("exact.window.messages=99"),
        setting("digest.method=blake2b"),
        setting("scope=tenant"),
        setting("exact.fields=id", "near.method=text"),
    ):
        named = {word.partition("=")[0] for word in other}
        small = [word for word in SMALL[1::2] if word.partition("=")[0] not in named]
        ran = run(*call, *(f"--set={word}" for word in small), *other)
        assert (ran.code, len(ran.err.splitlines())) == (1, 1)
        assert str(state) in ran.err
        assert f"or {NEW_STATE}" in ran.err
    (tmp_path / "out").unlink(missing_ok=True)
    small = (*SMALL[2:], *setting("near.window.messages=99"))
    assert run(*call, *small, "--similarity", "0.9").code == 0


@pytest.mark.parametrize("method", ["bloom", "trie"])
@pytest.mark.parametrize("flags", [(), ("--duplicates", "dropped")])
def test_a_state_without_a_near_stage_continues(
    tmp_path: Path, run: Run, method: str, flags: tuple[str, ...]
) -> None:
    more = [word if word.startswith("-") else tmp_path / word for word in flags]
    small = setting("exact.fields=[key]", f"exact.method={method}", "exact.window.messages=2000")
    kept = []
    for number in range(4):
        rows = ({"text": f"text {number}", "key": str(key)} for key in range(5 * number, 5 * number + 8))
        source = write_rows(tmp_path / f"in{number}.jsonl", rows)
        out = tmp_path / "out.jsonl"
        ran = run("dedup", "-q", source, "-o", out, "--state", tmp_path / "state", *more, *small)
        assert (ran.code, ran.err) == (0, "")
        kept.append([row["key"] for row in read_lines(out)])
    assert kept == [[str(key) for key in range(5 * run + 3 * (run > 0), 5 * run + 8)] for run in range(4)]


def _touched(source: Path) -> Path:
    os.utime(source, (1, 1))
    return source


def _copied(source: Path) -> Path:
    return Path(shutil.copyfile(source, source.with_name("copy.jsonl")))


def _linked(source: Path) -> Path:
    source.with_name("link.jsonl").symlink_to(source)
    return source.with_name("link.jsonl")


@pytest.mark.parametrize("way", [Path, _touched, _copied, _linked])
@pytest.mark.parametrize("later_runs", [0, 2])
def test_a_repeated_run_never_replaces_its_outputs(
    tmp_path: Path, run: Run, way: Callable[[Path], Path], later_runs: int
) -> None:
    source = write_rows(tmp_path / "in.jsonl", list(generate(50, seed=3)))
    out, dropped = tmp_path / "out", tmp_path / "dropped"
    state = ("-q", "--state", tmp_path / "state", *SMALL)
    assert run("dedup", source, "-o", out, "--duplicates", dropped, *state).code == 0
    for seed in range(later_runs):
        other = write_rows(tmp_path / "other.jsonl", list(generate(5, seed=seed + 40)))
        assert run("dedup", other, "-o", tmp_path / "none", *state).code == 0
    kept = (out.read_bytes(), dropped.read_bytes())
    repeated = way(source)
    said = f"{repeated}: an earlier run on {tmp_path}/state read this content"
    for flags in (("-o", out), ("-o", tmp_path / "new", "--duplicates", dropped)):
        ran = run("dedup", repeated, *flags, *state)
        assert (ran.code, len(ran.err.splitlines())) == (2, 1)
        assert ran.err.startswith(f"twinsieve: {said}")
    assert (out.read_bytes(), dropped.read_bytes()) == kept
    ran = run("dedup", repeated, "-o", tmp_path / "new", *state)
    assert ran == Ran(0, "", f"{said}; all its rows are dropped\n")
    assert (tmp_path / "new").read_bytes() == b""
    with repeated.open("a") as more:
        more.write('{"id": "x", "text": "something that was not there before"}\n')
    assert run("dedup", repeated, "-o", out, *state).code == 0
    assert out.read_text().count("\n") == 1


def test_large_inputs_are_known_by_blocks_all_over_them(tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as stream:
        stream.truncate(200 << 20)
    found = {content_digest(str(path))}
    for start in (0, 77 << 20, 196 << 20):
        with path.open("r+b") as stream:
            # As many bytes as lie between two blocks: some of them are read, wherever they are.
            stream.seek(start)
            stream.write(b"x" * (4 << 20))
        found.add(content_digest(str(path)))
    assert len(found) == 4
    assert content_digest("/dev/null") is content_digest(str(tmp_path / "none")) is None


@given(st.binary(min_size=1, max_size=40), st.binary(min_size=1, max_size=40))
def test_small_inputs_are_known_by_every_byte(one: bytes, other: bytes) -> None:
    digests = []
    for content in (one, other):
        with tempfile.NamedTemporaryFile() as stream:
            stream.write(content)
            stream.flush()
            digests.append(content_digest(stream.name))
    assert (digests[0] == digests[1]) == (one == other)


@pytest.mark.parametrize("where", ["input", "folder"])
def test_names_that_are_not_utf8_are_names_like_others(tmp_path: Path, run: Run, where: str) -> None:
    folder = tmp_path / (os.fsdecode(b"bad\xff") if where == "folder" else "good")
    folder.mkdir()
    source = folder / (os.fsdecode(b"bad\xff.jsonl") if where == "input" else "in.jsonl")
    write_rows(source, list(generate(20, seed=1)))
    files = ("-q", "--state", folder / "state", "--duplicates", folder / "d", *SMALL)
    assert run("dedup", source, "-o", folder / "out", *files) == Ran(0, "", "")
    ran = run("dedup", source, "-o", folder / "out", *files)
    assert (ran.code, len(ran.err.splitlines()), "Traceback" in ran.err) == (2, 1, False)


def test_a_failed_run_leaves_the_state_as_it_was(tmp_path: Path, run: Run) -> None:
    posts = list(generate(400, seed=2))
    state = tmp_path / "state"
    call = ("--duplicates", tmp_path / "d", "--state", state, *SMALL)
    run("dedup", write_rows(tmp_path / "a.jsonl", posts[:200]), "-o", tmp_path / "a", *call)
    before = _content(state)
    broken = write_rows(tmp_path / "b.jsonl", posts[200:])
    assert run("dedup", broken, tmp_path / "missing", "-o", tmp_path / "b", *call).code == 2
    assert run("dedup", broken, "-o", "/dev/full", *call).code == 1
    now = _content(state)
    assert set(now) == set(before)
    # The leader book may have grown; the next run cuts it.
    assert all(now[name].startswith(content) for name, content in before.items())
    assert run("dedup", broken, "-o", tmp_path / "b", *call).code == 0
    run("dedup", write_rows(tmp_path / "w.jsonl", posts), "-o", tmp_path / "w", *SMALL)
    assert (tmp_path / "a").read_bytes() + (tmp_path / "b").read_bytes() == (tmp_path / "w").read_bytes()


def _content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_run_writes_what_is_new(tmp_path: Path, run: Run) -> None:
    """And without a kept message the manifest alone."""
    posts = list(generate(3_000, seed=4))
    state = tmp_path / "state"
    files = ("-q", "--state", state, *setting("exact.window.messages=20000"))
    first_out = tmp_path / "0.out"
    sizes = []
    for number, rows in enumerate((posts[:2_400], posts[2_400:2_700], None, posts[2_700:])):
        before = _content(state) if sizes else {}
        source = tmp_path / f"{number}.jsonl"
        if rows is None:
            shutil.copyfile(first_out, source)
        else:
            write_rows(source, rows)
        assert run("dedup", source, "-o", tmp_path / f"{number}.out", *files).code == 0
        now = _content(state)
        assert {name for name, content in before.items() if now.get(name, content) != content} == (
            {"state"} if before else set()
        )
        sizes.append(
            sum(len(now[name]) for name in set(now) - set(before)) - (0 if before else len(now["state"]))
        )
    first, second, nothing, third = sizes
    assert nothing == 0
    assert all(0 < size < first / 4 for size in (second, third)), sizes


@pytest.mark.parametrize("left", ["nothing", "a first run that was killed", "a later run that was killed"])
def test_what_a_killed_run_has_left_is_swept(tmp_path: Path, run: Run, left: str) -> None:
    state = tmp_path / "state"
    one, two = (write_rows(tmp_path / f"{seed}.jsonl", generate(50, seed=seed)) for seed in (1, 2))
    call = ("dedup", "-q", "--state", state, *SMALL)
    named: set[str] = set()
    if left == "a later run that was killed":
        assert run(*call, one, "-o", tmp_path / "out").code == 0
        named = set(_content(state)) - {"state"}
    else:
        state.mkdir()
    if left != "nothing":
        for name in (
            "lock",
            "kept-0000000000000000-0123abcd.piece",
            "kept-0000000000000009-0123abcd.piece.0123456789abcdef.partial",
            "bloom-0-0123abcd.part",
            "leaders-0.rows",
            ".state.0123abcd.part",
        ):
            (state / name).write_bytes(b"" if name == "lock" else b"rest")
    assert run(*call, two, "-o", tmp_path / "out").code == 0
    now = _content(state)
    assert named < set(now)
    assert len(now) == len(named) + 3, "the manifest, one more piece, and the new keys of the filter"
    assert not {content for content in now.values() if content == b"rest"}


def test_lost_leaders_of_a_state_are_said(tmp_path: Path, run: Run) -> None:
    source = write_rows(tmp_path / "in.jsonl", list(generate(20, seed=1)))
    files = ("-o", tmp_path / "out", "--duplicates", tmp_path / "d", "--state", tmp_path / "state")
    assert run("dedup", source, *files, *SMALL).code == 0
    for name in ("out", "d", "state/leaders-0.rows"):
        (tmp_path / name).unlink()
    ran = run("dedup", source, *files, *SMALL)
    assert ran.code == 1
    assert f"is missing; restore it, or {NEW_STATE}" in ran.err


@given(st.lists(st.lists(st.text(max_size=3), max_size=4), max_size=12), st.integers(1, 5))
def test_the_book_finds_every_leader_inside_the_window(batches: list[list[str]], window: int) -> None:
    book = LeaderBook(window)
    held: list[tuple[int, str]] = []
    for batch in batches:
        positions = [len(held) + 10 * at for at in range(len(batch))]
        first = (held[-1][0] + 1) if held else 0
        positions = [first + 7 * at for at in range(len(batch))]
        book.add(np.array(positions, np.int64), [Leader(one, one) for one in batch])
        held += zip(positions, batch, strict=True)
        found = book.find(np.array([position for position, _ in held] + [10**9], np.int64))
        for position, text in held[-window:]:
            assert found[position] == Leader(text, text)
        assert all(found[position] == Leader(text, text) for position, text in held if position in found)
        assert 10**9 not in found
    book.close()


def test_the_book_goes_on_from_its_marks_and_forgets_what_came_after(tmp_path: Path) -> None:
    def entered(book: LeaderBook, numbers: range) -> None:
        for number in numbers:
            book.add(np.array([number], np.int64), [Leader(number, f"text {number}", "a", number)])

    (tmp_path / "b").mkdir()
    book = LeaderBook(10, tmp_path / "b")
    entered(book, range(25))
    marks = book.marks()
    book.tidy()
    assert len(list((tmp_path / "b").iterdir())) == 4
    entered(book, range(25, 60))
    book.close()
    again = LeaderBook(10, tmp_path / "b", marks)
    found = again.find(np.arange(60))
    assert sorted(found) == list(range(10, 25))
    entered(again, range(100, 103))
    assert again.find(np.array([24, 102])) == {
        24: Leader(24, "text 24", "a", 24),
        102: Leader(102, "text 102", "a", 102),
    }
    again.close()
    with (tmp_path / "b" / "leaders-2.rows").open("r+b") as stream:
        stream.truncate(3)
    with pytest.raises(StateError, match="cut off"):
        LeaderBook(10, tmp_path / "b", marks)


def _two_days(tmp_path: Path, run: Run) -> tuple[Any, ...]:
    """The call of a second day that meets leaders of the first."""
    posts = list(generate(600, seed=8))
    first, second = (
        write_rows(tmp_path / "one.jsonl", posts[:300]),
        write_rows(tmp_path / "two.jsonl", posts[300:]),
    )
    files = ("-q", "--duplicates", tmp_path / "d", "--state", tmp_path / "state", *SMALL)
    assert run("dedup", first, "-o", tmp_path / "one", *files).code == 0
    return "dedup", second, "-o", tmp_path / "two", *files


@pytest.mark.parametrize("name", ["rows", "entries"])
@pytest.mark.parametrize("harm", ["garbage", "flipped", "cut", "empty", "missing"])
def test_changed_leaders_are_one_line_and_never_a_wrong_text(
    tmp_path: Path, run: Run, name: str, harm: str
) -> None:
    call = _two_days(tmp_path, run)
    path = tmp_path / "state" / f"leaders-0.{name}"
    content = bytearray(path.read_bytes())
    if harm == "garbage":
        content[:] = np.random.default_rng(1).bytes(len(content))
    elif harm == "flipped":
        # In rows every one, as only those are read that lead; of entries one bit is enough.
        for at in range(20, len(content), 21 if name == "rows" else len(content)):
            content[at] ^= 1
    elif harm in ("cut", "empty"):
        del content[0 if harm == "empty" else len(content) - 1 :]
    path.write_bytes(content)
    if harm == "missing":
        path.unlink()
    before = (tmp_path / "state" / "state").read_bytes()
    ran = run(*call)
    assert (ran.code, len(ran.err.splitlines())) == (1, 1), ran.err
    assert ran.err.startswith(f"twinsieve: {path}: ")
    assert f"restore it, or {NEW_STATE}" in ran.err
    assert (tmp_path / "state" / "state").read_bytes() == before
    assert not (tmp_path / "two").exists()


def test_duplicates_asked_for_later_say_that_earlier_leaders_have_no_text(tmp_path: Path, run: Run) -> None:
    posts = list(generate(900, seed=8))
    days = [write_rows(tmp_path / f"{day}.jsonl", posts[300 * day : 300 * (day + 1)]) for day in range(3)]
    files = ("-q", "--state", tmp_path / "state", *SMALL)
    assert run("dedup", days[0], "-o", tmp_path / "0", *files) == Ran(0, "", "")
    for day in (1, 2):
        ran = run("dedup", days[day], "-o", tmp_path / str(day), "--duplicates", tmp_path / "d", *files)
        entries = read_lines(tmp_path / "d")
        silent = [entry for entry in entries if entry["leader_text"] is None]
        assert (ran.code, 0 < len(silent) < len(entries)) == (0, True)
        assert all(entry["duplicate_of"] <= 300 for entry in silent)
        assert ran.err == (
            f"{tmp_path}/d: {len(silent):,} of {len(entries):,} duplicates name a leader without text and id: "
            f"earlier runs on {tmp_path}/state kept none; they are kept since --duplicates was given\n"
        )
    whole = write_rows(tmp_path / "whole.jsonl", posts)
    run("dedup", whole, "-q", "-o", tmp_path / "w", "--duplicates", tmp_path / "wd", *SMALL)
    last = [entry for entry in read_lines(tmp_path / "wd") if entry["position"] > 600]
    expected = [
        entry | ({"leader_text": None, "duplicate_of_id": None} if entry["duplicate_of"] <= 300 else {})
        for entry in last
    ]
    assert list(map(_without_places, read_lines(tmp_path / "d"))) == list(map(_without_places, expected))
