"""Compiled kernels: none outlives its sources, and a folder that cannot be used costs time, never the run."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import numba
import pytest

from twinsieve.stages.kernel import folder

pytestmark = pytest.mark.heavy

_SMALL = """
import numpy as np
from twinsieve.stages.fingerprint.simhash_tokens import fill_tokens
chars = np.array([ord(c) for c in "武汉ab"], np.uint32)
tokens = np.zeros(4, np.uint64)
print(fill_tokens(chars, np.zeros(4, np.uint8), 0, 4, True, np.uint64(1), tokens))
print(sum(fill_tokens.stats.cache_misses.values()))
"""
"""Tokens of two Han characters and one word: 3. `is_unspaced`, in another file, tells the scripts apart."""

_DROP_CAPABILITY, _WRITE_ANYWHERE, _READ_ANYWHERE = 24, 1, 2
"""prctl's PR_CAPBSET_DROP, CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH, with which root writes and reads where the
modes forbid it."""


def _obey_modes() -> None:
    """Let the process that is started next write and read only where the modes allow it, also as root."""
    for capability in (_WRITE_ANYWHERE, _READ_ANYWHERE):
        if os.getuid() == 0 and ctypes.CDLL(None, use_errno=True).prctl(_DROP_CAPABILITY, capability) != 0:
            raise OSError(ctypes.get_errno(), "prctl")


Run = Callable[..., tuple[list[int], str]]


def _copied_package(root: Path, site: Path) -> Path:
    """A folder with a copy of the package, as an installation has it."""
    (site / "twinsieve").mkdir(parents=True)
    for path in (root / "twinsieve").glob("*.py"):
        shutil.copy(path, site / "twinsieve")
    shutil.copytree(
        root / "stages", site / "twinsieve" / "stages", ignore=shutil.ignore_patterns("__pycache__")
    )
    return site


def _run_on(site: Path, script: str = _SMALL, **variables: str) -> tuple[list[int], str]:
    """Numbers that a script on the copy prints, and what it says on stderr."""
    others = {"PATH": os.environ["PATH"], "PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=site,
        env=others | variables,
        capture_output=True,
        text=True,
        preexec_fn=_obey_modes,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [int(word) for word in done.stdout.split()], done.stderr


@pytest.fixture
def site(root: Path, tmp_path: Path) -> Path:
    return _copied_package(root, tmp_path / "site")


@pytest.fixture
def run(site: Path) -> Run:
    return lambda *script, **variables: _run_on(site, *script, **variables)


@pytest.fixture(scope="module")
def compiled_once(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of kernels that a process has compiled and kept."""
    place = tmp_path_factory.mktemp("compiled")
    site = _copied_package(root, place / "site")
    assert _run_on(site, NUMBA_CACHE_DIR=str(place / "cache")) == ([3, 1], "")
    return place / "cache"


@pytest.fixture
def cache(compiled_once: Path, tmp_path: Path) -> Path:
    """A filled folder of the test's own; another copy of the package made it."""
    return Path(shutil.copytree(compiled_once, tmp_path / "cache"))


@pytest.fixture
def forbid() -> Iterator[Callable[[Path], None]]:
    """Takes the right to write below a folder."""
    changed: list[Path] = []

    def forbid(place: Path) -> None:
        for path in (place, *place.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
            changed.append(path)

    yield forbid
    for path in changed:
        path.chmod(0o755)


def test_a_change_of_a_callee_in_another_file_changes_the_caller(cache: Path, site: Path, run: Run) -> None:
    """The file of `fill_tokens` stays as it is; a function of another file that it calls changes."""
    changed = site / "twinsieve" / "stages" / "text" / "scripts.py"
    source = changed.read_text("utf-8")
    before = "    if 0x4E00 <= code <= 0x9FFF:\n        return True\n"
    assert before in source
    changed.write_text(
        source.replace(before, "    if 0x4E00 <= code <= 0x9FFF:\n        return False\n"), "utf-8"
    )
    assert run(NUMBA_CACHE_DIR=str(cache))[0] == [1, 1]
    changed.write_text(source, "utf-8")
    assert run(NUMBA_CACHE_DIR=str(cache))[0] == [3, 0]


def test_kernels_are_kept_where_the_variables_say(tmp_path: Path, run: Run) -> None:
    run(HOME=str(tmp_path / "home"))
    assert any((tmp_path / "home" / ".cache" / "twinsieve").glob("kernels-*/*.nbc"))
    run(HOME=str(tmp_path / "none"), XDG_CACHE_HOME=str(tmp_path / "xdg"))
    assert any((tmp_path / "xdg" / "twinsieve").glob("kernels-*/*.nbc"))
    assert not (tmp_path / "none").exists()


def test_a_filled_folder_that_cannot_be_written_is_read(
    cache: Path, run: Run, forbid: Callable[[Path], None]
) -> None:
    forbid(cache)
    assert run(NUMBA_CACHE_DIR=str(cache)) == ([3, 0], "")


def test_a_folder_that_cannot_be_written_any_more_costs_one_line(
    cache: Path, run: Run, forbid: Callable[[Path], None]
) -> None:
    for path in cache.rglob("*.nb?"):
        path.unlink()
    forbid(cache)
    numbers, said = run(NUMBA_CACHE_DIR=str(cache))
    assert numbers == [3, 1]
    assert len(said.splitlines()) == 1
    assert str(cache) in said


@pytest.mark.parametrize("place", ["home", "home/.cache", "home/.cache/twinsieve"])
@pytest.mark.parametrize("kind", ["not searched", "a file"])
def test_a_home_that_cannot_be_used_costs_one_line_and_no_error(
    kind: str, place: str, tmp_path: Path, run: Run
) -> None:
    """As in an image with HOME=/root under the uid of somebody else."""
    path = tmp_path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "a file":
        path.write_bytes(b"")
    else:
        path.mkdir(mode=0)
    marked = "from twinsieve.stages.kernel.folder import is_complete, mark_as_complete\n"
    marked += "print(int(mark_as_complete(b'')), int(is_complete(b'')))"
    try:
        numbers, said = run(_SMALL + marked, HOME=str(tmp_path / "home"))
    finally:
        path.chmod(0o700)
    assert numbers == [3, 1, 0, 0]
    assert len(said.splitlines()) == 1
    assert "NUMBA_CACHE_DIR" in said


def test_a_damaged_file_is_compiled_again(cache: Path, run: Run) -> None:
    for path in cache.rglob("*.nb?"):
        path.write_bytes(path.read_bytes()[:-1])
    assert run(NUMBA_CACHE_DIR=str(cache)) == ([3, 1], "")
    assert run(NUMBA_CACHE_DIR=str(cache)) == ([3, 0], "")


_EACH_KIND = """
import os
import numpy as np
from twinsieve.stages.near.hamming import count_close
kinds, first = ("uint8", "uint16", "uint32", "uint64"), int(os.environ["FIRST"])
for kind in kinds[first:] + kinds[:first]:
    values = np.arange(200, dtype=kind)
    assert count_close(values, values.dtype.type(0), np.uint64(0)) == 1, kind
print(sum(count_close.stats.cache_misses.values()))
"""
"""The results differ where a kernel for one type is loaded as that for another."""


def test_processes_that_compile_at_the_same_time_keep_what_each_of_them_compiled(
    tmp_path: Path, run: Run
) -> None:
    def run_from(first: int) -> tuple[list[int], str]:
        return run(_EACH_KIND, NUMBA_CACHE_DIR=str(tmp_path / "cache"), FIRST=str(first))

    with ThreadPoolExecutor(3) as threads:
        assert {said for _, said in threads.map(run_from, range(3))} == {""}
    assert run_from(0) == ([0], "")


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The module, for a folder of the test's own; nothing that it remembers of the folder of this process."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "root"))
    _forget()
    yield folder
    _forget()


def _forget() -> None:
    for remembered in (folder.path, folder.is_usable, folder.warn_not_kept):
        remembered.cache_clear()


def test_a_folder_that_is_made_is_for_its_owner_alone_whatever_the_umask(own: ModuleType) -> None:
    before = os.umask(0)
    try:
        assert own.is_usable()
    finally:
        os.umask(before)
    assert own.path().stat().st_mode & 0o777 == 0o700


def _open_to_others(path: Path) -> None:
    path.chmod(0o770)


def _given_away(path: Path) -> None:
    os.chown(path, 12_345, -1)


def _linked(path: Path) -> None:
    path.rename(path.parent / "elsewhere")
    path.symlink_to(path.parent / "elsewhere")


def _a_file(path: Path) -> None:
    path.rmdir()
    path.touch()


@pytest.mark.parametrize("change", [_open_to_others, _given_away, _linked, _a_file])
def test_a_folder_that_somebody_else_may_have_written_is_not_used(
    own: ModuleType, stranger: int, caplog: pytest.LogCaptureFixture, change: Callable[[Path], None]
) -> None:
    assert own.is_usable()
    change(own.path())
    own.is_usable.cache_clear()
    assert not own.is_usable()
    assert not own.is_complete(b"")
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert str(own.path()) in record.message


@pytest.mark.parametrize("setting", ["BOUNDSCHECK", "OPT"])
def test_kernels_of_other_settings_lie_in_another_folder(
    own: ModuleType, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    before = own.path()
    monkeypatch.setattr(numba.config, setting, 2)
    own.path.cache_clear()
    assert own.path() != before


def test_kernels_for_a_named_cpu_lie_in_a_folder_of_their_own(run: Run, cache: Path) -> None:
    named = {"NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(cache)}
    assert run(**named) == ([3, 1], "")
    assert run(**named) == ([3, 0], "")
    assert run(NUMBA_CACHE_DIR=str(cache)) == ([3, 0], "")


def test_folders_that_nobody_used_for_a_month_go_when_a_new_one_is_made(own: ModuleType) -> None:
    """Only those that are made here: others share the root, and the names of theirs may begin alike."""
    root = own.path().parent
    for name, days in ((f"kernels-{'0' * 32}", 31), (f"kernels-{'1' * 32}", 29), ("kernels-thesis", 31)):
        (root / name).mkdir(parents=True)
        (root / name / "file").touch()
        os.utime(root / name, times=(time.time() - days * 86_400,) * 2)
    assert own.is_usable()
    names = {path.name for path in root.iterdir()}
    assert names == {own.path().name, f"kernels-{'1' * 32}", "kernels-thesis"}


def test_a_folder_in_use_does_not_grow_old(own: ModuleType) -> None:
    assert own.is_usable()
    os.utime(own.path(), times=(0, 0))
    own.is_usable.cache_clear()
    assert own.is_usable()
    assert time.time() - own.path().stat().st_mtime < 86_400


def test_a_kernel_that_numba_cannot_keep_is_compiled_at_each_start(run: Run, cache: Path) -> None:
    """Without optimisation, Numba keeps no kernel that has addresses of constants in it."""
    code = _SMALL + "from twinsieve.pipeline.messages.reader import load_kernels; load_kernels()"
    numbers, said = run(code, NUMBA_CACHE_DIR=str(cache), NUMBA_OPT="0")
    assert numbers == [3, 1]
    assert "Cannot cache compiled function" in said


def test_a_folder_that_older_calls_filled_is_not_complete(own: ModuleType) -> None:
    assert own.mark_as_complete(b"older calls")
    assert own.is_complete(b"older calls")
    assert not own.is_complete(b"these calls")
