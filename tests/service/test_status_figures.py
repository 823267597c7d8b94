"""Every figure of the status pages that is also a metric is equal to it, on the page and in the JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.parser import text_string_to_metric_families

from tests.memory.broker import ManualClock
from tests.service.scraped import Pages, Series, series
from tests.service.status_pages import leaves, shown, status_json
from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.index.config import IndexPhase
from twinsieve.pipeline.index.ledger import GivenUp
from twinsieve.pipeline.index.segment_answers import Unused
from twinsieve.pipeline.service.http import HealthServer
from twinsieve.pipeline.service.metrics import OPEN_STEPS, Metrics, ProcessPhase, Waiting
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.sizing.process_memory import held_by
from twinsieve.pipeline.status_pages.figures import StatusFigures
from twinsieve.pipeline.status_pages.server import LogTail, StatusPages, StatusServer
from twinsieve.pipeline.worker.waiting import WaitReason
from twinsieve.stages.contract import Kind
from twinsieve.stages.differ.rules import Rule

VERDICTS = [*(kind.name.lower() for kind in Kind), "no_text"]
REASONS = [reason.words for reason in Rule if reason]
PARTITIONS = [("posts", number) for number in (0, 2, 10)]
SETTINGS = Settings.model_validate({"near": {"window": {"age": "36h"}}})
Value = Callable[[dict[str, Series]], float | None]


def one(name: str, *labels: str) -> Value:
    """The metric itself."""
    return lambda metrics: metrics.get(name, {}).get(labels)


def total(name: str) -> Value:
    """The sum of a metric over its labels, 0 without any."""
    return lambda metrics: sum(metrics.get(name, {}).values())


EQUAL: dict[str, Value] = {
    "process.started_s": one("process_start_time_seconds"),
    "roles.worker.broker_answered_s": one("broker_answered_timestamp_seconds", "worker"),
    "roles.index.broker_answered_s": one("broker_answered_timestamp_seconds", "index"),
    "roles.shard.broker_answered_s": one("broker_answered_timestamp_seconds", "shard"),
    "roles.worker.clock_offset_s": one("clock_offset_seconds", "worker"),
    "roles.shard.clock_offset_s": one("clock_offset_seconds", "shard"),
    "roles.index.clock_offset_s": one("clock_offset_seconds", "index"),
    "index.live": one("index_live"),
    "index.lag_blocks": one("index_lag_blocks"),
    "index.behind_s": one("index_behind_seconds"),
    "messages.total": total("messages_total"),
    "messages.dropped_share": lambda metrics: (
        (metrics["messages_total"]["exact",] + metrics["messages_total"]["near",])
        / sum(metrics["messages_total"].values())
        if sum(metrics["messages_total"].values())
        else None
    ),
    **{f"messages.by_verdict.{name}.total": one("messages_total", name) for name in VERDICTS},
    **{
        f"messages.by_verdict.{name}.share": lambda metrics, name=name: (  # type: ignore[misc]
            metrics["messages_total"][name,] / sum(metrics["messages_total"].values())
            if sum(metrics["messages_total"].values())
            else None
        )
        for name in VERDICTS
    },
    **{f"kept_apart.{name}": one("index_kept_apart_total", name) for name in REASONS},
    **{f"dead_letters.{name}": one("dead_letters_total", name) for name in DeadLetterReason},
    "waiting.lag_messages": lambda metrics: (
        sum(metrics["lag_messages"].values()) if metrics.get("lag_messages") else None
    ),
    "waiting.pending_messages": total("pending_messages"),
    "waiting.unanswered_blocks": one("unanswered_blocks"),
    "waiting.unassigned_partitions": one("unassigned_partitions"),
    **{f"waiting.reasons.{reason}": one("waiting_partitions", reason) for reason in WaitReason},
    **{
        f"waiting.partitions.{topic}[{number}].oldest_s": one("oldest_waiting_seconds", str(number), topic)
        for topic, number in PARTITIONS
    },
    **{
        f"waiting.partitions.{topic}[{number}].{name}": one(name, str(number), topic)
        for topic, number in PARTITIONS
        for name in ("lag_messages", "pending_messages")
    },
    "window.messages": one("window_messages"),
    "window.capacity_messages": one("window_capacity_messages"),
    "window.pushed_out_messages": one("window_pushed_out_messages"),
    "window.segments": one("window_segments"),
    "window.waiting_segments": one("window_waiting_segments"),
    "window.hours": lambda metrics: (
        metrics["window_seconds"][()] / 3600 if metrics.get("window_seconds") else None
    ),
    "shards.unanswered_segments": one("index_unanswered_segments"),
    "shards.answered_rows": one("index_answered_rows_total"),
    "shards.left_rows": one("index_left_rows_total"),
    "shards.unused_answers": total("index_unused_answers_total"),
    "shards.segments": one("shard_segments"),
    "shards.mapped_segments": one("shard_mapped_segments"),
    "shards.waiting_segments": one("shard_waiting_segments"),
    "shards.memory_bytes": one("shard_memory_bytes"),
    "shards.lag_blocks": one("shard_lag_blocks"),
    "memory.resident_bytes": one("process_resident_memory_bytes"),
    "memory.sieve_bytes": one("sieve_bytes"),
    "memory.mapped_bytes": one("sieve_mapped_bytes"),
    "memory.pending_bytes": one("pending_bytes"),
    "snapshot.age_s": one("snapshot_age_seconds"),
    "snapshot.stored_s": one("snapshot_last_success_timestamp_seconds"),
    "snapshot.failures": one("snapshot_failures_total"),
    "snapshot.took_s": one("snapshot_seconds"),
    "snapshot.pause_s": one("snapshot_pause_seconds"),
    "snapshot.files": one("snapshot_files"),
    "snapshot.stored_bytes": one("snapshot_stored_bytes"),
    "snapshot.written_bytes": one("snapshot_bytes_written_total"),
    "snapshot.restored_bytes": one("restored_bytes"),
    "snapshot.restore_bytes": one("restore_bytes"),
    "troubles.trimmed_messages": one("trimmed_messages_total"),
    "troubles.foreign_headers": one("foreign_headers_total"),
    "troubles.foreign_members": one("foreign_members"),
    "troubles.foreign_offsets": one("foreign_offsets_total"),
    "troubles.resyncs": one("resyncs_total"),
    "troubles.broker_errors": total("broker_errors_total"),
    "troubles.aborted_transactions": total("aborted_transactions_total"),
    "troubles.index_asides": one("index_asides_total"),
    "troubles.index_gap_blocks": one("index_gap_blocks_total"),
    "troubles.index_unjudged_blocks": one("index_unjudged_blocks_total"),
    "troubles.segment_failures": one("segment_failures_total"),
    "troubles.given_up_messages": total("index_given_up_messages_total"),
}
"""By the path of a figure the metric that it shows."""
_PERIODS = ("10s", "60s", "300s")
NO_METRIC = {
    "time_s",
    "window.age_hours",
    "memory.worst_bytes",
    "process.ready",
    *(f"messages.per_s.{period}" for period in _PERIODS),
    *(f"messages.by_verdict.{name}.per_s.{period}" for name in VERDICTS for period in _PERIODS),
}
"""Figures that no metric has: of the settings, of the clock, and rates, for which metrics have `rate()`."""


class Process:
    """The metrics of a process, and both servers."""

    def __init__(self, settings: Settings = SETTINGS) -> None:
        self.clock = ManualClock()
        self.metrics = Metrics(self.clock)
        self.why_not_ready = self.remark = ""
        self.figures = StatusFigures(
            settings, self.metrics, self.clock, lambda: self.why_not_ready, lambda: self.remark
        )
        self.tail = LogTail()
        health = HealthServer(("127.0.0.1", 0), self.metrics.registry, str, str)
        status = StatusServer(("127.0.0.1", 0), StatusPages(self.figures, self.tail))
        self._servers = health, status
        self.port = status.port
        self._health = Pages(health.port)

    def scraped(self) -> dict[str, Series]:
        return series(text_string_to_metric_families(self._health.page("/metrics")[1]))

    def close(self) -> None:
        for server in self._servers:
            server.close()


@pytest.fixture
def process() -> Iterator[Process]:
    made = Process()
    yield made
    made.close()


def _fill(metrics: Metrics, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each metric a value that no other has."""
    numbers = iter(range(1_001, 9_999, 7))
    metrics.set_info("weibo", "both", "scheme-1")
    metrics.process.enter(ProcessPhase.RUNNING)
    for role, state in (("worker", "working"), ("index", "retrying"), ("shard", "working")):
        metrics.begin(role, lambda: True)
        metrics.role.enter(state, role)
    for counter, labels in (
        (metrics.messages, VERDICTS),
        (metrics.dead_letters, list(DeadLetterReason)),
        (metrics.kept_apart, REASONS),
        (metrics.given_up, list(GivenUp)),
        (metrics.answers_unused, list(Unused)),
        (metrics.broker_errors, ["worker", "index"]),
    ):
        for label in labels:
            counter.labels(label).inc(next(numbers))
    for step in OPEN_STEPS:
        metrics.aborts.labels(step.partition(".")[0], step).inc(next(numbers))
    for counter in (
        *(metrics.trimmed, metrics.foreign, metrics.foreign_offsets, metrics.resyncs, metrics.asides),
        metrics.gaps,
        *(metrics.unjudged, metrics.snapshot_failures, metrics.snapshot_bytes, metrics.segment_failures),
        *(metrics.answered_rows, metrics.left_rows),
    ):
        counter.inc(next(numbers))
    for gauge in (
        *(metrics.pending_bytes, metrics.unanswered, metrics.window_messages),
        *(metrics.pushed_out, metrics.window_capacity, metrics.sieve_bytes, metrics.mapped_bytes),
        *(metrics.segments, metrics.waiting_segments, metrics.shard_segments, metrics.shard_copies),
        *(metrics.shard_waiting, metrics.shard_memory),
    ):
        gauge.set(next(numbers))
    for optional in (
        *(metrics.restore_bytes, metrics.restored_bytes, metrics.log_lag, metrics.behind),
        *(metrics.window_seconds, metrics.snapshot_age, metrics.snapshot_stored, metrics.foreign_members),
        *(metrics.snapshot_seconds, metrics.snapshot_pause, metrics.snapshot_files, metrics.stored_bytes),
        *(metrics.alone, metrics.shard_lag),
    ):
        optional.set({(): next(numbers) + 0.5})
    for each in (metrics.answered, metrics.clock_offset):
        each.set({(role,): next(numbers) + 0.25 for role in ("worker", "index", "shard")})
    for reason in WaitReason:
        metrics.waiting_partitions.labels(reason).set(next(numbers))
    now_s = metrics._clock.monotonic_s()
    at = {Partition(topic, number): next(numbers) for topic, number in PARTITIONS}
    metrics.set_input(
        {part: Waiting(lag, lag, now_s - lag - 0.5, has_worker=False) for part, lag in at.items()}, now_s
    )
    for topic, number in PARTITIONS:
        metrics.pending.labels(topic, str(number)).set(next(numbers))
    metrics.live.set_function(lambda: 1.0)
    metrics.phase.enter(IndexPhase.LIVE)
    _fix_program(metrics, monkeypatch)


def _fix_program(metrics: Metrics, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the system says of this process changes from one question to the next."""
    names = ("process_start_time_seconds", "process_resident_memory_bytes")
    families = [
        GaugeMetricFamily(name, name, value=number) for number, name in enumerate(names, start=98_765)
    ]
    monkeypatch.setattr(metrics.program, "collect", lambda: families)


def _figures_of(port: int) -> dict[str, float | None]:
    """Figures in the JSON: numbers, truth values, and what is not known."""
    found = leaves(status_json(port))
    return {
        name: value
        for name, value in found.items()
        if name in EQUAL or (isinstance(value, (int, float)) and name not in NO_METRIC)
    }


def test_every_figure_of_the_json_that_is_a_metric_is_equal_to_it(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fill(process.metrics, monkeypatch)
    scraped = process.scraped()
    wanted = {name: value(scraped) for name, value in EQUAL.items()}
    assert None not in wanted.values()
    values = [value for name, value in wanted.items() if name != "index.live"]
    assert len(set(values)) == len(values), "a figure would be taken for another one"
    assert _figures_of(process.port) == wanted


def test_the_page_without_scripts_shows_the_figures_of_the_json(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    process.figures.tick()
    process.clock.sleep(20.0)
    _fill(process.metrics, monkeypatch)
    in_json = {
        name: value
        for name, value in leaves(status_json(process.port)).items()
        if name in {*EQUAL, *NO_METRIC}
    }
    on_page = shown(process.port).figures
    # Said in words.
    assert in_json.keys() - on_page.keys() == {"index.live", "process.ready"}
    assert on_page == {name: in_json[name] for name in on_page}
    assert None not in on_page.values()


def test_figures_that_are_not_known_are_null_and_a_dash(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fix_program(process.metrics, monkeypatch)
    scraped = process.scraped()
    wanted = {
        name: value(scraped) for name, value in EQUAL.items() if "roles." not in name and "[" not in name
    }
    unknown = {name for name, value in wanted.items() if value is None}
    assert unknown >= {"waiting.lag_messages", "window.hours", "index.lag_blocks", "snapshot.stored_s"}
    assert _figures_of(process.port) == wanted
    page = shown(process.port)
    assert {name for name in unknown if page.figures.get(name, 0.0) is not None} == {
        "snapshot.restore_bytes",
        "snapshot.restored_bytes",
        "shards.unanswered_segments",
        "shards.lag_blocks",
    }
    assert "–" in page.text


def test_words_of_the_page_are_the_states_of_the_metrics(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fill(process.metrics, monkeypatch)
    process.why_not_ready = "index: retrying, not ready"
    process.figures.named("one")
    found = status_json(process.port)
    words = [found[name] for name in ("app", "role", "member", "scheme")]
    assert words == ["weibo", "both", "one", "scheme-1"]
    assert (found["process"]["phase"], found["index"]["phase"]) == ("running", "live")
    assert {name: role["phase"] for name, role in found["roles"].items()} == {
        "worker": "working",
        "index": "retrying",
        "shard": "working",
    }
    assert found["process"]["why_not_ready"] == "index: retrying, not ready"
    text = shown(process.port).text
    for word in (*words, "index: retrying, not ready", "retrying, live", "(judges)"):
        assert word in text
    process.why_not_ready, process.remark = "", "index: is 40 s behind"
    assert "ready: index: is 40 s behind" in shown(process.port).text


def test_rates_are_of_the_last_seconds_and_minutes(process: Process) -> None:
    unique = process.metrics.messages.labels("unique")
    for _ in range(12):
        process.figures.tick()
        unique.inc(50)
        process.clock.sleep(5.0)
    unique.inc(150)
    messages = status_json(process.port)["messages"]
    assert messages["by_verdict"]["unique"]["per_s"] == {"10s": 25.0, "60s": 12.5, "300s": 12.5}
    assert messages["per_s"] == messages["by_verdict"]["unique"]["per_s"]


@pytest.mark.parametrize("role", ["worker", "index", "both", "shard", "index,shard"])
def test_the_worst_memory_is_that_of_the_role_and_its_partitions(
    process: Process, role: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fill(process.metrics, monkeypatch)
    process.metrics.set_info("weibo", role)
    held = held_by(SETTINGS, len(PARTITIONS))
    wanted = {"worker": held.worker, "index": held.index, "shard": held.shard, "both": held.process}
    wanted["index,shard"] = held.index + held.shard
    assert status_json(process.port)["memory"]["worst_bytes"] == wanted[role]
