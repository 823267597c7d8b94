"""`scripts/interpreters.py` says what differs, and what it cannot do."""

from __future__ import annotations

import sys
from pathlib import Path

import orjson
import pytest

from scripts import interpreters


def test_a_difference_is_named_and_counted(capsys: pytest.CaptureFixture[str]) -> None:
    report = interpreters.Report()
    report.compare("scheme", {"3.11": "a", "3.12": "a"})
    report.compare("posts", {"3.11": "a", "3.12": "b"})
    assert capsys.readouterr().out == "equal    scheme: a\nDIFFERS  posts: 3.11: a, 3.12: b\n"
    assert report.differs == 1


def test_what_does_not_run_is_no_interpreter(tmp_path: Path) -> None:
    shim = tmp_path / "python3.12"
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    assert interpreters.version_of(shim) == ""
    assert interpreters.version_of(tmp_path / "missing") == ""
    assert interpreters.version_of(Path(sys.executable)) == f"3.{sys.version_info.minor}"


def test_one_python_is_refused_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["interpreters.py", sys.executable])
    with pytest.raises(SystemExit) as stopped:
        interpreters.main()
    assert stopped.value.code == 2
    assert "found 1 of Python 3.11 to 3.14, two are needed; name them" in capsys.readouterr().err


def test_the_rows_of_characters_hold_every_letter(tmp_path: Path) -> None:
    path = tmp_path / "characters.jsonl"
    interpreters.write_every_character(path)
    seen = {char for line in path.read_bytes().splitlines() for char in orjson.loads(line)["text"]}
    assert {chr(code) for code in range(0x32000) if not 0xD800 <= code < 0xE000} <= seen
