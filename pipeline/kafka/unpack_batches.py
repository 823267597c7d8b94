"""Unpacking of compressed record batches, with a size limit."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Iterator, Mapping

import lz4.frame
import snappy
import zstandard

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
"""Numbers of the compression codecs in the attributes of a record batch."""

_PIECE_BYTES = 1 << 20
_LEAST_WINDOW_BITS, _MAX_WINDOW_BITS = 10, 31
_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES = 16


class UnpackError(ValueError):
    """A record batch cannot be unpacked."""


class TooLargeError(UnpackError):
    """The unpacked content is larger than the limit."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(
            f"it unpacks to more than kafka.max_unpacked_bytes, {max_bytes}; raise that if it is meant to"
        )


def unpack(codec: int, packed: bytes, max_bytes: int) -> bytes:
    """The unpacked content of a record batch, at most `max_bytes` long.

    Uses at most twice the limit of memory while unpacking.

    codec: 1…4, as in the attributes of a batch
    raises: TooLargeError if the content is larger; UnpackError for damaged data and for unknown codecs

    >>> unpack(GZIP, gzip.compress(b"rain"), 4)
    b'rain'
    """
    try:
        return _joined(_PIECES[codec](packed, max_bytes), max_bytes)
    except (UnpackError, MemoryError):
        raise
    except Exception as error:
        # Each decompressor raises errors of its own.
        raise UnpackError(str(error) or type(error).__name__) from error


def _joined(pieces: Iterator[bytes], max_bytes: int) -> bytes:
    whole: bytes | bytearray = b""
    for piece in pieces:
        if len(whole) + len(piece) > max_bytes:
            raise TooLargeError(max_bytes)
        if not whole:
            # Most batches give one piece, which is returned without copying it.
            whole = piece
            continue
        # Append to one growing buffer. A list of pieces, joined at the end, would leave freed memory in the
        # heap that the process does not return.
        if isinstance(whole, bytes):
            whole = bytearray(whole)
        whole += piece
    return bytes(whole)


def _gzip(packed: bytes, max_bytes: int) -> Iterator[bytes]:  # noqa: ARG001 - one of many
    with gzip.GzipFile(fileobj=io.BytesIO(packed)) as stream:
        while piece := stream.read(_PIECE_BYTES):
            yield piece


def _zstd(packed: bytes, max_bytes: int) -> Iterator[bytes]:
    declared = zstandard.frame_content_size(packed)
    if declared > max_bytes:
        raise TooLargeError(max_bytes)
    # The decompressor's window needs memory besides the output. Half the limit is more than producers use. A
    # frame that declares its size is unpacked into one buffer of that size and needs no window.
    window = 1 << max(_LEAST_WINDOW_BITS, (max_bytes // 2).bit_length() - 1)
    decompressor = zstandard.ZstdDecompressor(max_window_size=min(window, 1 << _MAX_WINDOW_BITS))
    with decompressor.stream_reader(packed, read_across_frames=True) as stream:
        size = max(declared, _PIECE_BYTES)
        while piece := stream.read(size):
            yield piece
            size = _PIECE_BYTES


def _lz4(packed: bytes, max_bytes: int) -> Iterator[bytes]:  # noqa: ARG001 - one of many
    decompressor = lz4.frame.LZ4FrameDecompressor()
    yield decompressor.decompress(packed, max_length=_PIECE_BYTES)
    while not decompressor.eof:
        if decompressor.needs_input:
            raise EOFError("the lz4 frame is cut off")
        yield decompressor.decompress(b"", max_length=_PIECE_BYTES)


def _snappy(packed: bytes, max_bytes: int) -> Iterator[bytes]:
    if not packed.startswith(_XERIAL) or len(packed) <= _XERIAL_HEADER_BYTES:
        yield _snappy_block(packed, max_bytes)
        return
    position = _XERIAL_HEADER_BYTES
    while position < len(packed):
        length = int.from_bytes(packed[position : position + 4], "big", signed=True)
        position += 4
        if not 0 <= length <= len(packed) - position:
            raise ValueError(f"a snappy block of {length} bytes, but {len(packed) - position} are left")
        yield _snappy_block(packed[position : position + length], max_bytes)
        position += length


def _snappy_block(packed: bytes, max_bytes: int) -> bytes:
    declared = 0
    # A snappy block begins with its unpacked length, seven bits a byte. The decompressor allocates that much
    # without a check, so check it here.
    for place, byte in enumerate(packed[:5]):
        declared |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            break
    if declared > max_bytes:
        raise TooLargeError(max_bytes)
    return bytes(snappy.decompress(packed))


_PIECES: Mapping[int, Callable[[bytes, int], Iterator[bytes]]] = {
    GZIP: _gzip,
    SNAPPY: _snappy,
    LZ4: _lz4,
    ZSTD: _zstd,
}
