"""The wheel that carries compiled kernels says for which Python, machine and Numba they are."""

from __future__ import annotations

import base64
import csv
import hashlib
import sys
import zipfile
from pathlib import Path

import pytest

from scripts import wheel

_METADATA = """\
Name: twinsieve
Requires-Dist: bitarray<4,>=3
Requires-Dist: numba<0.70,>=0.61
Requires-Dist: numba-extra>=1

text
"""
_TAG = "cp312-cp312-linux_x86_64"
_PINS = {"numba": "0.68.1", "llvmlite": "0.50.0"}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """An unpacked pure wheel with one kernel."""
    info = tmp_path / "tree" / "twinsieve-0.1.0.dist-info"
    kernels = tmp_path / "tree" / "twinsieve" / "kernels" / "kernels-0"
    for folder in (info, kernels):
        folder.mkdir(parents=True)
    (kernels / "one.kernel").write_bytes(b"machine code")
    (info / "METADATA").write_text(_METADATA)
    (info / "WHEEL").write_text("Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    (info / "RECORD").write_text("of another tree,,\n")
    return tmp_path / "tree"


def test_numba_and_llvmlite_are_pinned_and_nothing_else(tmp_path: Path, tree: Path) -> None:
    """llvmlite is no requirement of its own, as it comes with Numba; the kernels fit one version of it."""
    with zipfile.ZipFile(wheel.pack(tree, tmp_path, _TAG, _PINS)) as made:
        said = made.read("twinsieve-0.1.0.dist-info/METADATA").decode()
    assert said.splitlines() == [
        "Name: twinsieve",
        "Requires-Dist: numba==0.68.1",
        "Requires-Dist: llvmlite==0.50.0",
        "Requires-Dist: bitarray<4,>=3",
        "Requires-Dist: numba-extra>=1",
        "",
        "text",
    ]


def test_metadata_without_requirements_are_refused(tmp_path: Path, tree: Path) -> None:
    metadata = tree / "twinsieve-0.1.0.dist-info" / "METADATA"
    metadata.write_text("Name: twinsieve\n\ntext\n")
    with pytest.raises(ValueError, match="names no requirement"):
        wheel.pack(tree, tmp_path, _TAG, _PINS)


def test_name_and_tag_name_the_machine_and_the_record_sums_every_file(tmp_path: Path, tree: Path) -> None:
    path = wheel.pack(tree, tmp_path, _TAG, _PINS)
    assert path.name == f"twinsieve-0.1.0-{_TAG}.whl"
    with zipfile.ZipFile(path) as made:
        said = made.read("twinsieve-0.1.0.dist-info/WHEEL").decode()
        assert said == f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {_TAG}\n"
        rows = list(csv.reader(made.read("twinsieve-0.1.0.dist-info/RECORD").decode().splitlines()))
        assert sorted(name for name, _, _ in rows) == sorted(made.namelist())
        for name, digest, size in rows:
            if not name.endswith("RECORD"):
                content = made.read(name)
                sum_ = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
                assert (digest, size) == (f"sha256={sum_}", str(len(content)))


def test_the_same_tree_gives_the_same_wheel(tmp_path: Path, tree: Path) -> None:
    first, second = (wheel.pack(tree, tmp_path / name, _TAG, _PINS) for name in ("a", "b"))
    assert first.read_bytes() == second.read_bytes()


def test_the_tag_of_this_machine_names_its_python() -> None:
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert wheel.tag_of_this_machine().split("-")[:2] == [python, python + getattr(sys, "abiflags", "")]
    assert "." not in wheel.tag_of_this_machine()
