"""The first run after an installation: small chunks are judged by interpreted kernels while others compile."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.calling import SMALL
from tests.row_files import read_lines, write_rows
from twinsieve.pipeline.basics.processors import cores
from twinsieve.pipeline.dedup import Wanted
from twinsieve.pipeline.dedup.run import Dedup, Job
from twinsieve.pipeline.files.formats.json_lines import JsonLines
from twinsieve.pipeline.files.source import InputSource
from twinsieve.pipeline.generate.stream import generate
from twinsieve.pipeline.settings.model import Settings
from twinsieve.stages.kernel import interpret

_ROWS = [
    {"id": "a", "text": "今日新增确诊十二例，无新增死亡病例，请大家做好防护"},
    {"id": "b", "text": "The ferry across the river is late again this morning"},
    {"id": "c", "text": "今日新增确诊十二例，无新增死亡病例，请大家做好防护。"},
]


class _Compiling:
    """What the run is told to wait for. waited_at: rows judged before each wait"""

    def __init__(self) -> None:
        self.is_done = False
        self.waited_at: list[int] = []
        self.dedup: Dedup | None = None

    def wait(self) -> None:
        """Kernels are compiled from now on."""
        assert self.dedup is not None
        self.waited_at.append(self.dedup.summary.rows)
        interpret(False)


@pytest.fixture
def compiling() -> Iterator[_Compiling]:
    interpret(True)
    yield _Compiling()
    interpret(False)


def _run(compiling: _Compiling | None, inputs: list[Path], output: Path, settings: Settings) -> list[Any]:
    job = Job(list(map(str, inputs)), JsonLines(), Wanted(str(output)))
    with Dedup(job, settings, 0, compiling) as dedup:
        if compiling is not None:
            compiling.dedup = dedup
        dedup.warm_up()
        dedup.run()
    return read_lines(output)


def test_a_small_chunk_waits_for_nothing_and_a_large_one_for_compiled_kernels(
    tmp_path: Path, settings: Settings, compiling: _Compiling
) -> None:
    few, many = tmp_path / "few.jsonl", tmp_path / "many.jsonl"
    write_rows(few, _ROWS)
    write_rows(many, [*_ROWS, *generate(60, 1)])
    rows = _run(compiling, [few, many], tmp_path / "out.jsonl", settings)
    assert compiling.waited_at == [len(_ROWS)]
    assert rows == _run(None, [few, many], tmp_path / "again.jsonl", settings)


@pytest.mark.parametrize("is_done", [False, True])
def test_small_chunks_are_interpreted_until_everything_is_compiled(
    tmp_path: Path, settings: Settings, compiling: _Compiling, is_done: bool
) -> None:
    compiling.is_done = is_done
    files = [tmp_path / "one.jsonl", tmp_path / "two.jsonl"]
    for file in files:
        write_rows(file, _ROWS)
    rows = _run(compiling, files, tmp_path / "out.jsonl", settings)
    assert [row["id"] for row in rows] == ["a", "b"]
    assert compiling.waited_at == ([0] if is_done else [])


def test_no_chunk_is_read_ahead_while_kernels_are_interpreted(
    tmp_path: Path, settings: Settings, compiling: _Compiling, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large chunk waits for compiled kernels; the rows before it must not."""
    source = tmp_path / "in"
    os.mkfifo(source)

    def write() -> None:
        with source.open("wb", buffering=0) as stream:
            stream.write(_lines(_ROWS))
            deadline = time.monotonic() + 20
            while time.monotonic() < deadline and (not compiling.dedup or not compiling.dedup.summary.rows):
                time.sleep(0.01)
            stream.write(_lines(list(generate(60, 1))))

    monkeypatch.setattr(InputSource, "is_ready", lambda _source: True)
    writer = threading.Thread(target=write)
    writer.start()
    rows = _run(compiling, [source], tmp_path / "out.jsonl", settings)
    writer.join()
    assert compiling.waited_at == [len(_ROWS)]
    assert [row["id"] for row in rows[:2]] == ["a", "b"]


def _lines(rows: list[Any]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def test_rows_come_out_before_anything_is_compiled_and_ctrl_c_ends_the_wait(
    tmp_path: Path, root: Path
) -> None:
    source, cache = tmp_path / "in.jsonl", tmp_path / "cache"
    write_rows(source, _ROWS)
    if cores() == 1:
        pytest.skip("with one processor this process compiles by itself, before the first row")
    command = [sys.executable, "-m", "twinsieve", "dedup", str(source), "-o", "-", *SMALL]
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    run = subprocess.Popen(
        command, cwd=root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert run.stdout is not None
    assert run.stderr is not None
    rows = [run.stdout.readline() for _ in range(2)]
    said: list[str] = []
    while not said or "all rows are out" not in said[-1]:
        said.append(run.stderr.readline())
        assert said[-1], said
    assert not list(cache.rglob("verdicts.ready"))
    run.send_signal(signal.SIGINT)
    rest, _ = run.communicate(timeout=60)
    assert [row.split('"')[3] for row in rows] == ["a", "b"]
    assert rest == ""
    assert any("compiling kernels" in line for line in said)
    assert run.returncode == 0
