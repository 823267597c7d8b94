"""Errors lead to the exit codes that are promised, and nothing swallows them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from twinsieve.pipeline.broker.records import BrokerError
from twinsieve.pipeline.commands import cli
from twinsieve.pipeline.files import FileError, MissingFileError, SignalledError
from twinsieve.pipeline.settings import ConfigError
from twinsieve.stages.errors import StateError, UsageError


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (UsageError("cannot"), 2, "twinsieve: cannot\n"),
        (ConfigError(["a:1:1: x", "a:2:1: y"]), 2, "a:1:1: x\na:2:1: y\n"),
        (FileError("f: gone"), 1, "twinsieve: f: gone\n"),
        (MissingFileError("f: gone"), 2, "twinsieve: f: gone\n"),
        (SignalledError("stopped", 15), 143, "twinsieve: stopped\n"),
        (StateError("s: damaged"), 1, "twinsieve: s: damaged\n"),
        (BrokerError("away", retryable=True), 1, "twinsieve: away\n"),
        (FileError("\x1b[2J: gone"), 1, "twinsieve: \\x1b[2J: gone\n"),
        (KeyboardInterrupt(), 130, "twinsieve: interrupted\n"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_an_error_becomes_one_line_and_an_exit_code(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    code: int,
    said: str,
) -> None:
    def fail(**_: object) -> None:
        raise error

    monkeypatch.setattr(cli.cli, "main", fail)
    assert cli.main([]) == code
    assert capsys.readouterr().err == said


def _swallows(handler: ast.ExceptHandler) -> bool:
    """Catches everything, and neither raises nor hands on what it caught."""
    kinds = {one.id for one in ast.walk(handler.type) if isinstance(one, ast.Name)} if handler.type else {""}
    inside = [one for statement in handler.body for one in ast.walk(statement)]
    raised = any(isinstance(one, ast.Raise) for one in inside)
    handed_on = any(isinstance(one, ast.Name) and one.id == handler.name for one in inside)
    return bool(kinds & {"", "Exception", "BaseException"}) and not raised and not handed_on


def test_nothing_swallows_everything(root: Path) -> None:
    wrong = [
        f"{path.relative_to(root)}:{node.lineno}"
        for package in ("stages", "pipeline", "twinsieve", "bench")
        for path in sorted((root / package).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ExceptHandler) and _swallows(node)
    ]
    assert not wrong, "\n".join(wrong)
