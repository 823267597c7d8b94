"""What a release needs beside its archives: a changelog of its version, licences that somebody agreed to, and an audit
in which "could not be audited" fails."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from scripts.dist import pins
from scripts.release import (
    LICENCES,
    VERSIONED,
    audit,
    pinned,
    problems,
    project_version,
    try_image,
    unknown_licences,
)


def _checkout(folder: Path, root: Path, changelog: str) -> Path:
    for name in ("pyproject.toml", *VERSIONED):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / name, folder / name)
    (folder / "CHANGELOG.md").write_text(changelog)
    for command in (
        ["init", "-q"],
        ["add", "-A"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "all"],
    ):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return folder


def test_a_checkout_is_released_with_its_version_in_the_changelog(root: Path, tmp_path: Path) -> None:
    version = project_version(root)
    checkout = _checkout(tmp_path, root, f"# Changelog\n\n## {version} (2030-01-31)\nThe first.\n")
    assert problems(checkout) == []
    (checkout / "more.txt").write_text("a file")
    (said,) = problems(checkout)
    assert "1 files are not committed" in said


@pytest.mark.parametrize("title", ["Unreleased", "9.9.9 (2030-01-31)", "{version}", "{version} (31 January)"])
def test_another_title_is_refused_with_what_to_write(title: str, root: Path, tmp_path: Path) -> None:
    version = project_version(root)
    checkout = _checkout(tmp_path, root, f"# Changelog\n\n## {title.format(version=version)}\n")
    (said,) = problems(checkout)
    assert f"## {version} (" in said


@pytest.mark.parametrize("name", VERSIONED)
def test_a_file_with_another_version_is_named(name: str, root: Path, tmp_path: Path) -> None:
    version = project_version(root)
    checkout = _checkout(tmp_path, root, f"## {version} (2030-01-31)\n")
    text = (checkout / name).read_text("utf-8")
    assert version in text
    for changed in (text.replace(version, "9.8.7"), text.replace(version, "")):
        (checkout / name).write_text(changed)
        _, said = problems(checkout)  # after the one of the files that are not committed
        assert said.startswith(f"{name} has ")
        assert version in said


_ENGINE = """#!/bin/sh
echo "${{0##*/}} $@" >> {log}
case $1 in
    info) exit {info} ;;
    build) exit {build} ;;
    run) echo "twinsieve {version}" ;;
esac
"""


def _engine(folder: Path, name: str, *, info: int = 0, build: int = 0, version: str = "1.2.3") -> None:
    script = folder / name
    script.write_text(_ENGINE.format(log=folder / "log", info=info, build=build, version=version))
    script.chmod(0o755)


def _commands(folder: Path) -> list[str]:
    return (folder / "log").read_text("utf-8").splitlines()


def test_the_image_is_built_and_started_by_the_first_engine_that_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    _engine(tmp_path, "docker", info=1)  # the command without its daemon
    _engine(tmp_path, "podman")
    try_image("1.2.3")
    *_, build, run = _commands(tmp_path)
    assert build == "podman build --file docker/Dockerfile --tag twinsieve:1.2.3 ."
    assert run == "podman run --rm twinsieve:1.2.3 --version"
    assert capsys.readouterr().out == "podman: image twinsieve:1.2.3 works\n"


def test_an_image_is_not_tried_where_no_engine_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    for name in ("docker", "podman"):
        _engine(tmp_path, name, info=1)
    try_image("1.2.3")
    assert _commands(tmp_path) == ["docker info", "podman info"]
    assert "the image was not tried" in capsys.readouterr().out
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    try_image("1.2.3")
    assert "the image was not tried" in capsys.readouterr().out


def test_an_image_that_cannot_be_built_or_is_of_another_version_ends_the_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    _engine(tmp_path, "docker", build=3)
    with pytest.raises(SystemExit, match=r"docker build .*exit code 3"):
        try_image("1.2.3")
    _engine(tmp_path, "docker", version="1.2.2")
    with pytest.raises(SystemExit, match=r"'twinsieve 1\.2\.2'"):
        try_image("1.2.3")


_LOCK = """\
a-b[c]==1.0 \\
    --hash=sha256:01 \\
    --hash=sha256:02
numbers==2.4 ; python_full_version < '3.12' \\
    --hash=sha256:03
numbers==2.5 ; python_full_version >= '3.12' \\
    --hash=sha256:04
tests==3 \\
    --hash=sha256:05
"""


def test_every_version_of_a_package_is_audited_whatever_python_it_is_for(tmp_path: Path) -> None:
    first, second = pinned(["a-b", "numbers"], _LOCK)
    assert first == (
        "a-b==1.0 \\\n    --hash=sha256:01 \\\n    --hash=sha256:02\nnumbers==2.4 \\\n    --hash=sha256:03\n"
    )
    assert second == "numbers==2.5 \\\n    --hash=sha256:04\n"
    with pytest.raises(SystemExit, match=r"requirements-dev\.lock: d, e; run make lock"):
        pinned(["a-b", "e", "d"], _LOCK)


def test_each_lock_is_audited_into_a_report_of_its_own(tmp_path: Path) -> None:
    tool = tmp_path / "pip-audit"
    tool.write_text(
        '#!/bin/sh\nlock=$2\nwhile [ "$1" != --output ]; do shift; done\n{ cat "$lock"; echo "$3"; } > "$2"\n'
    )
    tool.chmod(0o755)
    audit(tool, ["a==1\n", "a==2\n"], tmp_path / "it-1.0", "--more")
    assert (tmp_path / "it-1.0.audit.json").read_text() == "a==1\n--more\n"
    assert (tmp_path / "it-1.0.audit-2.json").read_text() == "a==2\n--more\n"


def test_constraints_name_neither_hashes_nor_extras(root: Path, tmp_path: Path) -> None:
    text = pins(tmp_path, "requirements-dev.lock").read_text("utf-8")
    assert "\nconfluent-kafka==" in text
    assert not set("[\\") & set(text)
    assert "--hash" not in text


def test_a_licence_that_nobody_has_agreed_to_is_named() -> None:
    known = [
        {"Name": "a", "Version": "1", "License": "MIT AND (BSD-2-Clause OR LGPL-2.1-or-later)"},
        *({"Name": "b", "Version": "2", "License": licence} for licence in LICENCES),
    ]
    assert unknown_licences(known) == []
    others = [
        {"Name": "c", "Version": "3", "License": "MIT AND AGPL-3.0-only"},
        {"Name": "d", "Version": "4", "License": "UNKNOWN"},
    ]
    assert unknown_licences([*known, *others]) == ["c 3: MIT AND AGPL-3.0-only", "d 4: UNKNOWN"]


@pytest.mark.parametrize(
    "says", ["a vulnerability was found", "Dependency not found and could not be audited: a (1.0)"]
)
def test_an_audit_that_finds_or_cannot_say_ends_the_release(
    says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tool = tmp_path / "pip-audit"
    tool.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit 1\n")
    tool.chmod(0o755)
    with pytest.raises(SystemExit, match=r"(?s)--strict.*exit code 1.*" + says.split("(")[0]):
        audit(tool, ["a==1\n"], tmp_path / "report")
