"""Inputs as blocks of plain bytes: files or stdin, plain, gzip or zstd, told apart by their first bytes."""

from __future__ import annotations

import gzip
import io
import os
import stat
import zlib
from collections.abc import Iterator
from types import TracebackType
from typing import Self

import zstandard

from twinsieve.stages.errors import FileError

BLOCK_BYTES = 1 << 20
STDIN = "-"

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_BOM = b"\xef\xbb\xbf"
# One zstd block of 4 bytes can stand for 128 KiB, so 1 KiB of input never becomes more than 32 MiB.
_ZSTD_SLICE = 1 << 10
_ZSTD_WINDOW = 1 << 27


class Source:
    """One open input: a file, or stdin as `-`.

    size: bytes of a regular file as it lies there, None for pipes and devices
    raises: FileError when it cannot be opened: no such file, no permission, a directory
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._shown = "stdin" if name == STDIN else name
        try:
            # Closed by `close`: the blocks are read long after this returns.
            self._raw = open(0 if name == STDIN else name, "rb", closefd=name != STDIN)  # noqa: SIM115
        except OSError as error:
            raise FileError(f"{self._shown}: cannot be read: {error.strerror}") from error
        known = os.fstat(self._raw.fileno())
        self.size = known.st_size if stat.S_ISREG(known.st_mode) else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._raw.close()

    @property
    def consumed(self) -> int:
        """Bytes of the file that were taken so far; 0 where that is unknown."""
        return 0 if self.size is None else self._raw.tell()

    def blocks(self) -> Iterator[bytes]:
        """The content in blocks of about 1 MiB, unpacked, without a byte order mark.

        raises: FileError when it cannot be read to its end, or its compressed data is damaged or cut off
        """
        try:
            self._refuse_stump()
            blocks = _unpacked(self._raw)
            head = b""
            while len(head) < len(_BOM) and (block := next(blocks, b"")):
                head += block
            yield head.removeprefix(_BOM)
            yield from blocks
        except (EOFError, _CutOffError) as error:
            raise FileError(
                f"{self._shown}: ends in the middle of its compressed data; fetch it again"
            ) from error
        except (gzip.BadGzipFile, zlib.error, zstandard.ZstdError) as error:
            raise FileError(f"{self._shown}: compressed data is damaged ({error}); fetch it again") from error
        except OSError as error:
            raise FileError(f"{self._shown}: cannot be read: {error.strerror or error}") from error

    def _refuse_stump(self) -> None:
        """By its name compressed, and cut off before its bytes tell: an empty download, mostly."""
        for ending, magic in ((".gz", _GZIP), (".zst", _ZSTD)):
            if self.name.endswith(ending):
                head = self._raw.peek(len(magic))[: len(magic)]
                if len(head) < len(magic) and magic.startswith(head):
                    raise _CutOffError


class _CutOffError(Exception):
    """A zstd frame has no end."""


def _unpacked(raw: io.BufferedReader) -> Iterator[bytes]:
    head = raw.peek(4)[:4]
    if head.startswith(_GZIP):
        with gzip.GzipFile(fileobj=raw) as unpacked:
            yield from iter(lambda: unpacked.read(BLOCK_BYTES), b"")
    elif head == _ZSTD:
        yield from _gathered(_zstd_pieces(raw))
    else:
        yield from iter(lambda: raw.read1(BLOCK_BYTES), b"")


def _zstd_pieces(raw: io.BufferedReader) -> Iterator[bytes]:
    unpacker = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
    frame = None
    while packed := raw.read(BLOCK_BYTES):
        for start in range(0, len(packed), _ZSTD_SLICE):
            piece = packed[start : start + _ZSTD_SLICE]
            while piece:
                frame = frame or unpacker.decompressobj()
                yield frame.decompress(piece)
                piece = frame.unused_data if frame.eof else b""
                if frame.eof:
                    frame = None
    if frame is not None:
        raise _CutOffError


def _gathered(pieces: Iterator[bytes]) -> Iterator[bytes]:
    waiting: list[bytes] = []
    size = 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size >= BLOCK_BYTES:
            yield b"".join(waiting)
            waiting, size = [], 0
    if size:
        yield b"".join(waiting)
