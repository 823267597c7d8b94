"""How often a worker polls input while answers are outstanding."""

from __future__ import annotations

from twinsieve.pipeline.broker.ports import Clock

_FEW_BLOCKS = 8
_MAX_S = 1.0


class PollBackoff:
    """When to poll input again.

    Too late, and what arrives meanwhile waits for the next round twice; too often, and the index judges
    single messages. With more blocks than a few for each partition the pause grows in proportion, to a second
    at most: an index that is behind gets fewer and larger blocks, never more and smaller ones.

    again_s: the pause while no more than a few wait
    """

    def __init__(self, clock: Clock, again_s: float) -> None:
        self._clock = clock
        self._again_s = again_s
        self._next_s = clock.monotonic_s()

    def left_s(self) -> float:
        """Seconds until the next poll; 0 when it is due."""
        return max(0.0, self._next_s - self._clock.monotonic_s())

    def polled(self, unanswered: int, partitions: int) -> None:
        """Input was polled. unanswered: blocks, of all partitions together"""
        crowd = unanswered / (_FEW_BLOCKS * max(1, partitions))
        self._next_s = self._clock.monotonic_s() + min(_MAX_S, self._again_s * max(1.0, crowd))
