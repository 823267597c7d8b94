"""A small default window, so that a test can fill it."""

from __future__ import annotations

from typing import Any

import pytest

from twinsieve.api import sieve as sieve_module
from twinsieve.pipeline.settings.model import Settings, WindowSettings


def default_window(monkeypatch: pytest.MonkeyPatch, messages: int) -> None:
    """Sieves whose settings name no near window have one of this many texts."""
    real = sieve_module.settings_of

    def smaller(options: Any, given: Any) -> Settings:
        chosen = real(options, given)
        if "messages" in chosen.near.window.model_fields_set:
            return chosen
        window = WindowSettings.model_construct(set(), messages=messages, age_ms=None)
        return chosen.model_copy(update={"near": chosen.near.model_copy(update={"window": window})})

    monkeypatch.setattr(sieve_module, "settings_of", smaller)
