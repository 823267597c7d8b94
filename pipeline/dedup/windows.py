"""How far the windows of a run over files reached: what they hold, and how many rows came after them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from twinsieve.stages.contract import NO_TIME, Batch, Flag, Kind, SieveConfig, Verdicts, Window
from twinsieve.stages.judge.sieve import SieveStats


@dataclass(slots=True)
class Reach:
    """One window and what it left out.

    messages: kept rows it holds; age_ms: and none older, None for no limit
    rows_after: readable rows that came when the first kept row was in this window no more: they are the
        last rows of the input, for a window never goes back
    """

    messages: int
    age_ms: int | None
    rows_after: int = 0


class Reaches:
    """The reach of every window in use, by stage, in the order `near`, `exact`.

    begun: the sieve before the first row, which an earlier run may have filled
    """

    def __init__(self, config: SieveConfig, begun: SieveStats) -> None:
        def reach(window: Window) -> Reach:
            return Reach(window.messages, window.age_ms)

        self.by_stage: dict[str, Reach] = {}
        if config.near.method != "none":
            self.by_stage["near"] = reach(config.near.window)
        if config.exact.method != "none":
            self.by_stage["exact"] = reach(config.exact.window)
        self._max_ahead_ms = config.time.max_ahead_ms
        self._kept = begun.kept
        self._stream_time = NO_TIME if begun.stream_time_ms is None else begun.stream_time_ms
        self._first_time = NO_TIME if begun.oldest_time_ms is None else begun.oldest_time_ms

    def count(self, batch: Batch, verdicts: Verdicts) -> None:
        """Add one chunk, judged in order after all before it."""
        if not len(batch):
            return
        kept = (verdicts.kinds == Kind.UNIQUE) & ((verdicts.flags & Flag.LATE) == 0)
        before = self._kept + np.cumsum(kept) - kept
        times = np.minimum(batch.times_ms, batch.arrivals_ms + self._max_ahead_ms)
        stream = np.maximum(np.maximum.accumulate(times), self._stream_time)
        timed = stream != NO_TIME
        if self._first_time == NO_TIME and timed.any():
            self._first_time = int(stream[timed][0])
        for reach in self.by_stage.values():
            gone = before > reach.messages
            if reach.age_ms is not None:
                gone |= timed & (stream > self._first_time + reach.age_ms)
            reach.rows_after += int(np.count_nonzero(gone))
        self._kept += int(np.count_nonzero(kept))
        self._stream_time = int(stream[-1])
