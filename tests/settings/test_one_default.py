"""A value that a role works with is said in one place: settings have defaults, configs of the roles have none."""

from __future__ import annotations

import dataclasses

import pytest

from tests.configs import builder
from twinsieve.pipeline.index.config import IndexConfig
from twinsieve.pipeline.settings.model import InputSettings, KafkaSettings, Settings, StateSettings
from twinsieve.pipeline.settings.schema import declared
from twinsieve.pipeline.worker.config import MAX_EMITTED, MAX_EMITTED_BYTES, WorkerConfig
from twinsieve.pipeline.worker.emit import EmitConfig


@pytest.mark.parametrize("config", [WorkerConfig, IndexConfig, EmitConfig])
def test_a_config_has_no_defaults(config: type) -> None:
    held = [
        field.name
        for field in dataclasses.fields(config)
        if (field.default, field.default_factory) != (dataclasses.MISSING, dataclasses.MISSING)
    ]
    assert held == []


def test_what_can_be_set_reaches_the_roles() -> None:
    settings = Settings(
        input=InputSettings(start="latest", trimmed="continue", null_value="drop"),
        kafka=KafkaSettings(
            poll_messages=11,
            block_bytes=12,
            pending_messages=13,
            pending_bytes=17,
            answer_timeout=14_000,  # type: ignore[call-arg]
            idle_report=15_000,  # type: ignore[call-arg]
        ),
        state=StateSettings(snapshot_every=16_000),  # type: ignore[call-arg]
    )
    worker, index = builder(settings).worker_config(), builder(settings).index_config()
    assert (worker.poll_messages, worker.block_bytes, worker.max_pending) == (11, 12, 13)
    assert worker.max_pending_bytes == 17
    assert (worker.answer_s, worker.report_s, index.snapshot_every_s) == (14.0, 15.0, 16.0)
    assert (worker.start, worker.trimmed, worker.emit.null_value) == ("latest", "continue", "drop")


def test_limits_that_nobody_can_set_are_told_where_they_count() -> None:
    line = declared()["kafka.poll_messages"].description or ""
    assert f"up to {MAX_EMITTED:,} or {MAX_EMITTED_BYTES >> 20} MiB" in line
