"""How tests call commands."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from twinsieve.pipeline.commands.cli import main


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str


Run = Callable[..., Ran]

SMALL = (
    "--set",
    "near.window.messages=2000",
    "--set",
    "exact.window.messages=2000",
    "--set",
    "near.shards=1",
)
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
def process(root: Path) -> Callable[[Sequence[str | Path]], list[str]]:
    """The words that start the command line in a process of its own."""

    def words(arguments: Sequence[str | Path]) -> list[str]:
        return [sys.executable, "-m", "twinsieve", *map(str, arguments)]

    return words


@pytest.fixture
def piped(root: Path) -> Callable[..., subprocess.CompletedProcess[bytes]]:
    """Runs the command line as a process with bytes on its stdin."""

    def call(arguments: Sequence[str | Path], stdin: bytes) -> subprocess.CompletedProcess[bytes]:
        words = [sys.executable, "-m", "twinsieve", *map(str, arguments)]
        return subprocess.run(words, input=stdin, capture_output=True, cwd=root, check=False, timeout=300)

    return call
