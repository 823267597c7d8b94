"""Runs of keys as a large window has them, in a small one."""

from __future__ import annotations

import pytest

from twinsieve.stages.exact import bloom, key_notes, runs


def small_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A save writes the new keys, however few the newest Bloom generation holds; four runs make one."""
    monkeypatch.setattr(bloom, "NOTE_BYTES", 1e-9)
    monkeypatch.setattr(key_notes, "_BLOCK", 4)
    monkeypatch.setattr(runs, "FAN_IN", 4)
