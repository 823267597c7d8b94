"""Debian's Chromium and its driver, installed once with apt-get where that is allowed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tests import debian

_PACKAGES = "chromium chromium-driver"
HOW = f"install Chromium and its driver (Debian: apt-get install {_PACKAGES})"
_RELEASE = Path("/etc/os-release")


def need_chromium() -> None:
    """Install Chromium and its driver where they are missing.

    raises: MissingError with what is missing, and what to install
    """
    chromium()
    chromedriver()


def chromium() -> str:
    """Path of the browser. side effects, raises: as in need_chromium"""
    return _path_of("chromium", "Chromium")


def chromedriver() -> str:
    """Path of the program that drives it. side effects, raises: as in need_chromium"""
    return _path_of("chromedriver", "the driver of Chromium")


def _path_of(command: str, name: str) -> str:
    try:
        # Ubuntu's packages of these names install a snap, which may read neither /tmp nor a hidden folder.
        if shutil.which(command) is None and "ID=ubuntu" in _release():
            raise debian.MissingError(f"{name} is not installed, and Ubuntu has it as a snap alone")
        debian.need(command, _PACKAGES, name)
        path = shutil.which(command)
        assert path is not None
        if "/snap/" in path or "/snap" in os.path.realpath(path):
            raise debian.MissingError(f"{name} is a snap, which may not read the files of tests")
    except debian.MissingError as error:
        raise debian.MissingError(f"{error}; {HOW}") from error
    return path


def _release() -> list[str]:
    return _RELEASE.read_text("utf-8").splitlines() if _RELEASE.is_file() else []
