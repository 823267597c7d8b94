"""`warm-up`: missing kernels are compiled, and a user is told before it begins."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from twinsieve.pipeline.commands.cli import main
from twinsieve.pipeline.service import kernel_calls
from twinsieve.pipeline.service.warm_up import warm_up
from twinsieve.stages import kernel
from twinsieve.stages.kernel import folder


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The calls that were made: two, of a folder that is complete after them."""
    made: list[str] = []
    monkeypatch.setattr(kernel_calls, "CALLS", (lambda: made.append("one"), lambda: made.append("two")))
    monkeypatch.setattr(folder, "is_complete", lambda _calls: "marked" in made)
    monkeypatch.setattr(folder, "mark_as_complete", lambda _calls: not made.append("marked"))
    return made


def test_missing_kernels_are_compiled_once(made: list[str]) -> None:
    told: list[tuple[int, int]] = []
    for _ in range(2):
        assert warm_up(lambda *progress: told.append(progress))
    assert made == ["one", "two", "marked"]
    assert told == [(0, 2), (1, 2), (2, 2)]


def test_a_process_that_is_stopped_compiles_no_further(made: list[str]) -> None:
    assert not warm_up(stopped=lambda: bool(made))
    assert made == ["one"]


def test_a_newer_numba_than_the_tested_ones_is_tried_and_logged(
    made: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "twinsieve")
    assert warm_up()
    assert caplog.records == []
    monkeypatch.setattr(kernel, "version", (9, 99))
    assert warm_up()
    assert [record.levelname for record in caplog.records] == ["INFO"]


@pytest.mark.parametrize(("flags", "lines"), [([], 1), (["-q"], 0)])
def test_dedup_says_once_that_it_compiles_also_without_a_terminal(
    made: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str], flags: list[str], lines: int
) -> None:
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text('{"text": "a short one"}\n')
    assert main(["dedup", *flags, str(source), "-o", str(out)]) == 0
    assert made == ["one", "two", "marked"]
    assert capfd.readouterr().err.count("compiling kernels, once") == lines


def test_warm_up_says_where_the_kernels_are(made: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["warm-up"]) == 0
    assert str(folder.path()) in capfd.readouterr().err.splitlines()[-1]


def test_warm_up_fails_where_nothing_can_be_kept(made: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "is_usable", lambda: False)
    assert main(["warm-up"]) == 1
    assert made == []
