"""The figures of the status pages, read from the metrics of the process, so that both are always equal."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

from prometheus_client.metrics_core import Metric

from twinsieve.pipeline.broker.ports import Clock
from twinsieve.pipeline.service.metrics import Metrics
from twinsieve.pipeline.service.roles import BOTH, roles_of
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.settings.show import deciding_settings
from twinsieve.pipeline.sizing.process_memory import held_by
from twinsieve.stages.contract import Kind

_HOUR_S = 3600.0
_DROPPED = (Kind.EXACT.name.lower(), Kind.NEAR.name.lower())
Figures = dict[str, Any]
"""Values by name, nested; None where a value is not known."""


class _Metric(Protocol):
    def collect(self) -> Iterable[Metric]:
        """The metric with its series."""


def series(metric: _Metric) -> dict[tuple[str, ...], float]:
    """The values of a metric by the values of its labels, in the order of the labels."""
    return {
        tuple(sample.labels.values()): sample.value
        for family in metric.collect()
        for sample in family.samples
    }


def _one(metric: _Metric) -> float | None:
    """The value of a metric without labels; None if there is none at present."""
    return series(metric).get(())


def _by_label(metric: _Metric) -> dict[str, float]:
    """The values of a metric with one label."""
    return {labels[0]: value for labels, value in series(metric).items()}


def _state(metric: _Metric, *labels: str) -> str | None:
    """The current phase of a `PhaseGauge`."""
    states = series(metric).items()
    return next((str(found[-1]) for found, value in states if found[:-1] == labels and value), None)


class StatusFigures:
    """Makes the figures of one process.

    why_not_ready, remark: as on the page /readyz
    """

    def __init__(
        self,
        settings: Settings,
        metrics: Metrics,
        clock: Clock,
        why_not_ready: Callable[[], str],
        remark: Callable[[], str],
    ) -> None:
        self._settings = settings
        self._metrics = metrics
        self._clock = clock
        self._why_not_ready = why_not_ready
        self._remark = remark
        self._rates = Rates()
        self._worst = lru_cache(maxsize=8)(self._worst_bytes)
        self._member: str | None = None

    def named(self, member: str) -> None:
        """Take the name of this process."""
        self._member = member

    def tick(self) -> None:
        """Keep a reading of the counters from time to time; call it a few times a second."""
        now_s = self._clock.monotonic_s()
        if self._rates.due(now_s):
            self._rates.read(now_s, _by_label(self._metrics.messages))

    def now(self) -> Figures:
        """All figures."""
        metrics = self._metrics
        info = next((sample.labels for family in metrics.info.collect() for sample in family.samples), {})
        why_not = self._why_not_ready()
        return {
            "time_s": self._clock.now_ms() / 1000,
            "app": info.get("app"),
            "role": info.get("role"),
            "member": self._member,
            "version": info.get("version"),
            "scheme": info.get("scheme") or None,
            "process": {
                "phase": _state(metrics.process),
                "ready": not why_not,
                "why_not_ready": why_not,
                "remark": self._remark(),
                "started_s": self._program("process_start_time_seconds"),
            },
            "roles": self._roles(),
            "index": {
                "phase": _state(metrics.phase),
                "live": _one(metrics.live) == 1.0,
                "lag_blocks": _one(metrics.log_lag),
                "behind_s": _one(metrics.behind),
            },
            "messages": self._messages(),
            "kept_apart": _by_label(metrics.kept_apart),
            "dead_letters": _by_label(metrics.dead_letters),
            "waiting": self._waiting(),
            "window": self._window(),
            "shards": self._shards(),
            "memory": {
                "resident_bytes": self._program("process_resident_memory_bytes"),
                "sieve_bytes": _one(metrics.sieve_bytes),
                "mapped_bytes": _one(metrics.mapped_bytes),
                "pending_bytes": _one(metrics.pending_bytes),
                "worst_bytes": self._worst(len(series(metrics.pending)), info.get("role", BOTH)),
            },
            "snapshot": {
                "age_s": _one(metrics.snapshot_age),
                "stored_s": _one(metrics.snapshot_stored),
                "failures": _one(metrics.snapshot_failures),
                "took_s": _one(metrics.snapshot_seconds),
                "pause_s": _one(metrics.snapshot_pause),
                "files": _one(metrics.snapshot_files),
                "stored_bytes": _one(metrics.stored_bytes),
                "written_bytes": _one(metrics.snapshot_bytes),
                "restored_bytes": _one(metrics.restored_bytes),
                "restore_bytes": _one(metrics.restore_bytes),
            },
            "troubles": self._troubles(),
            "settings": deciding_settings(self._settings),
        }

    def _program(self, name: str) -> float | None:
        """A value of the process, as the operating system reports it."""
        families = self._metrics.program.collect()
        return next((s.value for family in families for s in family.samples if s.name == name), None)

    def _roles(self) -> Figures:
        metrics = self._metrics
        answered, offsets = _by_label(metrics.answered), _by_label(metrics.clock_offset)
        names = dict.fromkeys(labels[0] for labels in series(metrics.role))
        return {
            name: {
                "phase": _state(metrics.role, name),
                "broker_answered_s": answered.get(name),
                "clock_offset_s": offsets.get(name),
            }
            for name in names
        }

    def _messages(self) -> Figures:
        counts = _by_label(self._metrics.messages)
        total = sum(counts.values())
        now_s = self._clock.monotonic_s()
        rates = self._rates.per_s(now_s, counts)
        sums = [None if None in each else sum(each) for each in zip(*rates.values(), strict=True)]
        dropped = sum(counts[verdict] for verdict in _DROPPED)
        return {
            "total": total,
            "dropped_share": dropped / total if total else None,
            "per_s": _by_period(sums),
            "by_verdict": {
                verdict: {
                    "total": count,
                    "share": count / total if total else None,
                    "per_s": _by_period(rates[verdict]),
                }
                for verdict, count in counts.items()
            },
        }

    def _waiting(self) -> Figures:
        metrics = self._metrics
        lag, pending, oldest = map(series, (metrics.lag, metrics.pending, metrics.oldest_waiting))
        return {
            "lag_messages": sum(lag.values()) if lag else None,
            "pending_messages": sum(pending.values()),
            "unanswered_blocks": _one(metrics.unanswered),
            "unassigned_partitions": _one(metrics.unassigned_partitions),
            "reasons": _by_label(metrics.waiting_partitions),
            "partitions": {
                f"{topic}[{number}]": {
                    "lag_messages": lag.get((topic, number)),
                    "oldest_s": oldest.get((topic, number)),
                    "pending_messages": pending.get((topic, number)),
                }
                for topic, number in sorted({*lag, *pending, *oldest}, key=lambda at: (at[0], int(at[1])))
            },
        }

    def _window(self) -> Figures:
        metrics = self._metrics
        seconds, age_ms = _one(metrics.window_seconds), self._settings.near.window.age_ms
        return {
            "messages": _one(metrics.window_messages),
            "capacity_messages": _one(metrics.window_capacity),
            "pushed_out_messages": _one(metrics.pushed_out),
            "segments": _one(metrics.segments),
            "waiting_segments": _one(metrics.waiting_segments),
            "hours": None if seconds is None else seconds / _HOUR_S,
            "age_hours": None if age_ms is None else age_ms / 1000 / _HOUR_S,
        }

    def _shards(self) -> Figures:
        """What an index that uses answers of shards gets, and what the shard of this process gives."""
        metrics = self._metrics
        return {
            "unanswered_segments": _one(metrics.alone),
            "answered_rows": _one(metrics.answered_rows),
            "left_rows": _one(metrics.left_rows),
            "unused_answers": sum(series(metrics.answers_unused).values()),
            "segments": _one(metrics.shard_segments),
            "mapped_segments": _one(metrics.shard_copies),
            "waiting_segments": _one(metrics.shard_waiting),
            "memory_bytes": _one(metrics.shard_memory),
            "lag_blocks": _one(metrics.shard_lag),
        }

    def _troubles(self) -> Figures:
        """Counters that stay at 0 where all is well."""
        metrics = self._metrics
        return {
            "trimmed_messages": _one(metrics.trimmed),
            "foreign_headers": _one(metrics.foreign),
            "foreign_members": _one(metrics.foreign_members),
            "foreign_offsets": _one(metrics.foreign_offsets),
            "resyncs": _one(metrics.resyncs),
            "broker_errors": sum(series(metrics.broker_errors).values()),
            "aborted_transactions": sum(series(metrics.aborts).values()),
            "index_asides": _one(metrics.asides),
            "index_gap_blocks": _one(metrics.gaps),
            "index_unjudged_blocks": _one(metrics.unjudged),
            "segment_failures": _one(metrics.segment_failures),
            "given_up_messages": sum(series(metrics.given_up).values()),
        }

    def _worst_bytes(self, partitions: int, role: str) -> int:
        return held_by(self._settings, max(1, partitions)).of(roles_of(role))


def _by_period(rates: Sequence[float | None]) -> dict[str, float | None]:
    return {f"{period_s:.0f}s": rate for period_s, rate in zip(PERIODS_S, rates, strict=True)}


EVERY_S = 5.0
"""Time between two readings that are kept."""
PERIODS_S = (10.0, 60.0, 300.0)


class Rates:
    """Keeps a reading each five seconds, of the last five minutes.

    >>> rates = Rates()
    >>> for second, count in ((0, 0), (70, 300), (80, 500)):
    ...     rates.read(second, {"unique": count})
    >>> rates.per_s(80, {"unique": 500})["unique"]
    (20.0, 6.25, 6.25)
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._readings: deque[tuple[float, dict[str, float]]] = deque(
            maxlen=int(max(PERIODS_S) / EVERY_S) + 1
        )

    def due(self, now_s: float) -> bool:
        """Whether it is time for a reading."""
        with self._lock:
            return not self._readings or now_s - self._readings[-1][0] >= EVERY_S

    def read(self, now_s: float, counts: Mapping[str, float]) -> None:
        """Keep a reading, if it is time for one. now_s: monotonic time"""
        with self._lock:
            if not self._readings or now_s - self._readings[-1][0] >= EVERY_S:
                self._readings.append((now_s, dict(counts)))

    def per_s(self, now_s: float, counts: Mapping[str, float]) -> dict[str, tuple[float | None, ...]]:
        """By name the growth a second over each of PERIODS_S, or since the first reading if that is later.
        None: there is no earlier reading."""
        with self._lock:
            readings = list(self._readings)
        rates: dict[str, tuple[float | None, ...]] = {}
        starts = [_start(readings, now_s, period_s) for period_s in PERIODS_S]
        for name, count in counts.items():
            rates[name] = tuple(
                None if start is None else (count - start[1].get(name, 0.0)) / (now_s - start[0])
                for start in starts
            )
        return rates


def _start(
    readings: list[tuple[float, dict[str, float]]], now_s: float, period_s: float
) -> tuple[float, dict[str, float]] | None:
    """The newest reading that is at least `period_s` old, else the oldest one; None if none is older than
    now."""
    earlier = [reading for reading in readings if reading[0] < now_s]
    old = [reading for reading in earlier if now_s - reading[0] >= period_s]
    return old[-1] if old else earlier[0] if earlier else None
