"""The limits of an exact window."""

from __future__ import annotations

from twinsieve.stages.contract import Window
from twinsieve.stages.errors import UsageError

MAX_MESSAGES = 2**40
MAX_AGE_MS = 2**62


def check_window(window: Window) -> None:
    """Check that the window is within the limits. raises: UsageError"""
    if not 1 <= window.messages <= MAX_MESSAGES:
        raise UsageError(f"exact.window.messages is {window.messages}; use 1..{MAX_MESSAGES}")
    if window.age_ms is not None and not 0 <= window.age_ms <= MAX_AGE_MS:
        raise UsageError(f"exact.window.age is {window.age_ms} ms; use 0..{MAX_AGE_MS}, or leave it out")
