"""Stream time on files, where one row with a wrong year does not move it alone.

All rows of a file arrive now, so `time.max_ahead` bounds no time of the past: one wrong year would put all
kept rows out of the windows. So a row that is further ahead than a window reaches needs a second one. On
Kafka, messages arrive when they are written, and `max_ahead` alone is the guard.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import NO_TIME, Batch, SieveConfig, SieveStats

WITHIN_ROWS = 1_000
"""A jump moves stream time if one of this many next rows confirms it."""


class Jumps:
    """Decides stream time for rows in order.

    A row is a *jump* if its time is more than `reach_ms` ahead of stream time. It does not move stream time,
    but waits for a later row among the next `WITHIN_ROWS` whose time is not more than `reach_ms` before its
    own. That row moves stream time to the jump, before it is looked at itself; it may be a jump again. Rows
    without a time count as rows. Nothing is looked at ahead, so the cuts between batches and runs have no
    influence.

    reach_ms: the least age of the windows in use; None if none has an age, then no row is a jump
    begun: statistics of the sieve before the first row
    waiting: `waiting` of an earlier run on the same state
    """

    def __init__(self, config: SieveConfig, begun: SieveStats, waiting: Iterable[Sequence[int]] = ()) -> None:
        used = [stage.window.age_ms for stage in (config.near, config.exact) if stage.method != "none"]
        self.reach_ms = min((age for age in used if age is not None), default=None)
        self._max_ahead_ms = config.time.max_ahead_ms
        self._stream_time = NO_TIME if begun.stream_time_ms is None else begun.stream_time_ms
        # The jumps that wait: in the order of rows, to forget the old ones; and in that of times, to find the
        # confirmed ones at one end. The first may hold confirmed ones too.
        self._by_row: deque[tuple[int, int]] = deque()
        self._by_time: list[tuple[int, int]] = []
        if self.reach_ms is not None:
            for position, time in waiting:
                self._add(position, time)

    def over(self, batch: Batch) -> tuple[Batch, list[int]]:
        """The batch with its `stream_ms`, and the indices of the rows that are jumps.

        batch: follows the one before; its positions are row numbers, ascending
        """
        if not len(batch):
            return batch, []
        bounds = np.where(
            batch.arrivals_ms == NO_TIME, batch.times_ms, batch.arrivals_ms + self._max_ahead_ms
        )
        times = np.minimum(batch.times_ms, bounds)
        stream = np.maximum(np.maximum.accumulate(times), self._stream_time)
        jumps: list[int] = []
        if self.reach_ms is not None:
            self._forget(int(batch.positions[0]))
            if self._by_time or self._has_jump(times, stream, self.reach_ms):
                jumps = self._row_by_row(times, batch.positions, stream, self.reach_ms)
        self._stream_time = int(stream[-1])
        return replace(batch, stream_ms=stream), jumps

    @property
    def waiting(self) -> list[list[int]]:
        """[position, time in ms] of each jump that waits for a second row, in the order of rows."""
        return sorted([position, time] for time, position in self._by_time)

    def _has_jump(self, times: NDArray[np.int64], stream: NDArray[np.int64], reach_ms: int) -> bool:
        """Whether there is a jump, if none waits. stream: int64[n], the latest time up to each row"""
        before = np.concatenate([[self._stream_time], stream[:-1]])
        return bool(((before != NO_TIME) & (times > before + reach_ms)).any())

    def _row_by_row(
        self,
        times: NDArray[np.int64],
        positions: NDArray[np.int64],
        stream: NDArray[np.int64],
        reach_ms: int,
    ) -> list[int]:
        """The indices of the jumps. Writes stream time after each row to `stream`."""
        now, jumps = self._stream_time, []
        decided = []
        for row, (time, position) in enumerate(zip(times.tolist(), positions.tolist(), strict=True)):
            if time != NO_TIME:
                self._forget(position)
                now = max(now, self._confirmed(time + reach_ms))
                if now == NO_TIME or time <= now + reach_ms:
                    now = max(now, time)
                else:
                    self._add(position, time)
                    jumps.append(row)
            decided.append(now)
        stream[:] = decided
        return jumps

    def _add(self, position: int, time: int) -> None:
        self._by_row.append((position, time))
        insort(self._by_time, (time, position))

    def _confirmed(self, latest: int) -> int:
        """The greatest time of a jump up to `latest`, or NO_TIME. The jumps up to it wait no longer."""
        count = bisect_right(self._by_time, latest, key=_time)
        if not count:
            return NO_TIME
        greatest = self._by_time[count - 1][0]
        del self._by_time[:count]
        return greatest

    def _forget(self, position: int) -> None:
        """Forget the jumps that the row at this position cannot confirm any more."""
        while self._by_row and position - self._by_row[0][0] > WITHIN_ROWS:
            gone, time = self._by_row.popleft()
            place = bisect_left(self._by_time, (time, gone))
            if place < len(self._by_time) and self._by_time[place] == (time, gone):
                del self._by_time[place]


def _time(jump: tuple[int, int]) -> int:
    return jump[0]
