"""An output that is given up leaves nothing: no file, and no word on stderr when its packer is freed."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import pytest

from twinsieve.pipeline.files.write import Output


@pytest.mark.parametrize("ending", ["", ".gz", ".zst", ".bz2", ".xz"])
def test_an_output_that_is_given_up_is_silent_and_gone(
    tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python 3.13 reports what a packer meets that still has bytes to write when it is freed."""
    said: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", said.append)
    output = Output(str(tmp_path / f"out{ending}"))
    output.write(b"x" * 100_000)
    output.discard()
    del output
    gc.collect()
    assert said == []
    assert list(tmp_path.iterdir()) == []
