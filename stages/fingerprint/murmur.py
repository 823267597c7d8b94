"""MurmurHash3 x64 128 of many texts in one call: the same digests as mmh3, without a Python call per text.

source: Appleby, MurmurHash3_x64_128 (public domain); mmh3 is the reference of the tests
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.intrinsics import popcount
from twinsieve.stages.kernel import kernel

BEHIND = 8
"""Number of zero bytes that must follow the NUL of the last text, so that it ends inside a whole word (8
bytes)."""

_HEAD_ROOM = 48
"""Room for the bytes of a key that are not its text: type and length before it, zeros after it."""

_C1, _C2 = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F)
_M1, _M2 = np.uint64(0x52DCE729), np.uint64(0x38495AB5)
_F1, _F2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_FIVE, _SHIFT, _BITS = np.uint64(5), np.uint64(33), np.uint64(64)
_R27, _R31, _R33 = np.uint64(27), np.uint64(31), np.uint64(33)
_ONE, _TWO, _TEN = np.uint64(1), np.uint64(2), np.uint64(10)
_BYTE, _IN_WORD = np.uint64(3), np.uint64(7)
_LOWS, _HIGHS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
_TEXT, _END, _ZERO_DIGIT = np.uint8(ord("s")), np.uint8(ord(":")), np.uint64(ord("0"))


_PADDING = BEHIND - 1
"""Zeros behind the NUL of the last text."""


def padded(content: bytes) -> bytes:
    """UTF-8 of texts, each with one NUL behind it, in the form of `joined_texts`."""
    return content + bytes(_PADDING)


def joined_texts(texts: Sequence[str]) -> bytes:
    """The UTF-8 of the texts, each with one NUL behind it, and BEHIND zeros behind the last one."""
    joined = "\0".join([*texts, "\0" * _PADDING])
    try:
        return joined.encode()
    except UnicodeEncodeError:
        return joined.encode("utf-8", "surrogatepass")


def hash_texts(content: bytes, seed: int, digests: NDArray[np.uint64], *, as_keys: bool) -> bool:
    """Write the digest of each text to `digests`.

    returns: whether the digests are right; they are wrong if a text contains NUL
    content: as `joined_texts` makes it; digests: uint64[n, 2], the digests as little-endian words
    as_keys: hash the `text_key` of each text, else its UTF-8
    """
    words = np.frombuffer(content, np.uint64, len(content) // 8)
    scratch = np.empty((len(content) + _HEAD_ROOM) // 8, np.uint64)
    end = _hash_texts(np.frombuffer(content, np.uint8), words, np.uint64(seed), as_keys, scratch, digests)
    return bool(end == len(content) - BEHIND)


def hash_code_points(
    chars: NDArray[np.uint32], starts: NDArray[np.int64], seed: int, digests: NDArray[np.uint64]
) -> None:
    """Write the digest of chars[starts[i]:starts[i + 1]], as little-endian uint32, to digests[i]."""
    longest = int(np.diff(starts).max(initial=0))
    scratch = np.empty(longest // 2 + _HEAD_ROOM // 8, np.uint64)
    _hash_code_points(chars, starts, np.uint64(seed), scratch, digests)


@kernel
def _hash_code_points(
    chars: NDArray[np.uint32],
    starts: NDArray[np.int64],
    seed: np.uint64,
    scratch: NDArray[np.uint64],
    digests: NDArray[np.uint64],
) -> None:
    """`hash_code_points`. scratch: room for the longest text and 16 bytes"""
    key = scratch.view(np.uint32)
    for row in range(len(digests)):
        size = starts[row + 1] - starts[row]
        text, written = chars[starts[row] : starts[row + 1]], key[:size]
        for i in range(size):
            written[i] = text[i]
        zeros = key[size : size + 4]
        for i in range(4):
            zeros[i] = np.uint32(0)
        _hash(scratch, size * 4, seed, digests, row)


@kernel
def _hash_texts(
    content: NDArray[np.uint8],
    words: NDArray[np.uint64],
    seed: np.uint64,
    as_keys: bool,
    scratch: NDArray[np.uint64],
    digests: NDArray[np.uint64],
) -> np.int64:
    """Write the digest of each text. returns: index in `content` of the end of the last text

    words: the same memory as `content`, in words of 8 bytes; scratch: room for the longest key
    """
    key = scratch.view(np.uint8)
    end = np.int64(-1)
    for row in range(len(digests)):
        start = end + 1
        end = _next_zero(words, start)
        head = _write_head(end - start, key) if as_keys else np.int64(0)
        _hash(scratch, _write_text(content[start:end], head, key), seed, digests, row)
    return end


@kernel(callee=True)
def _next_zero(words: NDArray[np.uint64], start: int) -> np.int64:
    """Index of the first zero byte from `start` on; there must be one."""
    at = np.uint64(start) >> _BYTE
    # In the first word, set all bits of the bytes before `start`, so that no zero byte is found there.
    word = words[at] | ((_ONE << ((np.uint64(start) & _IN_WORD) << _BYTE)) - _ONE)
    while True:
        # source: Mycroft 1987: the lowest bit that is set is in the first zero byte
        zeros = (word - _LOWS) & ~word & _HIGHS
        if zeros:
            below = popcount((zeros & -zeros) - _ONE) >> _BYTE
            return np.int64((at << _BYTE) + below)
        at += _ONE
        word = words[at]


@kernel(callee=True)
def _write_head(size: int, key: NDArray[np.uint8]) -> np.int64:
    """Write what stands before a text of `size` bytes in its key. returns: its size"""
    digits, rest = np.int64(1), np.uint64(size)
    while rest >= _TEN:
        rest //= _TEN
        digits += 1
    key[0] = _TEXT
    key[digits + 1] = _END
    rest = np.uint64(size)
    for place in range(digits, 0, -1):
        key[place] = np.uint8(_ZERO_DIGIT + rest % _TEN)
        rest //= _TEN
    return digits + 2


@kernel(callee=True)
def _write_text(text: NDArray[np.uint8], head: int, key: NDArray[np.uint8]) -> np.int64:
    """Write a text behind the `head` bytes of `key`, then 16 zero bytes. returns: size without these zeros"""
    size = len(text)
    # Use slices, because the compiler makes vector instructions of loops over them.
    written = key[head : head + size]
    for i in range(size):
        written[i] = text[i]
    zeros = key[head + size : head + size + 16]
    for i in range(16):
        zeros[i] = np.uint8(0)
    return head + size


@kernel(callee=True)
def _hash(
    words: NDArray[np.uint64], length: int, seed: np.uint64, digests: NDArray[np.uint64], row: int
) -> None:
    """Write the digest of the first `length` bytes of `words` to digests[row]; 16 zero bytes must follow."""
    h1 = h2 = seed
    at = np.uint64(0)
    for _ in range(length >> 4):
        h1 = (_rotated(h1 ^ _mixed(words[at], _C1, _R31, _C2), _R27) + h2) * _FIVE + _M1
        h2 = (_rotated(h2 ^ _mixed(words[at + _ONE], _C2, _R33, _C1), _R31) + h1) * _FIVE + _M2
        at += _TWO
    # Fewer than 16 bytes are left, followed by zeros. If none are left, these zeros do not change the digest.
    h1 ^= _mixed(words[at], _C1, _R31, _C2) ^ np.uint64(length)
    h2 ^= _mixed(words[at + _ONE], _C2, _R33, _C1) ^ np.uint64(length)
    h1 += h2
    h2 += h1
    h1, h2 = _final(h1), _final(h2)
    h1 += h2
    digests[row, 0] = h1
    digests[row, 1] = h2 + h1


@kernel(callee=True)
def _rotated(x: np.uint64, by: np.uint64) -> np.uint64:
    return (x << by) | (x >> (_BITS - by))


@kernel(callee=True)
def _mixed(k: np.uint64, before: np.uint64, by: np.uint64, after: np.uint64) -> np.uint64:
    return _rotated(k * before, by) * after


@kernel(callee=True)
def _final(h: np.uint64) -> np.uint64:
    h = (h ^ (h >> _SHIFT)) * _F1
    h = (h ^ (h >> _SHIFT)) * _F2
    return h ^ (h >> _SHIFT)
