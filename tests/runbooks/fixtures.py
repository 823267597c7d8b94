"""Somebody on call for an app on a shared broker, and a Prometheus that wakes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.fixtures import bootstrap
from tests.deploy import prometheus as distribution
from tests.deploy.scraping import Prometheus, scraping
from tests.runbooks.on_call import OnCall

__all__ = ["bootstrap"]


watched = pytest.mark.parametrize(
    "alerts", [False, pytest.param(True, marks=pytest.mark.minutes)], ids=["page", "alert"], indirect=True
)
"""The page once more in a deployment that a Prometheus scrapes: its alert fires before somebody looks."""
watched_only = pytest.mark.parametrize("alerts", [True], ids=["alert"], indirect=True)


@pytest.fixture
def alerts(request: pytest.FixtureRequest) -> Iterator[Prometheus | None]:
    if not getattr(request, "param", False):
        yield None
        return
    with scraping(distribution.server()) as server:
        yield server


@pytest.fixture
def on_call(bootstrap: str, tmp_path: Path, alerts: Prometheus | None) -> Iterator[OnCall]:
    """With all topics, and no process yet."""
    with OnCall(bootstrap, tmp_path, alerts, session_timeout="6s") as made:
        made.deployment.create_topics()
        yield made
