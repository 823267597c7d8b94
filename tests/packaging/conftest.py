"""What is built of the project, each once a run: a copy of its files, the sdist, the wheel. Nothing asks a network."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

_MADE = frozenset({".venv", ".git", "build", "dist", "demo-output", "__pycache__"})
"""Folders that are no part of the project; so are those that end in _cache or .egg-info."""
_MADE_BY_SETUPTOOLS = frozenset({"PKG-INFO", "setup.cfg"})


def project_files(root: Path) -> list[str]:
    """Names of the files and links of the project: what git holds, or, in an unpacked sdist, what is there."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=False)
    top = subprocess.run(["git", "rev-parse", "--show-prefix"], cwd=root, capture_output=True, check=False)
    if listed.returncode == 0 and not top.stdout.strip():
        names = listed.stdout.decode().rstrip("\0").split("\0")
        return [name for name in names if os.path.lexists(root / name)]
    found = []
    for folder, folders, files in os.walk(root):
        folders[:] = [one for one in folders if not _is_made(one)]
        links = [one for one in folders if Path(folder, one).is_symlink()]
        found += [str(Path(folder, one).relative_to(root)) for one in [*files, *links]]
    return [name for name in found if name not in _MADE_BY_SETUPTOOLS]


def _is_made(folder: str) -> bool:
    return folder in _MADE or folder.endswith(("_cache", ".egg-info")) or folder == ".hypothesis"


@pytest.fixture(scope="session")
def copied(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's files and links in a folder of their own, so that building leaves nothing in the checkout."""
    to = tmp_path_factory.mktemp("checkout") / "twinsieve"
    for name in project_files(root):
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / name, to / name, follow_symlinks=False)
    return to


@pytest.fixture(scope="session")
def without_links(copied: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's files as an archive unpacks where nothing makes links: a link is a file with the name of its target."""
    to = tmp_path_factory.mktemp("without-links") / "twinsieve"
    shutil.copytree(copied, to, symlinks=True)
    links = [path for path in (to / "twinsieve").iterdir() if path.is_symlink()]
    assert len(links) == 3
    for link in links:
        target = str(link.readlink())
        link.unlink()
        link.write_text(target)
    return to


def build(folder: Path, what: str, to: Path) -> Path:
    """The sdist or wheel of the project in `folder`, written into `to` by the build backend that it names."""
    code = f"import sys; from setuptools import build_meta as b; b.build_{what}(sys.argv[1])"
    _run([sys.executable, "-c", code, str(to)], cwd=folder)
    (made,) = to.iterdir()
    return made


@pytest.fixture(scope="session")
def sdist(copied: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist, as built from a checkout."""
    return build(copied, "sdist", tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="session")
def unpacked(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the sdist unpacks to, by the rules of installers: no link leads out of it.

    Python has these rules since 3.11.4; before, it unpacks without them.
    """
    to = tmp_path_factory.mktemp("unpacked")
    rules = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    shutil.unpack_archive(sdist, to, **rules)
    (folder,) = to.iterdir()
    return folder


@pytest.fixture(scope="session")
def wheel(copied: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, as built from a checkout."""
    return build(copied, "wheel", tmp_path_factory.mktemp("wheel"))


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment of its own, in which only packages that a test installs are added to what tests need."""

    folder: Path

    @property
    def site(self) -> Path:
        """The folder that packages are installed in."""
        return Path(sysconfig.get_path("purelib", "venv", {"base": str(self.folder), "platbase": ""}))

    def pip(self, *words: str | Path) -> None:
        """Call pip for this environment, without an index."""
        pip = [sys.executable, "-m", "pip", "--python", str(self.folder / "bin" / "python")]
        _run([*pip, *map(str, words)], env={"PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"})

    def install(self, *words: str | Path) -> None:
        """Install what stands in files or folders, nothing else."""
        self.pip("install", "--quiet", "--no-deps", "--no-build-isolation", *words)

    def run(self, *words: str) -> str:
        """What a program of this environment prints; its first word is looked for in the environment."""
        return _run([str(self.folder / "bin" / words[0]), *words[1:]], cwd=self.folder)


@pytest.fixture
def environment(tmp_path: Path) -> Callable[[], Environment]:
    """Makes an environment; its packages come first, the ones that twinsieve requires are lent by this one.

    twinsieve itself is not lent: an editable installation is a .pth file, which counts in a folder of packages alone.
    """

    def make() -> Environment:
        made = Environment(tmp_path / "environment")
        venv.create(made.folder, with_pip=False, symlinks=True)
        (made.site / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")
        return made

    return make


def _run(words: Sequence[str], *, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PIP_"))}
    done = subprocess.run(
        words, cwd=cwd, env=kept | (env or {}), capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}{done.stderr}"
    return done.stdout
