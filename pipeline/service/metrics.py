"""All metrics of a running service; no other file contains their names. A metric whose value is unknown at
the moment has no series."""

from __future__ import annotations

import math
from collections import Counter as Counts
from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from functools import partial
from typing import Any, Generic, NamedTuple, Self, TypeVar, overload

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
from twinsieve.pipeline.index.segment_answers import Unused
from twinsieve.pipeline.saved import Moved
from twinsieve.pipeline.saved.store_calls import StoreCalls
from twinsieve.pipeline.service.collectors import (
    Condition,
    CountedElsewhere,
    DelayHistogram,
    OptionalGauge,
    PhaseGauge,
)
from twinsieve.pipeline.service.memory_limit import anonymous_bytes, limit_bytes
from twinsieve.pipeline.service.stream_log import dropped_lines
from twinsieve.pipeline.shards.config import Problem
from twinsieve.pipeline.shards.shard import Shard
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
Made = TypeVar("Made")


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
    opened_s: the same time for the oldest transaction that is open in the partition; None if none is
    """

    end: int
    lag: int
    since_s: float | None
    has_worker: bool
    opened_s: float | None = None


class MetricKind(NamedTuple, Generic[Made]):
    """word: as the page has it; make: takes the registry, name, help and labels"""

    word: str
    make: Callable[[CollectorRegistry, str, str, list[str]], Made]


COUNTER = MetricKind(
    "counter", lambda registry, name, text, labels: Counter(name, text, labels, registry=registry)
)
GAUGE = MetricKind("gauge", lambda registry, name, text, labels: Gauge(name, text, labels, registry=registry))
OPTIONAL = MetricKind("gauge", OptionalGauge)
STEPS = MetricKind(
    "histogram",
    lambda registry, name, text, labels: Histogram(
        name, text, labels, buckets=_STEP_BOUNDS_S, registry=registry
    ),
)
DELAYS = MetricKind(
    "histogram", lambda registry, name, text, _: DelayHistogram(registry, name, text, _DELAY_BOUNDS_S)
)
ELSEWHERE = MetricKind(
    "counter", lambda registry, name, text, _: CountedElsewhere(registry, name, text, dropped_lines)
)


def phases(*phases: str) -> MetricKind[PhaseGauge]:
    """A gauge with a series for each of these phases."""
    return MetricKind(
        "gauge", lambda registry, name, text, labels: PhaseGauge(registry, name, text, phases, labels)
    )


class Declared(Generic[Made]):
    """One metric of `Metrics`, by its kind, name, meaning, labels (parted by blanks), and when to alert.

    On an instance of `Metrics`, the attribute is the metric itself.
    """

    def __init__(
        self, kind: MetricKind[Made], name: str, means: str, labels: str = "", alert: str = ""
    ) -> None:
        self.kind, self.name, self.means, self.labels, self.alert = kind, name, means, labels.split(), alert

    @overload
    def __get__(self, metrics: None, owner: type) -> Self: ...

    @overload
    def __get__(self, metrics: object, owner: type) -> Made: ...

    def __get__(self, metrics: object, owner: type) -> Self | Made:
        # Metrics.__init__ sets the attribute of each instance, which Python finds before this method.
        return self

    def make(self, registry: CollectorRegistry) -> Made:
        """The metric, with an alert in its help text."""
        text = f"{self.means} Alert: {self.alert}." if self.alert else self.means
        return self.kind.make(registry, self.name, text, self.labels)


class Metrics:
    """The metrics of one process in their own registry. Label values are only from settings and fixed
    words, but for the names of a few late shards.

    `python -m scripts.generated_docs` writes docs/METRICS.md from the declarations. A value that only a
    broker knows has no series while no broker answers the role.
    """

    # fmt: off
    info = Declared(OPTIONAL, "twinsieve_info",
        "1 beside what this process is; joins other metrics to their app. The app of a dry run ends in "
        "-shadow.", "app role version scheme settings", "absent")
    session_timeout = Declared(OPTIONAL, "twinsieve_session_timeout_seconds",
        "kafka.session_timeout: after this time, others get the work of a process that died.")
    process = Declared(phases(*ProcessPhase), "twinsieve_process_phase",
        "1 beside the phase of the start of this process.", alert="not running for minutes")
    messages = Declared(COUNTER, "twinsieve_messages",
        "Messages by verdict, counted when their transaction is committed. replayed: came out before; "
        "no_text: null texts and tombstones, compared with nothing.",
        "verdict", "the share of unique leaves its usual range")
    dead_letters = Declared(COUNTER, "twinsieve_dead_letters",
        "Messages that could not be judged or sent on, by reason.", "reason", "growth")
    skipped = Declared(COUNTER, "twinsieve_skipped_messages",
        "Messages that are lost by a setting, by reason: no output takes them, not even as dead letters "
        "(output.on_refused: skip), or their batch cannot be read (input.on_unreadable_batch: skip).",
        "reason", "any")
    foreign = Declared(COUNTER, "twinsieve_foreign_headers",
        "Headers of the input whose names begin with twinsieve-; no output gets them.",
        alert="growth, if no other app of twinsieve writes the input: somebody forges them")
    trimmed = Declared(COUNTER, "twinsieve_trimmed_messages",
        "Input offsets that retention deleted before they were judged, once each; markers count.",
        alert="growth")
    read = Declared(COUNTER, "twinsieve_read_messages",
        "Messages that this process read from the input; messages that it reads again count again.")
    keyless = Declared(COUNTER, "twinsieve_keyless_messages",
        "Messages read with an empty key (exact.fields); they are no exact copies. Counted as read_messages.",
        alert="growth, if each message should have a key")
    bad_times = Declared(COUNTER, "twinsieve_bad_times",
        "Messages read with a time in input.time_field that cannot be read; they take Kafka's timestamp. "
        "Counted as read_messages.", alert="more than 1 % of read_messages")
    delay = Declared(DELAYS, "twinsieve_end_to_end_seconds",
        "Time from the timestamp of an input message to the commit of its output.",
        alert="the quantile that you promise")
    pending = Declared(GAUGE, "twinsieve_pending_messages",
        "Messages that were read and wait for their answers.",
        "topic partition", "near kafka.pending_messages: the index is behind")
    pending_bytes = Declared(GAUGE, "twinsieve_pending_bytes",
        "Memory of the messages that wait for their answers, of all partitions.",
        alert="near kafka.pending_bytes: the index is behind")
    waiting_partitions = Declared(GAUGE, "twinsieve_waiting_partitions",
        "Input partitions of this process that emit nothing, by reason.", "reason", "above 0 for minutes")
    assigned_partitions = Declared(GAUGE, "twinsieve_assigned_partitions",
        "Input partitions that the worker of this process has.")
    input_partitions = Declared(OPTIONAL, "twinsieve_input_partitions",
        "Partitions of the input topics, as every process sees them.", "topic")
    unassigned_partitions = Declared(OPTIONAL, "twinsieve_unassigned_partitions",
        "Input partitions that no worker has, as every process sees them.", alert="above 0 for a minute")
    lag = Declared(OPTIONAL, "twinsieve_lag_messages",
        "Offsets between the committed offset and the end, of all input partitions, as every process sees"
        " them. If a partition has no leader, its last known end counts.",
        "topic partition", "growth for minutes")
    input_end = Declared(OPTIONAL, "twinsieve_input_end_offset",
        "End offsets of all input partitions; their rate is what arrives.", "topic partition")
    oldest_waiting = Declared(OPTIONAL, "twinsieve_oldest_waiting_seconds",
        "For how long the oldest message that has not come out has been in the input, since the first "
        "query that showed it; 0 if all came out. Of all partitions, whatever the cause.",
        "topic partition", "above a minute")
    open_transaction = Declared(OPTIONAL, "twinsieve_input_open_transaction_seconds",
        "For how long the oldest transaction that a producer has open in the partition has been there, since "
        "the first query that showed it; 0 if none is open. Nobody can read what lies behind it, and it does "
        "not count as waiting.",
        "topic partition", "above the longest transaction of your producers")
    foreign_members = Declared(OPTIONAL, "twinsieve_foreign_members",
        "Members of this app's consumer groups that are not twinsieve; nothing of their partitions is "
        "judged.", alert="above 0")
    foreign_offsets = Declared(COUNTER, "twinsieve_foreign_offsets",
        "Offsets in the workers' group that another program committed or deleted; the worker continued at"
        " its own.", alert="growth")
    unanswered = Declared(GAUGE, "twinsieve_unanswered_blocks",
        "Blocks that were sent to the index and are not answered yet.", alert="growth")
    resyncs = Declared(COUNTER, "twinsieve_resyncs",
        "Times that a worker began again from its committed offsets after a failure.", alert="a steady rate")
    rebalances = Declared(COUNTER, "twinsieve_rebalances",
        "Times that a rebalance assigned a role its share of the consumer group again.",
        "role", "a steady rate")
    aborts = Declared(COUNTER, "twinsieve_aborted_transactions",
        "Transactions that were begun and not committed, by their last step that succeeded; nothing of "
        "them counts.", "role after", "a steady rate")
    broker_errors = Declared(COUNTER, "twinsieve_broker_errors",
        "Rounds of a role that failed because a broker failed, refused or did not answer.",
        "role", "growth for minutes")
    answered = Declared(OPTIONAL, "twinsieve_broker_answered_timestamp_seconds",
        "When a broker last answered a role, in seconds since 1970.", "role", "time() minus it above 30")
    clock_offset = Declared(OPTIONAL, "twinsieve_clock_offset_seconds",
        "How far the clock of this process is ahead of the broker's (below 0: behind). Nothing is lost "
        "meanwhile.", "role", "beyond 60 either way")
    steps = Declared(STEPS, "twinsieve_step_seconds",
        "Duration of the steps of both roles that do not wait.",
        "step", "index.judged or worker.committed slow")
    waits = Declared(STEPS, "twinsieve_wait_seconds",
        "Duration of the steps that wait for something to arrive.", "step")
    role = Declared(phases("starting", "working", "retrying", "stopping"), "twinsieve_role_phase",
        "1 beside what this process does with a role.", "role", "retrying for minutes")
    live = Declared(GAUGE, "twinsieve_index_live",
        "1 if this process judges and a broker answers it.", alert="the sum over an app is not 1 for 30 s")
    asides = Declared(COUNTER, "twinsieve_index_asides",
        "Times that the index of this process left its group after three failures in a row, so that "
        "another one may judge. It returns after 30 s, later after up to ten minutes.", alert="any")
    rules_changes = Declared(COUNTER, "twinsieve_rules_changes",
        "Times that the index of this process judged on after decisions by other rules: other near settings, "
        "lists of words or program version.", alert="any that was not intended")
    phase = Declared(phases(_NO_INDEX, *IndexPhase), "twinsieve_index_phase",
        "1 beside the phase of the index of this process; none in a process without one.",
        alert="catching_up for minutes; restoring while restored_bytes and index_lag_blocks do not change, "
        "for longer than three times `near.patience`")
    restore_bytes = Declared(OPTIONAL, "twinsieve_restore_bytes", "Size of the snapshot that is being read.")
    restored_bytes = Declared(OPTIONAL, "twinsieve_restored_bytes",
        "Bytes of the snapshot that were read so far.", alert="no growth for a minute")
    log_lag = Declared(OPTIONAL, "twinsieve_index_lag_blocks",
        "Blocks of the log that this process has not judged, or not followed.", alert="growth")
    behind = Declared(OPTIONAL, "twinsieve_index_behind_seconds",
        "For how long the oldest block that waits to be judged has been in the log; only where this "
        "process judges.", alert="minutes: the index is slower than the input")
    gaps = Declared(COUNTER, "twinsieve_index_gap_blocks",
        "Judged blocks, or decisions on them, that retention deleted before this process followed them.",
        alert="growth while it runs")
    unjudged = Declared(COUNTER, "twinsieve_index_unjudged_blocks",
        "Blocks that retention deleted before an index judged them. Workers send them again; nothing is "
        "lost.", alert="growth: no index for longer than retention.ms")
    sessions = Declared(COUNTER, "twinsieve_index_sessions", "Sessions that began while this process judged.")
    given_up = Declared(COUNTER, "twinsieve_index_given_up_messages",
        "Judged messages that never came out, by the cause, counted while this process judged.",
        "reason", "growth of retention: these are lost")
    unconfirmed = Declared(COUNTER, "twinsieve_index_unconfirmed",
        "Exact duplicates that only the Bloom filter found; they name no leader.")
    no_features = Declared(COUNTER, "twinsieve_index_no_features",
        "Messages with too few features to be compared (near.method: hamming or signatures).")
    cut_short = Declared(COUNTER, "twinsieve_index_cut_short",
        "Messages that share hashes with over 1,024 kept ones; only the newest of these were compared "
        "(signatures).")
    kept_apart = Declared(COUNTER, "twinsieve_index_kept_apart",
        "Messages that were kept although they are similar to a kept one, by the rule.", "reason")
    window_messages = Declared(GAUGE, "twinsieve_window_messages", "Kept messages in the near window.")
    pushed_out = Declared(GAUGE, "twinsieve_window_pushed_out_messages",
        "Kept messages in the near window that are rarely found, because newer ones fill their buckets. "
        "It is some minutes late, and 0 after a start.",
        alert="above 1 % of window_messages: use a smaller near.window.messages or near.bucket_load")
    window_capacity = Declared(GAUGE, "twinsieve_window_capacity_messages",
        "Number of kept messages that the near window may hold.")
    window_seconds = Declared(OPTIONAL, "twinsieve_window_seconds",
        "Time between the oldest kept message of the near window and stream time.",
        alert="below the time that you count on")
    segments = Declared(GAUGE, "twinsieve_window_segments",
        "Segments of the near window, the open one included.")
    waiting_segments = Declared(GAUGE, "twinsieve_window_waiting_segments",
        "Sealed segments that are being written to files, or wait for that.",
        alert="above 1 for long: a slow disk or store")
    segment_failures = Declared(COUNTER, "twinsieve_segment_failures",
        "Segments of which a file could not be written. Such a segment stays in memory, and is tried again "
        "each minute; it counts once.", alert="growth")
    unwritten = Declared(GAUGE, "twinsieve_window_unwritten_segments",
        "Sealed segments that are in memory alone, since one could not be written.", alert="above 0")
    paused = Declared(GAUGE, "twinsieve_index_paused_by_disk",
        "1 while this process judges and follows nothing: segments cannot be written, and one more in memory "
        "would pass state.memory or the limit of memory.", alert="1")
    sieve_bytes = Declared(GAUGE, "twinsieve_sieve_bytes", "Memory of the sieve.")
    mapped_bytes = Declared(GAUGE, "twinsieve_sieve_mapped_bytes",
        "Bytes of sealed segments that are maps of files; the page cache holds the parts in use.")
    snapshot_age = Declared(OPTIONAL, "twinsieve_snapshot_age_seconds",
        "Age of the oldest block that no stored snapshot holds, so that a restart follows the log from "
        "there; only where this process judges.", alert="above 3 * snapshot_every_seconds")
    snapshot_every = Declared(OPTIONAL, "twinsieve_snapshot_every_seconds",
        "state.snapshot_every, in processes with an index.")
    snapshot_stored = Declared(OPTIONAL, "twinsieve_snapshot_last_success_timestamp_seconds",
        "When this process last stored a snapshot, in seconds since 1970. It does not change if nothing "
        "new arrives.")
    snapshot_failures = Declared(COUNTER, "twinsieve_snapshot_failures",
        "Snapshots that could not be written; each is tried again within a minute.", alert="growth")
    store_hung = Declared(GAUGE, "twinsieve_state_hung_seconds",
        "How long the oldest call to the folder or store of the snapshots has been running, if that is 8 "
        "s or more; else 0.", alert="above 0 for a minute")
    snapshot_seconds = Declared(OPTIONAL, "twinsieve_snapshot_seconds",
        "How long the last stored snapshot took.", alert="near state.snapshot_every: a slow disk or store")
    snapshot_pause = Declared(OPTIONAL, "twinsieve_snapshot_pause_seconds",
        "For how long the last stored snapshot stopped judging.", alert="seconds")
    snapshot_files = Declared(OPTIONAL, "twinsieve_snapshot_files",
        "Number of files that the last stored snapshot names.")
    stored_bytes = Declared(OPTIONAL, "twinsieve_snapshot_stored_bytes",
        "Bytes of the last stored snapshot and of the files that it names, which a restore reads.")
    snapshot_bytes = Declared(COUNTER, "twinsieve_snapshot_bytes_written",
        "Bytes written for stored snapshots, including pieces, parts and merged pieces.")
    shard_segments = Declared(GAUGE, "twinsieve_shard_segments",
        "Sealed segments that the shard of this process answers for.",
        alert="the sum over an app is below the sealed segments for minutes: the index looks up itself")
    shard_copies = Declared(GAUGE, "twinsieve_shard_mapped_segments",
        "Sealed segments that the shard of this process has on its disk, also those that it is next for.")
    shard_waiting = Declared(GAUGE, "twinsieve_shard_waiting_segments",
        "Sealed segments that the shard should answer for, and whose files it does not have yet.",
        alert="above 0 for minutes")
    shard_memory = Declared(GAUGE, "twinsieve_shard_memory_bytes",
        "Memory of the segments that the shard of this process answers for.")
    shard_blocks = Declared(COUNTER, "twinsieve_shard_answered_blocks",
        "Blocks that this process answered, once for each segment.")
    shard_rows = Declared(COUNTER, "twinsieve_shard_answered_rows",
        "Rows of these blocks, once for each segment.")
    shard_bytes = Declared(COUNTER, "twinsieve_shard_answered_bytes", "Bytes of the answers.")
    shard_problems = Declared(COUNTER, "twinsieve_shard_problems",
        "What a shard could not use, by the kind: it is tried again, or left to the index. Nothing is lost.",
        "reason", "growth")
    shard_lag = Declared(OPTIONAL, "twinsieve_shard_lag_blocks",
        "Blocks of the log that the shard has not answered for some segment, though it may: it answers up to "
        "64 ahead of what is judged.", alert="above 32 for minutes")
    alone = Declared(OPTIONAL, "twinsieve_index_unanswered_segments",
        "Sealed segments for which no shard answers: the process that judges looks up in them itself.",
        alert="above 0 for minutes")
    late = Declared(OPTIONAL, "twinsieve_index_late_segments",
        "Sealed segments for which this shard is there and answers too late, or does not read the log: the "
        "process that judges looks up in them itself.", "shard", "above 0 for minutes")
    answered_rows = Declared(COUNTER, "twinsieve_index_answered_rows",
        "Rows that were judged with the answer of a shard, once for each segment.")
    left_rows = Declared(COUNTER, "twinsieve_index_left_rows",
        "Those of these rows that were looked up here too: with too many entries, or a forgotten one.",
        alert="above 1 in 1,000 of answered_rows")
    answers_unused = Declared(COUNTER, "twinsieve_index_unused_answers",
        "Answers that did not fit, by the reason; the index looks up itself. Nothing is lost.",
        "reason", "growth, but of late; any of differs")
    log_bytes = Declared(OPTIONAL, "twinsieve_log_bytes",
        "Bytes of the app's internal topics on a broker's disk, of one replica, shown by the process that"
        " judges; needs Describe on the cluster.", "topic", "growth beyond what lint prints")
    memory = Declared(OPTIONAL, "twinsieve_memory_bytes",
        "Resident memory of this process without pages of files. Linux only.",
        alert="near memory_limit_bytes")
    memory_limit = Declared(OPTIONAL, "twinsieve_memory_limit_bytes",
        "The most memory that this process may take: the lowest limit of its cgroups (of a container, a "
        "systemd unit), or the memory of the machine. Linux only.")
    dropped_lines = Declared(ELSEWHERE, "twinsieve_dropped_log_lines",
        "Log lines that were dropped, because nobody read stderr or writing failed.", alert="growth")
    # fmt: on

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
        self.registry = CollectorRegistry()
        for attribute, metric in declared().items():
            setattr(self, attribute, metric.make(self.registry))
        self.program = ProcessCollector(registry=self.registry)
        in_index = partial(self._is_answered, "index")
        for gauge in (self.lag, self.input_end):
            gauge.export_only_if(self._is_input_known)
        for gauge in (self.log_lag, self.behind):
            gauge.export_only_if(in_index)
        self.log_bytes.export_only_if(lambda: self._judges and in_index())
        self.live.set_function(lambda: float(self._judges and in_index()))
        self.memory.set({(): anonymous_bytes})
        self.memory_limit.set({(): limit_bytes})
        self.process.enter(ProcessPhase.WAITING)
        self.phase.enter(_NO_INDEX)
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
            (self.shard_problems, list(Problem)),
            (self.answers_unused, list(Unused)),
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
        self.open_transaction.set({labels[at]: partial(age, each.opened_s) for at, each in waiting.items()})

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
        self.unwritten.set(index.disk.unwritten if index is not None else 0)
        self.paused.set(index is not None and index.disk.paused_ms is not None)

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
        alone = index.unanswered
        self.alone.set({} if alone is None else {(): len(alone)})
        self.late.set({(name,): each.segments for name, each in index.late.items()})
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
        if index.answers is not None:
            for unused, count in index.answers.unused.items():
                self.answers_unused.labels(unused).inc(count)
            index.answers.unused.clear()
            answered, left = index.state.sieve.take_answered()
            self.answered_rows.inc(answered)
            self.left_rows.inc(left)
        index.unjudged = index.sessions = index.rebalances = index.rules_changes = 0
        index.snapshots.failures = index.snapshots.bytes_written = 0
        index.given_up.clear()

    def count_worker(self, worker: Worker) -> None:
        """Add the worker's own counts since the last call to the metrics, and set them back to 0."""
        self.resyncs.inc(worker.resyncs)
        self.trimmed.inc(worker.trimmed)
        self.skipped.labels(WaitReason.UNREADABLE).inc(worker.skipped)
        self.read.inc(worker.read)
        self.keyless.inc(worker.reader.keyless)
        self.bad_times.inc(worker.reader.bad_times)
        self.rebalances.labels("worker").inc(worker.rebalances)
        self.foreign_offsets.inc(worker.foreign_offsets)
        worker.resyncs = worker.trimmed = worker.skipped = worker.read = worker.rebalances = 0
        worker.foreign_offsets = worker.reader.keyless = worker.reader.bad_times = 0

    def count_shard(self, shard: Shard) -> None:
        """Add the shard's own counts since the last call to the metrics, and set them back to 0."""
        self.shard_blocks.inc(shard.counts["blocks"])
        self.shard_rows.inc(shard.counts["rows"])
        self.shard_bytes.inc(shard.counts["bytes"])
        for problems in (shard.problems, shard.holdings.problems):
            for problem, count in problems.items():
                self.shard_problems.labels(problem).inc(count)
            problems.clear()
        shard.counts.clear()

    def set_shard(self, shard: Shard | None) -> None:
        """Set the gauges of the shard. shard: None for none"""
        self.shard_segments.set(shard.answered if shard is not None else 0)
        self.shard_copies.set(len(shard.holdings.held) if shard is not None else 0)
        self.shard_waiting.set(len(shard.holdings.waiting) if shard is not None else 0)
        self.shard_memory.set(shard.holdings.bytes_in_memory if shard is not None else 0)

    def set_shard_lag(self, blocks: int | None) -> None:
        """Set how far the shard is behind the log. blocks: None if unknown"""
        self.shard_lag.set({(): blocks} if blocks is not None else {})

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


def declared() -> dict[str, Declared[Any]]:
    """Every metric by its attribute of `Metrics`, in the order of the page."""
    return {name: value for name, value in vars(Metrics).items() if isinstance(value, Declared)}
