"""Inputs at addresses such as `s3://bucket/posts.jsonl.gz`, read through fsspec.

An address may hold a password or a token. Messages and dead letters show it without user, password, query and
fragment, and no error of a store is passed on in its own words, for they repeat the address.
"""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from twinsieve.pipeline.files import FileError
from twinsieve.stages.errors import UsageError

_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
_PLACE = re.compile(r"[^:]*(:\d*)?")
_LOCAL = frozenset({"file", "local"})
_BUFFER_BYTES = 1 << 20


def is_address(name: str) -> bool:
    """Whether a name is an address and no path.

    >>> is_address("s3://bucket/a.csv"), is_address("a.csv"), is_address("C:/a.csv")
    (True, False, False)
    """
    return _ADDRESS.match(name) is not None


def path_of_local(name: str) -> str:
    """The path of a `file://` address; any other name as it is.

    >>> path_of_local("file:///tmp/a.csv"), path_of_local("a.csv")
    ('/tmp/a.csv', 'a.csv')
    """
    found = _ADDRESS.match(name)
    return name[found.end() :] if found is not None and found[1].lower() in _LOCAL else name


def path_here(use: str, name: str) -> Path:
    """The path of a file that must be here. use: what an error calls the file; raises: UsageError"""
    if is_address(name):
        raise UsageError(f"{use} {shown(name)}: must be a file here; fetch it first")
    return Path(name)


def shown(name: str) -> str:
    """The address without what may be secret; a path as it is.

    >>> shown("https://me:secret@host/posts.csv?token=abc#x"), shown("a?b.csv")
    ('https://host/posts.csv', 'a?b.csv')

    Where it is not clear what is secret, nothing but the scheme is left.
    >>> shown("https://me:sec/ret@host/posts.csv")
    'https://…'
    """
    if not is_address(name):
        return name
    scheme, _, rest = name.partition("://")
    rest, chain, _ = rest.partition("::")
    place, slash, path = rest.partition("/")
    place = re.split("[?#]", place.rpartition("@")[2], maxsplit=1)[0]
    if not _PLACE.fullmatch(place):
        return f"{scheme}://…"
    return f"{scheme}://{place}{slash}{re.split('[?#]', path, maxsplit=1)[0]}{chain and '::…'}"


def open_address(name: str) -> tuple[io.BufferedReader, int | None]:
    """The bytes at an address, and how many they are where its store says so.

    raises: UsageError for one that nothing serves, FileError
    """
    import fsspec

    if "::" in name:
        raise UsageError(f"{shown(name)}: is a chain of addresses; name a plain one")
    scheme = urlsplit(name).scheme
    try:
        fsspec.get_filesystem_class(scheme)
    except (ImportError, ValueError) as error:
        # Neither speaks of the address, but of what serves its scheme.
        raise UsageError(f"{shown(name)}: cannot be read here ({error})") from error
    try:
        files, path = fsspec.core.url_to_fs(name)
        stream = files.open(path, "rb")
    except Exception as error:
        # Stores raise what they like beside OSError.
        raise FileError(f"{shown(name)}: cannot be read: {_plain(error)}") from error
    size = getattr(stream, "size", None)
    return io.BufferedReader(_Remote(stream), _BUFFER_BYTES), size if isinstance(size, int) else None


def _plain(error: Exception) -> str:
    """What went wrong in words of our own: those of a store may repeat the address."""
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    if isinstance(error, PermissionError):
        return "permission denied; see how the store is told who you are"
    status = getattr(error, "status", None)
    return f"{type(error).__name__}{f' {status}' if isinstance(status, int) else ''}"


class _Remote(io.RawIOBase):
    """A stream of a store whose errors are OSError, in words that may be shown."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return bool(self._stream.seekable())

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return int(self._stream.seek(offset, whence))

    def tell(self) -> int:
        return int(self._stream.tell())

    def readinto(self, buffer: Any, /) -> int:
        try:
            content = self._stream.read(len(buffer))
        except Exception as error:
            raise OSError(_plain(error)) from error
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()
