"""All that a release consists of, in `dist/`: `python -m scripts.release [PYTHON ...]`. It publishes nothing.

First it says what keeps this checkout from being released, all of it. Then the sdist and the wheel are built,
checked and tried under each Python (scripts/dist.py). Where an engine answers (docker, podman), the image
is built as twinsieve:VERSION and started; else a line says that it was not tried. Of the packages of
twinsieve and of all its extras but `dev`, in the versions of requirements-dev.lock, it writes:

  twinsieve-VERSION.cdx.json        a bill of materials (CycloneDX)
  twinsieve-VERSION.licences.json   their licences; one that is not in LICENCES ends the program
  twinsieve-VERSION.audit.json      known vulnerabilities, by pip-audit; one, or a package of which nobody
                                    could say, ends the program. AUDIT="…" gives it more arguments
  twinsieve-VERSION.audit-2.json    those of packages that are pinned in a second version, for other Pythons

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
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from scripts.dist import build, pins, tools_of, try_out
from scripts.interpreters import ROOT, found_pythons, said

TOOLS = ("pip-audit==2.10.1", "cyclonedx-bom==7.5.0", "pip-licenses==5.5.5")
LICENCES = (
    "0BSD", "3-Clause BSD License", "Apache Software License", "Apache-2.0", "Apache-2.0 WITH LLVM-exception",
    "BSD License", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0",
    "GNU Lesser General Public License v2 or later (LGPLv2+)", "LGPL-2.1-or-later", "MIT", "MIT License",
    "MIT-0", "MIT-CMU", "MPL-2.0", "Mozilla Public License 2.0 (MPL 2.0)", "PSF-2.0",
    "Python Software Foundation License", "Zlib",
)  # fmt: skip
"""Those that a program under Apache-2.0 may depend on. The LGPL is of crc32c, which is installed beside it
and can be replaced, and a choice in marisa-trie. The MPL is of certifi and orjson, which are used unchanged:
it asks for the source of their own files alone. MIT-0 (cffi) and MIT-CMU (pillow) ask for no more than MIT.
"Apache Software License" is version 2.0 in the packages that name it so: confluent-kafka, OpenCC,
python-dateutil, aws-msk-iam-sasl-signer-python. confluent-kafka, with librdkafka in its wheel, is of the
extra `registry` alone, for its client of a schema registry. "Python Software Foundation License" is what
matplotlib calls its own, which is made from PSF-2.0 and asks for no more."""

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


def pinned(names: Collection[str], lock: str) -> list[str]:
    """Entries of these packages in the text of a lock file, without their markers: pip-audit would leave out
    what is for another Python than its own. It takes one version of a package, so the second ones are a text
    of their own. Ends the program if a package is not there. names: as lock files write them"""
    texts: list[str] = []
    versions: Counter[str] = Counter()
    for name, version, hashes in re.findall(
        r"^([\w.-]+)(?:\[.*\])?==([^\s;]+).*?((?: \\\n +--hash=\S+)+)$", lock, re.MULTILINE
    ):
        if name in names:
            texts += [""] * (versions[name] == len(texts))
            texts[versions[name]] += f"{name}=={version}{hashes}\n"
            versions[name] += 1
    if missing := sorted(set(names) - set(versions)):
        sys.exit(f"not in requirements-dev.lock: {', '.join(missing)}; run make lock")
    return texts


def audit(tool: Path, locks: Sequence[str], report: Path, *more: str) -> None:
    """Ask for known vulnerabilities of every package of texts with pins. Ends the program if there is one, or
    if nobody could say. more: arguments of pip-audit"""
    for number, text in enumerate(locks, 1):
        to = f"{report}.audit.json" if number == 1 else f"{report}.audit-{number}.json"
        with tempfile.NamedTemporaryFile("w", suffix=".lock") as lock:
            lock.write(text)
            lock.flush()
            command = [tool, "--requirement", lock.name, "--require-hashes", "--disable-pip", "--strict"]
            said([*command, "--progress-spinner", "off", "--format", "json", "--output", to, *more])


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
    for python in pythons:
        with tempfile.TemporaryDirectory(prefix="twinsieve-release-") as made:
            try_out(python, (wheel, sdist), Path(made))
    try_image(version)
    report = folder / f"twinsieve-{version}"
    with tempfile.TemporaryDirectory(prefix="twinsieve-release-") as made:
        names = describe(tools, with_extras(tools, pythons[0], wheel, Path(made)), report)
    locks = pinned(names, (ROOT / "requirements-dev.lock").read_text("utf-8"))
    audit(tools / "pip-audit", locks, report, *shlex.split(os.environ.get("AUDIT", "")))
    print(f"dist/ has release {version}: sign the files and hand them to whoever may publish them")


def with_extras(tools: Path, python: Path, wheel: Path, folder: Path) -> Path:
    """The interpreter of an environment with twinsieve, the packages of its extras, and nothing else."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    said([python, "-m", "venv", "--without-pip", folder / "venv"])
    made = folder / "venv" / "bin" / "python"
    install = [tools / "python", "-m", "pip", "--python", made, "install", "--quiet"]
    wanted = f"{wheel}[{','.join(sorted(extras.keys() - {'dev'}))}]"
    said([*install, "-c", pins(folder, "requirements-dev.lock"), wanted])
    return made


def describe(tools: Path, python: Path, report: Path) -> list[str]:
    """Write the bill of materials and the licences of an environment. Ends the program for an unknown one

    returns: the names of its packages, as lock files write them
    """
    bill = f"{report}.cdx.json"
    said([tools / "cyclonedx-py", "environment", python, "--output-file", bill, "--output-reproducible"])
    command = [tools / "pip-licenses", f"--python={python}", "--format=json", "--with-system"]
    listed = said([*command, "--ignore-packages", "twinsieve"])
    Path(f"{report}.licences.json").write_text(listed, "utf-8")
    licences = json.loads(listed)
    if unknown := unknown_licences(licences):
        sys.exit("licences that nobody has agreed to:\n" + "\n".join(unknown))
    return [re.sub(r"[-_.]+", "-", one["Name"]).lower() for one in licences]


if __name__ == "__main__":
    main()
