"""A state machine with named states. A transition that is not allowed is a bug in the program and raises."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Generic, TypeVar

State = TypeVar("State", bound=StrEnum)


class Machine(Generic[State]):
    """The current state of something, and the allowed transitions.

    ways: every state -> the states that may follow; to enter the current state again is always allowed
    now: the current state

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
        """Enter a state. raises: RuntimeError if that transition is not allowed"""
        if state is self.now:
            return
        if state not in self._ways[self.now]:
            raise RuntimeError(f"from {self.now} there is no way to {state}")
        self.now = state
        self._entered.append(state)

    def changes(self) -> list[State]:
        """States that were entered since the last call, in order; at first the initial state is among
        them."""
        entered, self._entered = self._entered, []
        return entered
