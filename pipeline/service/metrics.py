"""Every metric of a running service, each name once. What is not known at the moment has no series."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import partial

import numpy as np
from numpy.typing import NDArray
from prometheus_client import CollectorRegistry, Counter, Enum, Gauge, Histogram, ProcessCollector
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason
from twinsieve.pipeline.basics.program import program_version
from twinsieve.pipeline.broker.ports import Clock, Hook, no_hook
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.index.config import IndexPhase, IndexStep
from twinsieve.pipeline.index.index import Index
from twinsieve.pipeline.index.ledger import GivenUp
from twinsieve.pipeline.index.snapshot_store import Moved
from twinsieve.pipeline.wire.ruling import Ruling, Source
from twinsieve.pipeline.worker.config import WorkerStep
from twinsieve.pipeline.worker.emit import Emission
from twinsieve.pipeline.worker.worker import Worker
from twinsieve.stages.contract import Flag, Kind
from twinsieve.stages.differ.rules import Rule, counts_by_name

_STEP_BOUNDS_S = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0)
_DELAY_BOUNDS_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0, 86400.0)
_WAITING = frozenset({WorkerStep.POLLED, WorkerStep.ANSWERED, IndexStep.POLLED})
"""Steps that end when something has arrived, or has not for some time."""
_BEGUN = frozenset({WorkerStep.BEGUN, IndexStep.BEGUN})
_OPEN = (
    *(WorkerStep.BEGUN, WorkerStep.SENT, WorkerStep.OFFSETS_SENT),
    *(IndexStep.BEGUN, IndexStep.DECIDED, IndexStep.ANSWERED, IndexStep.OFFSETS_SENT),
)
_COMMITTED = frozenset({WorkerStep.COMMITTED, IndexStep.COMMITTED})

_NO_INDEX = "none"
_NO_TEXT = "no_text"


Known = Callable[[], bool]
Value = float | Callable[[], float]


class Maybe(Collector):
    """A gauge that has series only for what was told last, and none while `known` says so.

    A value that is a function is asked at each look.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        name: str,
        text: str,
        labels: Sequence[str] = (),
        *,
        known: Known = lambda: True,
    ) -> None:
        self._describes = name, text, labels
        self._known = known
        self._values: Mapping[tuple[str, ...], Value] = {}
        registry.register(self)

    def tell(self, values: Mapping[tuple[str, ...], Value]) -> None:
        """These are the series from now on, by the values of their labels."""
        self._values = dict(values)

    def describe(self) -> list[Metric]:
        """The name, for the registry."""
        return [self._family()]

    def collect(self) -> list[Metric]:
        """The series of now."""
        family = self._family()
        for labels, value in self._values.items() if self._known() else ():
            family.add_metric(labels, value() if callable(value) else value)
        return [family]

    def _family(self) -> GaugeMetricFamily:
        name, text, labels = self._describes
        return GaugeMetricFamily(name, text, labels=labels)


class Delays(Collector):
    """A histogram that takes many values at once."""

    def __init__(self, registry: CollectorRegistry, name: str, text: str, bounds: Sequence[float]) -> None:
        self._describes = name, text
        self._bounds = np.array(bounds)
        self._held = np.zeros(len(bounds) + 1, np.int64), 0.0
        registry.register(self)

    def observe(self, seconds: NDArray[np.float64]) -> None:
        """Count these; what is below 0, by a clock that runs ahead, counts as 0."""
        taken = np.maximum(seconds, 0.0)
        counts, total = self._held
        places = np.searchsorted(self._bounds, taken)
        self._held = counts + np.bincount(places, minlength=len(counts)), total + float(taken.sum())

    def describe(self) -> list[Metric]:
        """The name, for the registry."""
        return [HistogramMetricFamily(*self._describes)]

    def collect(self) -> list[Metric]:
        """What was counted until now."""
        counts, total = self._held
        names = [*map(floatToGoString, self._bounds.tolist()), "+Inf"]
        buckets = list(zip(names, np.cumsum(counts).tolist(), strict=True))
        return [HistogramMetricFamily(*self._describes, buckets=buckets, sum_value=total)]


class StepTimer:
    """A hook that times the steps of one role, and counts the transactions that it does not commit.

    step: called after each step too
    """

    def __init__(self, metrics: Metrics, clock: Clock, role: str, step: Hook) -> None:
        self._clock = clock
        self._step = step
        self._aborts = partial(metrics.aborts.labels, role)
        self._found = {
            name: (metrics.waits if name in _WAITING else metrics.steps).labels(name).observe
            for name in (*WorkerStep, *IndexStep)
        }
        self._open: str | None = None
        """The last step of the transaction that is open."""
        self._last_s = clock.monotonic_s()

    def begin_round(self) -> None:
        """A round begins now: what the one before left open was not committed, and the pause is no step's."""
        self._end()
        self._last_s = self._clock.monotonic_s()

    def _end(self) -> None:
        if self._open is not None:
            self._aborts(self._open).inc()
        self._open = None

    def __call__(self, step: str) -> None:
        now_s = self._clock.monotonic_s()
        self._found[step](now_s - self._last_s)
        self._last_s = now_s
        if step in _BEGUN:
            # A worker makes several transactions in a round, and may go on after one that failed.
            self._end()
        if step in _OPEN:
            self._open = step
        elif step in _COMMITTED:
            self._open = None
        self._step(step)


class ProcessPhase(StrEnum):
    """How far the start of a process is."""

    WAITING = "waiting_for_broker"
    """no broker has said yet that the topics are as they must be"""
    COMPILING = "compiling"
    """kernels are compiled, or loaded"""
    RUNNING = "running"
    """its roles have begun"""


class Metrics:
    """One process's metrics in a registry of their own; labels come from settings and fixed words alone.

    What only a broker knows has no series while none answers the role that asks.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._hears: dict[str, Known] = {}
        self._answered_s: dict[str, float] = {}
        self._ahead_s: dict[str, float | None] = {}
        self._judges = False
        self.registry = at = CollectorRegistry()
        counter = partial(Counter, registry=at)
        gauge = partial(Gauge, registry=at)
        enum = partial(Enum, registry=at)
        maybe = partial(Maybe, at)
        in_worker, in_index = partial(self._heard, "worker"), partial(self._heard, "index")
        self.info = maybe(
            "twinsieve_info",
            "1 beside what this process is; joins other metrics to their app.",
            ["app", "role", "version", "scheme"],
        )
        self.process = enum(
            "twinsieve_process_phase",
            "How far the start of this process is. Alert on anything but running for minutes.",
            states=list(ProcessPhase),
        )
        self.messages = counter(
            "twinsieve_messages",
            "Messages by verdict, counted when their transaction is committed. replayed: came out before; "
            "no_text: null texts and tombstones, compared with nothing.",
            ["verdict"],
        )
        self.dead_letters = counter(
            "twinsieve_dead_letters",
            "Messages that could not be judged or sent on, by reason. Alert on growth.",
            ["reason"],
        )
        self.foreign = counter(
            "twinsieve_foreign_headers",
            "Headers of the input that look like twinsieve's own; no output gets them.",
        )
        self.trimmed = counter(
            "twinsieve_trimmed_messages",
            "Input offsets that retention took before they were judged, once each. Alert on growth.",
        )
        self.delay = Delays(
            at,
            "twinsieve_end_to_end_seconds",
            "Time from the timestamp of an input message to the commit of its output.",
            _DELAY_BOUNDS_S,
        )
        self.pending = gauge(
            "twinsieve_pending_messages",
            "Messages that were read and wait for their answers.",
            ["topic", "partition"],
        )
        self.pending_bytes = gauge(
            "twinsieve_pending_bytes", "Memory of the messages that wait for their answers."
        )
        self.held = gauge(
            "twinsieve_held_partitions",
            "Input partitions that wait for a partition without a leader.",
        )
        self.lag = maybe(
            "twinsieve_lag_messages",
            "Input offsets behind the last emitted message; no series while no broker tells the end.",
            ["topic", "partition"],
            known=in_worker,
        )
        self.unanswered = gauge("twinsieve_unanswered_blocks", "Blocks that were asked and not answered yet.")
        self.resyncs = counter(
            "twinsieve_resyncs",
            "Times a worker began anew from its committed offsets after a failure. Alert on a steady rate.",
        )
        self.rebalances = counter(
            "twinsieve_rebalances",
            "Times the share of a role in its consumer group was dealt anew.",
            ["role"],
        )
        self.aborts = counter(
            "twinsieve_aborted_transactions",
            "Transactions that were begun and not committed, by their last step that succeeded; nothing of "
            "them counts. Alert on a steady rate.",
            ["role", "after"],
        )
        self.broker_errors = counter(
            "twinsieve_broker_errors",
            "Rounds of a role that a broker ended: it failed, refused or did not answer. Alert on growth.",
            ["role"],
        )
        self.answered = maybe(
            "twinsieve_broker_answered_timestamp_seconds",
            "When a broker answered a role last, in seconds since 1970.",
            ["role"],
        )
        self.clock_offset = maybe(
            "twinsieve_clock_offset_seconds",
            "How far the clock of this process runs ahead of the broker's (below 0: behind), as a role hears "
            "it; no series while that is not known. Alert beyond 60 either way.",
            ["role"],
        )
        self.steps = Histogram(
            "twinsieve_step_seconds",
            "Time that a step of a role took, from the step before to its end; without steps that wait.",
            ["step"],
            buckets=_STEP_BOUNDS_S,
            registry=at,
        )
        self.waits = Histogram(
            "twinsieve_wait_seconds",
            "Time of steps that wait for something to arrive, which may be nothing.",
            ["step"],
            buckets=_STEP_BOUNDS_S,
            registry=at,
        )
        self.role = enum(
            "twinsieve_role_phase",
            "What this process does with a role: starting, working, retrying or stopping.",
            ["role"],
            states=["starting", "working", "retrying", "stopping"],
        )
        self.live = gauge(
            "twinsieve_index_live",
            "1 where this process judges and a broker answers it. Alert where the sum of an app is not 1.",
        )
        self.live.set_function(lambda: float(self._judges and in_index()))
        self.asides = counter(
            "twinsieve_index_asides",
            "Times the index of this process left its group after failures in a row, so that another one may "
            "judge. Alert on any.",
        )
        self.phase = enum(
            "twinsieve_index_phase",
            "Where the index of this process stands; none in a process without one.",
            states=[_NO_INDEX, *IndexPhase],
        )
        self.restore_bytes = maybe(
            "twinsieve_restore_bytes", "Size of the snapshot that is being read; no series at other times."
        )
        self.restored_bytes = maybe(
            "twinsieve_restored_bytes", "Bytes of it that were read; no series at other times."
        )
        self.log_lag = maybe(
            "twinsieve_index_lag_blocks",
            "Blocks of the log not judged, or not followed yet; no series while no broker tells its end.",
            known=in_index,
        )
        self.behind = maybe(
            "twinsieve_index_behind_seconds",
            "For how long the oldest block that waits to be judged has been in the log; series only where "
            "this process judges. Alert on minutes.",
            known=in_index,
        )
        self.gaps = counter(
            "twinsieve_index_gap_blocks",
            "Judged blocks, or decisions on them, that retention took before this process followed them. "
            "Alert on any.",
        )
        self.unjudged = counter(
            "twinsieve_index_unjudged_blocks",
            "Blocks that retention took before anybody judged them; workers ask again. Alert on growth.",
        )
        self.sessions = counter("twinsieve_index_sessions", "Sessions that began while this process judged.")
        self.given_up = counter(
            "twinsieve_index_given_up_messages",
            "Judged messages that were passed over before they came out, while this process judged, by what "
            "kept them from it. Alert on retention.",
            ["reason"],
        )
        self.unconfirmed = counter(
            "twinsieve_index_unconfirmed",
            "Exact duplicates taken at the word of the Bloom filter, which names no leader.",
        )
        self.kept_apart = counter(
            "twinsieve_index_kept_apart",
            "Messages that were kept though another one was alike, by what differs.",
            ["reason"],
        )
        self.window_held = gauge("twinsieve_window_messages", "Kept messages in the near window.")
        self.window_capacity = gauge(
            "twinsieve_window_capacity_messages", "How many kept messages the near window may hold."
        )
        self.window_seconds = maybe(
            "twinsieve_window_seconds",
            "How far the near window reaches back from stream time; no series without times.",
        )
        self.sieve_bytes = gauge("twinsieve_sieve_bytes", "Memory of the sieve.")
        self.snapshot_age = maybe(
            "twinsieve_snapshot_age_seconds",
            "Time of the log that no stored snapshot holds, so that a restart would follow it; series only "
            "where this process judges and there is any. Alert far beyond state.snapshot_every.",
        )
        self.snapshot_stored = maybe(
            "twinsieve_snapshot_last_success_timestamp_seconds",
            "When this process stored a snapshot last, in seconds since 1970; no series before the first.",
        )
        self.snapshot_failures = counter(
            "twinsieve_snapshot_failures",
            "Snapshots that could not be written; each is tried again within a minute. Alert on growth.",
        )
        self.log_bytes = maybe(
            "twinsieve_log_bytes",
            "Bytes of the app's own topics on a broker's disk, of one replica, told by who judges; "
            "no series where no broker tells.",
            ["topic"],
            known=lambda: self._judges and in_index(),
        )
        ProcessCollector(registry=at)
        self._begin_at_zero()

    def about(self, app: str, role: str, scheme: str = "") -> None:
        """Say what this process is; scheme: once it is known"""
        self.info.tell({(app, role, program_version(), scheme): 1.0})

    def _begin_at_zero(self) -> None:
        """Every label that is known beforehand: else the first of its kind would be no increase."""
        known: list[tuple[Counter | Histogram, list[str]]] = [
            (self.messages, [*(kind.name.lower() for kind in Kind), _NO_TEXT]),
            (self.dead_letters, list(DeadLetterReason)),
            (self.kept_apart, [reason.words for reason in Rule if reason]),
            (self.given_up, list(GivenUp)),
            (self.steps, [step for step in (*WorkerStep, *IndexStep) if step not in _WAITING]),
            (self.waits, sorted(_WAITING)),
        ]
        for metric, labels in known:
            for label in labels:
                metric.labels(label)

    def _heard(self, role: str) -> bool:
        return role not in self._hears or self._hears[role]()

    def begin(self, role: str, hears: Known) -> None:
        """A role of this process begins. hears: whether a broker answers it, asked at each look at a page"""
        self._hears[role] = hears
        for metric in (self.rebalances, self.broker_errors):
            metric.labels(role)
        for step in _OPEN:
            if step.startswith(role):
                self.aborts.labels(role, step)

    def timer(self, role: str, step: Hook = no_hook) -> StepTimer:
        """What times the steps of a role; step: called after each of them."""
        return StepTimer(self, self._clock, role, step)

    def see_answer(self, role: str) -> None:
        """A broker has answered this role just now."""
        self._answered_s[role] = self._clock.now_ms() / 1000
        self.answered.tell({(each,): at_s for each, at_s in self._answered_s.items()})

    def see_clock(self, role: str, ahead_s: float | None) -> None:
        """How far the clock of this process runs ahead of the broker's; None: not known."""
        self._ahead_s[role] = ahead_s
        self.clock_offset.tell({(each,): ahead for each, ahead in self._ahead_s.items() if ahead is not None})

    def emitted(self, emission: Emission) -> None:
        """Count what one transaction held."""
        counts = {kind.name.lower(): count for kind, count in emission.kinds.items()}
        if emission.no_text:
            counts |= {_NO_TEXT: emission.no_text, "unique": counts["unique"] - emission.no_text}
        for verdict, count in counts.items():
            self.messages.labels(verdict).inc(count)
        for reason, count in emission.dead.items():
            self.dead_letters.labels(reason).inc(count)
        self.foreign.inc(emission.foreign)
        if emission.stamps:
            now_s = self._clock.now_ms() / 1000 - (self._ahead_s.get("worker") or 0.0)
            self.delay.observe(now_s - np.concatenate(emission.stamps) / 1000)

    def see_waiting(self, worker: Worker | None) -> None:
        """Gauges of a worker, or of none, that no broker is asked for."""
        self.unanswered.set(worker.unanswered if worker is not None else 0)
        self.held.set(worker.waiting_for_leader if worker is not None else 0)
        self.pending_bytes.set(worker.pending_bytes if worker is not None else 0)
        self.pending.clear()
        for partition, rows in worker.pending_rows.items() if worker is not None else ():
            self.pending.labels(partition.topic, str(partition.number)).set(rows)
        if worker is None:
            self.lag.tell({})

    def see_worker(self, progress: Mapping[Partition, tuple[int, int]]) -> None:
        """Lags of a worker, asked for now and then; `progress` is what it says of itself."""
        self.lag.tell(
            {
                (partition.topic, str(partition.number)): max(0, end - emitted)
                for partition, (emitted, end) in progress.items()
            }
        )

    def see_judging(self, index: Index | None) -> None:
        """Gauges of an index that no broker is asked for; None: it is still to be made."""
        self._judges = index is not None and index.live
        self.phase.state(index.phase.now if index is not None else IndexPhase.RESTORING)
        if index is None:
            self.log_lag.tell({})
        since_s = index.snapshots.since_s if index is not None and index.live else None
        self.snapshot_age.tell({} if since_s is None else {(): partial(self._since, since_s)})
        self.behind.tell({(): lambda: index.behind_s} if index is not None and index.live else {})
        stored_ms = index.snapshots.stored_ms if index is not None else None
        if stored_ms is not None:
            self.snapshot_stored.tell({(): stored_ms / 1000})

    def _since(self, at_s: float) -> float:
        return self._clock.monotonic_s() - at_s

    def see_restore(self, moved: Moved | None) -> None:
        """How far the snapshot has been read that an index restores from; None: none is being read."""
        self.restore_bytes.tell({} if moved is None else {(): moved.size})
        self.restored_bytes.tell({} if moved is None else {(): moved.done})

    def see_index(self, index: Index) -> None:
        """Gauges of an index, asked for now and then."""
        self.log_lag.tell({(): max(0, index.follower.log_end() - index.state.next_offset)})
        stats = index.state.sieve.stats()
        self.window_held.set(stats.held)
        self.window_capacity.set(stats.capacity)
        self.sieve_bytes.set(stats.bytes_used)
        oldest_ms, newest_ms = stats.oldest_time_ms, stats.stream_time_ms
        if oldest_ms is not None and newest_ms is not None:
            self.window_seconds.tell({(): (newest_ms - oldest_ms) / 1000})

    def take_judged(self, index: Index) -> None:
        """Count what an index has noted since this was called last; the index forgets it."""
        self.unjudged.inc(index.unjudged)
        self.sessions.inc(index.sessions)
        for reason, count in index.given_up.items():
            self.given_up.labels(reason).inc(count)
        self.gaps.inc(index.take_gaps())
        self.rebalances.labels("index").inc(index.rebalances)
        self.snapshot_failures.inc(index.snapshots.failures)
        index.unjudged = index.sessions = index.rebalances = index.snapshots.failures = 0
        index.given_up.clear()

    def take_worked(self, worker: Worker) -> None:
        """The same of a worker."""
        self.resyncs.inc(worker.resyncs)
        self.trimmed.inc(worker.trimmed)
        self.rebalances.labels("worker").inc(worker.rebalances)
        worker.resyncs = worker.trimmed = worker.rebalances = 0

    def see_log(self, sizes: Mapping[str, int]) -> None:
        """Bytes of topics, those that are known."""
        self.log_bytes.tell({(topic,): size for topic, size in sizes.items()})

    def ruled(self, ruling: Ruling) -> None:
        """Count what an index has judged; what it only said again was counted then."""
        unconfirmed = (ruling.verdicts.flags & Flag.UNCONFIRMED) != 0
        count = int(np.count_nonzero(unconfirmed & (ruling.sources == Source.NEW)))
        if count:
            self.unconfirmed.inc(count)
        for reason, kept in counts_by_name(ruling.verdicts.reasons[ruling.sources == Source.NEW]).items():
            self.kept_apart.labels(reason).inc(kept)
