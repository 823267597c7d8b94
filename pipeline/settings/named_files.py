"""Find the files that settings name, relative to the settings file, and read secrets from them."""

from __future__ import annotations

import errno
import os
import re
import stat
from functools import reduce
from operator import attrgetter, getitem
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from pydantic import SecretStr

from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.settings.schema import SECRETS, schema
from twinsieve.pipeline.settings.tree import KeyPath
from twinsieve.stages.errors import StateError, UsageError, is_address, shown

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_MAX_SECRET_BYTES = 4096
_PRIVATE_KEYS = ("kafka.security.key_file", "input.registry.key_file")
_READ_AGAIN = ("kafka.", "input.registry.")
"""Sections whose secrets each new client reads from their files."""
_CODE = re.compile(r"[A-Za-z.]{1,40}")
"""Error codes of a store, such as `ExpiredToken`. Digits are not allowed, so that no access key can match."""
_MAX_CAUSES = 5


def named_files(settings: Settings) -> list[tuple[str, str]]:
    """Every file that the settings name, as (key, name)."""
    named = ((key, attrgetter(key)(settings)) for key in schema() if key.endswith("_file"))
    return [(key, name) for key, name in named if name is not None]


def read_referenced(
    settings: Settings, base: Path, in_file: set[KeyPath]
) -> tuple[Settings, list[tuple[str, str]]]:
    """The settings with absolute file names, and with the secrets read from their files; and the problems
    found, as (key, what is wrong).

    base: folder of the settings file; the file names of keys in `in_file` are relative to it, others to the
        working directory
    in_file: paths of the keys that come from the settings file
    """
    # Leave out the keys that the user did not set, so that their defaults do not count as set by the user.
    # A field that the user names must be in every message; a field that only a default names may be missing.
    values = settings.model_dump(exclude_unset=True)
    problems: list[tuple[str, str]] = []
    for key, name in named_files(settings):
        *sections, own = path = tuple(key.split("."))
        section = reduce(getitem, sections, values)
        file = (base / name if path in in_file else Path(name)).absolute()
        section[own] = str(file)
        is_secret = key.removesuffix("_file") in SECRETS
        try:
            # A secret is read only once, so it may come through a pipe; other files are read again later.
            with file.open("rb") if is_secret else open_regular(file) as stream:
                content = stream.read(_MAX_SECRET_BYTES + 1)
        except OSError as error:
            problems.append((key, f"names {name!r}, which cannot be read: {error.strerror}"))
            continue
        if is_secret:
            secret = own.removesuffix("_file")
            is_given = section.get(secret) is not None
            problem = _fill(section, secret, content)
            if problem:
                problems.append((key, f"names {name!r}, which {problem}"))
            elif is_given and key.startswith(_READ_AGAIN):
                # The environment counts before the file, which new clients would read again.
                section[own] = None
    return Settings.model_validate(values), problems


def open_secret_files(settings: Settings) -> list[tuple[str, str]]:
    """Problems with files of secrets that other users may read or change, as (key, what is wrong).

    If another user owns the file, its group may read it, because a process without root rights often gets a
    secret in this way. A pipe is not checked.
    """
    said = []
    for key, name in named_files(settings):
        if key.removesuffix("_file") not in SECRETS and key not in _PRIVATE_KEYS:
            continue
        try:
            status = os.stat(name)
        except OSError:
            continue
        closed = stat.S_IRWXO | stat.S_IWGRP | (stat.S_IRGRP if status.st_uid == os.geteuid() else 0)
        if stat.S_ISREG(status.st_mode) and status.st_mode & closed:
            mode = stat.S_IMODE(status.st_mode)
            said.append(
                (key, f"names {name!r}, which others may read or change (mode {mode:04o}); chmod 0600")
            )
    return said


def open_regular(file: Path) -> BinaryIO:
    """The opened file. raises: OSError, also for a pipe or a device, because reading it might never end"""
    if not stat.S_ISREG(file.stat().st_mode) and not file.is_dir():
        raise OSError(errno.EINVAL, "is not a regular file", str(file))
    return file.open("rb")


def _fill(section: dict[str, object], name: str, content: bytes) -> str | None:
    if len(content) > _MAX_SECRET_BYTES:
        return f"holds more than {_MAX_SECRET_BYTES} bytes; a secret is one line"
    try:
        text = content.decode("utf-8").strip("\r\n")
    except UnicodeDecodeError:
        return "is not UTF-8"
    if name != "seed":
        if section.get(name) is None:
            section[name] = SecretStr(text)
        return None
    if not text.isdigit() or int(text) >= 1 << 64:
        return "holds no whole number below 2^64"
    if not section.get(name):
        section[name] = int(text)
    return None


def file_system(address: str) -> tuple[AbstractFileSystem, str]:
    """The fsspec file system of an address, and the folder in it. For some stores this makes a connection.

    raises: UsageError if no file system has this scheme, or if its package is not installed; StateError if
        the store cannot be reached
    """
    # Imported here, because it takes 0.2 s.
    import fsspec

    if is_address(address):
        known_store(address, "used")
    try:
        return fsspec.core.url_to_fs(address)  # type: ignore[no-any-return]
    except Exception as error:  # noqa: BLE001 (stores may raise any error)
        raise StateError(
            f"{shown(address)}: cannot be reached: {store_error(error)}; see that the address is right and "
            "the store is up"
        ) from None


def known_store(address: str, use: str) -> None:
    """Check that there is a file system for the scheme of the address; makes no connection.

    use: word for the error message "cannot be … here"
    raises: UsageError if there is none, or if its package is not installed
    """
    import fsspec

    # Before "://" there are only names of schemes, joined by "::". A later "::" may be part of a password.
    for scheme in address.partition("://")[0].split("::"):
        try:
            fsspec.get_filesystem_class(scheme)
        except (ImportError, ValueError) as error:
            # The text of these errors can be shown: it names the scheme and its package, not the address.
            raise UsageError(
                f"{shown(address)}: cannot be {use} here ({error}); name a file or folder, or install the "
                "package of that store"
            ) from None


def store_error(error: BaseException) -> str:
    """What went wrong, without the store's own text, which may contain an address, a key or a signature."""
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    if isinstance(error, PermissionError):
        return "permission denied; see how the store is told who you are"
    said = [type(error).__name__]
    if isinstance(error, OSError) and error.errno is not None:
        said = [os.strerror(error.errno)]
    cause: BaseException | None = error
    for _ in range(_MAX_CAUSES):
        if cause is None:
            break
        status, answer = getattr(cause, "status", None), getattr(cause, "response", None)
        if isinstance(status, int):
            said.append(str(status))
        if isinstance(answer, dict) and isinstance(answer.get("Error"), dict):
            code = answer["Error"].get("Code")
            if isinstance(code, str) and _CODE.fullmatch(code):
                said.append(code)
        cause = cause.__cause__ or cause.__context__
    return " ".join(said)
