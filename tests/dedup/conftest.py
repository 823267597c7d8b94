"""What tests of runs over files share."""

from __future__ import annotations

import pytest

from tests.calling import SMALL
from twinsieve.pipeline.settings.load import Override, load_settings
from twinsieve.pipeline.settings.model import Settings


@pytest.fixture
def settings() -> Settings:
    """The settings of `SMALL`."""
    pairs = [word.split("=") for word in SMALL[1::2]]
    return load_settings(None, {}, [Override(key, text, "--set") for key, text in pairs])
