"""Builds and checks what a release consists of: `python -m scripts.dist [PYTHON ...]`.

The sdist is built from the checkout and the `py3-none-any` wheel from the sdist, both into `dist/`. twine and
check-wheel-contents look at them. Then each of the two is installed into an environment of each Python, with
the versions of requirements.lock, and judges a few posts there. Exit code 1 at the first failure.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from scripts.interpreters import ROOT, found_pythons, pip_install, said, version_of

TOOLS = ("build==1.6.1", "twine==7.0.0", "check-wheel-contents==0.6.3")
POSTS = (
    "The bridge over the river is closed until Friday, take the ferry https://t.example/a1",
    "The bridge over the river is closed until Friday, take the ferry! https://t.example/b2",
    "The bridge over the river is now closed until Friday, take the ferry",
    "The ferry to the island leaves the old harbour at 9:15 today",
    "The ferry to the island leaves the old harbour at 9:45 today",
)
KEPT = [0, 3, 4]
"""Positions of the posts that are unique."""
API = f"from twinsieve import Sieve; print(Sieve().judge({POSTS!r}).kept.nonzero()[0].tolist())"


def tools_of(name: str, *packages: str) -> Path:
    """Folder with the programs of these packages, in an environment that is kept in `build/`."""
    environment = ROOT / "build" / f"{name}-tools"
    if not (environment / "bin" / "python").exists():
        said([sys.executable, "-m", "venv", environment])
    pip_install(environment / "bin" / "python", *packages)
    return environment / "bin"


def build(dist: Path) -> tuple[Path, Path]:
    """The sdist and the wheel, in a folder that held no others before, checked by tools of their own."""
    tools = tools_of("dist", *TOOLS)
    for old in (*dist.glob("twinsieve-*.tar.gz"), *dist.glob("twinsieve-*.whl")):
        old.unlink()
    # What an earlier build left in `build/lib` would go into the wheel.
    shutil.rmtree(ROOT / "build" / "lib", ignore_errors=True)
    said([tools / "python", "-m", "build", "--outdir", dist, ROOT])
    (sdist,), (wheel,) = dist.glob("twinsieve-*.tar.gz"), dist.glob("twinsieve-*-py3-none-any.whl")
    print(said([tools / "twine", "check", "--strict", sdist, wheel]), end="")
    print(said([tools / "check-wheel-contents", wheel]), end="", flush=True)
    return sdist, wheel


def pins(folder: Path, lock: str = "requirements.lock") -> Path:
    """The versions of a lock file as constraints: without hashes, which pip would then want of everything,
    and without the extras of a package, which pip refuses there."""
    lines = (ROOT / lock).read_text("utf-8").splitlines()
    kept = [re.sub(r"\[.*?\]", "", line.rstrip(" \\")) for line in lines if "--hash" not in line]
    path = folder / "pins.txt"
    path.write_text("\n".join(kept) + "\n")
    return path


def try_out(python: Path, archives: Sequence[Path], folder: Path) -> None:
    """Install the archives one after the other into one environment of this Python, and run each.

    The first one brings the packages that both require.
    """
    said([python, "-m", "venv", folder / "venv"])
    bin_folder = folder / "venv" / "bin"
    pip_install(bin_folder / "python", "-c", pins(folder), archives[0])
    for archive in archives:
        start = time.monotonic()
        pip_install(bin_folder / "python", "--force-reinstall", "--no-deps", archive)
        run(bin_folder, folder)
        seconds = time.monotonic() - start
        print(f"Python {version_of(python)} ({python}): {archive.name} works, {seconds:.0f} s", flush=True)


def run(bin_folder: Path, folder: Path, *, compiles: bool = True) -> None:
    """Judge the posts by `dedup` and by the API of an environment; ends the program if another answer comes.

    compiles: let the environment compile its own kernels, or let it use the user's. They are not optimised:
        that takes minutes for each Python, and says nothing about what was installed.
    """
    posts, kept = folder / "posts.jsonl", folder / "kept.jsonl"
    posts.write_text("".join(json.dumps({"id": n, "text": text}) + "\n" for n, text in enumerate(POSTS)))
    environment = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    environment["PYTHONWARNINGS"] = "ignore"
    if compiles:
        environment |= {"NUMBA_OPT": "0", "XDG_CACHE_HOME": str(folder / "cache")}

    def printed(*command: str | Path) -> str:
        done = subprocess.run(
            [bin_folder / command[0], *command[1:]],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            sys.exit(f"{bin_folder}: {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
        return done.stdout

    printed("python", "-m", "pip", "check")
    printed("twinsieve", "config", "show", "kafka")
    printed("twinsieve", "dedup", "-q", posts, "-o", kept)
    by_command = [json.loads(line)["id"] for line in kept.read_text("utf-8").splitlines()]
    by_api = json.loads(printed("python", "-P", "-c", API))
    if (by_command, by_api) != (KEPT, KEPT):
        sys.exit(f"{bin_folder}: dedup keeps {by_command}, the API keeps {by_api}, expected {KEPT}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "pythons", nargs="*", type=Path, help="interpreters (every 3.11 to 3.14 that is found)"
    )
    pythons = parser.parse_args().pythons or found_pythons()
    if not pythons:
        parser.error("found no Python 3.11 to 3.14 with venv; name one")
    sdist, wheel = build(ROOT / "dist")
    for python in pythons:
        with tempfile.TemporaryDirectory(prefix="twinsieve-dist-") as folder:
            try_out(python, (wheel, sdist), Path(folder))


if __name__ == "__main__":
    main()
