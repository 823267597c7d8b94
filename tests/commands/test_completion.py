"""Completion in shells, by the mechanism of click."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from twinsieve.pipeline.commands.cli import cli
from twinsieve.pipeline.commands.options import FILE_NAME

_INPUTS = {"inputs", "input_", "pairs_file", "file", "files", "source", "config", "command_config"}
_OF_FILES = _INPUTS | {"output", "duplicates", "dead_letter", "stats", "state", "wrong"}
"""Names of parameters."""


@pytest.fixture
def programs(tmp_path: Path, root: Path) -> dict[str, str]:
    """An environment in which `twinsieve` is this checkout."""
    program = tmp_path / "bin" / "twinsieve"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m twinsieve "$@"\n')
    program.chmod(0o755)
    return os.environ | {"PATH": f"{program.parent}:{os.environ['PATH']}", "PYTHONPATH": str(root)}


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("twinsieve ded", ["dedup"]),
        ("twinsieve dedup --enc", ["--encoding"]),
        ("twinsieve dedup --format js", ["jsonl", "json"]),
        ("twinsieve config sh", ["show"]),
        ("twinsieve config ''", ["list", "show"]),
    ],
)
def test_bash_completes_commands_options_and_choices(
    tmp_path: Path, programs: dict[str, str], words: str, completed: list[str]
) -> None:
    script = (
        'eval "$(_TWINSIEVE_COMPLETE=bash_source twinsieve)"; complete -p twinsieve >&2; '
        f"COMP_WORDS=({words}); COMP_CWORD={len(words.split()) - 1}; _twinsieve_completion twinsieve; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    ran = subprocess.run(["bash", "-c", script], env=programs, cwd=tmp_path, capture_output=True, check=False)
    assert ran.stderr.decode() == "complete -o nosort -F _twinsieve_completion twinsieve\n"
    assert ran.stdout.decode().split() == completed


@pytest.mark.parametrize(
    ("shell", "said"),
    [("zsh", "#compdef twinsieve"), ("fish", "complete --no-files --command twinsieve")],
)
def test_other_shells_get_a_script_too(
    tmp_path: Path, programs: dict[str, str], shell: str, said: str
) -> None:
    ran = subprocess.run(
        ["twinsieve"],
        env=programs | {"_TWINSIEVE_COMPLETE": f"{shell}_source"},
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr, said in ran.stdout.decode()) == (0, b"", True)


def test_a_shell_completes_names_of_files_wherever_one_is_asked_for() -> None:
    context = click.Context(cli)
    asked = [
        param
        for param in _params(cli, context)
        if param.name in _OF_FILES or (param.metavar or "").strip("[].") in ("FILE", "INPUT", "PAIRS")
    ]
    assert {param.name for param in asked} == _OF_FILES
    assert [param.name for param in asked if param.type is not FILE_NAME] == []
    items = FILE_NAME.shell_complete(context, asked[0], "po")
    assert [(item.value, item.type) for item in items] == [("po", "file")]


def _params(command: click.Command, context: click.Context) -> list[click.Parameter]:
    """Of a command and the commands below it."""
    found = list(command.params)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            found += _params(below, context)
    return found
