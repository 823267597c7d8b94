"""`Forgotten`: tags of kept messages that must no longer be leaders, until the exact window has passed.

Some kept messages never reach the output, so later copies of them must not be dropped. But a Bloom filter
cannot delete their digests. So their tags are stored here, and a message with one of these tags skips the
exact stage. If that message is kept, its tag is removed from here, and it is the leader of later copies.

>>> forgotten = Forgotten()
>>> forgotten.add(np.array([7, 9], np.uint64), kept=3, time_ms=0)
>>> forgotten.lead_again(np.array([9], np.uint64))
>>> forgotten.holds(np.array([7, 8, 9], np.uint64)).tolist()
[True, False, False]
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import NO_TIME
from twinsieve.stages.exact.runs import FrozenStage
from twinsieve.stages.exact.sections import SectionReader, Sections


class Forgotten:
    """Forgotten tags. A tag is the first half of a digest.

    A tag takes 24 bytes. It is stored with two numbers from the moment when it was forgotten: messages kept
    so far, and stream time. There are never more tags than the exact window had entries at the last `add`.
    """

    def __init__(self) -> None:
        self._tags = np.empty(0, np.uint64)
        self._kept = np.empty(0, np.int64)
        self._times = np.empty(0, np.int64)

    def __len__(self) -> int:
        return len(self._tags)

    def add(self, tags: NDArray[np.uint64], kept: int, time_ms: int) -> None:
        """Forget these tags. kept: messages kept so far; time_ms: stream time, or NO_TIME"""
        self._keep(~_among(self._tags, tags))
        new = np.unique(tags)
        self._tags = np.concatenate([self._tags, new])
        self._kept = np.concatenate([self._kept, np.full(len(new), kept, np.int64)])
        self._times = np.concatenate([self._times, np.full(len(new), time_ms, np.int64)])

    def lead_again(self, tags: NDArray[np.uint64]) -> None:
        """Remove these tags, because messages with them were kept and are leaders now."""
        if len(self._tags):
            self._keep(~_among(self._tags, tags))

    def holds(self, tags: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """bool[n]: whether each tag is forgotten."""
        return _among(tags, self._tags)

    def until_one_repeats(self, tags: NDArray[np.uint64]) -> int:
        """Number of rows before the first row that repeats the forgotten tag of an earlier row.

        That row must be judged after the earlier one, which may be its leader by then. tags: uint64[n]
        """
        rows = np.flatnonzero(self.holds(tags))
        _, first = np.unique(tags[rows], return_index=True)
        again = np.setdiff1d(np.arange(len(rows)), first)
        return int(rows[again[0]]) if len(again) else len(tags)

    def expire(self, kept: int, messages: int, time_ms: int, age_ms: int | None) -> None:
        """Remove tags forgotten more than `messages` kept messages, or `age_ms`, ago.

        The exact stage no longer finds them. kept: messages kept so far; time_ms: stream time, or NO_TIME;
        age_ms: None for no limit
        """
        passed = kept - self._kept > messages
        if age_ms is not None and time_ms != NO_TIME:
            passed |= (self._times != NO_TIME) & (time_ms - self._times > age_ms)
        self._keep(~passed)

    def _keep(self, wanted: NDArray[np.bool_]) -> None:
        self._tags, self._kept, self._times = self._tags[wanted], self._kept[wanted], self._times[wanted]

    def to_sections(self) -> Sections:
        """Copies of the state as named arrays. Without forgotten tags there are none, as in older states."""
        if not len(self):
            return {}
        return {"tags": self._tags.copy(), "kept": self._kept.copy(), "times": self._times.copy()}

    def freeze(self, _have: Collection[str] = ()) -> FrozenStage:
        """The state as it is now, which has no parts."""
        return FrozenStage(self.to_sections(), {})

    @classmethod
    def from_sections(cls, sections: Mapping[str, NDArray[np.generic]]) -> Forgotten:
        """The tags from a saved state. raises: StateError if it is damaged"""
        loaded = cls()
        if not sections:
            return loaded
        reader = SectionReader("forgotten", sections)
        loaded._tags = reader.array("tags", np.uint64, (None,)).astype(np.uint64)
        count = len(loaded._tags)
        loaded._kept = reader.array("kept", np.int64, (count,)).astype(np.int64)
        loaded._times = reader.array("times", np.int64, (count,)).astype(np.int64)
        return loaded


def _among(tags: NDArray[np.uint64], others: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """bool[n]: whether each tag is one of the others."""
    # Hashes are too far apart for a table, and NumPy 2.0 overflows when it asks whether to make one.
    return np.isin(tags, others, kind="sort")
