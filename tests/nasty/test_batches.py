"""100,000 mutated record batches, each with checked indices and between pages that nobody may read."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

_COUNT = 100_000


@pytest.mark.heavy
def test_no_mutated_batch_is_read_outside_or_read_wrongly() -> None:
    # A read outside is an IndexError, or ends the process.
    ran = subprocess.run(
        [sys.executable, "-m", "tests.nasty", "--batches", str(_COUNT)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NUMBA_BOUNDSCHECK": "1"},
    )
    assert ran.returncode == 0, ran.stderr
    found = re.fullmatch(r"(\d+) mutated batches: (\d+) were taken, (\d+) of these .*\n", ran.stdout)
    assert found is not None
    batches, accepted, compared = map(int, found.groups())
    assert batches == _COUNT
    assert _COUNT // 4 < accepted < _COUNT
    assert compared > _COUNT // 500
