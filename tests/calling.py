"""How tests call commands."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, CompletedProcess
from typing import IO, Any

import pytest

from twinsieve.pipeline.commands.cli import main


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str


class Started(subprocess.Popen[bytes]):
    """A command that runs, with pipes at its three ends."""

    stdin: IO[bytes]
    stdout: IO[bytes]
    stderr: IO[bytes]

    def answer_to(self, rows: bytes) -> bytes:
        """The next line that comes out when these bytes have gone in."""
        self.stdin.write(rows)
        self.stdin.flush()
        return self.stdout.readline()

    def end(self) -> tuple[int, bytes]:
        """Exit code and the rest of stdout when nothing more goes in."""
        self.stdin.close()
        rest = self.stdout.read()
        return self.wait(300), rest


Run = Callable[..., Ran]
Piped = Callable[..., CompletedProcess[bytes]]
Start = Callable[..., Started]


def program(*arguments: str | Path) -> list[str]:
    """The words that start the command line in a process of its own."""
    return [sys.executable, "-m", "twinsieve", *map(str, arguments)]


def setting(*assignments: str) -> tuple[str, ...]:
    """The words of a command that set these keys, each given as in `near.threads=1`."""
    return tuple(word for assignment in assignments for word in ("--set", assignment))


SMALL = setting("near.window.messages=2000", "exact.window.messages=2000", "near.threads=1")
"""Windows that fill quickly and need little memory."""


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """Calls the command line in this process."""

    def call(*arguments: str | Path) -> Ran:
        code = main([str(argument) for argument in arguments])
        said = capfd.readouterr()
        return Ran(code, said.out, said.err)

    return call


@pytest.fixture
def piped(root: Path) -> Piped:
    """Runs the command line as a process with this content on its stdin; `how`: as for `subprocess.run`."""

    def call(
        arguments: Sequence[str | Path], content: bytes | None = None, **how: Any
    ) -> CompletedProcess[bytes]:
        ends = {"input": content, "stdout": PIPE, "stderr": PIPE, "cwd": root, "timeout": 300}
        return subprocess.run(program(*arguments), check=False, **ends | how)

    return call


@pytest.fixture
def started(root: Path) -> Start:
    """Starts the command line as a process with pipes; `how`: as for `subprocess.Popen`."""

    def call(*arguments: str | Path, **how: Any) -> Started:
        ends = {"stdin": PIPE, "stdout": PIPE, "stderr": PIPE, "cwd": root}
        return Started(program(*arguments), **ends | how)

    return call
