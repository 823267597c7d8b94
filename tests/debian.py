"""Packages of Debian that tests take, installed with apt-get where this is root."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping

_TIMEOUT_S = 600
_MAX_REASON_LENGTH = 200


class MissingError(Exception):
    """A program is not installed, and cannot be installed here. The text is the reason, without what to do about it."""


def need(command: str, packages: str, name: str) -> None:
    """Install packages where the command is missing.

    packages: names with spaces between them
    raises: MissingError where that cannot be done
    """
    if shutil.which(command) is None:
        install(packages, name)


def install(packages: str, name: str) -> None:
    """Install packages. raises: MissingError where that cannot be done"""
    why = "not root" if os.geteuid() != 0 else "no apt-get" if shutil.which("apt-get") is None else ""
    if why:
        raise MissingError(f"{name} is not installed, and cannot be installed here ({why})")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    # Old lists may still do; what counts is whether the packages can be installed.
    first_error(["apt-get", "update"], environment)
    command = ["apt-get", "install", "-y", "--no-install-recommends", *packages.split()]
    error = first_error(command, environment)
    if error is not None:
        raise MissingError(f"{name} is not installed, and apt-get could not install it: {error}")


def first_error(command: list[str], environment: Mapping[str, str]) -> str | None:
    """The first line that names an error, cut, where the command failed or took too long; else None."""
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"no end after {_TIMEOUT_S} s"
    if done.returncode == 0:
        return None
    # Maven resets a colour that it never set, in front of its first error.
    said = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"\[ERROR\]|E:", line)]
    return [*errors, *lines, f"exit code {done.returncode}"][0][:_MAX_REASON_LENGTH]
