"""MurmurHash3 x64 128, as a part of kernels: the same digests as mmh3, without a Python call per text.

source: Appleby, MurmurHash3_x64_128 (public domain); mmh3 is the reference of the tests
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.fingerprint.mixing import rotated
from twinsieve.stages.kernel import kernel

_C1, _C2 = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F)
_M1, _M2 = np.uint64(0x52DCE729), np.uint64(0x38495AB5)
_F1, _F2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_FIVE, _SHIFT = np.uint64(5), np.uint64(33)
_R27, _R31, _R33 = np.uint64(27), np.uint64(31), np.uint64(33)
_ONE, _TWO = np.uint64(1), np.uint64(2)


@kernel(callee=True)
def murmur_128(
    words: NDArray[np.uint64], length: int, seed: np.uint64, digests: NDArray[np.uint64], row: int
) -> None:
    """Write the digest of the first `length` bytes of `words` to digests[row]; 16 zero bytes must follow."""
    h1 = h2 = seed
    at = np.uint64(0)
    for _ in range(length >> 4):
        h1 = (rotated(h1 ^ _mixed(words[at], _C1, _R31, _C2), _R27) + h2) * _FIVE + _M1
        h2 = (rotated(h2 ^ _mixed(words[at + _ONE], _C2, _R33, _C1), _R31) + h1) * _FIVE + _M2
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
def _mixed(k: np.uint64, before: np.uint64, by: np.uint64, after: np.uint64) -> np.uint64:
    return rotated(k * before, by) * after


@kernel(callee=True)
def _final(h: np.uint64) -> np.uint64:
    h = (h ^ (h >> _SHIFT)) * _F1
    h = (h ^ (h >> _SHIFT)) * _F2
    return h ^ (h >> _SHIFT)
