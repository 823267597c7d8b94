"""MurmurHash3 (x64, 128 bits) backwards: texts of 48 bytes that have a hash that was chosen before.

Everything in it can be undone: a last block of 16 bytes leads from any state to any other one. So whoever
wants a hash tries beginnings until that last block is text.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

_FULL = (1 << 64) - 1
_FIRST, _SECOND = 0x87C37B91114253D5, 0x4CF5AD432745937F
_ADDED = (0x52DCE729, 0x38495AB5)
_MIXERS = (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53)
_SIZE, _BLOCK = 48, 16
_TRIED = 1 << 17
"""Beginnings at a time: about two of them lead to a last block of ASCII."""


def _undone(odd: int) -> np.uint64:
    return np.uint64(pow(odd, -1, 1 << 64))


def _turned(words: Words, by: int) -> Words:
    """Each word rotated to the left."""
    return (words << np.uint64(by)) | (words >> np.uint64(64 - by))


def _absorbed(block: Words, state: tuple[Words, Words]) -> tuple[Words, Words]:
    """The states after one more block. block: uint64[n, 2]"""
    one, two = state
    first, second = np.uint64(_FIRST), np.uint64(_SECOND)
    five, added = np.uint64(5), [np.uint64(each) for each in _ADDED]
    one = (_turned(one ^ _turned(block[:, 0] * first, 31) * second, 27) + two) * five + added[0]
    two = (_turned(two ^ _turned(block[:, 1] * second, 33) * first, 31) + one) * five + added[1]
    return one, two


def _block_between(before: tuple[Words, Words], after: tuple[Words, Words]) -> Words:
    """uint64[n, 2]: the blocks that lead from these states to those."""
    fifth, added = _undone(5), [np.uint64(each) for each in _ADDED]
    first, second = _undone(_FIRST), _undone(_SECOND)
    one = _turned((after[0] - added[0]) * fifth - before[1], 64 - 27) ^ before[0]
    two = _turned((after[1] - added[1]) * fifth - after[0], 64 - 31) ^ before[1]
    return np.stack([_turned(one * second, 64 - 31) * first, _turned(two * first, 64 - 33) * second], axis=1)


def _unmixed(words: Words) -> Words:
    """What the last mixing of a half made these words of."""
    for factor in reversed(_MIXERS):
        words = (words ^ (words >> np.uint64(33))) * _undone(factor)
    return words ^ (words >> np.uint64(33))


def _states_of(halves: tuple[Words, Words]) -> tuple[Words, Words]:
    """The states behind the last block that give these hashes. halves: of the hashes"""
    mixed_two = halves[1] - halves[0]
    one, two = _unmixed(halves[0] - mixed_two), _unmixed(mixed_two)
    before_two = two - one
    return (one - before_two) ^ np.uint64(_SIZE), before_two ^ np.uint64(_SIZE)


def text_with_hash(begins: bytes, first: int, second: int | None, seed: int) -> bytes:
    """48 ASCII bytes, none of them 0, that begin so and whose hash has these halves.

    begins: at most 16 bytes; second: None if any second half will do
    """
    dice = np.random.default_rng(1)
    while True:
        head = np.frombuffer(begins.ljust(_BLOCK, b"-"), np.uint64).reshape(1, 2)
        free = dice.integers(ord("a"), ord("z") + 1, (_TRIED, _BLOCK), dtype=np.uint8)
        start = np.full(1, seed, np.uint64)
        before = _absorbed(free.view(np.uint64), _absorbed(head, (start, start)))
        others = dice.integers(0, _FULL, _TRIED, dtype=np.uint64, endpoint=True)
        wanted = others if second is None else np.full(_TRIED, second, np.uint64)
        last = _block_between(before, _states_of((np.full(_TRIED, first, np.uint64), wanted)))
        letters = last.view(np.uint8)
        found = np.flatnonzero(((letters > 0) & (letters < 0x80)).all(axis=1))
        if len(found):
            parts = (head, free[found[0]], letters[found[0]])
            return b"".join(part.tobytes() for part in parts)
