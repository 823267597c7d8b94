"""Logs which workers join and leave their group, and warns if one does so again and again."""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Collection

from twinsieve.pipeline.broker.ports import Clock

_log = logging.getLogger("twinsieve")
_WITHIN_S = 600.0
_MANY = 16
"""So many rebalances within _WITHIN_S are a warning. A process that is stopped and started causes two, and a
client may report each of them twice."""


class GroupWatch:
    """The members of the workers' group as one worker sees them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rebalances: deque[float] = deque()
        self._moves: deque[tuple[float, str]] = deque()
        """Times at which members were seen to join or leave, with their names."""
        self._known: frozenset[str] | None = None
        self._warned_s: float | None = None
        self.is_due = False
        """Whether there was a rebalance since the last `look`."""

    def rebalanced(self, times: int) -> None:
        """Note this number of rebalances."""
        self._rebalances += [self._clock.monotonic_s()] * times
        self.is_due |= times > 0

    def look(self, members: Collection[str], partitions: int) -> None:
        """Log what has changed. members: names of all members; partitions: number of this member's"""
        self.is_due = False
        now_s = self._clock.monotonic_s()
        before, self._known = self._known, frozenset(members)
        if before is not None:
            joined, left = self._known - before, before - self._known
            self._moves += [(now_s, name) for name in joined | left]
            for what, names in (("joined", joined), ("left", left)):
                if names:
                    _log.info(
                        "worker: %s %s the group (members now: %d; partitions of this one: %d)",
                        *(", ".join(sorted(names)), what, len(self._known), partitions),
                    )
        for times in (self._rebalances, self._moves):
            while times and _second_of(times[0]) < now_s - _WITHIN_S:
                times.popleft()
        is_told = self._warned_s is not None and now_s - self._warned_s < _WITHIN_S
        if len(self._rebalances) < _MANY or is_told:
            return
        self._warned_s = now_s
        moved = Counter(name for _, name in self._moves)
        who = ", ".join(name for name, _ in moved.most_common(3)) or "none seen"
        _log.warning(
            "worker: %d rebalances of the group within %.0f s; each stops all partitions for a moment; "
            "does a process end and start again? members that joined or left: %s; their logs say why",
            *(len(self._rebalances), _WITHIN_S, who),
        )


def _second_of(entry: float | tuple[float, str]) -> float:
    return entry if isinstance(entry, float) else entry[0]
