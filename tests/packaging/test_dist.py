"""The checks of `make dist` hold for this installation, and it installs the pinned versions."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from scripts import dist


def _programs(folder: Path, command: str) -> Path:
    """A folder of programs as an environment has it."""
    folder.mkdir()
    (folder / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (folder / "twinsieve").write_text(f"#!/bin/sh\n{command}\n")
    for program in folder.iterdir():
        program.chmod(0o700)
    return folder


def test_this_installation_passes(tmp_path: Path) -> None:
    command = f'exec {sys.executable} -m twinsieve "$@"'
    dist.run(_programs(tmp_path / "bin", command), tmp_path, compiles=False)


def test_an_installation_that_keeps_other_posts_is_refused(tmp_path: Path) -> None:
    posts = "".join(json.dumps({"id": n}) + "\n" for n in range(5))
    (tmp_path / "all").write_text(posts)
    with pytest.raises(SystemExit, match=r"dedup keeps \[0, 1, 2, 3, 4\]"):
        dist.run(
            _programs(tmp_path / "bin", f"cp {tmp_path}/all {tmp_path}/kept.jsonl"), tmp_path, compiles=False
        )


def test_the_versions_that_it_installs_are_those_of_the_lock_file(root: Path, tmp_path: Path) -> None:
    pins = dist.pins(tmp_path).read_text("utf-8").splitlines()
    locked = re.findall(r"^\S+==[^\s;]+", (root / "requirements.lock").read_text("utf-8"), re.MULTILINE)
    assert [pin.split(" ;")[0].strip() for pin in pins] == locked
