"""The first call after an installation says that it compiles, and what does so in advance."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from twinsieve import Sieve, find_all, simhash
from twinsieve.api import first_call
from twinsieve.pipeline.service.warm_up import Report

_CALL = "from twinsieve import Sieve; Sieve().judge(['a text']); print('judged')"


def test_the_first_call_warns_on_stderr_before_it_compiles(tmp_path: Path) -> None:
    """As in a new installation; the process ends when it has said so, because compiling takes a minute."""
    with subprocess.Popen(
        [sys.executable, "-c", _CALL],
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        said = process.stderr.readline()
        process.kill()
        assert process.stdout.read() == ""
    assert "compiling kernels" in said
    assert "twinsieve warm-up" in said


@pytest.fixture
def _missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels are missing, and compiled at once."""

    def compiled(report: Report) -> bool:
        report(0, 1)
        report(1, 1)
        return True

    monkeypatch.setattr(first_call, "warm_up", compiled)
    first_call.compile_kernels.cache_clear()


@pytest.mark.usefixtures("_missing")
@pytest.mark.parametrize(
    "call",
    [
        lambda saved: Sieve(window=9).judge(["a text"]),
        lambda saved: list(Sieve(window=9).dedup(["a text"], keep="last")),
        lambda saved: Sieve(window=9).query(["a text"]),
        lambda saved: Sieve(window=9).similarity("one text", "another text"),
        lambda saved: Sieve.load(saved),
        lambda saved: simhash(["a text"]),
        lambda saved: find_all(np.zeros(2, np.uint64), 3),
    ],
)
def test_every_call_that_needs_kernels_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, call: Callable[[Path], object]
) -> None:
    Sieve(window=9).save(tmp_path / "saved")
    call(tmp_path / "saved")
    assert [(record.name, record.levelname) for record in caplog.records] == [("twinsieve", "WARNING")]


@pytest.mark.usefixtures("_missing")
def test_it_is_told_once_and_silent_as_documented(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        Sieve(window=9).judge(["a text"])
    assert [(record.name, record.levelname) for record in caplog.records] == [("twinsieve", "WARNING")]
    first_call.compile_kernels.cache_clear()
    caplog.clear()
    caplog.set_level(logging.ERROR, "twinsieve")
    Sieve(window=9).judge(["a text"])
    assert caplog.records == []


def test_nothing_is_said_where_kernels_are_compiled() -> None:
    assert Sieve(window=9).judge(["a text"]).kept.all()
    ran = subprocess.run([sys.executable, "-c", _CALL], capture_output=True, text=True, check=True)
    assert (ran.stdout, ran.stderr) == ("judged\n", "")
