"""Fixtures of the tests of shards."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.saved.test_journal import small_pieces
from tests.shards.holding_shards import App

__all__ = ["small_pieces"]


@pytest.fixture
def app(tmp_path: Path) -> App:
    return App.judged(tmp_path)
