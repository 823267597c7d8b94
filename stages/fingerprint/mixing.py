"""Integer hashes that all fingerprint kernels use.

Each is a bijective mix of 64 or 32 bits; the seed is added before mixing. So a result depends only on the
arguments, and not on the machine, the process or the batch. The seeds are public and the same for everybody,
so that one input has one answer; only digests, scopes and ids depend on a secret.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np

from twinsieve.stages.intrinsics import GOLDEN, mix64
from twinsieve.stages.kernel import kernel

KERNEL_VERSION = 4
"""Increase it with each change after which a kernel of this package gives other values for the same input. It
is part of the scheme id."""

NO_CHAR = np.uint64(0xFFFFFFFF)
"""The first half of a gram that is one character and not a pair; no code point has this value."""

_MASK = (1 << 64) - 1
_BITS = np.uint64(64)


@kernel
def mix32(x: np.uint32) -> np.uint32:
    """A well-mixed hash of x, uint32; different numbers have different hashes.

    source: the 32-bit finaliser of MurmurHash3

    >>> hex(int(mix32(np.uint32(1))))
    '0x514e28b7'
    """
    x = np.uint32(x ^ (x >> np.uint32(16)))
    x = np.uint32(x * np.uint32(0x85EBCA6B))
    x = np.uint32(x ^ (x >> np.uint32(13)))
    x = np.uint32(x * np.uint32(0xC2B2AE35))
    return np.uint32(x ^ (x >> np.uint32(16)))


@kernel(callee=True)
def gram_hash(previous: np.uint64, current: np.uint64, seed: np.uint64) -> np.uint64:
    """uint64 hash of the character pair (previous, current), or of one character if previous is NO_CHAR."""
    return mix64(((previous << np.uint64(32)) | current) + seed)


@kernel(callee=True)
def rotated(x: np.uint64, by: np.uint64) -> np.uint64:
    """x with its bits moved up by 1 to 63 places; those that leave at the top come in at the bottom."""
    return (x << by) | (x >> (_BITS - by))


def hash_64(content: bytes) -> int:
    """A hash below 2^64: BLAKE2b, keyed with 8 zero bytes."""
    return int.from_bytes(blake2b(content, digest_size=8, key=bytes(8)).digest(), "little")


def derive(purpose: int, count: int) -> list[int]:
    """`count` pseudo-random 64-bit numbers, another sequence for each purpose (SplitMix64).

    purpose: 0 … 2^64 - 1

    >>> derive(1, 2) == derive(1, 3)[:2], derive(1, 2) == derive(2, 2)
    (True, False)
    """
    state = _splitmix(_splitmix(0) ^ (purpose & _MASK))
    return [_splitmix((state + int(GOLDEN) * i) & _MASK) for i in range(1, count + 1)]


def _splitmix(x: int) -> int:
    x = (x + int(GOLDEN)) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)
