"""Measure the time of a role's steps, and count its transactions that were not committed."""

from __future__ import annotations

from functools import partial

from twinsieve.pipeline.broker.ports import Clock, Hook
from twinsieve.pipeline.index.config import IndexStep
from twinsieve.pipeline.service.metrics import OPEN_STEPS, WAITING_STEPS, Metrics
from twinsieve.pipeline.worker.config import WorkerStep

_BEGUN = frozenset({WorkerStep.BEGUN, IndexStep.BEGUN})
_COMMITTED = frozenset({WorkerStep.COMMITTED, IndexStep.COMMITTED})


class StepTimer:
    """A hook that times the steps of one role, and counts the transactions that the role does not commit.

    step: another hook, called after each step too
    """

    def __init__(self, metrics: Metrics, clock: Clock, role: str, step: Hook) -> None:
        self._clock = clock
        self._step = step
        self._aborts = partial(metrics.aborts.labels, role)
        self._observe = {
            name: (metrics.waits if name in WAITING_STEPS else metrics.steps).labels(name).observe
            for name in (*WorkerStep, *IndexStep)
        }
        self._open: str | None = None
        """The last step of the open transaction; None if none is open."""
        self._last_s = clock.monotonic_s()

    def begin_round(self) -> None:
        """Begin a round. A transaction that is still open counts as not committed; the time between two
        rounds is not added to any step."""
        self._count_abort()
        self._last_s = self._clock.monotonic_s()

    def _count_abort(self) -> None:
        if self._open is not None:
            self._aborts(self._open).inc()
        self._open = None

    def __call__(self, step: str) -> None:
        now_s = self._clock.monotonic_s()
        self._observe[step](now_s - self._last_s)
        self._last_s = now_s
        if step in _BEGUN:
            # A worker may begin several transactions in a round, also after one that failed.
            self._count_abort()
        if step in OPEN_STEPS:
            self._open = step
        elif step in _COMMITTED:
            self._open = None
        self._step(step)
