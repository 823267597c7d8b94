"""The partition that Kafka's clients choose for a key, row by row."""

from __future__ import annotations

_MASK = 0xFFFFFFFF
_MULTIPLIER = 0x5BD1E995
_SEED = 0x9747B28C


def partition_of(key: bytes, partitions: int) -> int:
    """Partition number for a key, 0…partitions - 1.

    source: MurmurHash2 (Appleby), with the seed that Kafka's clients share; the sign bit is dropped

    >>> [partition_of(key, 4) for key in (b"", b"a", b"key-1", b"a longer key")]
    [1, 0, 0, 3]
    """
    value = (_SEED ^ len(key)) & _MASK
    whole = len(key) // 4 * 4
    for start in range(0, whole, 4):
        value = (value * _MULTIPLIER & _MASK) ^ _mixed(int.from_bytes(key[start : start + 4], "little"))
    if len(key) > whole:
        value = (value ^ int.from_bytes(key[whole:], "little")) * _MULTIPLIER & _MASK
    value = (value ^ value >> 13) * _MULTIPLIER & _MASK
    value ^= value >> 15
    return (value & 0x7FFFFFFF) % partitions


def _mixed(word: int) -> int:
    word = word * _MULTIPLIER & _MASK
    return (word ^ word >> 24) * _MULTIPLIER & _MASK
