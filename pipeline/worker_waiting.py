"""Input partitions that wait for a session, each with a pause of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from twinsieve.pipeline.ports import Clock, Partition

_FIRST_S = 0.1
_LONGEST_S = 60.0


class Waiting:
    """Which partitions to open next.

    Those that never failed are opened together. Whoever could not be opened is tried alone from then on, and
    ever less often: one partition that nobody can be asked about holds up no other.

    >>> from twinsieve.pipeline.memory import ManualClock
    >>> clock, one, two = ManualClock(), Partition("posts", 0), Partition("posts", 1)
    >>> waiting = Waiting(clock)
    >>> waiting.add([one, two])
    >>> waiting.due({one, two}) == [one, two]
    True
    >>> waiting.postpone([one, two])
    >>> clock.sleep(1.0)
    >>> waiting.due({one, two}) == [one]
    True
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due_s: dict[Partition, float] = {}
        self._failures: dict[Partition, int] = {}

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._due_s)

    def __len__(self) -> int:
        return len(self._due_s)

    def add(self, partitions: Collection[Partition]) -> None:
        """These are to be opened now, or when the pause of an earlier failure is over."""
        now_s = self._clock.monotonic_s()
        for partition in partitions:
            self._due_s.setdefault(partition, now_s)

    def replace(self, partitions: Collection[Partition]) -> None:
        """These and no others are to be opened; earlier failures are forgotten."""
        self._due_s.clear()
        self._failures.clear()
        self.add(partitions)

    def due(self, ours: Collection[Partition]) -> list[Partition]:
        """Those of ours to open in this round, in order."""
        now_s = self._clock.monotonic_s()
        due = [at for at in self._due_s if at in ours and self._due_s[at] <= now_s]
        together = sorted(at for at in due if at not in self._failures)
        return together or sorted(due, key=lambda at: (self._due_s[at], at))[:1]

    def postpone(self, partitions: Collection[Partition]) -> None:
        """These could not be opened."""
        now_s = self._clock.monotonic_s()
        for partition in partitions:
            failures = self._failures.get(partition, 0)
            self._failures[partition] = min(failures + 1, 20)
            self._due_s[partition] = now_s + min(_LONGEST_S, _FIRST_S * 2**failures)

    def hold(self, partitions: Collection[Partition], seconds: float) -> None:
        """These need a partition without a leader; whether it has one again is a cheap question."""
        now_s = self._clock.monotonic_s()
        for partition in partitions:
            self._due_s[partition] = now_s + seconds

    def opened(self, partition: Partition) -> None:
        """It has a session."""
        self._due_s.pop(partition, None)
        self._failures.pop(partition, None)
