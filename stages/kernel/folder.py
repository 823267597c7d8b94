"""The folder for compiled kernels: one for each version of the sources, of Numba, of Python and of the CPU.

Its name is a digest of all of these, so each upgrade begins with an empty folder, and no kernel outlives its
sources. It lies in `$NUMBA_CACHE_DIR`, else in `$XDG_CACHE_HOME/twinsieve`, else in `~/.cache/twinsieve`.

A kernel is executable code. So the folder is used only if it belongs to this user or to root, and no other
user may write to it. A folder that cannot be used costs a warning and the time to compile, at each start.

This is the only module of `stages` that reads the environment and files that are not data of the package
(tests/house).
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import stat
import sys
import time
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core import registry

_log = logging.getLogger("twinsieve")

_SOURCES = Path(__file__).resolve().parents[1]
_FOLDER = re.compile(r"kernels-[0-9a-f]{32}")
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
_UNUSED_S = 30 * 86_400
_SETTINGS = ("BOUNDSCHECK", "OPT")
"""Numba's settings that change machine code, besides those that name a CPU."""
_target: Any = registry.cpu_target


@cache
def path() -> Path:
    """The folder for compiled kernels, which may not exist."""
    settings = [str(getattr(numba.config, name, None)) for name in _SETTINGS]
    cpu = _target.target_context.codegen().magic_tuple()
    python = f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')}"
    named = blake2b(repr((numba.__version__, np.__version__, python, cpu, settings)).encode(), digest_size=16)
    for source in sorted(map(str, _SOURCES.rglob("*.py"))):
        named.update(source.removeprefix(str(_SOURCES)).encode() + Path(source).read_bytes())
    return _root() / f"kernels-{named.hexdigest()}"


def _root() -> Path:
    """The folder that contains this user's folders of kernels."""
    own, common = os.environ.get("NUMBA_CACHE_DIR"), os.environ.get("XDG_CACHE_HOME", "")
    if own:
        return Path(own).absolute()
    # By its specification, XDG_CACHE_HOME is ignored unless it is an absolute path.
    if os.path.isabs(common):
        return Path(common, "twinsieve")
    home = os.path.expanduser("~")
    # A user without an entry and without HOME has no home. Nothing can be made below this path.
    return Path(os.devnull if home == "~" else home, ".cache", "twinsieve").absolute()


@cache
def is_usable() -> bool:
    """Whether kernels can be loaded from the folder. It is made if it is missing; a warning says why not."""
    folder = path()
    try:
        if not folder.exists():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _remove_unused(folder.parent)
        status = folder.lstat()
    except OSError as error:
        warn_not_kept(error.strerror)
        return False
    by_others = status.st_uid not in (0, os.geteuid()) or status.st_mode & _OTHERS_MAY_WRITE
    if not stat.S_ISDIR(status.st_mode) or by_others:
        _log.warning(
            "twinsieve: %s: not used, because another user may have written the compiled kernels there, so "
            "each start compiles for minutes; remove it, or set NUMBA_CACHE_DIR to a folder of your own (the "
            "folder must belong to you or root, no other user may write to it, and it may not be a link)",
            folder,
        )
        return False
    with suppress(OSError):
        os.utime(folder)
    return True


@cache
def warn_not_kept(reason: str) -> None:
    """Say once that kernels cannot be written to the folder."""
    _log.warning(
        "twinsieve: compiled kernels cannot be kept in %s (%s), so each start compiles for minutes; "
        "set NUMBA_CACHE_DIR to a folder that can be written",
        path(),
        reason,
    )


def is_complete(calls: bytes) -> bool:
    """Whether the folder holds what `calls` compile. calls: source of the calls of all kernels"""
    return is_usable() and mark_of(calls).exists()


def mark_of(calls: bytes) -> Path:
    """The file that says that the folder is complete. calls: as for `is_complete`"""
    return path() / f"complete-{blake2b(calls, digest_size=4).hexdigest()}"


def mark_as_complete(calls: bytes) -> bool:
    """Record that the folder holds what `calls` compile: a file with the names of all files in it.

    returns: whether that succeeded; a warning says why not
    """
    if not is_usable():
        return False
    try:
        names = sorted(os.listdir(path()))
        mark_of(calls).write_text("\n".join(names))
    except OSError as error:
        warn_not_kept(error.strerror)
        return False
    return True


def _remove_unused(root: Path) -> None:
    """Remove the folders of kernels that no process used for 30 days.

    A limit on their number would not work: several Pythons, versions and CPUs that share a home would remove
    each other's folders.
    """
    with suppress(OSError):
        for folder in root.iterdir():
            if _FOLDER.fullmatch(folder.name) and time.time() - folder.lstat().st_mtime > _UNUSED_S:
                shutil.rmtree(folder, ignore_errors=True)
