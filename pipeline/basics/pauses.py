"""How long to wait before the next attempt: twice as long after each failure, up to a limit."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pauses:
    """Pauses that double up to a limit. The caller stores the last pause, and 0.0 before the first failure.

    first_s: the shortest pause; longest_s: the limit

    >>> pauses = Pauses(first_s=0.5, longest_s=3.0)
    >>> pauses.after(0.0), pauses.after(0.5), pauses.after(1.0), pauses.after(2.0), pauses.after(3.0)
    (0.5, 1.0, 2.0, 3.0, 3.0)
    """

    first_s: float
    longest_s: float

    def after(self, last_s: float) -> float:
        """The pause to make after a pause of `last_s` seconds."""
        return min(self.longest_s, max(self.first_s, 2 * last_s))
