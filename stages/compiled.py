"""Compiled kernels on disk: a folder for each content of the sources, so that no kernel outlives its sources.

Numba's own cache looks at the file of a kernel alone. A kernel that calls a function of another file would
be loaded as it was, and judge by the rules of the version before. Here the name of the folder is a hash of
all sources of `stages`, of Numba, llvmlite, Python and the CPU, so an upgrade begins in a new folder. A
process searches for kernels

1. in `twinsieve/kernels`, which a wheel may carry; nothing is ever written there
2. in `$NUMBA_CACHE_DIR`, else `$XDG_CACHE_HOME/twinsieve`, else `~/.cache/twinsieve`

and in each of them first for those for just this CPU, then for any CPU of its kind (`portable_cpu`). A
kernel that is in neither place is compiled and written to the second. If that fails, a warning says so.

A kernel is code. A checksum shows damage, not who wrote a file. So a file of the second place is run only if
it and its folder belong to this user or root, and no other user may write to them. Folders and files are made
for their owner alone, whatever the umask. Kernels in the package are trusted as its sources are.

This is the one module of `stages` that reads files and the environment (tests/house). Its uses of what Numba
keeps private are in `numba_private`.
"""

from __future__ import annotations

import errno
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
import numba
from numba import config

from twinsieve.stages.numba_private import MachineTarget, own_target

_config: Any = config  # untyped in Numba
_log = logging.getLogger("twinsieve")

_CARRIED = Path(__file__).absolute().parents[1] / "kernels"
_SOURCES = Path(__file__).absolute().parent
_PREFIX = "kernels-"
_FOLDER = re.compile(rf"{_PREFIX}[0-9a-f]{{32}}")
_FILE = re.compile(r"(.+\.kernel|.+\.ready|written)(\.[0-9a-f]{12})?")
"""Names of folders that are made here, and of the files in them, partly written ones too."""
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_SUM_BYTES = 16
_DAY_S = 86_400
_UNUSED_DAYS = 30
_V3 = ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt")


class Folders(NamedTuple):
    """read: where kernels are looked for, in this order; write: where new ones go, None for nowhere."""

    read: tuple[Path, ...]
    write: Path | None


@cache
def folders() -> Folders:
    """Where this process looks for kernels. The call makes no folder."""
    own = own_target()
    targets = [own]
    # A CPU named in the environment gets kernels for that one and no other.
    if _config.CPU_NAME is None and _config.CPU_FEATURES is None:
        targets.append(MachineTarget(own.triple, portable_cpu(), ""))
    root = cache_root()
    roots = [_CARRIED] if root is None else [_CARRIED, root]
    read = tuple(root / folder_name(target) for root in roots for target in targets)
    return Folders(read, None if root is None else root / folder_name(own))


def cache_root() -> Path | None:
    """The folder of this user's folders of kernels; None where neither a variable nor a home names one."""
    for variable, below in (("NUMBA_CACHE_DIR", ""), ("XDG_CACHE_HOME", "twinsieve")):
        named = os.environ.get(variable)
        # XDG_CACHE_HOME counts only as an absolute path, by its specification.
        if named and (variable == "NUMBA_CACHE_DIR" or os.path.isabs(named)):
            return Path(named).absolute() / below
    try:
        return Path.home() / ".cache" / "twinsieve"
    except RuntimeError:
        return None


def folder_name(target: MachineTarget) -> str:
    """Name of the folder for these sources, this Numba, llvmlite and Python, and that CPU."""
    return _PREFIX + blake2b(f"{_origin()} {tuple(target)}".encode(), digest_size=16).hexdigest()


@cache
def _origin() -> str:
    """Everything beside the CPU that compiled kernels depend on."""
    summed = blake2b(digest_size=16)
    for path in sorted(_SOURCES.rglob("*")):
        if path.suffix == ".py" or path.parent.name == "data":
            content = path.read_bytes()
            summed.update(f"{path.relative_to(_SOURCES)} {len(content)} ".encode() + content)
    python = f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')}"
    return f"{summed.hexdigest()} {numba.__version__} {llvmlite.__version__} {python}"


def portable_cpu() -> str:
    """CPU name for kernels that run on any machine like this one: `x86-64-v3` where it can, else `generic`.

    Kernels for x86-64-v3 make fingerprints as fast as those for the machine's own CPU, kernels for `generic`
    take 2.5 times as long.
    """
    has = llvm.get_host_cpu_features()
    return "x86-64-v3" if all(has.get(name) for name in _V3) else "generic"


def portable_cpus() -> list[str]:
    """The CPU names for which this machine can compile kernels that other machines use, fastest first."""
    return list(dict.fromkeys([portable_cpu(), "generic"]))


class KernelFiles:
    """The files of one kernel in the folders, one for each list of argument types.

    A file is the sum of its content (16 bytes), then a pickle of what Numba compiled. A file that is
    damaged, cannot be read or may be from another user counts as absent. Files are replaced whole, so
    processes may write one at once.
    """

    def __init__(self, kernel: str) -> None:
        self._kernel = kernel

    @property
    def folder(self) -> str | None:
        """The folder that is written to."""
        write = folders().write
        return None if write is None else str(write)

    def load(self, types: str) -> Any:
        """What was saved for these argument types, unpickled, or None."""
        for folder in folders().read:
            kept = _read(folder, self.file_name(types))
            if kept is not None:
                _mark_as_used(folder)
                return kept
        return None

    def save(self, types: str, content: bytes) -> None:
        """Write a pickle; where that fails, warn once and continue."""
        _write(self.file_name(types), blake2b(content, digest_size=_SUM_BYTES).digest() + content)

    def file_name(self, types: str) -> str:
        """Name of the file for these argument types."""
        return f"{self._kernel}-{blake2b(types.encode(), digest_size=8).hexdigest()}.kernel"


def _read(folder: Path, name: str) -> Any:
    """What was kept of a kernel; None if it is not there, damaged or may be from another user."""
    whole = _content(folder, name) or b""
    if blake2b(whole[_SUM_BYTES:], digest_size=_SUM_BYTES).digest() != whole[:_SUM_BYTES]:
        return None
    try:
        return pickle.loads(whole[_SUM_BYTES:])
    except Exception as error:  # noqa: BLE001 (a class that it names may be missing, or raise anything)
        _log.debug("twinsieve: %s counts as absent: %r", folder / name, error)
        return None


def _content(folder: Path, name: str) -> bytes | None:
    """What is in a file of ours; None if it is not there, not readable or may be from another user."""
    # Opened once, and checked through the descriptor: a name may lead elsewhere the next time.
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
    """Flag for opening a folder of kernels and its files: only an installer may have laid links."""
    return 0 if folder.parent == _CARRIED else os.O_NOFOLLOW


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    """A descriptor of a folder of kernels.

    raises: OSError if it is not there, `_NotTrustedError` once a warning has named it
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
    """Another user may have written there."""


def _is_trusted(folder: Path, status: os.stat_result) -> bool:
    """Whether nobody but this user and root can have written what is open."""
    # A user who may write to the package may change its sources as well.
    return folder.parent == _CARRIED or (
        status.st_uid in (0, os.geteuid()) and not status.st_mode & _OTHERS_MAY_WRITE
    )


def writable() -> bool:
    """Whether compiled kernels can be kept; if not, one warning was logged."""
    return _write("written", b"")


def _write(name: str, content: bytes) -> bool:
    """Whether the file is in the folder now."""
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
    """Make the folder, and those above it that are missing, for this user alone. raises: OSError"""
    if not folder.parent.is_dir():
        _make(folder.parent)
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)


@cache
def _warn_once(problem: str) -> None:
    _log.warning(
        "twinsieve: %s, so each start compiles for half a minute; "
        "set NUMBA_CACHE_DIR to a folder that can be written",
        problem,
    )


@cache
def _warn_not_trusted(folder: Path) -> None:
    _log.warning(
        "twinsieve: %s: not used, because another user may have written the compiled kernels there, so each "
        "start compiles for half a minute; remove it, or set NUMBA_CACHE_DIR to a folder of your own (it and "
        "its files must belong to you or root, no other user may write to them, and none may be a link)",
        folder,
    )


@cache
def _mark_as_used(folder: Path) -> None:
    """Set the folder's time to now if it is over a day old; only ours, and only where that is allowed."""
    if folder.parent == _CARRIED:
        return
    with suppress(OSError):
        if time.time() - folder.stat().st_mtime > _DAY_S:
            os.utime(folder, follow_symlinks=False)


def _remove_unused(root: Path) -> None:
    """Remove folders of kernels unused for 30 days; called only when a new one is made.

    By use and not by number: Pythons, versions and kinds of CPU that share a home would push each other
    out. A process that loads from such a folder just now finds its files absent, and compiles. A folder with
    anything in it that is not made here stays, and so do those of other users: the root may be shared.
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
    """The folder with all kernels of this part (`judge/kernel_parts.py`); None before they are compiled."""
    return next((folder for folder in folders().read if _content(folder, f"{part}.ready") is not None), None)


def mark_as_ready(part: str) -> None:
    """Let `kept_in` name the folder that is written to. The mark names the files that are there by now."""
    folder = folders().write
    names = sorted(path.name for path in folder.glob("*.kernel")) if folder is not None else []
    _write(f"{part}.ready", "\n".join(names).encode())
