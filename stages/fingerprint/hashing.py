"""128-bit hashes of many texts, or bytes, in one call: SipHash with a key, MurmurHash3 without."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from hashlib import blake2b
from typing import Literal, NamedTuple

import mmh3
import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.columns import starts_of
from twinsieve.stages.fingerprint.murmur import murmur_128
from twinsieve.stages.fingerprint.secret import KEY_BYTES
from twinsieve.stages.fingerprint.siphash import siphash_128
from twinsieve.stages.intrinsics import popcount
from twinsieve.stages.kernel import kernel

BEHIND = 8
"""Number of zero bytes that must follow the NUL of the last text, so that it ends inside a whole word (8
bytes)."""

_HEAD_ROOM = 48
"""Room for the bytes of a key that are not its text: type and length before it, zeros after it."""

_ONE, _TEN = np.uint64(1), np.uint64(10)
_BYTE, _IN_WORD = np.uint64(3), np.uint64(7)
_LOWS, _HIGHS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
_TEXT, _END, _ZERO_DIGIT = np.uint8(ord("s")), np.uint8(ord(":")), np.uint64(ord("0"))
_PADDING = BEHIND - 1
"""Zeros behind the NUL of the last text."""

Use = Literal["digest", "scope", "id"]
_PUBLIC_SEEDS: dict[Use, int] = {"digest": 0, "scope": 0x5C0, "id": 0x7D1}


class Hash(NamedTuple):
    """Which hash function: with its key, if there is one, else with a public seed."""

    seed: np.uint64
    key: tuple[np.uint64, np.uint64]
    is_keyed: bool

    def __repr__(self) -> str:
        return f"Hash(is_keyed={self.is_keyed})"

    @classmethod
    @cache
    def of(cls, use: Use, secret: bytes = b"") -> Hash:
        """The hash function for one use. Under one secret, those of two uses have nothing in common.

        secret: of an app, or of its operator; empty: public
        """
        if not secret:
            zero = np.uint64(0)
            return cls(np.uint64(_PUBLIC_SEEDS[use]), (zero, zero), is_keyed=False)
        made = blake2b(key=secret, digest_size=KEY_BYTES, person=f"twinsieve {use}".encode()).digest()
        first, second = np.frombuffer(made, "<u8").astype(np.uint64)
        return cls(np.uint64(0), (first, second), is_keyed=True)


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


def hash_texts(content: bytes, by: Hash, digests: NDArray[np.uint64], *, as_keys: bool) -> bool:
    """Write the digest of each text to `digests`.

    returns: whether the digests are right; they are wrong if a text contains NUL
    content: as `joined_texts` makes it; digests: uint64[n, 2], the digests as little-endian words
    as_keys: hash the `text_key` of each text, else its UTF-8
    """
    words = np.frombuffer(content, np.uint64, len(content) // 8)
    scratch = np.empty((len(content) + _HEAD_ROOM) // 8, np.uint64)
    end = _hash_texts(np.frombuffer(content, np.uint8), words, by, as_keys, scratch, digests)
    return bool(end == len(content) - BEHIND)


def hash_code_points(
    chars: NDArray[np.uint32], starts: NDArray[np.int64], by: Hash, digests: NDArray[np.uint64]
) -> None:
    """Write the digest of chars[starts[i]:starts[i + 1]], as little-endian uint32, to digests[i]."""
    _hash_each(chars.view(np.uint8), starts * chars.itemsize, by, digests)


def hash_bytes(values: Sequence[bytes | memoryview], by: Hash, digests: NDArray[np.uint64]) -> None:
    """Write the digest of each value to `digests`."""
    if not by.is_keyed:
        digested = b"".join(mmh3.mmh3_x64_128_digest(value, int(by.seed)) for value in values)
        digests[:] = np.frombuffer(digested, "<u8").reshape(-1, 2)
        return
    lengths = np.fromiter(map(len, values), np.int64, len(values))
    _hash_each(np.frombuffer(b"".join(values), np.uint8), starts_of(lengths), by, digests)


def _hash_each(
    content: NDArray[np.uint8], starts: NDArray[np.int64], by: Hash, digests: NDArray[np.uint64]
) -> None:
    """Write the digest of content[starts[i]:starts[i + 1]] to digests[i]."""
    # Arrays of bytes are read-only. A kernel is compiled once more for an array that is not.
    content = content.view()
    content.flags.writeable = False
    longest = int(np.diff(starts).max(initial=0))
    _hash_bytes(content, starts, by, np.empty((longest + _HEAD_ROOM) // 8, np.uint64), digests)


@kernel
def _hash_texts(
    content: NDArray[np.uint8],
    words: NDArray[np.uint64],
    by: Hash,
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
        _hash(scratch, _write_text(content[start:end], head, key), by, digests, row)
    return end


@kernel
def _hash_bytes(
    content: NDArray[np.uint8],
    starts: NDArray[np.int64],
    by: Hash,
    scratch: NDArray[np.uint64],
    digests: NDArray[np.uint64],
) -> None:
    """`_hash_each`. scratch: room for the longest value and 16 bytes"""
    key = scratch.view(np.uint8)
    for row in range(len(digests)):
        size = _write_text(content[starts[row] : starts[row + 1]], np.int64(0), key)
        _hash(scratch, size, by, digests, row)


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
def _hash(words: NDArray[np.uint64], length: int, by: Hash, digests: NDArray[np.uint64], row: int) -> None:
    """Write the digest of the first `length` bytes of `words` to digests[row]; 16 zero bytes must follow."""
    if by.is_keyed:
        siphash_128(words, length, by.key, digests, row)
    else:
        murmur_128(words, length, by.seed, digests, row)
