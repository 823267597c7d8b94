"""`--state`: tomorrow's file against today's window, as if both were one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.conftest import SMALL, Run
from twinsieve.pipeline.generate import generate
from twinsieve.pipeline.leaders import Leader, LeaderBook
from twinsieve.stages.errors import StateError


def _lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def _write(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return path


@pytest.mark.parametrize("cut", [0, 1, 700, 1500])
def test_two_runs_say_what_one_would(tmp_path: Path, run: Run, cut: int) -> None:
    posts = list(generate(1500, seed=11))
    whole = _write(tmp_path / "whole.jsonl", posts)
    parts = [_write(tmp_path / "one.jsonl", posts[:cut]), _write(tmp_path / "two.jsonl", posts[cut:])]
    run("dedup", whole, "-o", tmp_path / "whole.out", "--duplicates", tmp_path / "whole.d", *SMALL)
    for part in parts:
        files = ("-o", f"{part}.out", "--duplicates", f"{part}.d", "--state", tmp_path / "state")
        assert run("dedup", part, *files, *SMALL).code == 0
    assert (
        b"".join(Path(f"{part}.out").read_bytes() for part in parts) == (tmp_path / "whole.out").read_bytes()
    )
    assert [entry for part in parts for entry in _lines(Path(f"{part}.d"))] == _lines(tmp_path / "whole.d")
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o600
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in (tmp_path / "state.leaders").iterdir())


def test_a_damaged_foreign_or_other_state_is_refused_with_what_to_do(tmp_path: Path, run: Run) -> None:
    source = _write(tmp_path / "in.jsonl", list(generate(20, seed=1)))
    state = tmp_path / "state"
    call = ("dedup", source, "-o", tmp_path / "out", "--state", state)
    assert run(*call, *SMALL).code == 0
    saved = state.read_bytes()
    damaged = [saved[:-1], saved[:30], saved[:10], b"", b"text", saved[:25] + b"\xff" + saved[26:]]
    damaged += [
        saved[:at] + bytes([saved[at] ^ 1]) + saved[at + 1 :]
        for at in (18, 40, len(saved) // 2, len(saved) - 9)
    ]
    for content in damaged:
        state.write_bytes(content)
        (tmp_path / "out").unlink(missing_ok=True)
        ran = run(*call, *SMALL)
        assert ran.code == 1
        assert len(ran.err.splitlines()) == 1
        assert ran.err.startswith(f"twinsieve: {state}: ")
        assert not (tmp_path / "out").exists()
        assert state.read_bytes() == content
    state.write_bytes(saved)
    for other in (
        ("--profile", "plain"),
        ("--set", "exact.window.messages=99"),
        ("--set", "digest.method=blake2b"),
        ("--set", "scope=tenant"),
        ("--set", "exact.fields=id", "--set", "near.method=text"),
    ):
        ran = run(*call, *SMALL, *other)
        assert (ran.code, len(ran.err.splitlines())) == (1, 1)
        assert str(state) in ran.err
    source.touch()
    assert run(*call, *SMALL, "--similarity", "0.9", "--set", "near.window.messages=99").code == 0


def test_a_run_repeated_after_its_end_is_refused_and_its_outputs_stay(tmp_path: Path, run: Run) -> None:
    source = _write(tmp_path / "in.jsonl", list(generate(50, seed=3)))
    (tmp_path / "link.jsonl").symlink_to(source)
    call = ("-o", tmp_path / "out", "--state", tmp_path / "state", *SMALL)
    assert run("dedup", source, *call).code == 0
    kept = (tmp_path / "out").read_bytes()
    for name in (source, tmp_path / "link.jsonl"):
        ran = run("dedup", name, *call)
        assert ran.code == 2
        assert "read it to its end, all its rows would be dropped" in ran.err
    assert (tmp_path / "out").read_bytes() == kept
    with source.open("a") as more:
        more.write('{"id": "x", "text": "something that was not there before"}\n')
    assert run("dedup", source, *call).code == 0
    assert (tmp_path / "out").read_text().count("\n") == 1


def test_a_failed_run_leaves_the_state_as_it_was(tmp_path: Path, run: Run) -> None:
    posts = list(generate(400, seed=2))
    state = tmp_path / "state"
    call = ("--duplicates", tmp_path / "d", "--state", state, *SMALL)
    run("dedup", _write(tmp_path / "a.jsonl", posts[:200]), "-o", tmp_path / "a", *call)
    before = state.read_bytes()
    broken = _write(tmp_path / "b.jsonl", posts[200:])
    assert run("dedup", broken, tmp_path / "missing", "-o", tmp_path / "b", *call).code == 1
    assert run("dedup", broken, "-o", "/dev/full", *call).code == 1
    assert state.read_bytes() == before
    assert run("dedup", broken, "-o", tmp_path / "b", *call).code == 0
    run("dedup", _write(tmp_path / "w.jsonl", posts), "-o", tmp_path / "w", *SMALL)
    assert (tmp_path / "a").read_bytes() + (tmp_path / "b").read_bytes() == (tmp_path / "w").read_bytes()


def test_lost_leaders_of_a_state_are_said(tmp_path: Path, run: Run) -> None:
    source = _write(tmp_path / "in.jsonl", list(generate(20, seed=1)))
    call = (
        "dedup",
        source,
        "-o",
        tmp_path / "out",
        "--duplicates",
        tmp_path / "d",
        "--state",
        tmp_path / "state",
    )
    assert run(*call, *SMALL).code == 0
    source.touch()
    (tmp_path / "state.leaders" / "leaders-0.rows").unlink()
    ran = run(*call, *SMALL)
    assert ran.code == 1
    assert "is missing; restore it or start with an empty state" in ran.err


@given(st.lists(st.lists(st.text(max_size=3), max_size=4), max_size=12), st.integers(1, 5))
def test_the_book_finds_every_leader_inside_the_window(batches: list[list[str]], window: int) -> None:
    book = LeaderBook(window)
    held: list[tuple[int, str]] = []
    for batch in batches:
        positions = [len(held) + 10 * at for at in range(len(batch))]
        first = (held[-1][0] + 1) if held else 0
        positions = [first + 7 * at for at in range(len(batch))]
        book.add(np.array(positions, np.int64), list(batch), batch)
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
            book.add(np.array([number], np.int64), [number], [f"text {number}"])

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
    assert again.find(np.array([24, 102])) == {24: Leader(24, "text 24"), 102: Leader(102, "text 102")}
    again.close()
    with (tmp_path / "b" / "leaders-2.rows").open("r+b") as stream:
        stream.truncate(3)
    with pytest.raises(StateError, match="cut off"):
        LeaderBook(10, tmp_path / "b", marks)
