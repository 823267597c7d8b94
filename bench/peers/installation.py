"""The environment with the peers' packages, made once in a folder that `.gitignore` names."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

_REQUIREMENTS = Path(__file__).with_name("requirements.txt")
_FOLDER = Path(__file__).resolve().parents[2] / "build" / "peers"


class Installation(NamedTuple):
    """python: the interpreter of the environment; errors: of packages that were not installed, by name"""

    python: Path
    errors: dict[str, str]

    def versions(self) -> dict[str, str]:
        """Version by name, of all packages there."""
        said = subprocess.run(
            [self.python, "-m", "pip", "list", "--format=freeze", "--disable-pip-version-check"],
            capture_output=True,
            text=True,
            check=True,
        )
        return dict(line.split("==", 1) for line in said.stdout.split() if "==" in line)


def installed() -> Installation:
    """The environment; the first call makes it and installs each package by itself."""
    wanted = _REQUIREMENTS.read_text(encoding="utf-8")
    named = hashlib.blake2b(f"{sys.version} {wanted}".encode(), digest_size=8).hexdigest()
    folder = _FOLDER / named
    python, report = folder / "bin" / "python", folder / "errors"
    lines = [line for line in wanted.splitlines() if line and not line.startswith("#")]
    if not report.is_file():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        failed = {line: error for line in lines if (error := _install(python, line))}
        report.write_text("".join(f"{line}\t{error}\n" for line, error in failed.items()))
    errors = (line.split("\t", 1) for line in report.read_text().splitlines())
    return Installation(python, {name.partition(">")[0]: error for name, error in errors})


def _install(python: Path, requirement: str) -> str:
    """Install one requirement. returns: the last line of the error, empty if it was installed"""
    done = subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", requirement],
        capture_output=True,
        text=True,
        check=False,
    )
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["pip failed"])[-1]
