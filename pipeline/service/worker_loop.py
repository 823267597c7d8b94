"""The loop that runs the role "worker", and makes new clients if input no longer arrives."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from twinsieve.pipeline.broker.ports import Clock
from twinsieve.pipeline.broker.records import BrokerError, FatalError, Partition
from twinsieve.pipeline.service.build import Builder
from twinsieve.pipeline.service.index_loop import IndexLoop
from twinsieve.pipeline.service.judging_settings import JudgingSettings
from twinsieve.pipeline.service.loop import POLL_S, Loop
from twinsieve.pipeline.service.metrics import Metrics
from twinsieve.pipeline.worker.backoff import Refused
from twinsieve.pipeline.worker.emit import Emission
from twinsieve.pipeline.worker.worker import Worker

_log = logging.getLogger("twinsieve")
_FINISH_S = 20.0
_CHECKS = 4
"""A partition has stalled if this many checks in a row, seconds apart, find the same read position."""


class WorkerLoop(Loop):
    """Runs a worker.

    index: the loop of the index in the same process, or None. If that loop has failed, a stop does not wait
        for more answers
    """

    def __init__(
        self, builder: Builder, clock: Clock, metrics: Metrics, *, index: IndexLoop | None = None
    ) -> None:
        super().__init__("worker", clock, metrics, builder.alive_s)
        self._builder = builder
        self._index = index
        self._worker: Worker | None = None
        self._stalls = StallDetector()
        self._settings = JudgingSettings(builder, clock)
        self._refused: dict[Partition, Refused] = {}

    def _step(self) -> None:
        if self._worker is None:
            self._worker = self._builder.worker(self._timer)
            self._worker.refused.update(self._refused)
            self._stalls = StallDetector()
        worker = self._worker
        self._count(worker.step(POLL_S))
        self._is_ready = worker.ready
        self._take_notes(worker)

    def _take_notes(self, worker: Worker) -> None:
        """Log and count the events that the worker has collected since the last call."""
        self._log_notices(worker.notices)
        self._metrics.count_worker(worker)

    def _count(self, emission: Emission) -> None:
        if emission.kinds:
            self._worked()
        self._metrics.count_emission(emission)

    def _set_gauges(self) -> None:
        self._metrics.set_pending(self._worker)
        self._set_clock(self._worker)

    @property
    def remark(self) -> str:
        """In which settings this process differs from the one that judges."""
        return self._settings.remark

    def _query_lag(self) -> None:
        self._settings.look(judges=self._index is not None and not self._index.stands_by)
        if self._worker is not None:
            progress = self._worker.progress()
            self._metrics.set_lags(progress)
            ends = {partition: self._reads_to(partition, end) for partition, (_, end) in progress.items()}
            unread = self._worker.unread(ends)
            still = self._stalls.stalled(unread, waiting=self._worker.unanswered > 0)
            if still:
                raise FatalError(
                    f"{still[0]}: has new messages, but the consumer receives none; reconnecting"
                )

    def _reads_to(self, partition: Partition, end: int) -> int:  # noqa: ARG002 - for loops that end earlier
        """The offset up to which a partition that ends at `end` is read."""
        return end

    def _finish(self) -> None:
        worker = self._worker
        if worker is None:
            return
        deadline_s = self._clock.monotonic_s() + _FINISH_S
        try:
            while self._clock.monotonic_s() < deadline_s:
                emission = worker.finish(POLL_S)
                self._count(emission)
                if worker.idle:
                    worker.leave()
                    return
                if self._index is not None and self._index.error is not None and not emission.kinds:
                    break  # the failed index answers no more blocks, and all answered messages are emitted
        except BrokerError as error:
            _log.warning(
                "worker: stopped before it could report its last emitted offsets to the index (%s); "
                "nothing is lost",
                error,
            )
            return
        _log.warning(
            "worker: stopped with %d blocks of messages not answered or not emitted; the next worker of "
            "their partitions sends them to the index again; nothing is lost or emitted twice",
            worker.unanswered,
        )

    def _give_up(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            self._take_notes(worker)
            self._refused = dict(worker.refused)
            worker.close()


class StallDetector:
    """Finds partitions that have input, but whose read position does not move although no answer is awaited.

    >>> detector, at = StallDetector(), Partition("posts", 0)
    >>> [detector.stalled({at: (5, 9)}, waiting=False) for _ in range(4)][-1]
    [Partition(topic='posts', number=0)]
    """

    def __init__(self) -> None:
        self._seen: dict[Partition, tuple[int, int]] = {}

    def stalled(self, progress: Mapping[Partition, tuple[int, int]], *, waiting: bool) -> list[Partition]:
        """Partitions whose position did not move in the last _CHECKS checks, this one included.

        progress: read position and end offset of each partition
        waiting: whether the worker waits for answers of the index
        """
        before = self._seen
        self._seen = {
            partition: (
                position,
                before[partition][1] + 1 if partition in before and before[partition][0] == position else 1,
            )
            for partition, (position, end) in progress.items()
            if position < end and not waiting
        }
        return [partition for partition, (_, count) in self._seen.items() if count >= _CHECKS]
