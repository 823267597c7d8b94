"""What a person at a terminal sees."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.calling import SMALL, Piped, program
from tests.generated_posts import generate
from tests.row_files import write_rows
from twinsieve.pipeline.basics.printable import printable

pytestmark = pytest.mark.matrix

BIDI_CONTROL = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""All characters with this property, by PropList.txt of Unicode 17.0."""


def _seen_on_a_terminal(root: Path, *arguments: str | Path) -> tuple[int, str]:
    """Exit code, and what a terminal on stderr got."""
    master, slave = pty.openpty()
    environ = os.environ | {"TERM": "xterm-256color", "COLUMNS": "100"}
    words = program(*arguments)
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=slave, cwd=root, env=environ) as running:
        os.close(slave)
        seen = b""
        while True:
            try:
                piece = os.read(master, 65_536)
            except OSError:
                break
            if not piece:
                break
            seen += piece
        code = running.wait(300)
    os.close(master)
    return code, seen.decode()


def test_a_terminal_gets_a_bar_with_rate_and_drop_share(tmp_path: Path, root: Path) -> None:
    source = write_rows(tmp_path / "in.jsonl", generate(2000, seed=5))
    code, seen = _seen_on_a_terminal(root, "dedup", source, "-o", tmp_path / "out", *SMALL)
    assert code == 0
    assert [part for part in ("rows", "/s", "% dropped", "2,000") if part not in seen] == []


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_a_report_is_shown_in_any_encoding(piped: Piped, encoding: str) -> None:
    environ = os.environ | {"PYTHONIOENCODING": encoding}
    for arguments in (
        ["explain", "你妈妈喊你回家吃饭", "你妈妈叫你回家吃饭"],
        ["lint"],
        ["lint", "/中.yaml"],
    ):
        ran = piped(arguments, env=environ)
        assert (ran.returncode in (0, 2), b"Traceback" in ran.stderr) == (True, False), ran.stderr
        if arguments[0] == "explain":
            shown = "你妈妈喊".encode(encoding, "backslashreplace")
            assert shown in ran.stdout


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_data_comes_out_byte_for_byte_in_any_encoding(tmp_path: Path, piped: Piped, encoding: str) -> None:
    content = '{"text": "今天武汉下雨了，大家出门记得带伞"}\r\n{"text": "\u00e9tude \u2028"}'.encode()
    source = tmp_path / "in.jsonl"
    source.write_bytes(content)
    environ = os.environ | {"PYTHONIOENCODING": encoding}
    ran = piped(["dedup", "-q", source, *SMALL], env=environ)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, content, b"")


@given(st.text())
def test_what_is_printed_moves_no_cursor(text: str) -> None:
    shown = printable(text)
    assert not any(
        ord(char) < 32 or 0x7F <= ord(char) < 0xA0 or 0xD800 <= ord(char) < 0xE000 for char in shown
    )
    assert not set(shown) & set(BIDI_CONTROL + "\u2028\u2029")
