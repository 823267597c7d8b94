"""The demo of README.md and the commands on files of docs/TOUR.md print what the pages show."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.documents import ROOT
from twinsieve.pipeline.commands.cli import main

pytestmark = pytest.mark.heavy

_STEP = re.compile(r"^```sh\n(?P<commands>.*?)^```\n\n```\n(?P<printed>.*?)^```$", re.MULTILINE | re.DOTALL)


def _plain(line: str) -> str:
    """The line without the blanks that a table adds where the terminal is wide."""
    return " ".join(line.split())


def test_commands_print_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "140")
    steps = _STEP.findall((ROOT / "docs" / "TOUR.md").read_text("utf-8"))
    assert len(steps) == 4
    for commands, shown in steps:
        printed = ""
        for line in commands.splitlines():
            assert main(shlex.split(line)[1:]) == 0, line
            outputs = capfd.readouterr()
            printed += outputs.out + outputs.err
        _require(shown, printed)


def test_the_demo_prints_what_the_readme_shows(tmp_path: Path) -> None:
    shown = re.search(
        r"^```\n(near: .*?)^```$", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    assert shown is not None
    program = tmp_path / "twinsieve"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m twinsieve "$@"\n')
    program.chmod(0o700)
    done = subprocess.run(
        [ROOT / "scripts" / "demo", tmp_path, "20000"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    _require(shown[1], done.stdout)


def _require(shown: str, printed: str) -> None:
    """Each shown line stands in what was printed, behind the one before it. An ellipsis stands for more lines,
    and at the end of a line for the rest of it."""
    lines = iter([_plain(line) for line in printed.splitlines()])
    for line in shown.splitlines():
        begin = re.sub(r"…\)?$", "", _plain(line)).rstrip()
        is_cut = begin != _plain(line)
        found = (other == begin or (is_cut and other.startswith(begin)) for other in lines)
        assert not begin or any(found), line
