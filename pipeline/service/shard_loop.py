"""The loop that runs the role "shard". At a stop it goes on until others answer for its segments."""

from __future__ import annotations

import logging
from collections.abc import Callable

from twinsieve.pipeline.broker.ports import Clock, Hook
from twinsieve.pipeline.broker.records import BrokerError, FatalError
from twinsieve.pipeline.saved.store_calls import HungWatch, StoreCalls
from twinsieve.pipeline.service.loop import POLL_S, Loop
from twinsieve.pipeline.service.metrics import Metrics
from twinsieve.pipeline.service.probe_limits import ALIVE_S
from twinsieve.pipeline.service.stall_detector import StallDetector
from twinsieve.pipeline.shards.shard import Shard

_log = logging.getLogger("twinsieve")


class ShardLoop(Loop):
    """Runs a shard.

    made: makes a shard with its own clients; takes its hook. What it holds of the near window outlives it
    calls: those to the store that have not returned
    """

    def __init__(
        self,
        made: Callable[[Hook], Shard],
        clock: Clock,
        metrics: Metrics,
        calls: StoreCalls,
        alive_s: float = ALIVE_S,
    ) -> None:
        super().__init__("shard", clock, metrics, alive_s)
        self._made = made
        self._calls = calls
        self._shard: Shard | None = None
        self._hung = HungWatch(calls)
        self._stalls = StallDetector()
        metrics.set_store(calls)
        self._set_gauges()

    @property
    def is_member(self) -> bool:
        return self._shard is not None

    @property
    def remark(self) -> str:
        """That the store hangs, or what it waits for."""
        shard, hung = self._shard, self._calls.hung()
        return "; ".join(filter(None, (str(hung or ""), shard.remark if shard is not None else "")))

    def log_silence(self) -> None:
        """Log once that brokers stopped answering, or that the store hangs, and when it no longer does."""
        super().log_silence()
        hung, answers = self._hung.look()
        if hung is not None:
            _log.warning(
                "shard: %s (thread %s); it goes on to answer for the segments that it has", hung, hung.thread
            )
        if answers is not None:
            _log.info("shard: %s: answers again, after %.0f s", answers.store, answers.seconds)

    def _step(self) -> None:
        if self._shard is None:
            self._shard = self._made(self._on_step)
            self._stalls = StallDetector()
        shard = self._shard
        try:
            shard.step(POLL_S)
        finally:
            self._take_notes(shard)
        self._is_ready = shard.ready
        if self._is_ready:
            self._worked()

    def _take_notes(self, shard: Shard) -> None:
        """Log and count what the shard has collected since the last call."""
        self._log_notices(shard.notices)
        self._log_notices(shard.holdings.notices)
        self._metrics.count_shard(shard)

    def _set_gauges(self) -> None:
        self._metrics.set_shard(self._shard)
        self._set_clock(self._shard)

    def _query_lag(self) -> None:
        shard = self._shard
        if shard is None:
            return
        self._metrics.set_shard_lag(shard.lag())
        log = shard.log
        if self._stalls.stalled({log: shard.progress()}, waiting=shard.waits):
            raise FatalError(f"{log}: has new blocks, but this shard receives none; reconnecting")

    def _finish(self) -> None:
        shard = self._shard
        if shard is None:
            return
        try:
            while not shard.finish(POLL_S):
                self.turned_s = self._clock.monotonic_s()
        except BrokerError as error:
            _log.warning(
                "shard: stopped before others answered for its segments (%s); nothing is lost", error
            )
        self._take_notes(shard)

    def _give_up(self, *, leaves: bool = False) -> None:
        shard, self._shard = self._shard, None
        if shard is not None:
            self._take_notes(shard)
            shard.close(leaves=leaves)
            self._metrics.set_shard_lag(None)
