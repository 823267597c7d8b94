"""The loop that runs the role "worker", and makes new clients if input no longer arrives."""

from __future__ import annotations

import logging
from contextlib import suppress

from twinsieve.pipeline.broker.ports import Clock
from twinsieve.pipeline.broker.records import BrokerError, FatalError, Partition
from twinsieve.pipeline.service.build import Builder
from twinsieve.pipeline.service.group_watch import GroupWatch
from twinsieve.pipeline.service.index_loop import IndexLoop
from twinsieve.pipeline.service.judging_settings import JudgingSettings
from twinsieve.pipeline.service.loop import POLL_S, Loop
from twinsieve.pipeline.service.metrics import Metrics
from twinsieve.pipeline.service.stall_detector import StallDetector
from twinsieve.pipeline.worker.backoff import Refused
from twinsieve.pipeline.worker.emit import Emission
from twinsieve.pipeline.worker.waiting import Wait
from twinsieve.pipeline.worker.worker import Worker

_log = logging.getLogger("twinsieve")
_FINISH_S = 20.0
_ASK_S = 2.0
"""While it waits to join, a worker asks once in this time whether its group has other members."""
_ASIDE_S = 30.0
"""How long a worker that the index does not understand stays outside its group."""
_WAITS = "joins its group when the index of this process is restored"
_WAITS_S = 2.0
"""A partition that emits nothing for this long is reported. A transaction that fails once is not."""


class WorkerLoop(Loop):
    """Runs a worker.

    index: the loop of the index in the same process, or None. If that loop has failed or hangs, a stop
        does not wait for more answers
    """

    def __init__(
        self, builder: Builder, clock: Clock, metrics: Metrics, *, index: IndexLoop | None = None
    ) -> None:
        super().__init__("worker", clock, metrics, builder.alive_s)
        self._builder = builder
        self._index = index
        self._worker: Worker | None = None
        self._is_member = False
        self._waits: list[Wait] = []
        self._stalls = StallDetector()
        self._settings = JudgingSettings(builder, clock)
        self._refused: dict[Partition, Refused] = {}
        self._group = GroupWatch(clock)
        self._may_join = builder.job != "worker"
        self._aside_until_s = 0.0
        self._why_aside = ""
        self._ask_s = clock.monotonic_s()

    @property
    def is_member(self) -> bool:
        return self._worker is not None

    @property
    def remark(self) -> str:
        """Why it is not in its group, or which partitions emit nothing and why; and in which settings this
        process differs from the one that judges."""
        stands = self._lasting_waits if self._may_join else self._why_aside or _WAITS
        return "; ".join(filter(None, (stands, self._settings.remark)))

    @property
    def _lasting_waits(self) -> str:
        worker = self._worker
        return "; ".join(worker.waits.lasting(_WAITS_S)) if worker is not None else ""

    def _ask_to_join(self) -> bool:
        """Whether to join the group. A worker that cannot work joins only if it takes no partition from
        another one. It cannot work while the index of its process is not restored, because the process may
        still end (but not while the index waits for a folder that hangs); nor for `_ASIDE_S` after the index
        did not understand it.

        raises: BrokerError
        """
        index, now_s = self._index, self._clock.monotonic_s()
        if now_s >= self._aside_until_s and (index is None or index.is_restored or index.hangs_in_folder):
            self._may_join, self._why_aside = True, ""
        elif now_s >= self._ask_s:
            self._ask_s = now_s + _ASK_S
            self._may_join = not self._builder.other_workers()
        return self._may_join

    @property
    def why_not_ready(self) -> str:
        begins = "opens its partitions" if self._is_member else "joins its group"
        return super().why_not_ready or begins

    @property
    def _tries_parts(self) -> bool:
        return bool(self._lasting_waits)

    def _step(self) -> None:
        if not self._may_join and not self._ask_to_join():
            self._stop.wait(POLL_S)
            return
        if self._worker is None:
            self._worker = self._builder.worker(self._timer)
            self._worker.refused.update(self._refused)
            self._stalls = StallDetector()
        worker = self._worker
        self._count(worker.step(POLL_S))
        self._is_ready, self._is_member = worker.ready, worker.is_member
        waits = list(worker.waits.of.values())
        if waits != self._waits:
            # At once: the next step may take long.
            self._waits = waits
            self._metrics.set_waits(waits)
        self._take_notes(worker)
        if worker.not_understood and self._builder.job == "worker":
            self._leave_to_others(worker)

    def _leave_to_others(self, worker: Worker) -> None:
        """Leave the group for a while, if other workers are in it. If the index does not understand them
        either, they leave too, and the last one stays. raises: BrokerError"""
        self._why_aside, worker.not_understood = worker.not_understood, ""
        if not self._builder.other_workers():
            return
        _log.warning(
            "worker: leaves its group for %.0f s, so that other members get its partitions (%s)",
            *(_ASIDE_S, self._why_aside),
        )
        self._give_up(leaves=True)
        self._may_join = self._is_ready = False
        self._ask_s = self._clock.monotonic_s() + _ASK_S
        self._aside_until_s = self._clock.monotonic_s() + _ASIDE_S

    def _take_notes(self, worker: Worker) -> None:
        """Log and count the events that the worker has collected since the last call."""
        self._log_notices(worker.notices)
        self._group.rebalanced(worker.rebalances)
        self._metrics.count_worker(worker)

    def _count(self, emission: Emission) -> None:
        if emission.kinds:
            self._worked()
        self._metrics.count_emission(emission)

    def _set_gauges(self) -> None:
        self._metrics.set_pending(self._worker)
        self._set_clock(self._worker)

    def _query_lag(self) -> None:
        self._settings.look(judges=self._index is not None and not self._index.stands_by)
        if self._worker is not None:
            self._look_at_group(self._worker)
            ends = self._worker.ends().items()
            unread = self._worker.unread({part: self._reads_to(part, end) for part, end in ends})
            still = self._stalls.stalled(unread, waiting=self._worker.unanswered > 0)
            if still:
                raise FatalError(
                    f"{still[0]}: has new messages, but the consumer receives none; reconnecting"
                )

    def _look_at_group(self, worker: Worker) -> None:
        if self._group.is_due:
            # A missing right is no reason to stop here; the members that leave need it, too.
            with suppress(BrokerError):
                self._group.look(worker.members(), worker.assigned)

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
                    return
                if self._index is not None and self._index.is_lost and not emission.kinds:
                    break  # the index answers no more blocks, and all answered messages are emitted
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

    def _give_up(self, *, leaves: bool = False) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            self._take_notes(worker)
            self._refused = dict(worker.refused)
            worker.close(leaves=leaves)
