"""Small default windows, so that a test can fill them."""

from __future__ import annotations

from typing import Any

import pytest

from twinsieve.api import sieve as sieve_module
from twinsieve.pipeline.settings.model import Settings, WindowSettings


def default_window(monkeypatch: pytest.MonkeyPatch, messages: int) -> None:
    """Near and exact windows whose size no setting names have this many texts."""
    real = sieve_module.settings_of

    def smaller(options: Any, given: Any) -> Settings:
        chosen = real(options, given)
        window = WindowSettings.model_construct(set(), messages=messages, age_ms=None)
        sections = {"near": chosen.near, "exact": chosen.exact}
        return chosen.model_copy(
            update={
                name: section.model_copy(update={"window": window})
                for name, section in sections.items()
                if "messages" not in section.window.model_fields_set
            }
        )

    monkeypatch.setattr(sieve_module, "settings_of", smaller)
