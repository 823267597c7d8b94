"""Configs of the roles for tests: those that production builds of default settings, with what a test changes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, cast

from tests.memory.broker import ManualClock, MemoryBroker, MemoryCluster
from tests.twins import TinyScheme
from twinsieve.pipeline.index.config import IndexConfig
from twinsieve.pipeline.service.build import Builder
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.worker.config import WorkerConfig
from twinsieve.pipeline.worker.emit import EmitConfig
from twinsieve.stages.judge.scheme import Scheme


def builder(settings: Settings | None = None) -> Builder:
    """The builder of one process; nothing is connected until it makes a role."""
    clock = ManualClock()
    return Builder(
        settings or Settings(),
        cast(Scheme, TinyScheme()),
        clock,
        lambda _: MemoryBroker(MemoryCluster(clock)),
        "slot",
        emit=True,
        background=ThreadPoolExecutor(1),
    )


def worker_config(**changed: Any) -> WorkerConfig:
    """A worker's config of default settings, but for what is changed."""
    return replace(builder().worker_config(), **changed)


def index_config(**changed: Any) -> IndexConfig:
    """An index's config of default settings, but for what is changed."""
    return replace(builder().index_config(), **changed)


def emit_config(output: str, duplicates: str | None = None, dead_letter: str | None = None) -> EmitConfig:
    """Where messages go; by default neither duplicates nor dead letters are written."""
    config = builder().worker_config().emit
    return replace(config, output=output, duplicates=duplicates, dead_letter=dead_letter)
