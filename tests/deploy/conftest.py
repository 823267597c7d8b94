"""Fixtures for what is deployed with twinsieve."""

from __future__ import annotations

import pytest

from tests.deploy import prometheus


@pytest.fixture(scope="session")
def promtool() -> str:
    return prometheus.promtool()
