"""The commands on files of docs/TOUR.md print what stands below them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.docs.documents import ROOT
from twinsieve.pipeline.commands.cli import main

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
        lines = iter([_plain(line) for line in printed.splitlines()])
        # Each shown line stands in what was printed, behind the one before it.
        for line in shown.splitlines():
            assert line == "…" or _plain(line) in lines, line
