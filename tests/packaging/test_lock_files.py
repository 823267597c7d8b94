"""The lock files name a version and hashes for everything that is installed, and no place to get it from."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

_LOCKS = ("requirements.lock", "requirements-dev.lock")
_ENTRY = re.compile(
    r"(?P<pin>\S+==\S+)(?P<marker> ; [^\\]+?)?(?P<hashes>(?: \\\n    --hash=sha256:[0-9a-f]{64})+)\n"
)


def _entries(root: Path, name: str) -> list[re.Match[str]]:
    """The entries of a lock file. Fails where the file holds anything else, such as an index or a pin without hashes."""
    text = (root / name).read_text("utf-8")
    entries = list(_ENTRY.finditer(text))
    assert "".join(entry[0] for entry in entries) == text, f"{name}: there is more than pins with hashes"
    return entries


@pytest.mark.parametrize("name", _LOCKS)
def test_a_lock_file_holds_pins_with_hashes_and_nothing_else(root: Path, name: str) -> None:
    entries = _entries(root, name)
    assert len(entries) > 20
    assert "://" not in (root / name).read_text("utf-8"), f"{name} names a host"


def test_both_lock_files_pin_the_same_files(root: Path) -> None:
    run, test = ({entry[0] for entry in _entries(root, name)} for name in _LOCKS)
    assert run < test


def test_the_tool_that_writes_the_lock_files_is_one_version(root: Path) -> None:
    assert re.search(r"pip install .*'uv==[0-9.]+'", (root / "scripts" / "lock").read_text("utf-8"))


@pytest.mark.parametrize("place", ["Makefile", "docker/Dockerfile"])
def test_what_is_installed_from_a_lock_file_is_checked_against_its_hashes(root: Path, place: str) -> None:
    """pip checks hashes unasked where a file has some; asked, it also refuses a file that lost them."""
    text = (root / place).read_text("utf-8").replace("\\\n", " ")
    installs = [line for line in text.splitlines() if "pip install" in line]
    from_locks = re.findall(r"install[^&;]* -r \S*\.lock", "\n".join(installs))
    assert from_locks
    assert [one for one in from_locks if "--require-hashes" not in one] == []


def test_the_image_takes_its_builder_and_its_pins_out_of_the_lock_files(root: Path, tmp_path: Path) -> None:
    text = (root / "docker" / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
    for name in _LOCKS:
        shutil.copy(root / name, tmp_path)
    for command in re.findall(r"sed (?:-n )?'[^']*' \S+ > \S+", text):
        subprocess.run(["sh", "-c", command], cwd=tmp_path, check=True)
    (builder,) = _entries(tmp_path, "build.lock")
    assert builder["pin"].startswith("setuptools==")
    pins = (tmp_path / "pins.txt").read_text("utf-8").splitlines()
    assert pins == [entry["pin"] + (entry["marker"] or "") for entry in _entries(root, "requirements.lock")]
    assert not any("[" in pin for pin in pins)  # pip takes no extras in a file of constraints
