"""States with names, and the ways between them: a change without a way is a defect and raises."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Generic, TypeVar

State = TypeVar("State", bound=StrEnum)


class Machine(Generic[State]):
    """Where something stands, and where it may go from there.

    ways: every state -> the states that may follow; a state may follow itself without being named
    changes: what was entered since the last call of `changes`

    >>> class Door(StrEnum):
    ...     OPEN = "open"
    ...     SHUT = "shut"
    >>> door = Machine({Door.OPEN: {Door.SHUT}, Door.SHUT: set()}, Door.OPEN)
    >>> door.go(Door.SHUT)
    >>> door.now.value, [state.value for state in door.changes()]
    ('shut', ['open', 'shut'])
    >>> door.go(Door.OPEN)
    Traceback (most recent call last):
    RuntimeError: from shut there is no way to open
    """

    def __init__(self, ways: Mapping[State, set[State]], first: State) -> None:
        self._ways = ways
        self.now = first
        self._entered: list[State] = [first]

    def go(self, state: State) -> None:
        """Enter a state. raises: RuntimeError where no way leads there"""
        if state is self.now:
            return
        if state not in self._ways[self.now]:
            raise RuntimeError(f"from {self.now} there is no way to {state}")
        self.now = state
        self._entered.append(state)

    def changes(self) -> list[State]:
        """States that were entered since the last call, in order."""
        entered, self._entered = self._entered, []
        return entered
