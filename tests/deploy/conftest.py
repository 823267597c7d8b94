"""Fixtures for what is deployed with twinsieve."""

from __future__ import annotations

import pytest

from tests.broker.fixtures import bootstrap
from tests.deploy import prometheus as distribution

__all__ = ["bootstrap"]


@pytest.fixture(scope="session")
def promtool() -> str:
    return distribution.promtool()


@pytest.fixture(scope="session")
def prometheus() -> str:
    return distribution.server()
