"""When an index joins its group: once it could judge within a second, and earlier if no other index is there.

A new member may get the log from the index that judges (`range` gives it to the first member by name), and
then nothing is judged until the new one has caught up. Where nobody judges, the group forms while it does.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from twinsieve.pipeline.broker.ports import Clock

_WARM_S = 1.0
"""An index joins when it would take less time than this to apply what is left."""
_REMEMBERED_S = 4.0
"""The speed is that of about the last seconds of applying: at first, kernels are compiled or loaded."""
_SOON = 5_000
"""An index without others joins once fewer offsets than this are not applied (1 to 2 s)."""
_ASK_S = 1.0
"""Time between two questions to the broker whether there are others."""


class Joining:
    """Decides when one index joins.

    patience_s: an index that has come no closer for this time joins although it is not warm
    has_others: whether another index is in the group; True if the broker does not say
    notices: receives a line if its patience is over
    """

    def __init__(
        self, clock: Clock, patience_s: float, has_others: Callable[[], bool], notices: list[str]
    ) -> None:
        self._clock = clock
        self._patience_s = patience_s
        self._has_others = has_others
        self._ask_s = clock.monotonic_s()
        self._notices = notices
        self._offsets = 0
        self._took_s = 0.0
        self.begin()

    def begin(self) -> None:
        """Begin to wait anew: brokers did not answer, so that nothing could be applied."""
        self._closest = math.inf
        self._closest_s = 0.0

    def applied(self, offsets: int, took_s: float) -> None:
        """Note that a step applied what this many offsets of the decisions topic hold."""
        if not offsets:
            return
        self._offsets += offsets
        self._took_s += took_s
        if self._took_s > _REMEMBERED_S:
            self._offsets, self._took_s = self._offsets // 2, self._took_s / 2

    def is_due(self, left: int, unwritten: int) -> bool:
        """Whether to join now.

        left: offsets of the decisions topic that are not applied; unwritten: sealed segments that are in no
            file yet. The next full segment would wait for them, and judging with it
        """
        is_near = not left or left * self._took_s < _WARM_S * self._offsets
        if is_near and not unwritten:
            return True
        now_s = self._clock.monotonic_s()
        if left < _SOON and now_s >= self._ask_s:
            self._ask_s = now_s + _ASK_S
            if not self._has_others():
                return True
        if left < self._closest:
            self._closest, self._closest_s = left, now_s
        waited_s = now_s - self._closest_s
        if waited_s < self._patience_s:
            return False
        self._notices.append(
            f"joins its group although it is not warm: for {waited_s:.0f} s it came no closer; "
            f"{left} offsets of the decisions topic are not applied, {unwritten} full segments are in no "
            "file; if it gets the log, outputs pause until it has caught up"
        )
        return True
