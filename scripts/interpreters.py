"""Holds every Python that is found against the others: `python scripts/interpreters.py [PYTHON ...]`.

For each it makes an environment from requirements.lock and one wheel of this checkout, then compares
the names of the fingerprint schemes, generated posts, what `dedup` keeps and drops of them and of rows with
every character of Unicode, and lets each go on from the state that each other one wrote.
Prints what was found; exit code 1 if anything differs, 2 if there are not at least two Pythons.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from hashlib import blake2b
from itertools import permutations
from pathlib import Path

MINORS = range(11, 15)
ROOT = Path(__file__).resolve().parents[1]
SCHEMES = """
from twinsieve.stages.fingerprint.features import FeatureConfig
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig
for kind in ("chars", "shingles", "keywords"):
    print(kind, Scheme(SchemeConfig(features=FeatureConfig(kind))).scheme_id)
"""
CONFIGS: dict[str, list[str]] = {
    "defaults": [],
    "plain": ["--profile", "plain"],
    "hamming": ["-c", str(ROOT / "config" / "hamming.yaml")],
    "keywords": ["--set", "features.kind=keywords"],
}
"""Settings under which files are judged; together they use all that could depend on the Python."""


def said(command: list[str | Path]) -> str:
    """What a command prints; ends the program with its errors if it fails."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def pip_install(python: Path | str, *words: str | Path) -> None:
    """Install packages for this interpreter."""
    said([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *words])


def found_pythons() -> list[Path]:
    """An interpreter of each supported patch version that is found, the oldest first.

    They are sought on PATH, where the system has its own, and where pyenv and uv keep theirs.
    """
    names = ["python3", *(f"python3.{minor}" for minor in MINORS)]
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    folders += [Path("/usr/bin"), Path("/usr/local/bin")]
    for home in (Path.home() / ".pyenv" / "versions", Path.home() / ".local" / "share" / "uv" / "python"):
        folders += sorted(home.glob("*/bin"))
    found: dict[tuple[int, ...], Path] = {}
    for path in dict.fromkeys(folder / name for folder in folders for name in names):
        text = version_of(path) if path.is_file() else ""
        version = tuple(map(int, text.split("."))) if text else ()
        if version[:1] == (3,) and version[1] in MINORS:
            found.setdefault(version, path)
    return [path for _, path in sorted(found.items())]


def version_of(python: Path) -> str:
    """As 3.12.1; empty if it makes no environments, or does not run (as pyenv's shims of other versions)."""
    code = "import sys, ensurepip, venv; print('%d.%d.%d' % sys.version_info[:3])"
    try:
        return subprocess.run(
            [python, "-c", code], capture_output=True, text=True, check=False
        ).stdout.strip()
    except OSError:
        return ""


def environment(python: Path, wheel: Path, folder: Path) -> Path:
    """The `bin` folder of an environment with the pinned packages and the wheel; made once, kept."""
    venv = folder / f"venv-{version_of(python)}"
    if not (venv / "bin" / "python").exists():
        said([python, "-m", "venv", venv])
    pip_install(venv / "bin" / "python", "-r", ROOT / "requirements.lock")
    pip_install(venv / "bin" / "python", "--no-deps", "--force-reinstall", wheel)
    return venv / "bin"


def digest(path: Path) -> str:
    """Short hash of a file's bytes."""
    return blake2b(path.read_bytes(), digest_size=8).hexdigest()


def write_every_character(path: Path) -> None:
    """Rows with all code points of the planes that hold letters, alone and before marks and a number."""
    codes = [code for code in range(0x32000) if not 0xD800 <= code < 0xE000]
    with path.open("w", encoding="utf-8") as rows:
        for first in range(0, len(codes), 12):
            chars = "".join(map(chr, codes[first : first + 12]))
            for text in (f"row {chars}", "row " + "".join(char + "\u0323\u0301-5" for char in chars)):
                rows.write(json.dumps({"id": first, "text": text}) + "\n")


class Report:
    """Lines of findings; `differs` counts those that are not equal everywhere."""

    def __init__(self) -> None:
        self.differs = 0

    def compare(self, what: str, found: dict[str, str]) -> None:
        """Print one line: equal, or what each Python has."""
        equal = len(set(found.values())) == 1
        self.differs += not equal
        shown = next(iter(found.values())) if equal else ", ".join(f"{k}: {v}" for k, v in found.items())
        print(f"{'equal  ' if equal else 'DIFFERS'}  {what}: {shown}", flush=True)


def dedup(bin_folder: Path, inputs: list[Path], out: Path, options: list[str]) -> str:
    """Hash of what is kept and hash of what is dropped."""
    dropped = out.with_suffix(".dropped.jsonl")
    said([bin_folder / "twinsieve", "dedup", *inputs, "-q", "-o", out, "--duplicates", dropped, *options])
    return f"{digest(out)} kept, {digest(dropped)} dropped"


def remove(folder: Path, pattern: str) -> None:
    """Remove the files and folders of that name, and what is in them."""
    for old in folder.glob(pattern):
        shutil.rmtree(old) if old.is_dir() else old.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "pythons", nargs="*", type=Path, help="interpreters (every 3.11 to 3.14 that is found)"
    )
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "interpreters")
    options = parser.parse_args()
    pythons = options.pythons or found_pythons()
    if len(pythons) < 2:
        parser.error(f"found {len(pythons)} of Python 3.11 to 3.14, two are needed; name them")
    folder = options.folder.resolve()
    # what an earlier build left in `build/lib` would go into the wheel
    for old in (folder / "wheel", ROOT / "build" / "lib"):
        shutil.rmtree(old, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    said([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder / "wheel", ROOT])
    (wheel,) = (folder / "wheel").glob("*.whl")
    bins = {}
    for python in pythons:
        start = time.monotonic()
        bins[version_of(python)] = environment(python, wheel, folder)
        print(f"{python}: installed in {time.monotonic() - start:.0f} s", flush=True)

    report = Report()
    unicodes = {
        v: said([b / "python", "-c", "import unicodedata as u; print(u.unidata_version)"]).strip()
        for v, b in bins.items()
    }
    print("Unicode of the interpreters: " + ", ".join(f"{v}: {u}" for v, u in unicodes.items()))
    schemes = {v: said([b / "python", "-c", SCHEMES]).split("\n") for v, b in bins.items()}
    for lines in zip(*schemes.values(), strict=True):
        if lines[0]:
            report.compare(f"scheme of {lines[0].split()[0]}", dict(zip(bins, lines, strict=True)))

    made = {}
    for name, bin_folder in bins.items():
        posts = folder / f"posts-{name}.jsonl"
        count = ["--messages", str(options.messages)]
        said([bin_folder / "twinsieve", "generate", *count, "--seed", "11", "-o", posts])
        made[name] = digest(posts)
    report.compare(f"{options.messages} generated posts", made)
    posts = folder / f"posts-{next(iter(bins))}.jsonl"
    characters = folder / "characters.jsonl"
    write_every_character(characters)
    for config, settings in CONFIGS.items():
        for rows in (posts, characters):
            outputs = {v: dedup(b, [rows], folder / f"out-{v}.jsonl", settings) for v, b in bins.items()}
            report.compare(f"{rows.name.partition('-')[0]}, {config}", outputs)

    lines = posts.read_bytes().splitlines(keepends=True)
    halves = [folder / "first.jsonl", folder / "second.jsonl"]
    for half, part in zip(halves, (lines[: len(lines) // 2], lines[len(lines) // 2 :]), strict=True):
        half.write_bytes(b"".join(part))
    for config, settings in CONFIGS.items():
        went_on = {}
        states = {}
        for name, bin_folder in bins.items():
            states[name] = folder / f"state-{name}"
            remove(folder, f"state-{name}*")
            own = [*settings, "--state", str(states[name])]
            dedup(bin_folder, halves[:1], folder / "out-first.jsonl", own)
        for writer, reader in [*((name, name) for name in bins), *permutations(bins, 2)]:
            state = folder / "state-copy"
            remove(folder, "state-copy*")
            shutil.copytree(states[writer], state)
            went_on[f"{writer} to {reader}"] = dedup(
                bins[reader], halves[1:], folder / "out-second.jsonl", [*settings, "--state", str(state)]
            )
        report.compare(f"state of each read by each, {config}, {len(went_on)} ways", went_on)
    if report.differs:
        sys.exit(f"{report.differs} findings differ between {', '.join(bins)}")
    print(f"no difference between Python {', '.join(bins)}")


if __name__ == "__main__":
    main()
