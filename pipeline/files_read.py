"""Inputs as blocks of plain bytes: files or stdin, plain, gzip or zstd, told apart by their first bytes."""

from __future__ import annotations

import gzip
import io
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import zstandard

from stages.errors import FileError

BLOCK_BYTES = 1 << 20
STDIN = "-"

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_BOM = b"\xef\xbb\xbf"
# One zstd block of 4 bytes can stand for 128 KiB, so 1 KiB of input never becomes more than 32 MiB.
_ZSTD_SLICE = 1 << 10
_ZSTD_WINDOW = 1 << 27


@contextmanager
def open_blocks(name: str) -> Iterator[Iterator[bytes]]:
    """The content of a file (`-`: stdin) in blocks of about 1 MiB, unpacked, without a byte order mark.

    raises: FileError for anything that cannot be read to its end: no such file, no permission, a directory,
        damaged or cut-off compression
    """
    with _raw(name) as raw:
        yield _guarded(name, raw)


@contextmanager
def _raw(name: str) -> Iterator[io.BufferedReader]:
    if name == STDIN:
        with open(0, "rb", closefd=False) as stream:
            yield stream
        return
    try:
        stream = Path(name).open("rb")  # noqa: SIM115 the name is known here, the reading is done by the caller
    except OSError as error:
        raise FileError(f"{name}: cannot be read: {error.strerror}") from error
    with stream:
        if stat.S_ISDIR(os.fstat(stream.fileno()).st_mode):
            raise FileError(f"{name}: is a directory; name the files in it")
        yield stream


def _guarded(name: str, raw: io.BufferedReader) -> Iterator[bytes]:
    shown = "stdin" if name == STDIN else name
    try:
        blocks = _unpacked(raw)
        head = b""
        while len(head) < len(_BOM) and (block := next(blocks, b"")):
            head += block
        yield head.removeprefix(_BOM)
        yield from blocks
    except (EOFError, _CutOffError) as error:
        raise FileError(f"{shown}: ends in the middle of its compressed data; fetch it again") from error
    except (gzip.BadGzipFile, zlib.error, zstandard.ZstdError) as error:
        raise FileError(f"{shown}: compressed data is damaged ({error}); fetch it again") from error
    except OSError as error:
        raise FileError(f"{shown}: cannot be read: {error.strerror or error}") from error


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
