"""The loop that runs the role "index". An index judges, or stands by to replace the one that judges. After
several failures in a row it leaves its consumer group for a while."""

from __future__ import annotations

import logging
from itertools import islice

from twinsieve.pipeline.basics.pauses import Pauses
from twinsieve.pipeline.broker.ports import Clock
from twinsieve.pipeline.broker.records import AbortableError, BrokerError, FatalError, MovedOnError
from twinsieve.pipeline.index.config import MAX_BLOCKS, IndexPhase
from twinsieve.pipeline.index.ends import SHOWN_ALONE, alone_text, late_text
from twinsieve.pipeline.index.index import Index
from twinsieve.pipeline.index.transaction import Pace
from twinsieve.pipeline.operate.log_sizes import LogSizes
from twinsieve.pipeline.saved import Moved
from twinsieve.pipeline.saved.store_calls import HungWatch
from twinsieve.pipeline.service.build import Builder
from twinsieve.pipeline.service.loop import POLL_S, Loop
from twinsieve.pipeline.service.metrics import Metrics
from twinsieve.stages.window.segments import SegmentId

_log = logging.getLogger("twinsieve")
_LOAD_S = 60.0
"""The most time, per GiB of a snapshot, that it takes to fill the sieve after the last byte was read."""
_BEHIND_S = 10.0
_LOG_BEHIND_S = 60.0
"""While the index judges blocks that are older than _BEHIND_S, it logs this every _LOG_BEHIND_S."""
_LOG_ALONE_S = 60.0
"""Time between two warnings that shards do not answer, whatever changes."""
_ASIDE_AFTER = 3
"""Number of failures in a row after which an index leaves its group for a pause."""
_ASIDE = Pauses(first_s=30.0, longest_s=600.0)
"""Lengths of these pauses. After the index has judged a block, the next pause is `first_s` long again."""
_LOG_EVERY_S = 10.0
"""Seconds between two log lines about the progress of reading or writing a snapshot."""


class IndexLoop(Loop):
    """Runs an index, whether it judges or stands by."""

    def __init__(self, builder: Builder, clock: Clock, metrics: Metrics) -> None:
        super().__init__("index", clock, metrics, builder.alive_s)
        self._builder = builder
        self._index: Index | None = None
        self._stood_by = False
        self._sizes: LogSizes | None = None
        self._seen_block = 0
        self._seen_s = 0.0
        self._moved_from: tuple[int, float] | None = None
        """Bytes and time of the last log line about reading or writing a snapshot, or of its first part; None
        while no snapshot is read or written."""
        self._pace = Pace(MAX_BLOCKS)
        self._refused = 0
        """Number of failures in a row; does not count a failure because another index took over."""
        self._aside_s = 0.0
        """Length of the last pause outside the group; 0.0 after the index has judged a block."""
        self._aside_until_s: float | None = None
        self._why_aside = ""
        self._log_behind_s = 0.0
        self._is_lag_logged = False
        self._logged_alone: frozenset[SegmentId] = frozenset()
        """The segments without answers that the last line in the log was about."""
        self._log_alone_s = self._log_late_s = 0.0
        self._is_late_logged = False
        self._is_restoring = False
        self._hung = HungWatch(builder.calls)
        metrics.set_store(builder.calls)
        self._set_gauges()

    @property
    def _works_alone(self) -> bool:
        index = self._index
        return self._is_offline or self._is_aside or (index is not None and index.judges)

    @property
    def _is_aside(self) -> bool:
        return self._aside_until_s is not None

    @property
    def is_member(self) -> bool:
        return self._index is not None

    @property
    def is_restored(self) -> bool:
        """Whether the index of this process has been restored and has joined its group, or has left it for a
        while."""
        index = self._index
        if self._is_aside or index is None:
            return self._is_aside
        return index.stays_out or index.phase.now is not IndexPhase.RESTORING

    @property
    def waits_for_store(self) -> bool:
        """Whether it waits to restore from a snapshot; until then it is no member of its group."""
        return self._is_restoring and self._builder.calls.oldest() is not None

    @property
    def hangs_in_folder(self) -> bool:
        """Whether it waits for a mounted folder that hangs. The process does not end because of that."""
        return self.waits_for_store and self._builder.has_folder and self._builder.calls.hung() is not None

    def log_silence(self) -> None:
        """Log once that brokers stopped answering, or that the folder of the snapshots hangs, and when it no
        longer does."""
        if self.waits_for_store:
            self._answered_s = self._clock.monotonic_s()
            if self._builder.has_folder:
                # A new process would wait for it too; of a store, it would make new connections.
                self.turned_s = self._answered_s
        super().log_silence()
        hung, answers = self._hung.look()
        if hung is not None:
            _log.warning(
                "index: %s (thread %s); the disk or store is slow or hangs: %s",
                *(hung, hung.thread),
                "it restores when the call returns, and joins no group before"
                if self._is_restoring
                else "judging continues, and snapshots wait for it",
            )
        if answers is not None:
            _log.info("index: %s: answers again, after %.0f s", answers.store, answers.seconds)

    @property
    def remark(self) -> str:
        """That the folder of its snapshots hangs, how far behind the index is, or why it has left its
        group."""
        hung = self._builder.calls.hung()
        return "; ".join(filter(None, [str(hung or ""), self._own_remark]))

    @property
    def _own_remark(self) -> str:
        # Other threads read this, so the role may go away between two lines.
        index, until_s = self._index, self._aside_until_s
        if until_s is not None:
            left_s = max(0.0, until_s - self._clock.monotonic_s())
            return f"left its group, tries again in {left_s:.0f} s: {self._why_aside}"
        is_live = index is not None and index.live
        behind_s = index.behind_s if index is not None and is_live else 0.0
        behind = f"is {behind_s:.0f} s behind" if behind_s >= _BEHIND_S else ""
        other = index.other_settings.remark if index is not None and is_live else ""
        alone = self._unanswered(index) if index is not None and is_live else ""
        late = self._late(index) if index is not None and is_live else ""
        disk = index.disk.remark if index is not None else ""
        return "; ".join(filter(None, (disk, behind, other, alone, late)))

    def _unanswered(self, index: Index) -> str:
        """In which segments the index looks up itself, since when, and what is wrong with the topic of the
        answers; empty if shards answer for all."""
        alone, now_s = index.unanswered, self._clock.monotonic_s()
        topic = index.answers_topic
        problem = topic.problem if topic is not None else ""
        if not alone:
            return problem
        shown = [
            f"{each.first} to {each.end} for {now_s - since_s:.0f} s"
            for each, since_s in islice(alone.items(), SHOWN_ALONE)
        ]
        own = f"{alone_text(len(alone), shown)}: it looks up in them itself"
        return f"{own} ({problem})" if problem else own

    def _late(self, index: Index) -> str:
        """Which shards answer too late, and for how long; empty if none does."""
        now_s = self._clock.monotonic_s()
        shown = [(name, one.segments, f"for {now_s - one.since_s:.0f} s") for name, one in index.late.items()]
        return f"{late_text(shown)}: it looks up in them itself" if shown else ""

    def _log_late(self, index: Index) -> None:
        """Log once a minute which shards answer too late, and once when none does any more."""
        now_s = self._clock.monotonic_s()
        if index.late and now_s >= self._log_late_s:
            self._log_late_s, self._is_late_logged = now_s + _LOG_ALONE_S, True
            _log.warning("index: %s; nothing is lost, but it may become slow", self._late(index))
        elif not index.late and self._is_late_logged:
            self._is_late_logged = False
            _log.info("index: no shard is late any more")

    def _log_unanswered(self, index: Index) -> None:
        """Log for which segments shards do not answer when these change, but not too often, and when shards
        answer for all again. A topic of answers that cannot be read is logged as long as that lasts."""
        alone, now_s = index.unanswered, self._clock.monotonic_s()
        is_closed = index.answers_topic is not None and bool(index.answers_topic.problem)
        if alone is None:
            return
        if self._logged_alone and not alone:
            self._logged_alone = frozenset()
            _log.info("index: shards answer for all segments")
        elif (is_closed or self._logged_alone != frozenset(alone)) and now_s >= self._log_alone_s:
            self._logged_alone, self._log_alone_s = frozenset(alone), now_s + _LOG_ALONE_S
            _log.warning("index: %s; nothing is lost, but it may become slow", self._unanswered(index))

    @property
    def stands_by(self) -> bool:
        """Whether another process judges, as far as the index of this process knows."""
        index = self._index
        return index is not None and index.phase.now is IndexPhase.STANDBY

    @property
    def why_not_ready(self) -> str:
        index = self._index
        return super().why_not_ready or (index.phase.now.replace("_", " ") if index is not None else "")

    def _failed(self, error: BrokerError) -> None:
        super()._failed(error)
        index = self._index
        moved_on = isinstance(error.__cause__, MovedOnError) or isinstance(error, MovedOnError)
        if index is None or not index.holds_log or moved_on or not isinstance(error, FatalError):
            return
        self._refused += 1
        if self._refused < _ASIDE_AFTER or not index.step_aside():
            return
        self._aside_s = _ASIDE.after(self._aside_s)
        _log.warning(
            "index: failed %d times in a row in this process; it leaves its group for %.0f s, so that "
            "another process can take over (%s)",
            *(self._refused, self._aside_s, error),
        )
        self._metrics.asides.inc()
        self._why_aside = str(error)
        self._answered_s = self._clock.monotonic_s()
        self._aside_until_s = self._clock.monotonic_s() + self._aside_s

    def _step(self) -> None:
        if self._aside_until_s is not None:
            if self._clock.monotonic_s() < self._aside_until_s:
                self._stop.wait(POLL_S)
                return
            self._answered_s = self._clock.monotonic_s()
            self._aside_until_s = None
        index = self._index or self._restored()
        rulings = index.step(POLL_S)
        if self._is_offline:
            # It has waited for a snapshot, and sent nothing to a broker meanwhile.
            self._answered_s = self._clock.monotonic_s()
            self._is_offline, self._moved_from = False, None
        for ruling in rulings:
            self._metrics.count_ruling(ruling)
            self._worked()
            self._refused, self._aside_s = 0, 0.0
        self._is_ready = index.ready
        changes = index.phase.changes()
        for phase in changes:
            _log.info("index: phase %s, next block %d", phase, index.state.next_offset)
        if changes or index.log_lines:
            self._set_gauges()
        self._take_notes(index)

    def _restored(self) -> Index:
        """A new index, restored from the newest snapshot; reading it may take minutes."""
        self._is_restoring = True
        try:
            index = self._index = self._builder.index(self._timer, self._moved, self._pace)
        finally:
            self._is_restoring = False
            if self._is_offline:
                self._answered_s = self._clock.monotonic_s()
            self._is_offline = False
            self._moved_from = None
            self._metrics.set_restore(None)
        self._seen_block, self._seen_s = index.state.next_offset, self._clock.monotonic_s()
        self._stood_by = False
        return index

    def _moved(self, moved: Moved) -> None:
        """Record how many bytes of a snapshot were read or written. The role's step ends only after the last
        byte, so until then this is the only sign of progress."""
        now_s = self.turned_s = self._clock.monotonic_s()
        self._is_offline = True
        if moved.doing == "reading":
            self._metrics.set_restore(moved)
            if moved.done == moved.size:
                self.turned_s += _LOAD_S * moved.size / 2**30
        if self._moved_from is None:
            self._moved_from = moved.done, now_s
        before, before_s = self._moved_from
        if now_s - before_s >= _LOG_EVERY_S:
            rate = (moved.done - before) / (now_s - before_s)
            _log.info(
                "index: %s a snapshot, byte %d of %s, %.0f bytes a second, %s left",
                *(moved.doing, moved.done, moved.size or "unknown", rate),
                _left_s(moved.size - moved.done, rate) if moved.size else "unknown",
            )
            self._moved_from = moved.done, now_s

    def _take_notes(self, index: Index) -> None:
        """Log and count the events that the index has collected since the last call."""
        for line in index.log_lines:
            _log.info("index: %s", line)
        index.log_lines.clear()
        self._log_notices(index.notices)
        self._metrics.count_index(index)

    def _set_gauges(self) -> None:
        self._metrics.set_judging(self._index)
        self._set_clock(self._index)

    def _query_lag(self) -> None:
        if self._index is None:
            return
        self._metrics.set_index_state(self._index)
        if self._index.live:
            self._log_lag(self._index)
            self._log_unanswered(self._index)
            self._log_late(self._index)
            # Only the process that judges exports the sizes of the topics.
            self._sizes = self._sizes or self._builder.log_sizes()
            sizes = self._sizes.newest()
            if sizes is not None:
                self._metrics.set_log_bytes(sizes)
        stood_by, self._stood_by = self._stood_by, self._index.ready and not self._index.live
        # An index that stands by at two queries in a row counts as working. One query is not enough: during a
        # rebalance every member is without its partitions for a moment.
        if stood_by and self._stood_by:
            self._worked()
        if self._index.ready or self._index.disk.is_full:
            return
        block, end, now_s = (
            self._index.state.next_offset,
            self._index.follower.log_end(),
            self._clock.monotonic_s(),
        )
        rate = (block - self._seen_block) / max(now_s - self._seen_s, 0.001)
        self._seen_block, self._seen_s = block, now_s
        _log.info(
            "index: restoring, block %d of %d, %.0f blocks a second, %s left",
            *(block, end, rate, _left_s(end - block, rate)),
        )

    def _log_lag(self, index: Index) -> None:
        """Log at intervals how far behind the index is; when it has caught up, log this once."""
        behind_s, now_s = index.behind_s, self._clock.monotonic_s()
        if behind_s < _BEHIND_S:
            if self._is_lag_logged:
                _log.info("index: no longer behind: no block of messages waits to be judged")
            self._is_lag_logged = False
        elif not self._is_lag_logged or now_s >= self._log_behind_s:
            self._is_lag_logged, self._log_behind_s = True, now_s + _LOG_BEHIND_S
            waiting = max(0, index.follower.log_end() - index.state.next_offset)
            _log.warning(
                "index: %.0f s behind: the messages that it judges now have waited that long; %d blocks wait",
                behind_s,
                waiting,
            )

    def _finish(self) -> None:
        index = self._index
        if index is not None:
            try:
                index.close()
            except AbortableError as error:
                _log.warning("index: stopped without leaving cleanly (%s); nothing is lost", error)
            self._take_notes(index)
            self._index = None

    def _give_up(self, *, leaves: bool = False) -> None:
        index, self._index = self._index, None
        if index is not None:
            self._take_notes(index)
            index.abandon(leaves=leaves)


def _left_s(left: int, rate: float) -> str:
    """The time that `left` bytes or blocks take at this rate per second, as text for a log line."""
    return f"{left / rate:.0f}s" if rate > 0 else "unknown"
