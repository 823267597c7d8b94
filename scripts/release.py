"""All that a release consists of, in `dist/`: `python -m scripts.release [PYTHON ...]`. It publishes nothing.

First it says what keeps this checkout from being released, all of it. Then the sdist and the wheel are built,
checked and tried under each Python (scripts/dist.py). Where an engine answers (docker, podman), the image
is built as twinsieve:VERSION and started; else a line says that it was not tried. Of the packages of the lock
file it writes:

  twinsieve-VERSION.cdx.json        a bill of materials (CycloneDX)
  twinsieve-VERSION.licences.json   their licences; one that is not in LICENCES ends the program
  twinsieve-VERSION.audit.json      known vulnerabilities, by pip-audit; one, or a package of which nobody
                                    could say, ends the program. AUDIT="…" gives it more arguments

Exit code 1 at the first failure.
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
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from scripts.dist import build, tools_of, try_out
from scripts.interpreters import ROOT, found_pythons, said

TOOLS = ("pip-audit==2.10.1", "cyclonedx-bom==7.5.0", "pip-licenses==5.5.5")
LICENCES = (
    "0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD License", "BSD-2-Clause", "BSD-3-Clause",
    "CC0-1.0", "GNU Lesser General Public License v2 or later (LGPLv2+)", "LGPL-2.1-or-later", "MIT",
    "MIT License", "MPL-2.0", "PSF-2.0", "Zlib",
)  # fmt: skip
"""Those that a program under Apache-2.0 may depend on. The LGPL is of crc32c, which is installed beside it
and can be replaced, and a choice in marisa-trie."""

VERSIONED = {
    "docker/Dockerfile": r'image\.version="(.+)"',
    "deploy/kubernetes/example/kustomization.yaml": r'newTag: "(.+)"',
    "deploy/kubernetes/example-shards/kustomization.yaml": r'newTag: "(.+)"',
}
"""Files with the version of pyproject.toml, and where it stands in them."""


def project_version(root: Path) -> str:
    """As pyproject.toml has it."""
    version: str = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    return version


def problems(root: Path) -> list[str]:
    """What keeps a checkout from being released, a line each."""
    found = []
    changed = subprocess.run(
        ["git", "status", "--porcelain"], cwd=root, capture_output=True, text=True, check=True
    ).stdout
    if changed:
        found.append(f"{len(changed.splitlines())} files are not committed: commit or remove them")
    version = project_version(root)
    titles = re.findall(r"^## (.+)$", (root / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    if not titles or re.fullmatch(rf"{re.escape(version)} \(\d{{4}}-\d\d-\d\d\)", titles[0]) is None:
        found.append(
            f"CHANGELOG.md begins with {(titles or ['nothing'])[0]!r}: name the version of pyproject.toml "
            f"and the day there, as in '## {version} (2026-01-31)'"
        )
    for name, pattern in VERSIONED.items():
        written = re.findall(pattern, (root / name).read_text("utf-8"))
        if written != [version]:
            found.append(f"{name} has {written} as version: write {version}, as in pyproject.toml")
    return found


def try_image(version: str) -> None:
    """Build the image and start it, with the first engine that answers. Ends the program if one fails"""
    answering = [
        engine
        for engine in ("docker", "podman")
        if shutil.which(engine) and subprocess.run([engine, "info"], capture_output=True).returncode == 0
    ]
    if not answering:
        print("no engine answers (docker, podman): the image was not tried", flush=True)
        return
    engine = answering[0]
    tag = f"twinsieve:{version}"
    said([engine, "build", "--file", "docker/Dockerfile", "--tag", tag, "."])
    printed = said([engine, "run", "--rm", tag, "--version"]).strip()
    if printed != f"twinsieve {version}":
        sys.exit(f"{engine}: image {tag} says {printed!r} of its version")
    print(f"{engine}: image {tag} works", flush=True)


def unknown_licences(listed: Sequence[Mapping[str, str]]) -> list[str]:
    """Packages with a licence that LICENCES does not have. listed: as pip-licenses prints them"""
    return [
        f"{one['Name']} {one['Version']}: {one['License']}"
        for one in listed
        for name in re.split(r" AND | OR |; ", one["License"])
        if not {name, name.strip("()")} & set(LICENCES)
    ]


def audit(tool: Path, lock: Path, report: Path, *more: str) -> None:
    """Ask for known vulnerabilities of every package of a lock file. Ends the program if there is one, or if
    nobody could say. more: arguments of pip-audit"""
    command = [tool, "--requirement", lock, "--require-hashes", "--disable-pip", "--strict"]
    said([*command, "--progress-spinner", "off", "--format", "json", "--output", report, *more])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "pythons", nargs="*", type=Path, help="interpreters (every 3.11 to 3.14 that is found)"
    )
    pythons = parser.parse_args().pythons or found_pythons()
    found = problems(ROOT)
    if found:
        sys.exit("\n".join(found))
    folder, version = ROOT / "dist", project_version(ROOT)
    tools = tools_of("release", *TOOLS)
    sdist, wheel = build(folder)
    lock = ROOT / "requirements.lock"
    report = folder / f"twinsieve-{version}"
    for python in pythons:
        with tempfile.TemporaryDirectory(prefix="twinsieve-release-") as made:
            try_out(python, (wheel, sdist), Path(made))
            if python is pythons[0]:
                describe(tools, Path(made) / "venv/bin/python", report)
    try_image(version)
    audit(tools / "pip-audit", lock, Path(f"{report}.audit.json"), *shlex.split(os.environ.get("AUDIT", "")))
    print(f"dist/ has release {version}: sign the files and hand them to whoever may publish them")


def describe(tools: Path, python: Path, report: Path) -> None:
    """Write the bill of materials and the licences of an environment. Ends the program for an unknown one"""
    said(
        [
            tools / "cyclonedx-py",
            "environment",
            python,
            "--output-file",
            f"{report}.cdx.json",
            "--output-reproducible",
        ]
    )
    listed = said(
        [tools / "pip-licenses", f"--python={python}", "--format=json", "--ignore-packages", "twinsieve"]
    )
    Path(f"{report}.licences.json").write_text(listed, "utf-8")
    if unknown := unknown_licences(json.loads(listed)):
        sys.exit("licences that nobody has agreed to:\n" + "\n".join(unknown))


if __name__ == "__main__":
    main()
