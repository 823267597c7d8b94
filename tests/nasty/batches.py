"""Mutated record batches for the kernel that finds records: it reads no byte outside, and finds what kafka-python reads.

The records lie between two pages that nobody may read, at the end of the pages between them, or at their beginning.
"""

from __future__ import annotations

import ctypes
import mmap
from random import Random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tests.stages.rows.test_record_columns import contents, facts_of, packed, require_the_same
from twinsieve.stages.rows.record_columns import scan_records

_COMPARED = 100
"""One of so many batches is compared with what kafka-python reads."""
_TOGETHER = 5
"""The most batches of one call."""
_PAGES = 4
_HEADER_BYTES = 61
_NUMBERS = (0, 1, 0x7E, 0x7F, 0x80, 0xFE, 0xFF)


class Fuzzed(NamedTuple):
    """accepted: batches that the kernel took; compared: of these with kafka-python"""

    batches: int
    accepted: int
    compared: int


def fuzz(count: int, seed: int = 1) -> Fuzzed:
    """Give mutated batches to the kernel, some alone and some together. raises: AssertionError if a row differs; a read
    outside ends the process

    count: calls of the kernel
    """
    dice, room = Random(seed), _Room()
    accepted = compared = 0
    for number in range(count):
        if number % _COMPARED == 0:
            base = [_batch(dice, place) for place in range(dice.choice([1, 1, 2, _TOGETHER]))]
        batches = [*map(bytearray, base)]
        # Often only one of several, so that the others are sound.
        for batch in batches if number & 2 else [dice.choice(batches)]:
            _mutate(batch, dice)
        content = room.placed(contents(batches), at_end=bool(number & 1))
        found = scan_records(content, [*map(facts_of, batches)], b"twinsieve-")
        if found is None:
            continue
        accepted += 1
        ends = found.headers_at + found.headers_sizes
        assert (found.key_at >= 0).all()
        assert (ends <= len(content)).all()
        if accepted % _COMPARED == 1:
            compared += 1
            require_the_same(*batches)
    return Fuzzed(count, accepted, compared)


def _batch(dice: Random, place: int) -> bytearray:
    """A small batch. place: of those that are given together, whose offsets ascend"""
    rows = []
    for _ in range(dice.randrange(1, 5)):
        headers = [
            ("n" * dice.randrange(3), dice.choice([None, b"", b"h"])) for _ in range(dice.randrange(3))
        ]
        key, value = (dice.choice([None, b"", dice.randbytes(dice.randrange(70))]) for _ in range(2))
        rows.append((dice.randrange(1 << 41), key, value, headers))
    return packed(rows, dice.randrange(1 << 40) + (place << 40))


def _mutate(batch: bytearray, dice: Random) -> None:
    """Change, insert, remove or cut off some bytes behind the header, or change a number in it."""
    for _ in range(dice.randrange(4)):
        place = dice.randrange(_HEADER_BYTES, len(batch)) if len(batch) > _HEADER_BYTES else 0
        way = dice.randrange(6)
        if way == 0 or not place:
            batch[dice.choice([0, 27, 34, 57, 58, 59, 60])] = dice.choice(_NUMBERS)
        elif way == 1:
            batch[place] ^= 1 << dice.randrange(8)
        elif way == 2:
            batch[place] = dice.choice(_NUMBERS)
        elif way == 3:
            batch.insert(place, dice.choice(_NUMBERS))
        elif way == 4:
            del batch[place]
        else:
            del batch[place:]


class _Room:
    """Pages between two that nobody may read."""

    def __init__(self) -> None:
        size = mmap.PAGESIZE * (_PAGES + 2)
        self._memory = mmap.mmap(-1, size)
        self._whole = np.frombuffer(self._memory, np.uint8)
        libc = ctypes.CDLL(None, use_errno=True)
        for start in (0, size - mmap.PAGESIZE):
            address = ctypes.c_void_p(self._whole.ctypes.data + start)
            assert libc.mprotect(address, ctypes.c_size_t(mmap.PAGESIZE), 0) == 0, ctypes.get_errno()

    def placed(self, content: bytes, *, at_end: bool) -> NDArray[np.uint8]:
        """The bytes, at the end of the pages or at their beginning."""
        assert len(content) <= _PAGES * mmap.PAGESIZE
        start = mmap.PAGESIZE * (_PAGES + 1) - len(content) if at_end else mmap.PAGESIZE
        place = self._whole[start : start + len(content)]
        place[:] = np.frombuffer(content, np.uint8)
        return place
