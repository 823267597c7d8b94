"""`warm-up`: parts go to processes in an order that holds, one that dies leaves its part, and a line says so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from twinsieve.pipeline.commands.cli import main
from twinsieve.pipeline.service import warm_up
from twinsieve.pipeline.service.warm_up import CompileProgress
from twinsieve.stages import compiled
from twinsieve.stages.judge import kernel_parts
from twinsieve.stages.judge.kernel_parts import PARTS, Part

_ECHO = "import sys\nfor line in sys.stdin: print(line.strip(), flush=True)"
_DIES = "import sys\nfor line in sys.stdin:\n  if line == 'exact\\n': sys.exit(1)\n  print(line.strip(), flush=True)"


def _starts(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Processes that run this script in place of compiling, with no part compiled yet."""

    def start() -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-S", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    monkeypatch.setattr(warm_up, "_worker", start)
    monkeypatch.setattr(compiled, "kept_in", lambda _part: None)
    monkeypatch.setattr(compiled, "writable", lambda: True)


def test_callees_come_before_callers() -> None:
    names = [part.name for part in PARTS]
    for number, part in enumerate(PARTS):
        assert set(part.after) <= set(names[:number]), part.name


@pytest.mark.parametrize("processes", [2, 5])
def test_every_part_is_compiled_once_and_behind_its_callees(
    monkeypatch: pytest.MonkeyPatch, processes: int
) -> None:
    _starts(monkeypatch, _ECHO)
    told: list[CompileProgress] = []
    warm_up.warm_up(told.append, processes=processes)
    names = [progress.name for progress in told[1:]]
    assert sorted(names) == sorted(part.name for part in PARTS)
    for part in PARTS:
        assert all(names.index(callee) < names.index(part.name) for callee in part.after)
    assert [progress.done for progress in told] == list(range(len(PARTS) + 1))
    assert {progress.processes for progress in told} == {processes}


def test_a_process_that_dies_leaves_its_part_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    _starts(monkeypatch, _DIES)
    told: list[CompileProgress] = []
    assert not warm_up.warm_up(told.append, processes=2)
    assert {progress.name for progress in told[1:]} == {part.name for part in PARTS} - {"exact"}


def test_all_processes_may_die(monkeypatch: pytest.MonkeyPatch) -> None:
    _starts(monkeypatch, "")
    told: list[CompileProgress] = []
    assert not warm_up.warm_up(told.append, processes=3)
    assert len(told) == 1


def test_stopping_gives_up_what_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    _starts(monkeypatch, "import sys\nsys.stdin.read()")
    assert not warm_up.warm_up(processes=2, stopped=lambda: True)


def test_where_nothing_is_missing_nothing_is_said_and_nothing_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compiled, "kept_in", lambda _part: Path("somewhere"))
    monkeypatch.delattr(warm_up, "_worker")
    told: list[CompileProgress] = []
    assert warm_up.warm_up(told.append)
    assert told == []


def _compiles_here(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One part that is missing, and compiled by this process."""
    done: list[str] = []
    part = Part("text", (), lambda: done.append("text"))
    monkeypatch.setattr(kernel_parts, "PARTS", (part,))
    monkeypatch.setattr(compiled, "kept_in", lambda name: Path("somewhere") if name in done else None)
    monkeypatch.setattr(compiled, "mark_as_ready", lambda _part: None)
    return done


@pytest.mark.parametrize("writable", [True, False])
def test_one_core_or_no_folder_compiles_in_this_process(
    monkeypatch: pytest.MonkeyPatch, writable: bool
) -> None:
    done = _compiles_here(monkeypatch)
    monkeypatch.setattr(compiled, "writable", lambda: writable)
    assert warm_up.warm_up(processes=8)
    assert done == ["text"]


@pytest.mark.parametrize("mine", [True, False])
@pytest.mark.parametrize("there", [True, False])
def test_the_folder_for_new_kernels_is_marked_once_it_has_all_parts(
    monkeypatch: pytest.MonkeyPatch, mine: bool, there: bool
) -> None:
    """After that a start does not look for each part. A folder in the package is not written to."""
    _compiles_here(monkeypatch)
    marked: list[str] = ["text"] if there else []
    folder = compiled.folders().write if mine else Path("package")
    monkeypatch.setattr(warm_up, "LAST_PART", "text")
    monkeypatch.setattr(compiled, "kept_in", lambda name: folder if name in marked else None)
    monkeypatch.setattr(compiled, "mark_as_ready", marked.append)
    assert warm_up.warm_up(processes=1)
    assert marked == (["text", "all"] if mine else ["text"])
    monkeypatch.setattr(kernel_parts, "PARTS", None)
    if mine:
        assert not warm_up.missing_parts()
        assert warm_up.warm_up()
        assert marked == ["text", "all"]


@pytest.mark.parametrize(("flags", "lines"), [([], 1), (["-q"], 0)])
def test_dedup_says_once_that_it_compiles_also_without_a_terminal(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    flags: list[str],
    lines: int,
) -> None:
    done = _compiles_here(monkeypatch)
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text('{"text": "a short one"}\n')
    assert main(["dedup", *flags, str(source), "-o", str(out)]) == 0
    assert done == ["text"]
    assert capfd.readouterr().err.count("compiling kernels, once") == lines


def test_warm_up_says_where_the_kernels_are(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    _compiles_here(monkeypatch)
    monkeypatch.setattr(warm_up, "LAST_PART", "text")
    assert main(["warm-up"]) == 0
    said = capfd.readouterr().err.splitlines()
    assert said[1].startswith("  1 of 1: text (")
    assert said[-1].startswith("all kernels are in somewhere (")


def test_warm_up_fails_where_nothing_can_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    done = _compiles_here(monkeypatch)
    monkeypatch.setattr(compiled, "writable", lambda: False)
    assert main(["warm-up"]) == 1
    assert done == []
