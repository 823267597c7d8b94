from __future__ import annotations

import pytest

from tests.memory.broker import MemoryCluster
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.service.build import make_scheme
from twinsieve.pipeline.service.run import SystemClock
from twinsieve.pipeline.settings.model import Settings
from twinsieve.stages.judge.scheme import Scheme


@pytest.fixture(scope="session")
def scheme() -> Scheme:
    """That of default settings, and of all that change neither texts nor fingerprints."""
    return make_scheme(Settings())


@pytest.fixture
def cluster() -> MemoryCluster:
    """A broker in memory with an input topic of two partitions."""
    made = MemoryCluster(SystemClock())
    made.create(NewTopic("posts", 2))
    return made
