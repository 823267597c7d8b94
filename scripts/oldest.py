"""The quick half of the tests under the oldest Python found, with the oldest packages that are allowed.

    python -m scripts.oldest [PYTHON] [-- ARGUMENTS OF PYTEST]

What pyproject.toml asks for comes in the oldest release that has a wheel for this Python, what that asks for
in its newest. The environment is made in build/oldest and kept until either changes. Exit code: that of
pytest; a package that cannot be installed, or with which a test fails, has too low a bound in pyproject.toml.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from hashlib import blake2b
from pathlib import Path

from scripts.interpreters import ROOT, found_pythons, pip_install, said, version_of

QUICK_HALF = [
    "tests/api",
    "tests/dedup",
    "tests/files",
    "tests/messages",
    "tests/settings",
    "tests/stages/judge/test_old_states.py",
    "tests/wire/test_blocks.py",
]
"""Golden bytes, files, the API and settings."""
WITHOUT_WHEELS = ["jieba", "pybloom-live", "simhash"]
"""Packages that no release has a wheel of; they are pure Python."""


def environment(python: Path, folder: Path) -> Path:
    """The interpreter of an environment with the oldest packages; kept until they change."""
    pins = folder / "oldest.txt"
    uv = [Path(sys.executable).parent / "uv", "pip", "compile", "--quiet", "--no-header", "--no-annotate"]
    oldest = ["--resolution", "lowest-direct", "--all-extras", "--python", python]
    # Most packages are older than the newest Python: their oldest releases do not compile for it.
    wheels = ["--only-binary=:all:", *(f"--no-binary={package}" for package in WITHOUT_WHEELS)]
    said([*uv, *oldest, *wheels, "pyproject.toml", "-o", pins])
    named = f"{python} {version_of(python)}\n".encode() + pins.read_bytes()
    digest = blake2b(named, digest_size=8).hexdigest()
    venv = folder / f"venv-{digest}"
    done = venv / ".installed"
    if not done.exists():
        said([python, "-m", "venv", "--clear", venv])
        pip_install(venv / "bin" / "python", "-r", pins)
        pip_install(venv / "bin" / "python", "--no-deps", "-e", ROOT)
        done.touch()
    return venv / "bin" / "python"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("python", nargs="?", type=Path, help="interpreter (the oldest of 3.11 to 3.14 found)")
    parser.add_argument("pytest", nargs="*", help="arguments of pytest (the quick half of the tests)")
    options = parser.parse_args()
    pythons = [options.python] if options.python else found_pythons()
    if not pythons:
        parser.error("found no Python 3.11 to 3.14 with its venv module; name one")
    folder = ROOT / "build" / "oldest"
    folder.mkdir(parents=True, exist_ok=True)
    pip_install(sys.executable, "uv>=0.5,<1")
    print(f"Python {version_of(pythons[0])}, {pythons[0]}, with the oldest packages", flush=True)
    python = environment(pythons[0], folder)
    # Some tests compare all that a command says, and a first one says that it compiles.
    said([python, "-m", "twinsieve", "warm-up"])
    asked = options.pytest or ["-n", "2", *QUICK_HALF]
    sys.exit(subprocess.run([python, "-m", "pytest", "-q", *asked], cwd=ROOT, check=False).returncode)


if __name__ == "__main__":
    main()
