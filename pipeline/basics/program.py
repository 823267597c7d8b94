"""The version of this program."""

from __future__ import annotations

from functools import cache


@cache
def program_version() -> str:
    """The installed version; `unreleased` if the program runs from its sources without being installed."""
    # The import takes 25 ms, and only `--version` and a few files need it.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("twinsieve")
    except PackageNotFoundError:
        return "unreleased"
