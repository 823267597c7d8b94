"""`SegmentReader`: looks rows up in sealed segments that somebody else has kept, and decides nothing."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import NO_TIME, Batch, SieveConfig
from twinsieve.stages.errors import UsageError
from twinsieve.stages.judge.near_rules import NO_WINDOW, NearRules
from twinsieve.stages.judge.near_window import chunk_rows
from twinsieve.stages.kernel import ZERO
from twinsieve.stages.near.answers import ENTRIES, MOST_ENTRIES, Answer, joined, write_winners
from twinsieve.stages.near.look_up import look_up
from twinsieve.stages.near.matches import MATCHES_PER_ROW, NO_MATCH, NOT_PROPOSED, new_copies, new_matches
from twinsieve.stages.near.propose import Begin
from twinsieve.stages.window.chunk import Chunk, rows, whole_batch
from twinsieve.stages.window.ring import KEPT, OLDEST, new_counters
from twinsieve.stages.window.segments import SealedSegment, Segment

_NO_COPIES = new_copies(0)


class SegmentReader:
    """Answers what a sealed segment has for the rows of a block, under the rules of one configuration.

    It belongs to one thread.
    raises: UsageError for a method whose window has no segments
    """

    def __init__(self, config: SieveConfig) -> None:
        if config.near.method != "text":
            raise UsageError(f"near.method is {config.near.method}; only `text` has segments")
        self._config = config
        self._rules = NearRules(config)
        self._scratch = self._rules.scratch()
        self._rows = chunk_rows(config)
        self._room = self._rows * MATCHES_PER_ROW
        self._matches = new_matches(self._rows, self._room)
        self._copies = new_copies(self._rows)
        self._places = np.zeros(0, np.int64)
        self._winners = np.zeros(self._rows * MOST_ENTRIES, np.int64)
        self._counts = np.zeros(self._rows, np.int32)

    @cached_property
    def question(self) -> bytes:
        """What is asked of a segment (`NearRules.question`)."""
        return self._rules.question()

    def add(self, sealed: SealedSegment) -> Segment:
        """A segment that uses these arrays. raises: DamagedError if they are not those of a segment"""
        counters = new_counters()
        segment = self._rules.shape.mapped(counters, sealed)
        counters[OLDEST], counters[KEPT] = sealed.first, sealed.end
        return segment

    def answer(self, batch: Batch, segment: Segment) -> Answer:
        """What a segment has for the rows of a batch. batch: as for `BatchSieve.judge`; its positions and
        times are not read"""
        whole = whole_batch(batch, self._config.layout, self._config.scoped)
        self._make_room(segment)
        parts = []
        for low in range(0, max(1, len(batch)), self._rows):
            chunk = rows(whole, low, min(low + self._rows, len(batch)))
            parts.append((self._answer(chunk, segment), len(chunk.lengths)))
        return joined(parts)

    def _make_room(self, segment: Segment) -> None:
        """Make room for the matches of a chunk, and behind it for those of one row."""
        most = min(self._rules.most, segment.ring.kept - segment.first) + 1
        if self._room + most > len(self._matches.kept):
            self._matches = new_matches(self._rows, self._room + most)
        if most > len(self._places):
            self._places = np.zeros(most, np.int64)

    def _answer(self, chunk: Chunk, segment: Segment) -> Answer:
        matches, copies, count = self._matches, self._copies, len(chunk.lengths)
        copies.kept[:] = -1
        matches.heads[:] = NO_MATCH
        # Where the window ends when the rows are judged is not known here, so nothing is outside of it. And
        # no copy is inside the exact window: one that turns out to be too old is a near duplicate.
        index = self._rules.index(segment, Begin(segment.first, NO_TIME), NO_WINDOW)
        end = self._room
        look_up(ZERO, count, chunk, index, self._scratch, matches, copies, ZERO, end)
        found = [self._entries(0, count)]
        for row in np.flatnonzero(matches.heads[:count] == NOT_PROPOSED).tolist():
            # There was no room for its matches.
            matches.heads[row] = NO_MATCH
            whole = len(matches.kept)
            look_up(row, row + 1, chunk, index, self._scratch, matches, _NO_COPIES, end, whole)
            found.append(self._entries(row, row + 1))
        entries = found[0]
        if len(found) > 1:
            entries = [np.concatenate(columns) for columns in zip(*found, strict=True)]
            order = np.argsort(entries[0], kind="stable")
            entries = [column[order] for column in entries]
        asks = self._config.exact.method != "none"
        copied = np.flatnonzero(copies.kept[:count] >= 0) if asks else np.zeros(0, np.int64)
        left = np.flatnonzero(self._counts[:count] < 0).astype(np.int32)
        return Answer._make([*entries, copied.astype(np.int32), *(column[copied] for column in copies), left])

    def _entries(self, low: int, high: int) -> list[NDArray[Any]]:
        """The columns of `ENTRIES`: what can win of the matches of rows low to high (exclusive). `_counts`
        then says how many each row has."""
        matches = self._matches
        written = write_winners(low, high, matches, self._places, self._winners, self._counts)
        at = self._winners[:written]
        numbers = np.repeat(np.arange(low, high, dtype=np.int32), np.maximum(self._counts[low:high], 0))
        return [numbers, *(getattr(matches, name)[at] for name in ENTRIES[1:])]
