"""`scripts/interpreters.py` says what differs, and what it cannot do."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import interpreters


def test_a_difference_is_named_and_counted(capsys: pytest.CaptureFixture[str]) -> None:
    report = interpreters.Report()
    report.compare("scheme", {"3.11": "a", "3.12": "a"})
    report.compare("posts", {"3.11": "a", "3.12": "b"})
    assert capsys.readouterr().out == "equal    scheme: a\nDIFFERS  posts: 3.11: a, 3.12: b\n"
    assert report.differs == 1


def test_what_does_not_run_is_no_interpreter(tmp_path: Path) -> None:
    shim = tmp_path / "python3.12"
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    assert interpreters.version_of(shim) == ""
    assert interpreters.version_of(tmp_path / "missing") == ""
    assert interpreters.version_of(Path(sys.executable)) == platform.python_version()


def test_every_patch_version_is_found_once_and_the_oldest_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    for name, version in {
        "bin/python3": "3.11.2",
        "bin/python3.11": "3.11.2",
        "more/python3.13": "3.13.0",
        "more/python3.12": "",
        "more/python3": "3.10.13",
        "home/.pyenv/versions/3.11.10/bin/python3": "3.11.10",
        "home/.pyenv/versions/3.11.10/bin/python3.11": "3.11.10",
        "home/.pyenv/versions/3.15.0/bin/python3": "3.15.0",
        "home/.local/share/uv/python/cpython-3.11.9/bin/python3.11": "3.11.9",
    }.items():
        python = tmp_path / name
        python.parent.mkdir(parents=True, exist_ok=True)
        python.write_text(f"#!/bin/sh\necho {version}\n")
        python.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{tmp_path}/missing::{tmp_path}/more")
    monkeypatch.setenv("HOME", str(home))
    found = [path for path in interpreters.found_pythons() if path.is_relative_to(tmp_path)]
    assert [interpreters.version_of(path) for path in found] == ["3.11.2", "3.11.9", "3.11.10", "3.13.0"]
    assert found[0] == tmp_path / "bin" / "python3"


_MAKE_VENV = Path(interpreters.ROOT) / "scripts" / "make-venv"


def _make_venv(python: Path, folder: Path, path: Path) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": f"{path}:/usr/bin:/bin"}
    return subprocess.run(
        ["bash", _MAKE_VENV, python, folder], env=environ, capture_output=True, text=True, check=False
    )


def _python(path: Path, *, makes: bool) -> Path:
    """Says that it is new enough; `makes`: has what an environment needs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    makes_it = (
        "mkdir -p $3/bin && echo $0 > $3/bin/python"
        if makes
        else "mkdir -p $3/bin; touch $3/bin/python; exit 1"
    )
    path.write_text(
        f"""#!/bin/sh
case "$2" in
    venv) {makes_it} ;;
    *ensurepip*) exit {0 if makes else 1} ;;
    *print*) echo 3.11.2 ;;
esac
"""
    )
    path.chmod(0o755)
    return path


def test_a_python_without_venv_is_named_with_what_to_install(tmp_path: Path) -> None:
    for name in ("python3.11", "python3.12", "python3.13", "python3.14"):
        _python(tmp_path / "bin" / name, makes=False)
    done = _make_venv(_python(tmp_path / "python3", makes=False), tmp_path / "venv", tmp_path / "bin")
    assert (done.returncode, (tmp_path / "venv").exists()) == (1, False)
    assert f"{tmp_path}/python3 is Python 3.11.2" in done.stderr
    assert "apt-get install python3-venv" in done.stderr


def test_another_python_makes_the_environment_where_the_named_one_cannot(tmp_path: Path) -> None:
    other = _python(tmp_path / "bin" / "python3.14", makes=True)
    done = _make_venv(_python(tmp_path / "python3", makes=False), tmp_path / "venv", tmp_path / "bin")
    assert (done.returncode, (tmp_path / "venv" / "bin" / "python").read_text().strip()) == (0, str(other))
    assert f"{tmp_path}/python3 is Python 3.11.2" in done.stderr
    assert "python3.14" in done.stderr


def test_one_python_is_refused_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["interpreters.py", sys.executable])
    with pytest.raises(SystemExit) as stopped:
        interpreters.main()
    assert stopped.value.code == 2
    assert "found 1 of Python 3.11 to 3.14, two are needed; name them" in capsys.readouterr().err
