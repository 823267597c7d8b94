"""`HeldMessages`: kept messages in memory until the next save, for a program that writes at saves alone."""

from __future__ import annotations

from twinsieve.pipeline.saved.stored_texts import stored_texts
from twinsieve.stages.judge.kept_messages import KeptMessages

_LOOSE = 256
"""This many runs are joined into one. A run of one message takes as much memory as one of ten."""


class HeldMessages:
    """What a sieve has kept since its last save, up to a number of messages; beyond it, nothing is held.

    kept: number of the next message that the sieve keeps; limit: messages held at most
    """

    def __init__(self, kept: int, limit: int) -> None:
        self.since = kept
        """A save before this message was kept is complete together with `runs`."""
        self._limit = limit
        self._next = kept
        self._count = 0
        self._joined: list[tuple[int, KeptMessages]] = []
        self._loose: list[tuple[int, KeptMessages]] = []
        self.is_complete = True
        """False after more messages were kept than may be held: the next save has to be whole."""

    def take(self, first: int, messages: KeptMessages) -> None:
        """Hold kept messages; `BatchSieve.on_kept`. first: number of the first one"""
        # With a gap the window has passed all earlier messages too, so that a save needs none of them.
        if first != self._next:
            self._forget()
        self._next = first + len(messages)
        if not self.is_complete:
            return
        self._count += len(messages)
        if self._count > self._limit:
            self.is_complete = False
            self._forget()
            return
        self._loose.append((first, stored_texts(messages)))
        if len(self._loose) >= _LOOSE:
            self._joined.append((self._loose[0][0], KeptMessages.concat([part for _, part in self._loose])))
            self._loose.clear()

    def _forget(self) -> None:
        self._joined.clear()
        self._loose.clear()
        self._count = 0

    @property
    def runs(self) -> list[tuple[int, KeptMessages]]:
        """Runs of messages in the order of keeping, each with the number of its first one."""
        return [*self._joined, *self._loose]
