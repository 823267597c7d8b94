"""Compiled kernels on disk: each version of the sources has a folder, so that no kernel outlives its sources.

Numba's own cache checks only the source file of a kernel. After a change in another file that the kernel
calls, it would load the old machine code, which judges by the old rules. Here the folder name is a hash of
all sources of `stages`, and of the versions of Numba, llvmlite, Python and the CPU, so each upgrade begins
with a new folder. A process searches for kernels

1. in `twinsieve/kernels`, which a wheel may contain; nothing is ever written there
2. in `$NUMBA_CACHE_DIR`, else `$XDG_CACHE_HOME/twinsieve`, else `~/.cache/twinsieve`

In each place it looks first for kernels for exactly this CPU, then for kernels for all CPUs of its type
(`portable_cpu`). A kernel that is in neither place is compiled and written to the second place. If writing
fails, a warning is logged.

A kernel is executable code, and a checksum detects damage but not who wrote a file. So a file in the second
place is used only if the file and its folder belong to this user or to root, and no other user may write to
them. Folders and files are created with access for their owner only, whatever the umask is. Kernels in the
package are trusted like the package's sources.

This is the only module of `stages` that reads files and the environment (tests/house).
"""

from __future__ import annotations

import errno
import io
import logging
import os
import pickle
import re
import stat
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite
import llvmlite.binding as llvm
from mmh3 import mmh3_x64_128, mmh3_x64_128_digest

from twinsieve.stages.machine_code import numba_version

_log = logging.getLogger("twinsieve")

_CARRIED = Path(__file__).absolute().parents[1] / "kernels"
_SOURCES = Path(__file__).absolute().parent
_PREFIX = "kernels-"
_FOLDER = re.compile(rf"{_PREFIX}[0-9a-f]{{32}}")
_FILE = re.compile(r"(.+\.kernel|.+\.ready|written)(\.[0-9a-f]{12})?")
"""`_FOLDER`: names of the folders that this module makes. `_FILE`: names of the files in them, including
files that were not written to the end."""
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_SUM_BYTES = 16
_DAY_S = 86_400
_UNUSED_DAYS = 30
_CPU, _FEATURES, _AVX = "CPU_NAME", "CPU_FEATURES", "ENABLE_AVX"
"""Numba's settings that change for which machine it compiles."""
_CHECKS = "BOUNDSCHECK"
"""Numba's setting with which kernels check their indices."""
_V3 = ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt")


class MachineTarget(NamedTuple):
    """The machine for which code is compiled: LLVM's triple, CPU name and CPU features, in Numba's terms."""

    triple: str
    cpu: str
    features: str


class Folders(NamedTuple):
    """The folders of kernels of this process.

    read: folders to search, in this order; write: folder for new kernels, or None
    """

    read: tuple[Path, ...]
    write: Path | None


@cache
def folders() -> Folders:
    """The folders of kernels that this process uses. The call creates no folder."""
    own = own_target()
    targets = [own]
    # If a setting names a CPU, or asks for checks, use only such kernels.
    if all(_setting_of_numba(name) is None for name in (_CPU, _FEATURES)) and not _is_on(_CHECKS):
        targets.append(MachineTarget(own.triple, portable_cpu(), ""))
    root = cache_root()
    roots = [_CARRIED] if root is None else [_CARRIED, root]
    read = tuple(root / folder_name(target) for root in roots for target in targets)
    return Folders(read, None if root is None else root / folder_name(own))


def own_target() -> MachineTarget:
    """The target that Numba compiles for in this process: this machine, or what Numba's settings name."""
    cpu = _setting_of_numba(_CPU) or llvm.get_host_cpu_name()
    features = _setting_of_numba(_FEATURES)
    if features is None:
        found = llvm.get_host_cpu_features()
        # Numba's default follows from the name of the CPU.
        variable = os.environ.get(f"NUMBA_{_AVX}")
        features = str(found.flatten()) + (f" {_AVX}={variable}" if variable is not None else "")
    checks = f" {_CHECKS}" if _is_on(_CHECKS) else ""
    return MachineTarget(llvm.get_process_triple(), cpu, features + checks)


def _is_on(name: str) -> bool:
    """Whether a setting of Numba that is 0 or 1 is 1."""
    return _setting_of_numba(name) not in (None, "", "0", 0)


def _setting_of_numba(name: str) -> Any:
    """A setting of Numba: of the module, where the program has imported it, else of the environment; or None.

    Numba takes it from the environment when it is imported, and a program may change it then.
    """
    imported = sys.modules.get("numba")
    return os.environ.get(f"NUMBA_{name}") if imported is None else getattr(imported.config, name)


def compiles() -> bool:
    """Whether kernels are compiled; with NUMBA_DISABLE_JIT they stay functions of Python."""
    return not _is_on("DISABLE_JIT")


def cache_root() -> Path | None:
    """The folder that contains this user's folders of kernels; None without a variable and a home folder."""
    for variable, below in (("NUMBA_CACHE_DIR", ""), ("XDG_CACHE_HOME", "twinsieve")):
        named = os.environ.get(variable)
        # By its specification, XDG_CACHE_HOME is ignored unless it is an absolute path.
        if named and (variable == "NUMBA_CACHE_DIR" or os.path.isabs(named)):
            return Path(named).absolute() / below
    try:
        return Path.home() / ".cache" / "twinsieve"
    except RuntimeError:
        return None


def folder_name(target: MachineTarget) -> str:
    """Name of the folder for kernels for `target`, made by these sources, Numba, llvmlite and Python."""
    return _PREFIX + blake2b(f"{_origin()} {tuple(target)}".encode(), digest_size=16).hexdigest()


@cache
def _origin() -> str:
    """Everything except the CPU that compiled kernels depend on, as one text."""
    summed = mmh3_x64_128()
    # They are sorted as strings: with paths this took a part of every start.
    for name in sorted(_files_below(str(_SOURCES))):
        content = Path(name).read_bytes()
        summed.update(f"{name.removeprefix(str(_SOURCES))} {len(content)} ".encode() + content)
    python = f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')}"
    return f"{summed.digest().hex()} {numba_version()} {llvmlite.__version__} {python}"


def _files_below(folder: str, *, whole: bool = False) -> Iterator[str]:
    """The sources in a folder and the folders in it, and all files of folders of data.

    whole: the folder is one of data, or in one
    """
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _files_below(entry.path, whole=whole or entry.name == "data")
            elif whole or entry.name.endswith(".py"):
                yield entry.path


def portable_cpu() -> str:
    """CPU name for kernels that also run on other machines: `x86-64-v3` if this CPU has it, else `generic`.

    Kernels for x86-64-v3 make fingerprints as fast as kernels for the machine's own CPU. Kernels for
    `generic` take 2.5 times as long.
    """
    has = llvm.get_host_cpu_features()
    return "x86-64-v3" if all(has.get(name) for name in _V3) else "generic"


def portable_cpus() -> list[str]:
    """The CPU names for which this machine can compile kernels for other machines, fastest first."""
    return list(dict.fromkeys([portable_cpu(), "generic"]))


class KernelFiles:
    """The files of one kernel: in each folder, one for each list of argument types.

    A file holds a checksum (16 bytes, MurmurHash3), then pickles: of a kernel first its `MachineCode` or
    None, then what Numba needs of it; or of tables that depend on the sources alone. A file that is damaged,
    cannot be read or may be from another user counts as absent.
    Each write replaces the whole file at once, so several processes may write the same file.
    """

    def __init__(self, kernel: str) -> None:
        self._kernel = kernel

    @property
    def folder(self) -> str | None:
        """The folder for new files, or None."""
        write = folders().write
        return None if write is None else str(write)

    def load(self, types: str) -> Any:
        """The first object that was saved for these argument types, or None."""
        return next(iter(self.load_all(types, 1)), None)

    def load_all(self, types: str, count: int) -> list[Any]:
        """The first `count` objects that were saved for these argument types; empty if there are none."""
        for folder in folders().read:
            kept = _read(folder, self.file_name(types), count)
            if kept is not None:
                _mark_as_used(folder)
                return kept
        return []

    def save(self, types: str, content: bytes) -> None:
        """Write one pickle, or several, one behind the other. If that fails, warn once and continue."""
        _write(self.file_name(types), mmh3_x64_128_digest(content) + content)

    def file_name(self, types: str) -> str:
        """Name of the file for these argument types."""
        return f"{self._kernel}-{blake2b(types.encode(), digest_size=8).hexdigest()}.kernel"


def _read(folder: Path, name: str, count: int) -> list[Any] | None:
    """The first objects in a kernel's file; None if it is absent, damaged or may be from another user."""
    whole = _content(folder, name) or b""
    if mmh3_x64_128_digest(memoryview(whole)[_SUM_BYTES:]) != whole[:_SUM_BYTES]:
        return None
    stream = io.BytesIO(whole)
    stream.seek(_SUM_BYTES)
    try:
        return [pickle.load(stream) for _ in range(count)]
    except Exception as error:  # noqa: BLE001 (a class that it names may be missing, or raise anything)
        _log.debug(
            "twinsieve: the compiled kernel %s cannot be read (%r); it is compiled again",
            folder / name,
            error,
        )
        return None


def _content(folder: Path, name: str) -> bytes | None:
    """The content of a file; None if the file is absent, not readable or may be from another user."""
    # The owner is checked through the open descriptor: at a second look-up, the name could lead to another
    # file.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | _follow(folder)
    try:
        with _opened(folder) as place, os.fdopen(os.open(name, flags, dir_fd=place), "rb") as file:
            if _is_trusted(folder, os.fstat(file.fileno())):
                return file.read()
    except OSError as error:
        if error.errno != errno.ELOOP:
            return None
    _warn_not_trusted(folder)
    return None


def _follow(folder: Path) -> int:
    """The flag for `os.open` that refuses symbolic links, for a folder of kernels and the files in it.

    It is 0, so links are followed, for a folder in the package: an installer may have made links there.
    """
    return 0 if folder.parent == _CARRIED else os.O_NOFOLLOW


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    """Context manager: an open descriptor of a folder of kernels.

    raises: OSError if the folder does not exist; `_NotTrustedError` if another user may have written to it,
        after a warning that names it
    """
    try:
        place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | _follow(folder))
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENOTDIR) or not os.path.lexists(folder):
            raise
        _warn_not_trusted(folder)
        raise _NotTrustedError from error
    try:
        if not _is_trusted(folder, os.fstat(place)):
            _warn_not_trusted(folder)
            raise _NotTrustedError
        yield place
    finally:
        os.close(place)


class _NotTrustedError(OSError):
    """The folder is not used, because another user may have written to it."""


def _is_trusted(folder: Path, status: os.stat_result) -> bool:
    """Whether only this user and root can have written the open file or folder. status: its `os.fstat`"""
    # The package needs no check: a user who may write to it could change its sources as well.
    return folder.parent == _CARRIED or (
        status.st_uid in (0, os.geteuid()) and not status.st_mode & _OTHERS_MAY_WRITE
    )


def writable() -> bool:
    """Whether compiled kernels can be saved. If not, a warning was logged once."""
    return _write("written", b"")


def _write(name: str, content: bytes) -> bool:
    """Write a file to the folder for new kernels. returns: whether that succeeded"""
    folder = folders().write
    if folder is None:
        _warn_once("there is no folder to keep compiled kernels in")
        return False
    partial = f"{name}.{uuid.uuid4().hex[:12]}"
    try:
        if not folder.is_dir():
            _make(folder)
            _remove_unused(folder.parent)
        with _opened(folder) as place:
            try:
                with os.fdopen(os.open(partial, _NEW, 0o600, dir_fd=place), "wb") as file:
                    file.write(content)
                os.replace(partial, name, src_dir_fd=place, dst_dir_fd=place)
            except OSError:
                with suppress(OSError):
                    os.unlink(partial, dir_fd=place)
                raise
    except _NotTrustedError:
        return False
    except OSError as error:
        _warn_once(f"compiled kernels cannot be kept in {folder} ({error.strerror})")
        return False
    return True


def _make(folder: Path) -> None:
    """Make the folder and its missing parents, with access for this user only. raises: OSError"""
    if not folder.parent.is_dir():
        _make(folder.parent)
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)


@cache
def _warn_once(problem: str) -> None:
    _log.warning(
        "twinsieve: %s, so each start compiles for a minute or two; "
        "set NUMBA_CACHE_DIR to a folder that can be written",
        problem,
    )


@cache
def _warn_not_trusted(folder: Path) -> None:
    _log.warning(
        "twinsieve: %s: not used, because another user may have written the compiled kernels there, so each "
        "start compiles for a minute or two; remove it, or set NUMBA_CACHE_DIR to a folder of your own (it "
        "and its files must belong to you or root, no other user may write to them, and none may be a link)",
        folder,
    )


@cache
def _mark_as_used(folder: Path) -> None:
    """Set the folder's modification time to now if it is over a day old.

    Skip the package's own folder, and ignore a missing permission.
    """
    if folder.parent == _CARRIED:
        return
    with suppress(OSError):
        if time.time() - folder.stat().st_mtime > _DAY_S:
            os.utime(folder, follow_symlinks=False)


def _remove_unused(root: Path) -> None:
    """Remove folders of kernels that nobody used for 30 days. It runs only when a new folder is made.

    A limit on the number of folders would not work: several Pythons, versions and CPUs that share a home
    would remove each other's folders. A process that is loading from a removed folder finds its files absent,
    and compiles. The root may be shared, so folders of other users stay, and so does a folder that contains
    any file not made here.
    """
    with suppress(OSError):
        for folder in filter(_FOLDER.fullmatch, os.listdir(root)):
            with suppress(OSError):
                _remove_if_unused(root / folder)


def _remove_if_unused(folder: Path) -> None:
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        names = os.listdir(place)
        statuses = [os.fstat(place), *(os.stat(name, dir_fd=place, follow_symlinks=False) for name in names)]
        is_ours = statuses[0].st_uid == os.geteuid() and all(map(_FILE.fullmatch, names))
        if is_ours and time.time() - max(status.st_mtime for status in statuses) > _UNUSED_DAYS * _DAY_S:
            for name in names:
                os.unlink(name, dir_fd=place)
            folder.rmdir()
    finally:
        os.close(place)


def kept_in(part: str) -> Path | None:
    """The folder with all kernels of a part (`judge/kernel_parts.py`); None before they are compiled."""
    return next((folder for folder in folders().read if _content(folder, f"{part}.ready") is not None), None)


def mark_as_ready(part: str) -> None:
    """Record that the folder for new kernels has all kernels of a part; `kept_in` then returns that folder.

    The record is a file that lists the kernel files which the folder contains now. Where nothing is compiled,
    or the folder cannot be read, there is no record.
    """
    folder = folders().write
    if folder is None or not compiles():
        return
    # A folder that cannot be read holds nothing that this process could have written.
    with suppress(OSError):
        names = sorted(name for name in os.listdir(folder) if name.endswith(".kernel"))
        _write(f"{part}.ready", "\n".join(names).encode())
