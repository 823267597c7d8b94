from __future__ import annotations

import pytest

from twinsieve.pipeline.service.build import make_scheme
from twinsieve.pipeline.settings.model import Settings
from twinsieve.stages.judge.scheme import Scheme


@pytest.fixture(scope="session")
def scheme() -> Scheme:
    """That of default settings, and of all that change neither texts nor fingerprints."""
    return make_scheme(Settings())
