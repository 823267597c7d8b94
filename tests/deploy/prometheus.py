"""Debian's Prometheus, unpacked into the cache where it is not installed: no service is set up or started."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from tests.broker.distribution import cache
from tests.debian import MissingError, first_error

HOW = "install Prometheus (Debian: apt-get install prometheus)"


def promtool() -> str:
    """Path of promtool. raises: MissingError with what is missing, and what to install"""
    return _program("promtool")


def server() -> str:
    """Path of Prometheus itself. raises: as promtool"""
    return _program("prometheus")


def _program(name: str) -> str:
    installed = shutil.which(name)
    if installed is not None:
        return installed
    unpacked = cache() / "prometheus"
    program = unpacked / "usr/bin" / name
    if not program.exists():
        _unpack_to(unpacked)
    return str(program)


def _unpack_to(place: Path) -> None:
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise MissingError(f"Prometheus is not installed, and this is no Debian; {HOW}")
    with tempfile.TemporaryDirectory(dir=place.parent, prefix="prometheus-") as folder:
        # apt-get writes to the current folder, and "$@" is not read by the shell.
        fetch = ["sh", "-c", 'cd "$1" && apt-get download prometheus', "sh", folder]
        error = first_error(fetch, os.environ)
        if error is not None and os.geteuid() == 0:
            error = first_error(["apt-get", "update"], os.environ) or first_error(fetch, os.environ)
        package = next(Path(folder).glob("prometheus_*.deb"), None)
        if error is None and package is not None:
            error = first_error(["dpkg-deb", "-x", str(package), f"{folder}/unpacked"], os.environ)
        if error is not None or package is None:
            raise MissingError(f"Prometheus is not installed, and apt-get could not fetch it: {error}; {HOW}")
        shutil.rmtree(place, ignore_errors=True)
        os.rename(f"{folder}/unpacked", place)
