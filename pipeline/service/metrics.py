"""All metrics of a running service; no other file contains their names. A metric whose value is unknown at
the moment has no series."""

from __future__ import annotations

import math
from collections import Counter as Counts
from collections.abc import Collection, Mapping
from enum import StrEnum
from functools import partial
from typing import NamedTuple

import numpy as np
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)

from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason
from twinsieve.pipeline.basics.program import program_version
from twinsieve.pipeline.broker.ports import Clock
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.index.config import IndexPhase, IndexStep
from twinsieve.pipeline.index.index import Index
from twinsieve.pipeline.index.ledger import GivenUp
from twinsieve.pipeline.pieces import Moved
from twinsieve.pipeline.pieces.store_calls import StoreCalls
from twinsieve.pipeline.service.collectors import (
    Condition,
    CountedElsewhere,
    DelayHistogram,
    OptionalGauge,
    PhaseGauge,
)
from twinsieve.pipeline.service.stream_log import dropped_lines
from twinsieve.pipeline.wire.ruling import Ruling, Source
from twinsieve.pipeline.worker.config import WorkerStep
from twinsieve.pipeline.worker.emit import Emission
from twinsieve.pipeline.worker.waiting import Wait, WaitReason
from twinsieve.pipeline.worker.worker import Worker
from twinsieve.stages.contract import Flag, Kind
from twinsieve.stages.differ.rules import Rule, counts_by_name

_STEP_BOUNDS_S = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0)
_DELAY_BOUNDS_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0, 86400.0)
WAITING_STEPS = frozenset({WorkerStep.POLLED, WorkerStep.ANSWERED, IndexStep.POLLED})
"""Steps that wait until a message arrives or a time limit has passed."""
OPEN_STEPS = (
    *(WorkerStep.BEGUN, WorkerStep.SENT, WorkerStep.OFFSETS_SENT),
    *(IndexStep.BEGUN, IndexStep.DECIDED, IndexStep.ANSWERED, IndexStep.OFFSETS_SENT),
)

_INPUT_KNOWN_S = 25.0
"""The gauges of the input are out of date if the last answer is older: two of the longest pauses."""
_NO_INDEX = "none"
_NO_TEXT = "no_text"


class ProcessPhase(StrEnum):
    """Phases of the start of a process."""

    WAITING = "waiting_for_broker"
    """no broker has answered yet, so the topics are not checked"""
    COMPILING = "compiling"
    """kernels are compiled, or loaded"""
    RUNNING = "running"
    """the roles of the process have begun"""


class Waiting(NamedTuple):
    """What of one input partition has not come out.

    end: its end offset; lag: offsets between the committed offset and the end
    since_s: monotonic time of the query that first showed the oldest message which has not come out; None if
        all came out; has_worker: whether a worker has the partition
    """

    end: int
    lag: int
    since_s: float | None
    has_worker: bool


class Metrics:
    """The metrics of one process in their own registry. Label values are only from settings and fixed words.

    A value that only a broker knows has no series while no broker answers the role.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._answered: dict[str, Condition] = {}
        self._answered_s: dict[str, float] = {}
        self._ahead_s: dict[str, float | None] = {}
        self._judges = False
        self._input_s = -math.inf
        """When the gauges of the input were set last."""
        # The time at which a counter was created is of no use: every counter is as old as its process.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = registry = CollectorRegistry()
        counter = partial(Counter, registry=registry)
        gauge = partial(Gauge, registry=registry)
        phase = partial(PhaseGauge, registry)
        optional = partial(OptionalGauge, registry)
        in_index = partial(self._is_answered, "index")
        self.info = optional(
            "twinsieve_info",
            "1 beside what this process is; joins other metrics to their app.",
            ["app", "role", "version", "scheme", "settings"],
        )
        self.process = phase(
            "twinsieve_process_phase",
            "How far the start of this process is. Alert on anything but running for minutes.",
            list(ProcessPhase),
        )
        self.process.enter(ProcessPhase.WAITING)
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
        self.skipped = counter(
            "twinsieve_skipped_messages",
            "Messages that are lost by a setting, by reason: no output takes them, not even as dead letters "
            "(output.on_refused: skip), or their batch cannot be read (input.on_unreadable_batch: skip). "
            "Alert on growth.",
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
        self.read = counter(
            "twinsieve_read_messages",
            "Messages that this process read from the input, again after a failure or a rebalance.",
        )
        self.delay = DelayHistogram(
            registry,
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
        self.waiting_partitions = gauge(
            "twinsieve_waiting_partitions",
            "Input partitions of this process that emit nothing, by reason. Alert on anything for minutes.",
            ["reason"],
        )
        self.assigned_partitions = gauge(
            "twinsieve_assigned_partitions", "Input partitions that the worker of this process has."
        )
        self.input_partitions = optional(
            "twinsieve_input_partitions",
            "Partitions of the input topics, as every process sees them; no series before the first answer.",
            ["topic"],
        )
        self.unassigned_partitions = optional(
            "twinsieve_unassigned_partitions",
            "Input partitions that no worker has, as every process sees it. Alert on anything for a minute.",
        )
        self.lag = optional(
            "twinsieve_lag_messages",
            "Input offsets that have not come out, of all partitions, as every process sees it; no series "
            "while no broker answers.",
            ["topic", "partition"],
            is_available=self._is_input_known,
        )
        self.input_end = optional(
            "twinsieve_input_end_offset",
            "End offsets of all input partitions; they grow as messages arrive.",
            ["topic", "partition"],
            is_available=self._is_input_known,
        )
        self.oldest_waiting = optional(
            "twinsieve_oldest_waiting_seconds",
            "For how long the oldest message that has not come out has been in the input, as far as this "
            "process has seen it; 0 where all came out. Of all partitions. Alert on minutes.",
            ["topic", "partition"],
        )
        self.foreign_members = optional(
            "twinsieve_foreign_members",
            "Members of this app's consumer groups that are not twinsieve; nothing of their partitions is "
            "judged; no series while they are not known. Alert on any.",
        )
        self.foreign_offsets = counter(
            "twinsieve_foreign_offsets",
            "Offsets in the workers' group that twinsieve did not commit, and in whose place a worker "
            "continued at its own. Alert on any.",
        )
        self.unanswered = gauge(
            "twinsieve_unanswered_blocks", "Blocks that were sent to the index and are not answered yet."
        )
        self.resyncs = counter(
            "twinsieve_resyncs",
            "Times a worker began again from its committed offsets after a failure. Alert on a steady rate.",
        )
        self.rebalances = counter(
            "twinsieve_rebalances",
            "Times a rebalance assigned a role its share of the consumer group again.",
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
        self.answered = optional(
            "twinsieve_broker_answered_timestamp_seconds",
            "When a broker answered a role last, in seconds since 1970.",
            ["role"],
        )
        self.clock_offset = optional(
            "twinsieve_clock_offset_seconds",
            "How far the clock of this process runs ahead of the broker's (below 0: behind), as a role "
            "measures it; no series while unknown. Alert beyond 60 either way.",
            ["role"],
        )
        self.steps = Histogram(
            "twinsieve_step_seconds",
            "Time that a step of a role took, from the step before to its end; without steps that wait.",
            ["step"],
            buckets=_STEP_BOUNDS_S,
            registry=registry,
        )
        self.waits = Histogram(
            "twinsieve_wait_seconds",
            "Time of steps that wait for something to arrive, which may be nothing.",
            ["step"],
            buckets=_STEP_BOUNDS_S,
            registry=registry,
        )
        self.role = phase(
            "twinsieve_role_phase",
            "What this process does with a role: starting, working, retrying or stopping.",
            ["starting", "working", "retrying", "stopping"],
            ["role"],
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
        self.rules_changes = counter(
            "twinsieve_rules_changes",
            "Times the index of this process judged on after decisions by other rules: other near settings, "
            "lists of words or program version. Alert on any that was not intended.",
        )
        self.phase = phase(
            "twinsieve_index_phase",
            "Phase of the index of this process; none in a process without one.",
            [_NO_INDEX, *IndexPhase],
        )
        self.phase.enter(_NO_INDEX)
        self.restore_bytes = optional(
            "twinsieve_restore_bytes", "Size of the snapshot that is being read; no series at other times."
        )
        self.restored_bytes = optional(
            "twinsieve_restored_bytes", "Bytes of it that were read; no series at other times."
        )
        self.log_lag = optional(
            "twinsieve_index_lag_blocks",
            "Blocks of the log not judged, or not followed yet; no series while no broker reports its end.",
            is_available=in_index,
        )
        self.behind = optional(
            "twinsieve_index_behind_seconds",
            "For how long the oldest block that waits to be judged has been in the log; series only where "
            "this process judges. Alert on minutes.",
            is_available=in_index,
        )
        self.gaps = counter(
            "twinsieve_index_gap_blocks",
            "Judged blocks, or decisions on them, that retention took before this process followed them. "
            "Alert on any.",
        )
        self.unjudged = counter(
            "twinsieve_index_unjudged_blocks",
            "Blocks that retention took before an index judged them; workers resend them. Alert on growth.",
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
            "Exact duplicates that the Bloom filter alone confirms; it names no leader.",
        )
        self.no_features = counter(
            "twinsieve_index_no_features",
            "Messages compared with nothing: the method decides by features, and they have too few.",
        )
        self.cut_short = counter(
            "twinsieve_index_cut_short",
            "Messages that share hashes with over 1,024 kept ones; only the newest of these were compared.",
        )
        self.kept_apart = counter(
            "twinsieve_index_kept_apart",
            "Messages that were kept though another one was alike, by what differs.",
            ["reason"],
        )
        self.window_messages = gauge("twinsieve_window_messages", "Kept messages in the near window.")
        self.pushed_out = gauge(
            "twinsieve_window_pushed_out_messages",
            "Kept messages in the near window that are rarely found: newer ones took their places.",
        )
        self.window_capacity = gauge(
            "twinsieve_window_capacity_messages", "How many kept messages the near window may hold."
        )
        self.window_seconds = optional(
            "twinsieve_window_seconds",
            "How far the near window reaches back from stream time; no series without times.",
        )
        self.segments = gauge(
            "twinsieve_window_segments", "Segments of the near window, the open one included."
        )
        self.waiting_segments = gauge(
            "twinsieve_window_waiting_segments",
            "Sealed segments that are being written to files, or wait for that. Alert on more than one for "
            "long.",
        )
        self.segment_failures = counter(
            "twinsieve_segment_failures",
            "Files of segments that could not be written; what stays in memory is tried again at the next "
            "seal. Alert on growth.",
        )
        self.sieve_bytes = gauge("twinsieve_sieve_bytes", "Memory of the sieve.")
        self.mapped_bytes = gauge(
            "twinsieve_sieve_mapped_bytes",
            "Bytes of sealed segments that are maps of files; the page cache holds what of them is in use.",
        )
        self.snapshot_age = optional(
            "twinsieve_snapshot_age_seconds",
            "Time of the log that no stored snapshot holds, so that a restart would follow it; series only "
            "where this process judges and there is any. Alert far beyond state.snapshot_every.",
        )
        self.snapshot_every = optional(
            "twinsieve_snapshot_every_seconds", "state.snapshot_every, in processes with an index."
        )
        self.snapshot_stored = optional(
            "twinsieve_snapshot_last_success_timestamp_seconds",
            "When this process stored a snapshot last, in seconds since 1970; no series before the first.",
        )
        self.snapshot_failures = counter(
            "twinsieve_snapshot_failures",
            "Snapshots that could not be written; each is tried again within a minute. Alert on growth.",
        )
        self.store_hung = gauge(
            "twinsieve_state_hung_seconds",
            "How long the oldest call to the folder of the snapshots has been running, if that is long; else "
            "0. Alert on anything for a minute.",
        )
        self.snapshot_seconds = optional(
            "twinsieve_snapshot_seconds",
            "How long the last stored snapshot took, from its begin until it was stored. Alert near "
            "state.snapshot_every.",
        )
        self.snapshot_pause = optional(
            "twinsieve_snapshot_pause_seconds",
            "For how long judging stopped at the begin of the last stored snapshot. Alert on seconds.",
        )
        self.snapshot_files = optional(
            "twinsieve_snapshot_files", "Files that the last stored snapshot names, without itself."
        )
        self.stored_bytes = optional(
            "twinsieve_snapshot_stored_bytes",
            "Bytes of the last stored snapshot and of all files that it names; a restore reads them.",
        )
        self.snapshot_bytes = counter(
            "twinsieve_snapshot_bytes_written",
            "Bytes of stored snapshots and of what was written for them: pieces, parts, merged pieces.",
        )
        self.log_bytes = optional(
            "twinsieve_log_bytes",
            "Bytes of the app's own topics on a broker's disk, of one replica, shown by the process that "
            "judges; no series where no broker reports them.",
            ["topic"],
            is_available=lambda: self._judges and in_index(),
        )
        self.dropped_lines = CountedElsewhere(
            registry,
            "twinsieve_dropped_log_lines",
            "Log lines that were dropped, because stderr was not read or failed. Alert on growth.",
            dropped_lines,
        )
        self.program = ProcessCollector(registry=registry)
        self._begin_at_zero()

    def set_info(self, app: str, role: str, scheme: str = "", settings: str = "") -> None:
        """Set the app, the role, the scheme and the id of the settings (`settings_id`) of this process.
        scheme, settings: empty while unknown"""
        self.info.set({(app, role, program_version(), scheme, settings): 1.0})

    def _begin_at_zero(self) -> None:
        """Create the series of all fixed labels with value 0. Without this, a query for increases would miss
        the first count."""
        labels_of: list[tuple[Counter | Gauge | Histogram, list[str]]] = [
            (self.messages, [*(kind.name.lower() for kind in Kind), _NO_TEXT]),
            (self.dead_letters, list(DeadLetterReason)),
            (self.skipped, [*DeadLetterReason, WaitReason.UNREADABLE]),
            (self.kept_apart, [reason.words for reason in Rule if reason]),
            (self.given_up, list(GivenUp)),
            (self.waiting_partitions, list(WaitReason)),
            (self.steps, [step for step in (*WorkerStep, *IndexStep) if step not in WAITING_STEPS]),
            (self.waits, sorted(WAITING_STEPS)),
        ]
        for metric, labels in labels_of:
            for label in labels:
                metric.labels(label)

    def _is_input_known(self) -> bool:
        return self._clock.monotonic_s() - self._input_s < _INPUT_KNOWN_S

    def set_input(self, waiting: Mapping[Partition, Waiting], now_s: float) -> None:
        """Set the gauges of the input. waiting: all of its partitions; now_s: when the broker was queried"""
        self._input_s = now_s

        def age(since_s: float | None) -> float:
            if since_s is None:
                return 0.0
            # Between two queries the message may have come out, so its age grows only if they fail.
            late = self._clock.monotonic_s() - now_s >= _INPUT_KNOWN_S
            return (self._clock.monotonic_s() if late else now_s) - since_s

        labels = {at: (at.topic, str(at.number)) for at in waiting}
        topics = Counts(at.topic for at in waiting)
        self.input_partitions.set({(topic,): count for topic, count in topics.items()})
        self.unassigned_partitions.set({(): sum(not each.has_worker for each in waiting.values())})
        self.lag.set({labels[at]: each.lag for at, each in waiting.items()})
        self.input_end.set({labels[at]: each.end for at, each in waiting.items()})
        self.oldest_waiting.set({labels[at]: partial(age, each.since_s) for at, each in waiting.items()})

    def set_foreign_members(self, count: int | None) -> None:
        """Set the number of foreign members of the app's groups; None: unknown."""
        self.foreign_members.set({} if count is None else {(): count})

    def _is_answered(self, role: str) -> bool:
        return role not in self._answered or self._answered[role]()

    def begin(self, role: str, is_answered: Condition) -> None:
        """Create the series of a role that begins. is_answered: whether brokers answer it; called at each
        scrape"""
        self._answered[role] = is_answered
        for metric in (self.rebalances, self.broker_errors):
            metric.labels(role)
        for step in OPEN_STEPS:
            if step.startswith(role):
                self.aborts.labels(role, step)

    def set_answered(self, role: str) -> None:
        """Record that a broker has just answered this role."""
        self._answered_s[role] = self._clock.now_ms() / 1000
        self.answered.set({(name,): answered_s for name, answered_s in self._answered_s.items()})

    def set_clock_offset(self, role: str, ahead_s: float | None) -> None:
        """Set how far the clock of this process runs ahead of the broker's; None: unknown."""
        self._ahead_s[role] = ahead_s
        self.clock_offset.set(
            {(name,): offset_s for name, offset_s in self._ahead_s.items() if offset_s is not None}
        )

    def count_emission(self, emission: Emission) -> None:
        """Count the messages of one committed transaction."""
        counts = {kind.name.lower(): count for kind, count in emission.kinds.items()}
        if emission.no_text:
            counts |= {_NO_TEXT: emission.no_text, "unique": counts["unique"] - emission.no_text}
        for verdict, count in counts.items():
            self.messages.labels(verdict).inc(count)
        for reason, count in emission.dead.items():
            self.dead_letters.labels(reason).inc(count)
        for reason, count in emission.skipped.items():
            self.skipped.labels(reason).inc(count)
        self.foreign.inc(emission.foreign)
        if emission.stamps:
            now_s = self._clock.now_ms() / 1000 - (self._ahead_s.get("worker") or 0.0)
            self.delay.observe(now_s - np.concatenate(emission.stamps) / 1000)

    def set_pending(self, worker: Worker | None) -> None:
        """Set the gauges of a worker that need no query to a broker. worker: None if there is none"""
        self.unanswered.set(worker.unanswered if worker is not None else 0)
        self.assigned_partitions.set(worker.assigned if worker is not None else 0)
        self.pending_bytes.set(worker.pending_bytes if worker is not None else 0)
        self.set_waits(worker.waits.of.values() if worker is not None else ())
        self.pending.clear()
        for partition, rows in worker.pending_rows.items() if worker is not None else ():
            self.pending.labels(partition.topic, str(partition.number)).set(rows)

    def set_waits(self, waits: Collection[Wait]) -> None:
        """Set how many partitions of the worker wait, by reason."""
        reasons = [wait.reason for wait in waits]
        for reason in WaitReason:
            self.waiting_partitions.labels(reason.value).set(reasons.count(reason))

    def set_judging(self, index: Index | None) -> None:
        """Set the gauges of an index that need no query to a broker. index: None if it is not made yet"""
        self._judges = index is not None and index.live
        self.phase.enter(index.phase.now if index is not None else IndexPhase.RESTORING)
        if index is None:
            self.log_lag.set({})
        since_s = index.snapshots.since_s if index is not None and index.live else None
        self.snapshot_age.set({} if since_s is None else {(): partial(self._since, since_s)})
        self.behind.set({(): lambda: index.behind_s} if index is not None and index.live else {})
        stored_ms = index.snapshots.stored_ms if index is not None else None
        if stored_ms is not None:
            self.snapshot_stored.set({(): stored_ms / 1000})
        if index is not None and index.snapshots.took_s is not None:
            self.snapshot_seconds.set({(): index.snapshots.took_s})
            self.snapshot_pause.set({(): index.snapshots.pause_s})
            self.snapshot_files.set({(): index.snapshots.files})
            self.stored_bytes.set({(): index.snapshots.stored_bytes})
        self.waiting_segments.set(index.snapshots.waiting_segments if index is not None else 0)

    def _since(self, since_s: float) -> float:
        return self._clock.monotonic_s() - since_s

    def set_store(self, calls: StoreCalls) -> None:
        """Show the calls to the folder of the snapshots that do not return."""

        def hung_s() -> float:
            hung = calls.hung()
            return hung.seconds if hung is not None else 0.0

        self.store_hung.set_function(hung_s)

    def set_restore(self, moved: Moved | None) -> None:
        """Set how much of a snapshot has been read. moved: None if no snapshot is being read"""
        self.restore_bytes.set({} if moved is None else {(): moved.size})
        self.restored_bytes.set({} if moved is None else {(): moved.done})

    def set_index_state(self, index: Index) -> None:
        """Set the gauges of an index that need a query to a broker, and those of its sieve."""
        self.log_lag.set({(): max(0, index.follower.log_end() - index.state.next_offset)})
        stats = index.state.sieve.stats()
        self.window_messages.set(stats.held)
        self.window_capacity.set(stats.capacity)
        # One band a call: a whole count reads gigabytes of a large index, and nothing is judged meanwhile.
        self.pushed_out.set(index.state.sieve.pushed_out(bands=1))
        self.sieve_bytes.set(stats.bytes_used)
        self.mapped_bytes.set(stats.bytes_mapped)
        self.segments.set(stats.segments)
        oldest_ms, newest_ms = stats.oldest_time_ms, stats.stream_time_ms
        if oldest_ms is not None and newest_ms is not None:
            self.window_seconds.set({(): (newest_ms - oldest_ms) / 1000})

    def count_index(self, index: Index) -> None:
        """Add the index's own counts since the last call to the metrics, and set them back to 0."""
        self.unjudged.inc(index.unjudged)
        self.sessions.inc(index.sessions)
        for reason, count in index.given_up.items():
            self.given_up.labels(reason).inc(count)
        self.gaps.inc(index.take_gaps())
        self.rebalances.labels("index").inc(index.rebalances)
        self.snapshot_failures.inc(index.snapshots.failures)
        self.snapshot_bytes.inc(index.snapshots.bytes_written)
        self.segment_failures.inc(index.snapshots.take_segment_failures())
        self.rules_changes.inc(index.rules_changes)
        index.unjudged = index.sessions = index.rebalances = index.rules_changes = 0
        index.snapshots.failures = index.snapshots.bytes_written = 0
        index.given_up.clear()

    def count_worker(self, worker: Worker) -> None:
        """Add the worker's own counts since the last call to the metrics, and set them back to 0."""
        self.resyncs.inc(worker.resyncs)
        self.trimmed.inc(worker.trimmed)
        self.skipped.labels(WaitReason.UNREADABLE).inc(worker.skipped)
        self.read.inc(worker.read)
        self.rebalances.labels("worker").inc(worker.rebalances)
        self.foreign_offsets.inc(worker.foreign_offsets)
        worker.resyncs = worker.trimmed = worker.skipped = worker.read = worker.rebalances = 0
        worker.foreign_offsets = 0

    def set_log_bytes(self, sizes: Mapping[str, int]) -> None:
        """Set the sizes of topics in bytes. sizes: by topic, without topics of unknown size"""
        self.log_bytes.set({(topic,): size for topic, size in sizes.items()})

    def count_ruling(self, ruling: Ruling) -> None:
        """Count the new verdicts of a ruling. Verdicts that the index only repeats were counted before."""
        new = ruling.sources == Source.NEW
        flags = ruling.verdicts.flags[new]
        for flag, counted in (
            (Flag.UNCONFIRMED, self.unconfirmed),
            (Flag.NO_FEATURES, self.no_features),
            (Flag.CUT_SHORT, self.cut_short),
        ):
            count = int(np.count_nonzero(flags & flag))
            if count:
                counted.inc(count)
        for reason, kept in counts_by_name(ruling.verdicts.reasons[new]).items():
            self.kept_apart.labels(reason).inc(kept)
