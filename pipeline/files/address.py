"""Inputs at addresses such as `s3://bucket/posts.jsonl.gz`, read through fsspec.

An address may contain a password or a token, so messages and dead letters contain only the text that `shown`
returns for it. The text of a store's error is never passed on, because it may repeat the address.
"""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

from twinsieve.pipeline.files import FileError, MissingFileError
from twinsieve.pipeline.settings.named_files import known_store, store_error
from twinsieve.stages.errors import UsageError, is_address, shown

_ADDRESS = re.compile(r"([a-z]+)://", re.IGNORECASE)
_LOCAL = frozenset({"file", "local"})
_BUFFER_BYTES = 1 << 20


def path_of_local(name: str) -> str:
    """The path of a `file://` address; any other name unchanged.

    >>> path_of_local("file:///tmp/a.csv"), path_of_local("a.csv")
    ('/tmp/a.csv', 'a.csv')
    """
    match = _ADDRESS.match(name)
    return name[match.end() :] if match is not None and match[1].lower() in _LOCAL else name


def path_here(use: str, name: str) -> Path:
    """The path of a file that must be on this machine.

    use: name of the file's purpose for the error text
    raises: UsageError for an address, and for an empty name, which a Path would take for this folder
    """
    if not name:
        raise UsageError(f"{use}: the name is empty; name a file")
    if is_address(name):
        raise UsageError(f"{use} {shown(name)}: must be a local file; fetch it first")
    return Path(name)


def open_address(name: str) -> tuple[io.BufferedReader, int | None]:
    """A stream of the bytes at an address, and their number, None if the store does not return it.

    raises: UsageError if no installed package can read the address; FileError if it cannot be opened
    """
    import fsspec

    if "::" in name:
        raise UsageError(f"{shown(name)}: is a chain of addresses; name a plain one")
    known_store(name, "read")
    try:
        files, path = fsspec.core.url_to_fs(name)
        stream = files.open(path, "rb")
    except Exception as error:  # noqa: BLE001 (stores raise any class of error)
        kind = MissingFileError if isinstance(error, FileNotFoundError) else FileError
        raise kind(f"{shown(name)}: cannot be read: {store_error(error)}") from None
    size = getattr(stream, "size", None)
    return io.BufferedReader(_Remote(stream), _BUFFER_BYTES), size if isinstance(size, int) else None


class _Remote(io.RawIOBase):
    """A stream of a store, with every error turned into an OSError whose text contains no secrets."""

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
        except Exception as error:  # noqa: BLE001 (as in `open_address`)
            raise OSError(store_error(error)) from None
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()
