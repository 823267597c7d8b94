"""Ends of input partitions for the gauges, asked for so that a partition without an answer costs little."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from twinsieve.pipeline.ports import AbortableError, Clock, Partition

_FIRST_PAUSE_S = 60.0
_LONGEST_PAUSE_S = 480.0


class Ends:
    """End offsets of whichever partitions tell them.

    A question that includes a partition without a leader takes a client's whole patience (2 s), and then has
    no answer for the others either. After one such failure each partition is asked alone, and one that does
    not answer is left alone for a minute, then longer. A round meets one failure at most.

    ask: `Reader.end_offsets`
    """

    def __init__(self, ask: Callable[[Collection[Partition]], Mapping[Partition, int]], clock: Clock) -> None:
        self._ask = ask
        self._clock = clock
        self._alone: dict[Partition, float] = {}
        self._pauses_s: dict[Partition, float] = {}

    def of(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """Ends of those that tell. Nothing is raised."""
        self._forget_others(partitions)
        together = [at for at in partitions if at not in self._alone]
        try:
            found = dict(self._ask(together)) if together else {}
        except AbortableError:
            self._suspect(together)
            return {}
        now_s = self._clock.monotonic_s()
        for at in sorted(self._alone, key=self._alone.__getitem__):
            if self._alone[at] > now_s:
                break
            try:
                found |= self._ask([at])
            except AbortableError:
                self._postpone(at)
                break
            del self._alone[at]
            self._pauses_s.pop(at, None)
        return found

    def heard(self, partition: Partition) -> None:
        """Something came from there: it is asked again."""
        if partition in self._pauses_s:
            self._alone[partition] = self._clock.monotonic_s()

    def _forget_others(self, partitions: Collection[Partition]) -> None:
        for at in self._alone.keys() - set(partitions):
            del self._alone[at]
            self._pauses_s.pop(at, None)

    def _suspect(self, partitions: Collection[Partition]) -> None:
        now_s = self._clock.monotonic_s()
        if len(partitions) == 1:
            self._postpone(*partitions)
        else:
            self._alone.update(dict.fromkeys(partitions, now_s))

    def _postpone(self, partition: Partition) -> None:
        pause_s = self._pauses_s.get(partition, _FIRST_PAUSE_S)
        self._alone[partition] = self._clock.monotonic_s() + pause_s
        self._pauses_s[partition] = min(_LONGEST_PAUSE_S, 2 * pause_s)
