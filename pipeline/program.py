"""Which program this is."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def program_version() -> str:
    """The installed version; `unreleased` where the program runs from its sources alone."""
    try:
        return version("twinsieve")
    except PackageNotFoundError:
        return "unreleased"
