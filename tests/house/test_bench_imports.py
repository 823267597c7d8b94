"""Each module of `bench/` can be imported: every name that it imports from the project or the tests exists."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

_NAMES = sorted(path.stem for path in (Path(__file__).parents[2] / "bench").glob("*.py"))


@pytest.mark.parametrize("name", _NAMES)
def test_a_measurement_can_be_imported(name: str) -> None:
    import_module(f"bench.{name}")
