"""Names of groups whose offsets Kafka keeps together."""

from __future__ import annotations

from functools import lru_cache

_HASHES = 1 << 32
_BASE = 31
_LENGTH = 8
"""Letters are digits 0 to 25 here. About 198 numbers of eight digits have a given hash, and one in four of
them consists of letters alone."""


@lru_cache
def with_same_hash(name: str, beginning: str) -> str:
    """`beginning` and eight letters: a group name with the same hash as `name`.

    Kafka keeps the offsets of a group in the partition of `__consumer_offsets` that the hash of its name
    chooses, so those of two groups with the same hash lie in one partition, under one coordinator.

    source: Java's String.hashCode, the UTF-16 code units as digits of base 31, modulo 2^32

    >>> with_same_hash("posts.workers", "posts.workers.emitted-")
    'posts.workers.emitted-aeqlbqmx'
    """
    missing = (_hash(name) - _hash(beginning + "a" * _LENGTH)) % _HASHES
    for number in range(missing, _BASE**_LENGTH, _HASHES):
        digits = [number // _BASE**place % _BASE for place in reversed(range(_LENGTH))]
        if max(digits) < 26:
            return beginning + "".join(chr(ord("a") + digit) for digit in digits)
    return beginning  # has another hash, so each transaction takes longer


def _hash(name: str) -> int:
    value = 0
    for unit in memoryview(name.encode("utf-16-le")).cast("H"):
        value = (value * _BASE + unit) % _HASHES
    return value
