"""What `lint` says a process may hold is the sum of the limits that the roles and clients really have."""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.configs import builder
from twinsieve.pipeline.broker.clocks import BrokerClock
from twinsieve.pipeline.broker.records import Partition, Records
from twinsieve.pipeline.index import segment_answers
from twinsieve.pipeline.index.ranges import OpenRows, OpenVerdicts
from twinsieve.pipeline.kafka import producers, reading
from twinsieve.pipeline.kafka.access import Access
from twinsieve.pipeline.kafka.admin import KafkaAdmin
from twinsieve.pipeline.settings.client_buffers import (
    ASIDE_BYTES,
    POLL_BYTES,
    fetched_bytes,
    polled_bytes,
    queue_bytes,
)
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.settings.segment_bytes import segment_parts
from twinsieve.pipeline.settings.stage_config import sieve_config
from twinsieve.pipeline.shards.config import MOST_BYTES_AHEAD
from twinsieve.pipeline.sizing.process_memory import held_by
from twinsieve.pipeline.wire.column_bytes import arrays_of
from twinsieve.pipeline.worker.asks import READING_FACTOR, bytes_held
from twinsieve.pipeline.worker.config import MAX_ASKED_BYTES
from twinsieve.pipeline.worker.session import ROW_BYTES, SPARE_PART
from twinsieve.stages.contract import Verdicts
from twinsieve.stages.exact.forgotten import Forgotten
from twinsieve.stages.judge.batch_sieve import worst_case_bytes

_MIB = 1 << 20


def _settings(**kafka: object) -> Settings:
    return Settings.model_validate({"kafka": kafka})


@pytest.mark.parametrize("kafka", [{}, {"pending_bytes": "9MiB", "poll_messages": 700}])
def test_waiting_originals_are_what_the_workers_config_allows(kafka: dict[str, object]) -> None:
    settings = _settings(**kafka)
    config = builder(settings).worker_config()
    spare = config.max_pending_bytes // SPARE_PART
    one_poll = polled_bytes(settings.kafka) + config.poll_messages * ROW_BYTES
    assert held_by(settings, 5).waiting == config.max_pending_bytes + spare + one_poll


@pytest.mark.parametrize(("max_bytes", "at_once"), [("64KiB", MAX_ASKED_BYTES), ("16MiB", 16 << 20)])
def test_texts_are_read_a_few_at_a_time_or_one_by_one(max_bytes: str, at_once: int) -> None:
    settings = Settings.model_validate({"input": {"max_bytes": max_bytes}})
    assert held_by(settings, 5).reading == READING_FACTOR * at_once


@pytest.mark.parametrize("answers", ["none", "shards"])
def test_a_role_is_the_sum_of_its_parts(answers: str) -> None:
    settings = Settings.model_validate({"near": {"answers": answers}})
    held = held_by(settings, 3)
    assert held.sieve == sum(worst_case_bytes(sieve_config(settings, "")).values())
    assert held.worker == held.waiting + held.reading + held.worker_fetched + held.arenas + 2 * held.producer
    assert held.writing == held.saving + held.open_verdicts + held.forgotten
    kept = held.sieve + held.open_verdicts + held.forgotten
    waiting = held.held_blocks + held.answers + held.arenas
    assert held.arenas == settings.kafka.pending_bytes // 8
    assert held.index == kept + held.writing + waiting + held.index_fetched + held.producer
    looking_up = held.segments + held.taking_over + held.answers_made
    assert held.shard == looking_up + held.shard_fetched + held.arenas + held.producer
    assert held.saving < held.sieve / 4, "the sieve is not copied"
    assert held.process == held.worker + held.index == held.of(["worker", "index"])
    assert held.of(["shard", "index"]) == held.shard + held.index


def test_an_app_with_shards_holds_what_their_limits_allow() -> None:
    near = {"answers": "shards", "segment": 1_000_000, "window": {"messages": 10_000_000}}
    settings = Settings.model_validate({"near": near, "state": {"memory": "64GiB"}})
    alone = settings.model_copy(update={"near": settings.near.model_copy(update={"answers": "none"})})
    held, without = held_by(settings, 3), held_by(alone, 3)
    assert held.held_blocks == without.held_blocks == builder(settings).index_config().max_step_bytes // 2
    answers = settings.topics.verdict_partitions
    readers = fetched_bytes(settings.kafka, answers, own=True) + POLL_BYTES
    assert held.index == without.index + segment_answers.MOST_BYTES + readers
    assert held.worker == without.worker
    assert held.answers_made == MOST_BYTES_AHEAD
    parts = segment_parts(sieve_config(settings, ""), None)
    assert held.segments == 10 * (parts["buckets"] + parts["tags"])
    small = settings.model_copy(update={"state": settings.state.model_copy(update={"memory": 1 << 30})})
    assert held_by(small, 3).segments == 1 << 30


def test_a_waiting_message_costs_no_more_than_its_bytes_and_what_is_counted() -> None:
    n = 20_000
    gc.collect()
    tracemalloc.start()
    try:
        records = Records.of(
            Partition("posts", 0),
            [10**9 + row for row in range(n)],
            [1_700_000_000_000 + row for row in range(n)],
            [b"k%05d" % row for row in range(n)],
            [b"v%05d" % row for row in range(n)],
            [() for _ in range(n)],
        )
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    answer = sum(column.nbytes for column in arrays_of(Verdicts.blank(1)))
    beside = (taken - bytes_held(records)) / n + ROW_BYTES + answer
    assert ROW_BYTES / 2 < beside < ROW_BYTES


def test_an_open_verdict_costs_what_is_counted() -> None:
    settings = _settings(pending_messages=700, poll_messages=300)
    opened = OpenVerdicts()
    opened.add(OpenRows.blank(1_000))
    bytes_open = sum(column.nbytes for chunk in opened.chunks for column in arrays_of(chunk))
    assert held_by(settings, 4).open_verdicts == 4 * bytes_open


def test_a_message_that_was_passed_over_costs_what_is_counted() -> None:
    settings = _settings(pending_messages=700, poll_messages=300)
    forgotten = Forgotten()
    forgotten.add(np.arange(1_000, dtype=np.uint64), kept=1_000, time_ms=0)
    held = sum(array.nbytes for array in forgotten.to_sections().values())
    assert held_by(settings, 4).forgotten == 4 * held
    off = settings.model_copy(update={"exact": settings.exact.model_copy(update={"method": "none"})})
    assert held_by(off, 4).forgotten == 0


@pytest.mark.parametrize("message_bytes", [1 << 20, 8 << 20, 48 << 20])
def test_the_clients_buffers_are_those_of_its_options(
    monkeypatch: pytest.MonkeyPatch, message_bytes: int
) -> None:
    given: dict[str, Any] = {}

    def make(_: object, build: Callable[..., object], **options: object) -> object:
        return build(options)

    monkeypatch.setattr(reading, "connected", make)
    monkeypatch.setattr(reading, "KafkaConsumer", given.update)
    kafka = _settings(message_bytes=message_bytes).kafka

    def nobody() -> KafkaAdmin:
        raise AssertionError("nobody is asked here")

    reading.make_consumer(Access(kafka, {}, nobody, BrokerClock(time.monotonic)))
    each = given["max_partition_fetch_bytes"] + ASIDE_BYTES
    unpacked = max(kafka.max_unpacked_bytes, kafka.message_bytes)
    assert fetched_bytes(kafka, 7) == 7 * each + 2 * unpacked
    assert fetched_bytes(kafka, 7, own=True) == 7 * each + 2 * kafka.message_bytes
    assert queue_bytes(kafka) >= producers.QUEUE_BYTES


def test_many_partitions_hold_what_one_setting_allows() -> None:
    assert 512 < held_by(Settings(), 1_000).waiting / _MIB < 750
