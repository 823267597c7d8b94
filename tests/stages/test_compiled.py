"""Compiled kernels: none outlives its sources, and a place that cannot be written costs time, never the run."""

from __future__ import annotations

import ctypes
import os
import pickle
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import mmh3
import pytest

from twinsieve.stages import compiled
from twinsieve.stages.compiled import KernelFiles, MachineTarget, folder_name

_SMALL = """
import numpy as np
from twinsieve.stages.fingerprint.tokens import fill_tokens
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


def copied_package(root: Path, site: Path) -> Path:
    """A folder with a copy of the package, as an installation has it."""
    (site / "twinsieve").mkdir(parents=True)
    for path in (root / "twinsieve").glob("*.py"):
        shutil.copy(path, site / "twinsieve")
    for name in ("stages", "pipeline"):
        shutil.copytree(root / name, site / "twinsieve" / name, ignore=shutil.ignore_patterns("__pycache__"))
    return site


def run_on(site: Path, script: str, umask: int = -1, **variables: str) -> tuple[list[int], str]:
    """Numbers that a script on the copy prints, and what it says on stderr."""
    others = {"PATH": os.environ["PATH"], "PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=site,
        env=others | variables,
        capture_output=True,
        text=True,
        preexec_fn=_obey_modes,
        umask=umask,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [int(word) for word in done.stdout.split()], done.stderr


@pytest.fixture
def site(root: Path, tmp_path: Path) -> Path:
    return copied_package(root, tmp_path / "site")


@pytest.fixture
def run(site: Path) -> Run:
    return lambda script=_SMALL, **how: run_on(site, script, **how)


@pytest.fixture(scope="module")
def compiled_once(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of kernels that a process has compiled and kept."""
    folder = tmp_path_factory.mktemp("compiled")
    site = copied_package(root, folder / "site")
    assert run_on(site, _SMALL, NUMBA_CACHE_DIR=str(folder / "cache")) == ([3, 1], "")
    return folder / "cache"


@pytest.fixture
def cache(compiled_once: Path, tmp_path: Path) -> Path:
    """A filled folder of the test's own; another copy of the package made it."""
    return Path(shutil.copytree(compiled_once, tmp_path / "cache"))


@pytest.fixture
def forbid() -> Iterator[Callable[[Path], None]]:
    """Takes the right to write below a folder."""
    changed: list[Path] = []

    def forbid(folder: Path) -> None:
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
            changed.append(path)

    yield forbid
    for path in changed:
        path.chmod(0o755)


_LOADED_THEN_COMPILED = (
    _SMALL
    + """
import sys
print(int("numba.np.arrayobj" in sys.modules))
from numba import njit
from numba.core.runtime import rtsys
print(int(rtsys._init))
print(int(njit(lambda n: np.arange(n).sum())(5)))
"""
)


def test_loading_kernels_starts_no_compiler_and_compiling_still_works(cache: Path, run: Run) -> None:
    """LLVM's code generator, once used, costs every process 27 MB, and a third of a start's second went into importing
    what only compiling needs. The compiled function allocates memory."""
    assert run(_LOADED_THEN_COMPILED, NUMBA_CACHE_DIR=str(cache)) == ([3, 0, 0, 0, 10], "")


def test_settings_of_numba_in_the_program_count_as_those_of_the_environment(cache: Path, run: Run) -> None:
    """A program that embeds twinsieve may have named another CPU before it imports it."""
    named = "import numba; numba.config.CPU_NAME, numba.config.CPU_FEATURES = 'x86-64', ''"
    assert run(named + _SMALL, NUMBA_CACHE_DIR=str(cache)) == ([3, 1], "")
    variables = {"NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": ""}
    assert run(NUMBA_CACHE_DIR=str(cache), **variables) == ([3, 0], "")


def test_an_upgrade_with_a_kept_cache_judges_by_the_new_rules(cache: Path, site: Path, run: Run) -> None:
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
    assert any((tmp_path / "home" / ".cache" / "twinsieve").glob("kernels-*/*.kernel"))
    run(HOME=str(tmp_path / "none"), XDG_CACHE_HOME=str(tmp_path / "xdg"))
    assert any((tmp_path / "xdg" / "twinsieve").glob("kernels-*/*.kernel"))
    assert not (tmp_path / "none").exists()


def test_filled_folder_that_cannot_be_written_is_read(
    cache: Path, run: Run, forbid: Callable[[Path], None]
) -> None:
    forbid(cache)
    assert run(NUMBA_CACHE_DIR=str(cache)) == ([3, 0], "")


def test_without_a_place_to_write_one_line_says_so_and_the_answer_is_right(
    tmp_path: Path, run: Run, site: Path, forbid: Callable[[Path], None]
) -> None:
    """Neither the home nor the installed package can be written."""
    home = tmp_path / "home"
    home.mkdir()
    forbid(site)
    forbid(home)
    numbers, said = run(HOME=str(home))
    assert numbers == [3, 1]
    assert len(said.splitlines()) == 1
    assert "NUMBA_CACHE_DIR" in said
    assert str(home) in said


def test_the_home_may_be_missing_altogether(run: Run) -> None:
    numbers, said = run(HOME="/dev/null/home")
    assert numbers == [3, 1]
    assert len(said.splitlines()) == 1


_MARKED = """
from twinsieve.stages import compiled
compiled.mark_as_ready("text")
print(int(compiled.kept_in("text") is not None), int(compiled.writable()))
"""


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
    try:
        numbers, said = run(_SMALL + _MARKED, HOME=str(tmp_path / "home"))
    finally:
        path.chmod(0o700)
    assert numbers == [3, 1, 0, 0]
    assert len(said.splitlines()) == 1
    assert "NUMBA_CACHE_DIR" in said


def test_where_nothing_is_compiled_no_folder_is_marked_as_complete(tmp_path: Path, run: Run) -> None:
    """The next process compiles what it needs beforehand, and not in the midst of judging."""
    cache = tmp_path / "cache"
    run(_MARKED, NUMBA_CACHE_DIR=str(cache), NUMBA_DISABLE_JIT="1")
    assert not list(cache.rglob("*.ready"))
    assert run(_SMALL + _MARKED, NUMBA_CACHE_DIR=str(cache))[0] == [3, 1, 1, 1]


def test_a_damaged_file_is_compiled_again(cache: Path, run: Run) -> None:
    for path in cache.rglob("*.kernel"):
        path.write_bytes(path.read_bytes()[:-1])
    assert run(NUMBA_CACHE_DIR=str(cache)) == ([3, 1], "")
    assert run(NUMBA_CACHE_DIR=str(cache)) == ([3, 0], "")


def test_a_kernel_for_one_cpu_is_not_used_for_another(tmp_path: Path, run: Run) -> None:
    cache = str(tmp_path / "cache")
    run(NUMBA_CACHE_DIR=cache, NUMBA_CPU_NAME="generic")
    assert run(NUMBA_CACHE_DIR=cache, NUMBA_CPU_NAME="x86-64", NUMBA_CPU_FEATURES="")[0] == [3, 1]
    assert run(NUMBA_CACHE_DIR=cache, NUMBA_CPU_NAME="generic")[0] == [3, 0]


def test_kernels_for_any_cpu_of_this_kind_serve_a_process_that_names_none(tmp_path: Path, run: Run) -> None:
    cache, cpu = str(tmp_path / "cache"), compiled.portable_cpu()
    run(NUMBA_CACHE_DIR=cache, NUMBA_CPU_NAME=cpu, NUMBA_CPU_FEATURES="")
    assert run(NUMBA_CACHE_DIR=cache)[0] == [3, 0]


def test_a_kernel_that_checks_no_index_is_not_used_where_checks_are_asked_for(
    cache: Path, tmp_path: Path, run: Run
) -> None:
    assert run(NUMBA_CACHE_DIR=str(cache), NUMBA_BOUNDSCHECK="1")[0] == [3, 1]
    assert run(NUMBA_CACHE_DIR=str(cache), NUMBA_BOUNDSCHECK="0")[0] == [3, 0]
    portable, cpu = str(tmp_path / "portable"), compiled.portable_cpu()
    run(NUMBA_CACHE_DIR=portable, NUMBA_CPU_NAME=cpu, NUMBA_CPU_FEATURES="")
    assert run(NUMBA_CACHE_DIR=portable, NUMBA_BOUNDSCHECK="1")[0] == [3, 1]


def test_kernels_that_the_package_carries_are_used_and_never_written(
    cache: Path, tmp_path: Path, site: Path, run: Run
) -> None:
    carried = site / "twinsieve" / "kernels"
    shutil.copytree(cache, carried)
    before = sorted((path, path.stat().st_mtime_ns) for path in carried.rglob("*"))
    assert run(NUMBA_CACHE_DIR=str(tmp_path / "other")) == ([3, 0], "")
    assert not (tmp_path / "other").exists()
    assert sorted((path, path.stat().st_mtime_ns) for path in carried.rglob("*")) == before


def test_folders_that_nobody_used_for_a_month_go_when_a_new_one_is_made(
    tmp_path: Path, run: Run, stranger: int
) -> None:
    """Only those that are made here: others share the root, and the names of theirs may begin alike."""
    cache = tmp_path / "cache"
    names = {
        "old": (f"kernels-{'0' * 32}", 31, "a.f-0.kernel"),
        "partly written": (f"kernels-{'1' * 32}", 31, "a.f-0.kernel.0123456789ab"),
        "young": (f"kernels-{'2' * 32}", 29, "a.f-0.kernel"),
        "of somebody else": (f"kernels-{'3' * 32}", 31, "a.f-0.kernel"),
        "linked": (f"kernels-{'4' * 32}", 31, "a.f-0.kernel"),
        "with something else in it": (f"kernels-{'5' * 32}", 31, "thesis.txt"),
        "with a folder in it": (f"kernels-{'6' * 32}", 31, "sub/a.f-0.kernel"),
        "a young file in an old folder": (f"kernels-{'7' * 32}", 31, "a.f-0.kernel"),
        "a thesis": ("kernels-my-thesis", 31, "a.f-0.kernel"),
        "sources of Linux": ("kernels-linux-6.1", 31, "a.f-0.kernel"),
        "of another program": ("of-another-program", 31, "a.f-0.kernel"),
    }
    for what, (name, days, file) in names.items():
        path = cache / name / file
        path.parent.mkdir(parents=True)
        path.touch()
        if what == "linked":
            (cache / name).rename(tmp_path / "elsewhere")
            (cache / name).symlink_to(tmp_path / "elsewhere")
        for aged in {path, path.parent, cache / name}:
            is_young = what == "a young file in an old folder" and aged == path
            os.utime(aged, times=(time.time() - (0 if is_young else days) * 86_400,) * 2)
        if what == "of somebody else":
            os.chown(cache / name, stranger, -1)
    run(NUMBA_CACHE_DIR=str(cache))
    gone = {what for what, (name, _, file) in names.items() if not (cache / name / file).exists()}
    assert gone == {"old", "partly written"}
    assert not any((cache / names[what][0]).exists() for what in gone)


def test_a_folder_in_use_does_not_grow_old(cache: Path, run: Run) -> None:
    (folder,) = cache.iterdir()
    os.utime(folder, times=(0, 0))
    run(NUMBA_CACHE_DIR=str(cache))
    assert time.time() - folder.stat().st_mtime < 86_400


def test_the_name_of_the_folder_holds_cpu_and_features() -> None:
    one = MachineTarget("x86_64-unknown-linux-gnu", "znver3", "+avx2")
    others = one._replace(cpu="znver4"), one._replace(features="")
    assert len(set(map(folder_name, (one, *others)))) == 3


@dataclass
class Planted:
    """A file that was put where a kernel is looked for; whether it was run."""

    files: KernelFiles
    folder: Path
    file: Path
    mark: Path

    @property
    def was_run(self) -> bool:
        assert self.files.load("()") is None
        return self.mark.exists()


class _Runs:
    """A pickle that runs code when it is loaded, and is of nothing."""

    def __init__(self, mark: Path) -> None:
        self._mark = str(mark)

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, (self._mark,)


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Planted:
    """A file with a right name and a right sum, of this user and for this user alone."""
    folder = tmp_path / "root" / f"kernels-{'0' * 32}"
    folder.mkdir(parents=True)
    folder.chmod(0o700)
    monkeypatch.setattr(compiled, "folders", lambda: compiled.Folders((folder,), folder))
    compiled._warn_not_trusted.cache_clear()
    files = KernelFiles("a.kernel")
    content = pickle.dumps(_Runs(tmp_path / "mark"))
    file = folder / files.file_name("()")
    file.write_bytes(mmh3.mmh3_x64_128_digest(content) + content)
    file.chmod(0o600)
    return Planted(files, folder, file, tmp_path / "mark")


def test_a_file_of_this_user_is_run(planted: Planted) -> None:
    """Else the tests below would show nothing."""
    assert planted.was_run


def _one_line(caplog: pytest.LogCaptureFixture, folder: Path) -> bool:
    (record,) = caplog.records
    return record.levelname == "WARNING" and str(folder) in record.message and "\n" not in record.message


@pytest.mark.parametrize(
    ("what", "mode"),
    [
        *(("folder", mode) for mode in (0o777, 0o1777, 0o770, 0o702)),
        *(("file", mode) for mode in (0o666, 0o620, 0o602)),
    ],
)
def test_what_others_may_write_to_is_not_run(
    planted: Planted, what: str, mode: int, caplog: pytest.LogCaptureFixture
) -> None:
    getattr(planted, what).chmod(mode)
    assert not planted.was_run
    assert what == "file" or not compiled.writable()
    assert _one_line(caplog, planted.folder)


@pytest.mark.parametrize("what", ["folder", "file"])
def test_a_link_is_not_run(planted: Planted, what: str, caplog: pytest.LogCaptureFixture) -> None:
    path: Path = getattr(planted, what)
    path.rename(planted.folder.parent / "elsewhere")
    path.symlink_to(planted.folder.parent / "elsewhere")
    assert not planted.was_run
    assert _one_line(caplog, planted.folder)


@pytest.mark.parametrize("what", ["folder", "file"])
def test_what_belongs_to_somebody_else_is_not_run(
    planted: Planted, what: str, stranger: int, caplog: pytest.LogCaptureFixture
) -> None:
    os.chown(getattr(planted, what), stranger, -1)
    assert not planted.was_run
    assert _one_line(caplog, planted.folder)


def test_a_pipe_in_place_of_a_file_does_not_hold_up(planted: Planted) -> None:
    planted.file.unlink()
    os.mkfifo(planted.file, 0o600)
    assert not planted.was_run


@pytest.mark.parametrize("content", [b"", b"no pickle", b"cno_such_module\nname\n.", pickle.dumps(None)])
def test_a_whole_file_that_is_no_kernel_counts_as_absent(planted: Planted, content: bytes) -> None:
    planted.file.write_bytes(mmh3.mmh3_x64_128_digest(content) + content)
    assert not planted.was_run


def test_a_cache_filled_by_somebody_else_is_compiled_anew_and_left_as_it_is(
    cache: Path, run: Run, stranger: int
) -> None:
    """As in a folder of all users: who came first there owns the folder of a name that all can tell."""
    (folder,) = cache.iterdir()
    cache.chmod(0o1777)
    for path in (folder, *folder.iterdir()):
        os.chown(path, stranger, -1)
    before = sorted((path, path.stat().st_mtime_ns) for path in cache.rglob("*"))
    numbers, said = run(NUMBA_CACHE_DIR=str(cache))
    assert numbers == [3, 1]
    assert len(said.splitlines()) == 1
    assert str(folder) in said
    assert sorted((path, path.stat().st_mtime_ns) for path in cache.rglob("*")) == before


def test_kernels_of_root_are_run_by_anybody(root: Path, cache: Path, stranger: int) -> None:
    """As in the image. Folders of pytest are for their owner alone, so everything lies in another one; so may be those of
    Python and Numba, which are imported before."""
    becomes = f"import os, numba; import twinsieve.stages.numba_private; os.setresuid({stranger}, {stranger}, {stranger})\nchars ="
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        site = copied_package(root, Path(place) / "site")
        copied = Path(shutil.copytree(cache, Path(place) / "cache"))
        for path in (copied, *copied.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        done = run_on(site, _SMALL.replace("chars =", becomes), NUMBA_CACHE_DIR=str(copied))
        assert done == ([3, 0], "")


@pytest.mark.parametrize("umask", [0, 0o077])
def test_kernels_are_for_their_owner_alone_whatever_the_umask(tmp_path: Path, run: Run, umask: int) -> None:
    cache = tmp_path / "made" / "here"
    run(umask=umask, NUMBA_CACHE_DIR=str(cache))
    assert run(umask=umask, NUMBA_CACHE_DIR=str(cache)) == ([3, 0], "")
    modes = {
        path.is_dir(): stat.S_IMODE(path.stat().st_mode) for path in (cache.parent, *cache.parent.rglob("*"))
    }
    assert modes == {True: 0o700, False: 0o600}
