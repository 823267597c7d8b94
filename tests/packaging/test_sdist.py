"""An sdist is the checkout: its files are there byte for byte, and the same wheel comes out.

So what test_unpacked.py says of it, that all tests are collected there, holds for a clone.
"""

from __future__ import annotations

import hashlib
import os
import re
import tarfile
import zipfile
from pathlib import Path

from tests.packaging.conftest import build, project_files

_TEXT = frozenset({".py", ".md", ".toml", ".yaml", ".lock", ".xml", ".txt", ""})
_PRIVATE = re.compile(
    r"(?<![\w.])/(?:work|root|home)/|\.\./sh[a]red"
    r"|https?://(?!t\.cn|weibo\.|www\.apache|keepachangelog)[^\s/]*\b(?:local|internal|registry|mirror)\b"
)


def test_the_sdist_holds_every_file_of_the_project_once(root: Path, sdist: Path, unpacked: Path) -> None:
    """What setuptools adds is its own record: PKG-INFO, setup.cfg, the egg-info."""
    with tarfile.open(sdist) as archive:
        members = [member for member in archive.getmembers() if not member.isdir()]
    names = [member.name.partition("/")[2] for member in members]
    own = {name for name in names if name in ("PKG-INFO", "setup.cfg") or ".egg-info/" in name}
    assert sorted(set(names) - own) == sorted(project_files(root))
    assert len(names) == len(set(names))
    for name in project_files(root):
        assert (unpacked / name).is_symlink() == (root / name).is_symlink(), name
        assert os.access(unpacked / name, os.X_OK) == os.access(root / name, os.X_OK), name
        if (root / name).is_file():
            assert (unpacked / name).read_bytes() == (root / name).read_bytes(), name


def test_links_in_the_sdist_are_relative_and_stay_inside(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        links = {member.name.partition("/")[2]: member.linkname for member in archive if member.issym()}
    assert links == {
        "twinsieve/examples": "../config",
        "twinsieve/pipeline": "../pipeline",
        "twinsieve/stages": "../stages",
    }


def test_no_file_names_a_private_place(root: Path) -> None:
    """Folders and hosts of whoever works on it; the script that CI calls alone knows a folder beside the checkout."""
    texts = [name for name in project_files(root) if name != ".ci/run" and (root / name).suffix in _TEXT]
    assert len(texts) > 500
    named = {
        name: _PRIVATE.search((root / name).read_text("utf-8")) for name in texts if (root / name).is_file()
    }
    assert {name: found[0] for name, found in named.items() if found} == {}


def test_the_wheel_from_the_sdist_equals_the_wheel_from_the_checkout(
    unpacked: Path, wheel: Path, tmp_path: Path
) -> None:
    assert _contents(build(unpacked, "wheel", tmp_path)) == _contents(wheel)


def test_an_archive_without_links_gives_the_same_wheel(
    without_links: Path, wheel: Path, tmp_path: Path
) -> None:
    assert _contents(build(without_links, "wheel", tmp_path)) == _contents(wheel)


def _contents(wheel: Path) -> dict[str, str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()}
