"""The data sets, or a loud word that they are missing."""

from __future__ import annotations

import os

import pytest

from bench.quality_data import data_dir


@pytest.fixture(scope="session")
def data_sets() -> None:
    """CI always has the data sets: a missing one fails there; elsewhere the test is reported as skipped."""
    if (data_dir() / "weibo_dev.jsonl.gz").exists():
        return
    message = (
        f"NOT MEASURED: no data sets in {data_dir()}; set TWINSIEVE_DATA to the directory that holds them"
    )
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)
