"""`KeyNotes`: what a save needs of the keys that came into the newest generation of a Bloom filter.

A bit of a filter does not say which key has set it, and some millions of keys set bits in every page of a
generation. So between two saves the keys are noted, 10 bytes each, and a save writes these. They set the same
bits again at a restore.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.exact.bloom_kernel import STEP_SHIFT
from twinsieve.stages.exact.runs import Run, runs_in, similar
from twinsieve.stages.exact.sections import SectionReader, Sections

KEYS = "keys"
"""What names of runs of keys begin with."""
NOTE_BYTES = 10
"""Bytes of a noted key."""
_BLOCK = 1 << 16
_LARGEST_JOINED = 1 << 18
"""Most keys of a run that was joined of smaller ones; they are in memory for a moment."""

Keys = tuple[NDArray[np.uint64], NDArray[np.uint16]]
"""(uint64[n], uint16[n]): the bits of n digests on which their places in a filter depend."""


class _Block(NamedTuple):
    """Keys of consecutive kept numbers from `first` on; the arrays have room for `_BLOCK`."""

    first: int
    states: NDArray[np.uint64]
    steps: NDArray[np.uint16]


class KeyNotes:
    """The last keys, by kept number: at most `limit` and one block.

    since, end: the noted numbers, from the first to the second (exclusive)
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._handed_over = 0
        self._blocks: list[_Block] = []
        self.since = self.end = 0

    def note(self, first: int, digests: NDArray[np.uint64]) -> None:
        """Note the keys with these digests. Beyond the limit the oldest ones are dropped.

        first: kept number of the first one; after a gap, all before are dropped. digests: uint64[n, 2]
        """
        if first != self.end:
            self._blocks.clear()
            self.since = self.end = first
        done = 0
        while done < len(digests):
            if not self._blocks or self.end - self._blocks[-1].first == _BLOCK:
                self._blocks.append(
                    _Block(self.end, np.empty(_BLOCK, np.uint64), np.empty(_BLOCK, np.uint16))
                )
            block = self._blocks[-1]
            at = self.end - block.first
            part = digests[done : done + _BLOCK - at]
            block.states[at : at + len(part)] = part[:, 0]
            block.steps[at : at + len(part)] = part[:, 1] >> STEP_SHIFT
            done += len(part)
            self.end += len(part)
        self.drop_before(max(self._handed_over, self.end - self._limit))

    def drop_before(self, number: int) -> None:
        """Drop blocks of keys before this kept number."""
        while self._blocks and self._blocks[0].first + _BLOCK <= min(number, self.end):
            del self._blocks[0]
            self.since = self._blocks[0].first if self._blocks else self.end

    def holds(self, run: Run) -> bool:
        """Whether all keys of the run are noted."""
        return self.since <= run.first and run.end <= self.end

    def sections(self, run: Run) -> Sections:
        """The keys of a run that is noted, not copied; later notes do not change them."""
        blocks: list[Keys] = []
        for block in self._blocks:
            low, high = max(0, run.first - block.first), min(_BLOCK, run.end - block.first)
            if low < high:
                blocks.append((block.states[low:high], block.steps[low:high]))
        return _as_sections(blocks)

    def hand_over(self, run: Run, sections: Sections) -> Sections:
        """The sections of a run, which their reader writes to a file: the keys need not be noted any more.

        Another thread may call it. If the file cannot be written, the next save copies bits
        """
        self._handed_over = run.end
        return dict(sections)


def _as_sections(blocks: list[Keys]) -> Sections:
    sections: Sections = {}
    for number, (states, steps) in enumerate(blocks):
        sections[f"{number}.states"], sections[f"{number}.steps"] = states, steps
    return sections


def read_keys(reader: SectionReader, run: Run) -> list[Keys]:
    """The saved keys of a run, in blocks. raises: StateError if they are damaged"""
    blocks: list[Keys] = []
    left = run.end - run.first
    while left > 0:
        states = reader.array(f"{len(blocks)}.states", np.uint64, (None,))
        steps = reader.array(f"{len(blocks)}.steps", np.uint16, (len(states),))
        if not 0 < len(states) <= left:
            raise reader.damaged(f"a run of keys does not have {run.end - run.first}")
        blocks.append((states.astype(np.uint64), steps.astype(np.uint16)))
        left -= len(states)
    return blocks


def run_to_join(names: Iterable[str]) -> tuple[str, list[str]] | None:
    """(name of a run, names of the runs of which it consists) if there are many small ones, else None.

    names: of all parts
    """
    left: list[Run] = []
    for run in sorted(runs_in(names, KEYS), key=lambda run: (run.first, -run.end)):
        # Of runs that were joined already, only the larger one counts.
        if not left or run.end > left[-1].end:
            left.append(run)
    group = similar(left, _LARGEST_JOINED)
    if not group:
        return None
    return Run(group[0].first, group[-1].end).named(KEYS), [run.named(KEYS) for run in group]


def joined_keys(parts: Iterable[Sections]) -> Sections:
    """The sections of runs that follow each other, as those of one run."""
    blocks = [
        (part[f"{number}.states"].astype(np.uint64), part[f"{number}.steps"].astype(np.uint16))
        for part in parts
        for number in range(len(part) // 2)
    ]
    states, steps = zip(*blocks, strict=True)
    return _as_sections([(np.concatenate(states), np.concatenate(steps))])
