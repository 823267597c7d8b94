"""SipHash-2-4 with 128 bits of output, as a part of kernels: nobody can tell it from chance without the key.

source: Aumasson, Bernstein 2012, SipHash: a fast short-input PRF; the output of 128 bits is that of their
reference code (CC0), whose vectors are a test
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.fingerprint.mixing import rotated
from twinsieve.stages.kernel import kernel

_V0, _V1 = np.uint64(0x736F6D6570736575), np.uint64(0x646F72616E646F6D)
_V2, _V3 = np.uint64(0x6C7967656E657261), np.uint64(0x7465646279746573)
_FIRST, _SECOND = np.uint64(0xEE), np.uint64(0xDD)
_TOP = np.uint64(56)
_R13, _R16, _R17 = np.uint64(13), np.uint64(16), np.uint64(17)
_R21, _R32 = np.uint64(21), np.uint64(32)


@kernel(callee=True)
def siphash_128(
    words: NDArray[np.uint64],
    length: int,
    key: tuple[np.uint64, np.uint64],
    digests: NDArray[np.uint64],
    row: int,
) -> None:
    """Write the hash of the first `length` bytes of `words` to digests[row]; 8 zero bytes must follow them.

    key: its two halves, little-endian
    """
    v0, v1, v2, v3 = _V0 ^ key[0], _V1 ^ key[1] ^ _FIRST, _V2 ^ key[0], _V3 ^ key[1]
    whole = length >> 3
    for at in range(whole + 1):
        word = words[at]
        if at == whole:
            word |= np.uint64(length) << _TOP
        v3 ^= word
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
        v0 ^= word
    v2 ^= _FIRST
    for _ in range(4):
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    digests[row, 0] = v0 ^ v1 ^ v2 ^ v3
    v1 ^= _SECOND
    for _ in range(4):
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    digests[row, 1] = v0 ^ v1 ^ v2 ^ v3


@kernel(callee=True)
def _round(
    v0: np.uint64, v1: np.uint64, v2: np.uint64, v3: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    v0 += v1
    v2 += v3
    v1 = rotated(v1, _R13) ^ v0
    v3 = rotated(v3, _R16) ^ v2
    v0 = rotated(v0, _R32)
    v2 += v1
    v0 += v3
    v1 = rotated(v1, _R17) ^ v2
    v3 = rotated(v3, _R21) ^ v0
    v2 = rotated(v2, _R32)
    return v0, v1, v2, v3
