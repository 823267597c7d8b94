"""Record batches that unpack to far more than they weigh, made piece by piece."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import crc32c
import lz4.frame
import zstandard

_PIECE = bytes(1 << 20)
_CODECS = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4, "zstd-sized": 4, "xerial": 2}
CODECS = tuple(_CODECS)


@dataclass(frozen=True)
class Bomb:
    """One batch of one record. batch: as a broker stores it; held: bytes that it unpacks to."""

    batch: bytes
    held: int


def bomb(codec: str, value_bytes: int, base_offset: int = 0, cut: int = 0) -> Bomb:
    """One packed record with a value of `value_bytes` zeros, rounded up to whole MiB; `cut`: bytes taken off."""
    pieces = -(-value_bytes // len(_PIECE))
    size = pieces * len(_PIECE)
    head = b"\0\0\0\x01" + _varint(size)
    head = _varint(len(head) + size + 1) + head
    packed = _PACK[codec](head, pieces)
    packed = packed[: len(packed) - cut]
    return Bomb(_batch(_CODECS[codec], packed, base_offset), len(head) + size + 1)


def _content(head: bytes, pieces: int) -> Iterator[bytes]:
    yield head
    for _ in range(pieces):
        yield _PIECE
    yield b"\0"


def _batch(codec: int, packed: bytes, base_offset: int) -> bytes:
    checked = struct.pack(">hiqqqhii", codec, 0, 0, 0, -1, -1, -1, 1) + packed
    front = struct.pack(">ibI", -1, 2, crc32c.crc32c(checked))
    return struct.pack(">qi", base_offset, len(front) + len(checked)) + front + checked


def _varint(number: int) -> bytes:
    """Zigzag, of a number that is not negative."""
    return _plain_varint(number << 1)


def _plain_varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _gzip(head: bytes, pieces: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join(map(packer.compress, _content(head, pieces))) + packer.flush()


def _lz4(head: bytes, pieces: int) -> bytes:
    packer = lz4.frame.LZ4FrameCompressor()
    return packer.begin() + b"".join(map(packer.compress, _content(head, pieces))) + packer.flush()


def _zstd(head: bytes, pieces: int) -> bytes:
    packer = zstandard.ZstdCompressor().compressobj()
    return b"".join(map(packer.compress, _content(head, pieces))) + packer.flush()


def _zstd_sized(head: bytes, pieces: int) -> bytes:
    packer = zstandard.ZstdCompressor().compressobj(size=len(head) + pieces * len(_PIECE) + 1)
    return b"".join(map(packer.compress, _content(head, pieces))) + packer.flush()


def _snappy(head: bytes, pieces: int) -> bytes:
    """The length, the head and one zero as literals, then copies of 64 bytes each from one byte before."""
    zeros = pieces * len(_PIECE) + 1
    copies, rest = divmod(zeros - 64, 64)
    literal = head + bytes(64 - len(head) + rest)
    zeros_so_far = len(literal) - len(head)
    more, rest = divmod(zeros - zeros_so_far, 64)
    assert copies >= more
    literal += bytes(rest)
    out = _plain_varint(len(head) + zeros) + bytes([60 << 2, len(literal) - 1]) + literal
    return out + b"\xfe\x01\x00" * more


def _xerial(head: bytes, pieces: int) -> bytes:
    """Blocks of 32 KiB behind the header of the Java library, as its producer writes them."""
    import snappy

    out = [b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)]
    zeros = snappy.compress(bytes(32 << 10))
    blocks = [snappy.compress(head), *[zeros] * (pieces * len(_PIECE) // (32 << 10)), snappy.compress(b"\0")]
    for block in blocks:
        out += [struct.pack(">i", len(block)), block]
    return b"".join(out)


_PACK: Mapping[str, Callable[[bytes, int], bytes]] = {
    "gzip": _gzip,
    "snappy": _snappy,
    "lz4": _lz4,
    "zstd": _zstd,
    "zstd-sized": _zstd_sized,
    "xerial": _xerial,
}
