"""What tests of kernels share."""

from __future__ import annotations

from pathlib import Path

import pytest

from twinsieve.stages import compiled
from twinsieve.stages.compiled import Folders


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the kernels of a test lie: their sources are not among those by which the common folder is named."""
    folder = tmp_path / "kernels"
    monkeypatch.setattr(compiled, "folders", lambda: Folders((folder,), folder))
    return folder
