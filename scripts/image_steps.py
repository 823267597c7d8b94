"""Perform the steps of docker/Dockerfile in an empty folder, without Docker: python -m scripts.image_steps.

What stands for Docker's parts: the file system is a folder, to which every absolute path of the image leads;
the base image is the Python that runs this; users are not made, and nothing runs as another user.
A COPY finds in the checkout what docker/Dockerfile.dockerignore lets through, and nothing else.
Ends with the image's own program: its version, its examples, its settings checked. Takes about two minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

_TOP = ("src", "opt", "usr/local/bin", "var", "etc/twinsieve")
"""Folders of the image that steps write to; other absolute paths, as /bin, are those of this machine."""
_OF_ROOT = {"useradd": "exit 0", "install": 'for last; do :; done; while [ "$#" -gt 1 ]; do '
            'case "$1" in /*) mkdir -p "$1";; esac; shift; done; mkdir -p "$last"'}  # fmt: skip
"""Programs that need another user's rights, and what is done in their place."""


def instructions(dockerfile: Path) -> list[tuple[str, str]]:
    """Instructions in order: word and rest, continued lines joined, comments dropped."""
    text = re.sub(r"^\s*#.*\n", "", dockerfile.read_text("utf-8"), flags=re.MULTILINE)
    lines = [line for line in text.replace("\\\n", " ").splitlines() if line.strip()]
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines)]


def is_let_through(name: str, patterns: list[str]) -> bool:
    """Whether the file of this name is part of the build context; the last pattern that fits decides.

    >>> names, patterns = ["a", "stages/a", "stages/__pycache__/a"], ["*", "!stages", "**/__pycache__"]
    >>> [is_let_through(name, patterns) for name in names]
    [False, True, False]
    """
    parents = ["/".join(name.split("/")[: depth + 1]) for depth in range(name.count("/") + 1)]
    through = True
    for pattern in patterns:
        plain = pattern.removeprefix("!")
        anywhere = plain.removeprefix("**/")
        if any(
            fnmatch(one, plain) or (anywhere != plain and fnmatch(Path(one).name, anywhere))
            for one in parents
        ):
            through = pattern.startswith("!")
    return through


def context(root: Path) -> Iterator[str]:
    """Names of files and links that a build sees, from the checkout's folder."""
    ignored = (root / "docker" / "Dockerfile.dockerignore").read_text("utf-8").splitlines()
    patterns = [line for line in ignored if line and not line.startswith("#")]
    for folder, folders, names in os.walk(root):
        here = Path(folder).relative_to(root)
        folders[:] = [one for one in folders if one not in (".git", ".venv")]
        links = [one for one in folders if Path(folder, one).is_symlink()]
        for name in (str(here / one) for one in [*names, *links]):
            if is_let_through(name, patterns):
                yield name


def copy(seen: Path, image: Path, here: str, rest: str) -> None:
    """Perform one COPY from the context in `seen`, or, with --from, nothing: both stages share one folder.

    here: the working directory. raises: SystemExit if the context has no such file or folder; a pattern may
        match nothing
    """
    words = rest.split()
    if words[0].startswith("--from="):
        return
    *sources, to = words
    into = image / os.path.join(here, to).lstrip("/")
    for source in sources:
        if "[" in source:
            sources.extend(str(path.relative_to(seen)) for path in seen.glob(source))
            continue
        origin = seen / source
        if not os.path.lexists(origin):
            raise SystemExit(f"image-steps: COPY {rest}: the build context has no {source}")
        if origin.is_dir():
            shutil.copytree(origin, into, symlinks=True, dirs_exist_ok=True)
            continue
        named = into / origin.name if to.endswith("/") else into
        named.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(origin, named, follow_symlinks=False)


def _led(text: str, image: Path) -> str:
    """The text with the image's absolute paths leading into the folder."""
    tops = "|".join(map(re.escape, _TOP))
    return re.sub(rf"(?<![\w./}}])/(?={tops})(?=\w)", f"{image}/", text)


def _perform(root: Path, folder: Path, extras: str) -> None:
    image, seen, stand_in = folder / "image", folder / "context", folder / "bin"
    for name in context(root):
        (seen / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / name, seen / name, follow_symlinks=False)
    stand_in.mkdir(parents=True)
    for name, does in _OF_ROOT.items():
        (stand_in / name).write_text(f"#!/bin/sh\n{does}\n")
        (stand_in / name).chmod(0o755)
    (stand_in / "python").symlink_to(sys.executable)
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "TWINSIEVE_", "NUMBA_"))
    }
    env = kept | {"PATH": f"{stand_in}:{os.defpath}", "EXTRAS": extras, "PIP_QUIET": "1"}
    here = "/"
    for word, rest in instructions(root / "docker" / "Dockerfile"):
        if word == "FROM":
            here = "/"
        elif word == "WORKDIR":
            here = rest
            (image / here.lstrip("/")).mkdir(parents=True, exist_ok=True)
        elif word == "COPY":
            print(f"COPY {rest}", flush=True)
            copy(seen, image, here, rest)
        elif word == "ENV":
            for pair in shlex.split(rest):
                name, _, value = pair.partition("=")
                env[name] = _led(value, image).replace("$PATH", f"{image}/usr/local/bin:{env['PATH']}")
        elif word == "RUN":
            print(f"RUN {rest}", flush=True)
            _run(["sh", "-ec", _led(rest, image)], image / here.lstrip("/"), env)
        elif word == "ENTRYPOINT":
            entry = json.loads(rest)
    settings = image / "etc" / "twinsieve" / "settings.yaml"
    settings.parent.mkdir(parents=True)
    shutil.copy2(root / "docker" / "settings.yaml", settings)
    work = image / here.lstrip("/")
    for words in ([*entry, "--version"], [*entry, "config", "list"], [*entry, "lint", str(settings)]):
        print(" ".join(words), flush=True)
        _run([shutil.which(words[0], path=env["PATH"]) or words[0], *words[1:]], work, env)
    _run([str(image / "opt" / "twinsieve" / "bin" / "python"), "-c", "import confluent_kafka"], work, env)


def _run(words: list[str], where: Path, env: dict[str, str]) -> None:
    done = subprocess.run(words, cwd=where, env=env, check=False)
    if done.returncode:
        raise SystemExit(f"image-steps: exit code {done.returncode} in {where}")


def main() -> None:
    """Perform all steps in a temporary folder, which goes afterwards."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--extras", default="", help="as the build argument EXTRAS")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="twinsieve-image-") as folder:
        _perform(Path(__file__).resolve().parent.parent, Path(folder), given.extras)
    print("image-steps: every step was performed")


if __name__ == "__main__":
    main()
