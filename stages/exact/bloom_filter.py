"""pybloom-live's BloomFilter on memory that the kernels share, with the digest's bits as its hashes."""

from __future__ import annotations

import numpy as np
from bitarray import bitarray
from numpy.typing import NDArray
from pybloom_live import BloomFilter

from twinsieve.stages.exact import bloom_kernel as kernel


def filter_on(bloom: BloomFilter, row: NDArray[np.uint8], shape: NDArray[np.int64]) -> BloomFilter:
    """The same filter with `row` as its bit array, whose own is freed.

    row: uint8[bytes of its bits, or more]; shape: of the kernels, `bloom_kernel`
    Its keys are digests as pairs of ints. `bitarray` and `make_hashes` are public attributes: one stands for
    memory, the other for hash functions.
    """
    positions = np.empty(bloom.num_slices, dtype=np.int64)

    def make_hashes(key: tuple[int, int]) -> list[int]:
        kernel.bloom_positions(shape, np.uint64(key[0]), np.uint64(key[1]), positions)
        found: list[int] = positions.tolist()
        return found

    bloom.bitarray = bitarray(buffer=row[: -(-bloom.num_bits // 8)].data, endian="little")
    bloom.make_hashes = make_hashes
    return bloom
