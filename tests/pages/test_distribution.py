"""Where Chromium cannot be installed, the reason says what is missing and what to do."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.debian import MissingError
from tests.pages import distribution


@pytest.fixture
def where(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Path of each command that is installed; apt-get is not."""
    found: dict[str, str] = {}
    monkeypatch.setattr(shutil, "which", found.get)
    return found


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What names the system: Debian."""
    path = tmp_path / "os-release"
    path.write_text("ID=debian\n")
    monkeypatch.setattr(distribution, "_RELEASE", path)
    return path


def test_path_is_that_of_the_command(where: dict[str, str], release: Path) -> None:
    where.update({"chromium": "/usr/bin/chromium", "chromedriver": "/usr/bin/chromedriver"})
    assert (distribution.chromium(), distribution.chromedriver()) == (
        "/usr/bin/chromium",
        "/usr/bin/chromedriver",
    )


def test_reason_names_what_is_missing_and_what_to_install(where: dict[str, str], release: Path) -> None:
    where["chromium"] = "/usr/bin/chromium"
    with pytest.raises(MissingError) as raised:
        distribution.need_chromium()
    why = "not root" if os.geteuid() else "no apt-get"
    assert str(raised.value) == (
        f"the driver of Chromium is not installed, and cannot be installed here ({why}); "
        "install Chromium and its driver (Debian: apt-get install chromium chromium-driver)"
    )


def test_ubuntu_has_it_as_a_snap_alone(where: dict[str, str], release: Path) -> None:
    release.write_text('NAME="Ubuntu"\nID=ubuntu\n')
    with pytest.raises(MissingError, match="Ubuntu has it as a snap alone"):
        distribution.need_chromium()


def test_snap_does_not_do(where: dict[str, str], release: Path) -> None:
    where["chromium"] = "/snap/bin/chromium"
    with pytest.raises(MissingError, match="Chromium is a snap, which may not read the files of tests"):
        distribution.need_chromium()
