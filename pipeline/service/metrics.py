"""Every metric of a running service, each name once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Enum, Gauge, Histogram

from twinsieve.pipeline.broker.ports import Clock, Hook
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.index.config import IndexPhase
from twinsieve.pipeline.index.index import Index
from twinsieve.pipeline.settings.model import HOUR_MS
from twinsieve.pipeline.wire.ruling import Ruling, Source
from twinsieve.pipeline.worker.emit import Emission
from twinsieve.pipeline.worker.worker import Worker
from twinsieve.stages.contract import Flag, counts_by_name

_STEP_BOUNDS_S = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0)

_NO_INDEX = "none"


class Metrics:
    """One process's metrics in a registry of their own; labels come from settings and fixed words alone."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.registry = at = CollectorRegistry()
        counter = partial(Counter, registry=at)
        gauge = partial(Gauge, registry=at)
        enum = partial(Enum, registry=at)
        # Messages whose verdict was committed, by kind; replayed ones were emitted before, and no_text ones
        # (null texts, tombstones) were compared with nothing.
        self.messages = counter("twinsieve_messages", "Messages by verdict", ["verdict"])
        # Messages that could not be judged or sent on, by reason. Alert on growth.
        self.dead_letters = counter("twinsieve_dead_letters", "Dead letters by reason", ["reason"])
        # Headers of the input that look like twinsieve's own: no output gets them.
        self.foreign = counter("twinsieve_foreign_headers", "Headers that look like ours, left out")
        # Input offsets that retention took before they were judged, once each, when the offset behind them is
        # committed. Offsets of control markers and of compacted messages count. Alert on any.
        self.trimmed = counter("twinsieve_trimmed_messages", "Input lost to retention")
        # Messages read that wait for an answer. Near pending_messages: the index is behind.
        self.pending = gauge("twinsieve_pending_messages", "Waiting", ["topic", "partition"])
        # Memory of messages that wait. Near pending_bytes: the index is behind.
        self.pending_bytes = gauge("twinsieve_pending_bytes", "Waiting, memory")
        # Input partitions that wait for a partition without a leader (input, log, verdicts, outputs).
        self.held = gauge("twinsieve_held_partitions", "Waiting for a leader")
        # Messages in the input that are not emitted yet. Alert on growth.
        self.lag = gauge("twinsieve_lag_messages", "Input lag", ["topic", "partition"])
        # Blocks asked and not answered.
        self.unanswered = gauge("twinsieve_unanswered_blocks", "Blocks without an answer")
        # Times a worker began anew from its committed offsets (rebalance apart). Alert on a steady rate.
        self.resyncs = counter("twinsieve_resyncs", "New sessions after a failure")
        # Time from the step before to this one.
        self.steps = Histogram(
            "twinsieve_step_seconds", "Time of a step", ["step"], buckets=_STEP_BOUNDS_S, registry=at
        )
        # What this process does with each of its roles; `loops.LoopPhase` says what the states mean.
        states = ["starting", "working", "retrying", "stopping"]
        self.role = enum("twinsieve_role_phase", "State of a role's loop", ["role"], states=states)
        # 1 where this process judges; the sum over all processes should be 1. Alert on 0.
        self.live = gauge("twinsieve_index_live", "Whether the index here judges")
        # Where the index here stands; `none` where this process has no index.
        self.phase = enum("twinsieve_index_phase", "State of the index", states=[_NO_INDEX, *IndexPhase])
        # Blocks of the fingerprint log that are not judged (or followed) yet.
        self.log_lag = gauge("twinsieve_index_lag_blocks", "Blocks behind the log's end")
        # Judged blocks that retention took, or the decisions on them, before this index followed them.
        self.gaps = gauge("twinsieve_index_gaps", "Blocks missing in a restore")
        # Blocks that retention took before anybody judged them; workers ask again. Alert on growth.
        self.unjudged = counter("twinsieve_index_unjudged_blocks", "Blocks never judged")
        # Sessions begun since the app was new.
        self.sessions = gauge("twinsieve_index_sessions", "Sessions begun")
        # Judged messages that retention took from the input before they were emitted. Alert on any.
        self.given_up = gauge("twinsieve_index_given_up_messages", "Judged, then passed over")
        # Exact duplicates that the Bloom filter alone reports.
        self.unconfirmed = counter("twinsieve_index_unconfirmed", "Bloom hits, no leader")
        # Messages that the index kept though another one was alike, by what differs (docs/DIFFERENCES.md).
        self.kept_apart = counter("twinsieve_index_kept_apart", "Alike, kept by reason", ["reason"])
        # Kept messages in the window, its size, and how far back it reaches.
        self.window_held = gauge("twinsieve_window_messages", "Kept messages in the window")
        self.window_capacity = gauge("twinsieve_window_capacity_messages", "Window size")
        self.window_hours = gauge("twinsieve_window_hours", "Hours that the window covers")
        self.sieve_bytes = gauge("twinsieve_sieve_bytes", "Memory of the sieve")
        # Seconds of log to replay if the index restarted now. Alert when far beyond snapshot_every.
        self.snapshot_age = gauge("twinsieve_snapshot_age_seconds", "Age of the snapshot")

        # Bytes of the app's own topics on a broker's disk, on one replica; absent where no broker tells.
        self.log_bytes = gauge("twinsieve_log_bytes", "Bytes of a topic on disk", ["topic"])

    def timer(self) -> Hook:
        """A hook that times the steps of one role."""
        clock = self._clock
        last_s = clock.monotonic_s()
        found: dict[str, Callable[[float], None]] = {}

        def hook(step: str) -> None:
            nonlocal last_s
            now_s = clock.monotonic_s()
            if step not in found:
                found[step] = self.steps.labels(str(step)).observe
            found[step](now_s - last_s)
            last_s = now_s

        return hook

    def emitted(self, emission: Emission) -> None:
        """Count what one transaction held."""
        counts = {kind.name.lower(): count for kind, count in emission.kinds.items()}
        if emission.no_text:
            counts |= {"no_text": emission.no_text, "unique": counts["unique"] - emission.no_text}
        for verdict, count in counts.items():
            self.messages.labels(verdict).inc(count)
        for reason, count in emission.dead.items():
            self.dead_letters.labels(reason).inc(count)
        self.foreign.inc(emission.foreign)

    def see_waiting(self, worker: Worker | None) -> None:
        """Gauges of a worker, or of none, that no broker is asked for."""
        self.unanswered.set(worker.unanswered if worker is not None else 0)
        self.held.set(worker.held if worker is not None else 0)
        self.pending_bytes.set(worker.pending_bytes if worker is not None else 0)
        self.pending.clear()
        for partition, rows in worker.pending_rows.items() if worker is not None else ():
            self.pending.labels(partition.topic, str(partition.number)).set(rows)

    def see_worker(self, progress: Mapping[Partition, tuple[int, int]]) -> None:
        """Lags of a worker, asked for now and then; `progress` is what it says of itself."""
        self.lag.clear()
        for partition, (emitted, end) in progress.items():
            self.lag.labels(partition.topic, str(partition.number)).set(max(0, end - emitted))

    def see_judging(self, index: Index | None) -> None:
        """Gauges of an index, or of none, that no broker is asked for."""
        self.live.set(index is not None and index.live)
        self.phase.state(index.phase.now if index is not None else _NO_INDEX)
        if index is None or not index.live:
            self.log_bytes.clear()
        if index is not None:
            self.gaps.set(index.follower.gaps)
            self.snapshot_age.set(index.snapshots.age_s)

    def see_index(self, index: Index) -> None:
        """Gauges of an index, asked for now and then."""
        self.log_lag.set(max(0, index.follower.log_end() - index.state.at))
        self.sessions.set(index.state.ledger.sessions_started)
        self.given_up.set(index.state.ledger.given_up)
        stats = index.state.sieve.stats()
        self.window_held.set(stats.held)
        self.window_capacity.set(stats.capacity)
        self.sieve_bytes.set(stats.bytes_used)
        if stats.stream_time_ms is not None and stats.oldest_time_ms is not None:
            self.window_hours.set((stats.stream_time_ms - stats.oldest_time_ms) / HOUR_MS)

    def see_log(self, sizes: Mapping[str, int]) -> None:
        """Bytes of topics, those that are known."""
        self.log_bytes.clear()
        for topic, size in sizes.items():
            self.log_bytes.labels(topic).set(size)

    def ruled(self, ruling: Ruling) -> None:
        """Count what an index has judged; what it only said again was counted then."""
        unconfirmed = (ruling.verdicts.flags & Flag.UNCONFIRMED) != 0
        count = int(np.count_nonzero(unconfirmed & (ruling.sources == Source.NEW)))
        if count:
            self.unconfirmed.inc(count)
        for reason, kept in counts_by_name(ruling.verdicts.reasons[ruling.sources == Source.NEW]).items():
            self.kept_apart.labels(reason).inc(kept)
