"""The loop of a worker that ends by itself, when it has read topics up to the ends that they had at its
start."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

from twinsieve.pipeline.broker.admin import Admin
from twinsieve.pipeline.broker.committed_offsets import read_recorded
from twinsieve.pipeline.broker.ports import Clock
from twinsieve.pipeline.broker.records import BrokerError, Partition
from twinsieve.pipeline.service.build import Builder
from twinsieve.pipeline.service.index_loop import IndexLoop
from twinsieve.pipeline.service.metrics import Metrics
from twinsieve.pipeline.service.seed_order import POLL_MESSAGES
from twinsieve.pipeline.service.worker_loop import WorkerLoop
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.worker.waiting import WaitReason

CHECK_S = 1.0


def reading(settings: Settings, topic: str) -> Settings:
    """The settings of a worker that reads this topic instead of the input, from what is left of it on."""
    source = settings.input.model_copy(
        update={"topics": (topic,), "start": "earliest", "trimmed": "continue"}
    )
    kafka = settings.kafka.model_copy(
        update={"poll_messages": min(settings.kafka.poll_messages, POLL_MESSAGES)}
    )
    return settings.model_copy(update={"input": source, "kafka": kafka})


class EndingLoop(WorkerLoop):
    """Runs a worker, and calls `_check` once in CHECK_S, which finds out whether everything is read."""

    def __init__(self, builder: Builder, clock: Clock, metrics: Metrics, *, index: IndexLoop) -> None:
        super().__init__(builder, clock, metrics, index=index)
        self._checked_s = clock.monotonic_s()

    def _step(self) -> None:
        super()._step()
        for wait in self._worker.waits.of.values() if self._worker is not None else ():
            if wait.reason is WaitReason.UNREADABLE:
                raise BrokerError(wait.why, retryable=False)
        if self._clock.monotonic_s() - self._checked_s >= CHECK_S:
            self._checked_s = self._clock.monotonic_s()
            self._check()

    @abstractmethod
    def _check(self) -> None:
        """End the loop if everything is read. raises: BrokerError"""


def offsets_left(admin: Admin, group: str, ends: Mapping[Partition, int]) -> int:
    """Number of offsets below these ends that the group has not committed; a partition without a committed
    offset counts as at least one. raises: BrokerError"""
    committed = read_recorded(admin, group)
    return sum(
        max(0, end - committed[partition].offset) if partition in committed else max(1, end)
        for partition, end in ends.items()
    )
