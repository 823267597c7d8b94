"""Reads an input (file, stdin, address) as blocks of unpacked bytes."""

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
from twinsieve.pipeline.files.unpack import PackedError, unpacked
from twinsieve.pipeline.files.write import descriptor_of
from twinsieve.stages.errors import is_address, shown

STDIN = "-"

_BLOCK_BYTES = 1 << 20
_HEAD_BYTES = 1 << 12
"""Number of bytes at the beginning in which the encoding is looked for."""


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

    unfinished: number of bytes read of a row whose end was not read
    """

    unfinished = 0


class InputSource:
    """One input: a file, stdin as `-`, or an address. It is a context manager, and open only inside `with`.

    wait: called with the file descriptor before every read; `blocks` passes on a StoppedError that it raises
    shown: name of the input as shown to the user, without secrets
    mark: the byte order mark at the beginning of the content; `blocks` removes it
    waited_s: seconds spent waiting because a stream had nothing to read
    size: bytes of a regular file as stored (packed or not), or of an open address if the store returns its
        size; else None
    raises: FileError if it cannot be opened: it does not exist, is a directory, or reading is not allowed
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
            # No `with` here: `__exit__` closes the file, because the blocks are read after this returns.
            self._raw = io.BufferedReader(_Waiting(self, 0 if self.name == STDIN else self.name, self._wait))
        except OSError as error:
            raise self._cannot_be_read(error) from error
        return self

    def __exit__(self, *error: object) -> None:
        self.raw.close()

    @property
    def raw(self) -> io.BufferedReader:
        """The open file as it is stored."""
        assert self._raw is not None, "a source is read between `__enter__` and `__exit__`"
        return self._raw

    def _cannot_be_read(self, error: OSError) -> FileError:
        kind = MissingFileError if isinstance(error, FileNotFoundError) else FileError
        return kind(f"{self.shown}: cannot be read: {error.strerror or error}")

    @property
    def consumed(self) -> int:
        """Number of bytes read from the file so far; 0 if the size of the input is unknown."""
        return 0 if self.size is None else self.raw.tell()

    def is_ready(self) -> bool:
        """Whether the next block can be read without waiting for whoever writes to a stream."""
        if self.size is not None or is_address(self.name):
            return True
        return bool(_poll(self.raw.fileno(), 0))

    def blocks(self, encoding: str | None = None) -> Iterator[bytes]:
        """The content in blocks of about 1 MiB, unpacked, without a byte order mark.

        encoding: as in `TextFormat`; UTF-16 and UTF-32 are converted to UTF-8, others stay as they are
        raises: FileError if the input cannot be read to its end, its compressed data is damaged or cut off,
            or it is not text
        """
        try:
            blocks = unpacked(self.raw, self.shown)
            head = b""
            # Make the first block as large as the later ones, because fields are searched for in the first
            # block. A stream does not wait for that.
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
    """A raw file that calls `wait` before every read, and adds the time to `waited_s` of its source.

    wait: as in `InputSource`; None: wait until there is something to read
    """

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
    """Wait until there is something to read, or the end of the stream is reached."""
    _poll(descriptor, None)


def _poll(descriptor: int, timeout_ms: int | None) -> list[tuple[int, int]]:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return poll.poll(timeout_ms)
