"""Completion in shells, by the mechanism of click."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


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
