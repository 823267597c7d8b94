"""Inputs as blocks of plain bytes: files or stdin, plain or packed."""

from __future__ import annotations

import errno
import io
import os
import select
import stat
from collections.abc import Callable, Iterator
from itertools import chain
from time import perf_counter
from typing import Any, Self

from twinsieve.pipeline.files import FileError, MissingFileError
from twinsieve.pipeline.files.address import open_address
from twinsieve.pipeline.files.encoding import (
    as_utf8,
    encoding_seen,
    foreign,
    is_undecided,
    is_wide,
    mark_of,
    order_of,
)
from twinsieve.pipeline.files.table import Table
from twinsieve.pipeline.files.unpack import PackedError, unpacked
from twinsieve.pipeline.files.write import descriptor_of
from twinsieve.stages.errors import is_address, shown

STDIN = "-"

_BLOCK_BYTES = 1 << 20
_HEAD_BYTES = 1 << 12
"""The bytes that show an encoding."""


def is_stream(name: str) -> bool:
    """Whether an input can be read only once: stdin, a descriptor, a pipe or a device."""
    if descriptor_of(name, writes=False) is not None:
        return True
    try:
        mode = os.stat(name).st_mode
    except (OSError, ValueError):
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


class StoppedError(Exception):
    """A stop was requested while the run waited for input.

    unfinished: bytes of a row whose end was not read
    """

    unfinished = 0


class InputSource:
    """One input: a file, stdin as `-`, or an address; open between `__enter__` and `__exit__`, not longer.

    wait: called with the descriptor before every read; may raise StoppedError, which `blocks` passes on
    shown: its name in messages, which has no secrets
    mark: the byte order mark that the content began with, which `blocks` leaves out
    waited_s: seconds in which a stream had nothing to read
    size: bytes of a regular file, packed or not, and of an open address whose store gives its size; else None
    raises: FileError when it could not be opened: no such file, no permission, a directory
    """

    def __init__(self, name: str, wait: Callable[[int], None] | None = None) -> None:
        self.name = name
        self.shown = "stdin" if name == STDIN else shown(name)
        self._wait = wait
        self._raw: io.BufferedReader | None = None
        self.mark = b""
        self.waited_s = 0.0
        self.size: int | None = None
        if is_address(name):
            return
        try:
            status = os.fstat(0) if name == STDIN else os.stat(name)
            if stat.S_ISDIR(status.st_mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            if name != STDIN and not os.access(name, os.R_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        except OSError as error:
            raise self._cannot_be_read(error) from error
        self.size = status.st_size if stat.S_ISREG(status.st_mode) else None

    def __enter__(self) -> Self:
        if is_address(self.name):
            self._raw, self.size = open_address(self.name)
            return self
        try:
            # Closed by `__exit__`: the blocks are read long after this returns.
            self._raw = io.BufferedReader(_Waiting(self, 0 if self.name == STDIN else self.name, self._wait))
        except OSError as error:
            raise self._cannot_be_read(error) from error
        return self

    def __exit__(self, *error: object) -> None:
        self._opened().close()

    def _opened(self) -> io.BufferedReader:
        assert self._raw is not None, "a source is read between `__enter__` and `__exit__`"
        return self._raw

    def _cannot_be_read(self, error: OSError) -> FileError:
        kind = MissingFileError if isinstance(error, FileNotFoundError) else FileError
        return kind(f"{self.shown}: cannot be read: {error.strerror or error}")

    @property
    def consumed(self) -> int:
        """Bytes of the file that were taken so far; 0 where that is unknown."""
        return 0 if self.size is None else self._opened().tell()

    def table(self, *, parquet: bool, only: set[str] | None) -> Table:
        """The content as Parquet or Arrow; `only` these columns, None: all. raises: as `Table`"""
        return Table(self._opened(), self.shown, parquet=parquet, only=only)

    def blocks(self, encoding: str | None = None) -> Iterator[bytes]:
        """The content in blocks of about 1 MiB, unpacked, without a byte order mark.

        encoding: as of `Dialect`; UTF-16 and UTF-32 come as UTF-8, others as they are
        raises: FileError when it cannot be read to its end, its compressed data is damaged or cut off, or it
            is not text
        """
        try:
            blocks = unpacked(self._opened(), self.shown)
            head = b""
            # The first block is as large as later ones: fields are looked for in a whole block.
            least = 0 if self.size is None and not is_address(self.name) else _BLOCK_BYTES
            while (len(head) < least or is_undecided(head)) and (block := next(blocks, b"")):
                head += block
            if (problem := foreign(head)) is not None:
                raise FileError(f"{self.shown}: {problem}")
            self.mark = mark_of(head, encoding)
            head = head.removeprefix(self.mark)
            if encoding is not None and is_wide(encoding):
                yield from as_utf8(chain([head], blocks), order_of(encoding, self.mark), self.shown)
                return
            if encoding is None and (seen := encoding_seen(head[:_HEAD_BYTES])) is not None:
                name, why = seen
                raise FileError(
                    f"{self.shown}: is not UTF-8 but {name.upper()} ({why}); "
                    f"add --encoding {name}, or --encoding utf-8 if it is UTF-8"
                )
            yield head
            yield from blocks
        except PackedError as error:
            raise FileError(f"{self.shown}: {error}") from error
        except OSError as error:
            raise self._cannot_be_read(error) from error


class _Waiting(io.FileIO):
    """A file that waits before it is read, and counts for how long; wait: as of `InputSource`."""

    def __init__(self, source: InputSource, file: str | int, wait: Callable[[int], None] | None) -> None:
        super().__init__(file, closefd=isinstance(file, str))
        self._source = source
        self._wait = wait

    def readinto(self, buffer: Any, /) -> int | None:
        if self._wait is not None or self._source.size is None:
            started = perf_counter()
            try:
                (self._wait or _wait_for)(self.fileno())
            finally:
                self._source.waited_s += perf_counter() - started
        return super().readinto(buffer)


def _wait_for(descriptor: int) -> None:
    """Return when there is something to read, or nothing more will come."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    poll.poll()
