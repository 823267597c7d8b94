"""Decompression of inputs: gzip, zstd, bzip2 and xz, recognised by their first bytes.

Content is returned in blocks of limited size, so even a small file that unpacks to gigabytes needs little
memory.
"""

from __future__ import annotations

import bz2
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from itertools import chain

BLOCK_BYTES = 1 << 20

PACKED_ENDINGS = (".gz", ".zst", ".bz2", ".xz")
"""File name endings of compressed inputs and outputs."""

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_BZIP2 = b"BZh"
_XZ = b"\xfd7zXZ\x00"
_MAGICS = {".gz": _GZIP, ".zst": _ZSTD, ".bz2": _BZIP2, ".xz": _XZ}
_ZSTD_SKIPPABLE = b"\x2a\x4d\x18"
"""The last three bytes of the magic number of a skippable zstd frame, whose first byte is 0x50 to 0x5f. Files
written by pzstd begin with such a frame."""
# A zstd block of 4 bytes can unpack to 128 KiB, so 1 KiB of input never unpacks to more than 32 MiB.
_ZSTD_SLICE = 1 << 10
_ZSTD_WINDOW = 1 << 31
"""Window of `zstd --long=31`, the largest possible. A file needs memory of at most twice its content."""
_XZ_MEMORY = 256 << 20
"""Memory limit for unpacking xz; files written by `xz -9` need 65 MiB."""
_CUT_OFF = "ends in the middle of its compressed data; fetch it again"


class PackedError(Exception):
    """Compressed data cannot be unpacked; the text has the reason and what to do."""


def unpacked(raw: io.BufferedReader, name: str) -> Iterator[bytes]:
    """The unpacked content in blocks; plain content as it is.

    A block has up to about 1 MiB, with zstd up to 33 MiB. Bytes that a stream has delivered are returned
    without waiting for more.

    name: if its ending is that of a compressed file, a file shorter than the magic number is reported as cut
        off
    raises: PackedError, OSError
    """
    reads = iter(lambda: raw.read1(BLOCK_BYTES), b"")
    head = b""
    while _is_undecided(head) and (read := next(reads, b"")):
        head += read
    if _is_stump(name, head):
        raise PackedError(_CUT_OFF)
    reads = chain([head] if head else [], reads)
    try:
        if head.startswith(_GZIP):
            yield from _streams(reads, _Gzip, padding=b"\0")
        elif head.startswith(_ZSTD) or _is_skippable(head):
            yield from _zstd_blocks(reads)
        elif head.startswith(_BZIP2) and head[3:4] in b"123456789":
            yield from _streams(reads, bz2.BZ2Decompressor)
        elif head.startswith(_XZ):
            yield from _streams(
                reads, lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, _XZ_MEMORY), padding=b"\0"
            )
        else:
            yield from reads
    except (zlib.error, lzma.LZMAError) as error:
        raise _refused(error) from error


def _refused(error: Exception) -> PackedError:
    """What the error of a library means."""
    if "emory" in str(error):  # zstandard and lzma have no special error class for too little memory
        return PackedError("needs more memory to decompress than is allowed; decompress it first")
    return _damaged(error)


def _damaged(error: Exception) -> PackedError:
    return PackedError(f"compressed data is damaged ({error}); fetch it again")


def _is_undecided(head: bytes) -> bool:
    """Whether more bytes are needed to know how a file is compressed.

    >>> _is_undecided(b""), _is_undecided(b"BZh"), _is_undecided(b"P"), _is_undecided(b"Pa")
    (True, True, True, False)
    """
    if head == _BZIP2:
        return True
    skippable = head[:1] + _ZSTD_SKIPPABLE if _is_skippable(head[:1] + _ZSTD_SKIPPABLE) else b""
    magics = (*_MAGICS.values(), skippable)
    return not head or any(len(head) < len(magic) and magic.startswith(head) for magic in magics)


def _is_stump(name: str, head: bytes) -> bool:
    """Whether a file is compressed by its name, but ends inside its magic number: often an empty download.

    >>> _is_stump("a.gz", b""), _is_stump("a.gz", b"a\\n"), _is_stump("a.jsonl", b"")
    (True, False, False)
    """
    magic = next((magic for ending, magic in _MAGICS.items() if name.endswith(ending)), b"")
    return len(head) < len(magic) and magic.startswith(head)


def _is_skippable(head: bytes) -> bool:
    return head[1:4] == _ZSTD_SKIPPABLE and head[0] >> 4 == 5


def _zstd_blocks(reads: Iterator[bytes]) -> Iterator[bytes]:
    # Only now, because its import takes a part of each start.
    import zstandard

    unpacker = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
    frame = None
    for packed in reads:
        pieces: list[bytes] = []
        size = 0
        for start in range(0, len(packed), _ZSTD_SLICE):
            piece = packed[start : start + _ZSTD_SLICE]
            while piece:
                frame = frame or unpacker.decompressobj()
                try:
                    pieces.append(frame.decompress(piece))
                except zstandard.ZstdError as error:
                    raise _refused(error) from error
                size += len(pieces[-1])
                piece = frame.unused_data if frame.eof else b""
                if frame.eof:
                    frame = None
            if size >= BLOCK_BYTES:
                yield b"".join(pieces)
                pieces, size = [], 0
        if size:
            yield b"".join(pieces)
    if frame is not None:
        raise PackedError(_CUT_OFF)


class _Gzip:
    """Unpacks one member of a gzip file, with the interface of the bz2 and lzma decompressors."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)

    @property
    def eof(self) -> bool:
        return self._stream.eof

    @property
    def needs_input(self) -> bool:
        return not self._stream.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._stream.unused_data

    def decompress(self, data: bytes, max_length: int = -1, /) -> bytes:
        return self._stream.decompress(self._stream.unconsumed_tail + data, max_length)


_Unpacker = _Gzip | bz2.BZ2Decompressor | lzma.LZMADecompressor


def _streams(reads: Iterator[bytes], make: Callable[[], _Unpacker], padding: bytes = b"") -> Iterator[bytes]:
    """The content of consecutive compressed streams.

    make: returns a new decompressor for each stream; padding: bytes that may stand between two streams
    """
    packed = next(reads, b"")
    while packed:
        stream = make()
        while not stream.eof:
            if stream.needs_input and not packed and not (packed := next(reads, b"")):
                raise PackedError(_CUT_OFF)
            try:
                block = stream.decompress(packed if stream.needs_input else b"", BLOCK_BYTES)
            except OSError as error:  # bz2 raises OSError for damaged data
                raise _damaged(error) from error
            packed = b""
            if block:
                yield block
        packed = stream.unused_data.lstrip(padding)
        while not packed and (more := next(reads, b"")):
            packed = more.lstrip(padding)
