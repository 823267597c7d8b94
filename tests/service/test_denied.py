"""A missing permission ends a role that has done nothing yet; one that has worked waits for it to come back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from twinsieve.pipeline.memory import ManualClock
from twinsieve.pipeline.metrics import Metrics
from twinsieve.pipeline.ports import FatalError
from twinsieve.pipeline.service_loops import Loop


class Scripted(Loop):
    """Does what it is told, step by step, and stops at the end."""

    def __init__(self, *steps: str) -> None:
        clock = ManualClock()
        super().__init__("role", clock, Metrics(clock))
        self._steps: Iterator[str] = iter(steps)
        self.given_up = 0

    def _step(self) -> None:
        step = next(self._steps, "stop")
        if step == "works":
            self._worked = True
        elif step == "denied":
            raise FatalError("topic x: not allowed", denied=True)
        else:
            self.stop()

    def _show(self) -> None: ...

    def _look(self) -> None: ...

    def _finish(self) -> None: ...

    def _give_up(self) -> None:
        self.given_up += 1


def test_a_role_that_was_never_allowed_ends_with_the_message() -> None:
    with pytest.raises(FatalError, match="topic x: not allowed"):
        Scripted("denied").run()


def test_a_role_that_has_worked_waits_for_its_permission() -> None:
    role = Scripted("works", "denied", "denied", "works")
    role.run()
    assert role.given_up == 3, "new clients after each refusal, and the end"
