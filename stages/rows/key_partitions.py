"""The partition that Kafka's clients choose for a key."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.kernel import ZERO, kernel
from twinsieve.stages.rows.byte_column import ByteColumn
from twinsieve.stages.rows.varints import read_only

NO_KEY = -1
"""The partition of a message without a key: the producer may choose any."""
_MULTIPLIER, _SEED = np.uint32(0x5BD1E995), np.uint32(0x9747B28C)
_13, _15, _24 = np.uint32(13), np.uint32(15), np.uint32(24)
_NO_SIGN = np.uint32(0x7FFFFFFF)


def partitions_of(keys: ByteColumn, partitions: int) -> NDArray[np.int64]:
    """int64[n]: a partition number from 0 on for each key; NO_KEY for None.

    source: MurmurHash2 (Appleby), with the seed that Kafka's clients share; the sign bit is dropped

    >>> partitions_of(ByteColumn.of([b"", b"a", b"key-1", b"a longer key", None]), 4).tolist()
    [1, 0, 0, 3, -1]
    """
    found = np.empty(len(keys), np.int64)
    _partitions_of(read_only(keys.content), keys.starts, keys.sizes.astype(np.int64), partitions, found)
    return found


@kernel
def _partitions_of(
    content: NDArray[np.uint8],
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    partitions: int,
    found: NDArray[np.int64],
) -> None:
    for row in range(len(sizes)):
        if sizes[row] < 0:
            found[row] = NO_KEY
        else:
            found[row] = (_hash_of(content, starts[row], sizes[row]) & _NO_SIGN) % partitions


@kernel(callee=True)
def _hash_of(content: NDArray[np.uint8], start: int, size: int) -> np.uint32:
    # Numba multiplies 32-bit numbers to 64 bits, of which each step keeps the lower half.
    value = np.uint32(_SEED ^ np.uint32(size))
    end = start + size
    last = end - size % 4
    for at in range(start, last, 4):
        word = np.uint32(content[at])
        for place in range(1, 4):
            word = np.uint32(word | np.uint32(content[at + place]) << np.uint32(8 * place))
        word = np.uint32(word * _MULTIPLIER)
        word = np.uint32((word ^ (word >> _24)) * _MULTIPLIER)
        value = np.uint32(np.uint32(value * _MULTIPLIER) ^ word)
    if last < end:
        for place in range(ZERO, end - last):
            value = np.uint32(value ^ np.uint32(content[last + place]) << np.uint32(8 * place))
        value = np.uint32(value * _MULTIPLIER)
    value = np.uint32((value ^ (value >> _13)) * _MULTIPLIER)
    return np.uint32(value ^ (value >> _15))
