"""The roles of one process, made from settings."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import BinaryIO, Literal

import orjson

from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.ports import Broker, Clock, Hook
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.index.config import (
    INPUTS_S,
    MAX_BLOCKS,
    MAX_STEP_BYTES,
    MAX_STEP_S,
    UNREAD_S,
    IndexConfig,
)
from twinsieve.pipeline.index.index import Index
from twinsieve.pipeline.index.snapshot_store import SnapshotStore, Watch, no_watch
from twinsieve.pipeline.index.snapshot_writer import Sieves
from twinsieve.pipeline.index.transaction import Pace
from twinsieve.pipeline.messages.reader import KEYS_BY, MessageReader
from twinsieve.pipeline.operate.log_sizes import LogSizes
from twinsieve.pipeline.operate.topic_plan import trims_log
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.settings.named_files import file_system, store_error
from twinsieve.pipeline.settings.stage_config import scheme_of, sieve_config
from twinsieve.pipeline.wire.frame import scheme_hash
from twinsieve.pipeline.worker.config import CHECK_S, MAX_EMITTED, WorkerConfig
from twinsieve.pipeline.worker.emit import EmitConfig
from twinsieve.pipeline.worker.records import RecordReader
from twinsieve.pipeline.worker.worker import Worker
from twinsieve.stages.contract import SieveConfig
from twinsieve.stages.errors import StateError
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.scheme import Scheme

ALIVE_S = 120.0
"""A role without progress for this long is not alive; settings may allow longer calls."""


@dataclass(frozen=True, slots=True)
class Builder:
    """Makes roles, and makes them again after failures; the scheme is costly and is made once.

    connect: a broker of these settings; emit: False in shadow mode; background: writes snapshots
    job: task of the worker: `seed` reads an existing output, in a group of its own
    needs_snapshots: as in `IndexConfig`
    """

    settings: Settings
    scheme: Scheme
    clock: Clock
    connect: Callable[[Settings], Broker]
    slot: str
    emit: bool
    background: Executor
    job: Literal["worker", "seed"] = "worker"
    needs_snapshots: bool = True

    def worker_config(self) -> WorkerConfig:
        """The configuration of this process's worker."""
        settings, names = self.settings, Names(self.settings.app)
        kafka, source, output = settings.kafka, settings.input, settings.output
        return WorkerConfig(
            scheme=wire_scheme(settings, self.scheme),
            topics=tuple(source.topics),
            log=Partition(names.fingerprints, 0),
            verdicts=names.verdicts,
            group=names.workers if self.job == "worker" else names.seed,
            transactional_id=names.worker_transactions(self.job, self.slot),
            emit=EmitConfig(
                output=output.topic,
                duplicates=output.duplicates,
                dead_letter=output.dead_letter,
                origin_header=output.origin_header,
                kept_apart_header=output.kept_apart_header,
                null_value=source.null_value,
                emit=self.emit,
            ),
            member=f"{self.slot}-{self.job}",
            poll_messages=kafka.poll_messages,
            block_bytes=kafka.block_bytes,
            max_pending=kafka.pending_messages,
            max_pending_bytes=kafka.pending_bytes,
            max_emitted=MAX_EMITTED,
            transaction_s=kafka.transaction_timeout_ms / 1000,
            answer_s=kafka.answer_timeout_ms / 1000,
            report_s=kafka.idle_report_ms / 1000,
            check_s=CHECK_S,
            start=source.start,
            trimmed=source.trimmed,
        )

    def index_config(self) -> IndexConfig:
        """The configuration of this process's index."""
        settings, names = self.settings, Names(self.settings.app)
        return IndexConfig(
            scheme=wire_scheme(settings, self.scheme),
            log=Partition(names.fingerprints, 0),
            decisions=Partition(names.decisions, 0),
            verdicts=names.verdicts,
            group=names.index,
            transactional_id=names.index_transactions,
            member=f"{self.slot}-index",
            max_blocks=MAX_BLOCKS,
            max_step_bytes=MAX_STEP_BYTES,
            max_step_s=MAX_STEP_S,
            snapshot_every_s=settings.state.snapshot_every_ms / 1000,
            check_s=CHECK_S,
            trim_log=trims_log(settings),
            needs_snapshots=self.needs_snapshots,
            output=settings.output.topic if self.emit or self.job == "seed" else "",
            workers=names.workers,
            seeders=names.seed,
            inputs_s=INPUTS_S,
            unread_s=UNREAD_S,
        )

    def worker(self, hook: Hook) -> Worker:
        """A worker with clients of its own. raises: BrokerError"""
        settings, source = self.settings, self.settings.input
        config = self.worker_config()
        reader = RecordReader(
            MessageReader(settings, passes_null=settings.passes_null_text(on_files=False)),
            self.scheme,
            part=source.part,
            stamped=source.time_field is None,
        )
        with ExitStack() as stack:
            broker = self.connect(settings)
            stack.callback(broker.close)
            worker = Worker(broker, self.clock, config, reader, new_session, hook)
            stack.pop_all()
        return worker

    def log_sizes(self) -> LogSizes:
        """Queries the sizes of this app's topics."""
        names = Names(self.settings.app)
        topics = (names.fingerprints, names.decisions, names.verdicts)
        return LogSizes(partial(self.connect, self.settings), topics, self.background, self.clock)

    @property
    def alive_s(self) -> float:
        """Seconds without progress after which a role counts as hanging. `kafka.request_timeout` bounds each
        call to a broker, and others may follow one that failed."""
        return max(ALIVE_S, 3 * self.settings.kafka.request_timeout_ms / 1000)

    def index(self, hook: Hook, watch: Watch = no_watch, pace: Pace | None = None) -> Index:
        """An index with clients of its own, restored from the newest snapshot. raises: BrokerError,
        StateError

        watch, pace: as for `Index`
        """
        settings, config = self.settings, self.index_config()
        sieve = sieve_config(settings, self.scheme.scheme_id)
        store = SnapshotStore(file_system(settings.state.dir), settings.app, settings.state.keep, store_error)
        # Rulings are compressed already.
        plain = settings.kafka.model_copy(update={"compression": "none"})
        with ExitStack() as stack:
            broker = self.connect(settings.model_copy(update={"kafka": plain}))
            stack.callback(broker.close)
            index = Index(
                broker,
                self.clock,
                config,
                Sieves(
                    lambda: BatchSieve(sieve),
                    partial(BatchSieve.load, config=sieve),
                    partial(_salvage, sieve),
                ),
                store,
                self.background,
                hook,
                watch,
                pace,
            )
            stack.pop_all()
        return index


def _salvage(config: SieveConfig, saved: BinaryIO) -> BatchSieve:
    """The near stage of a saved sieve if it fits; the exact stage begins empty."""
    try:
        return BatchSieve.load(saved, config, forget_exact=True)
    except StateError:
        return BatchSieve(config)


def wire_scheme(settings: Settings, scheme: Scheme) -> bytes:
    """16 bytes that blocks, decisions and snapshots carry: the fingerprint scheme, and which fields are keys
    and scopes. With other ones, old and new keys would never be equal, or wrong messages compared.

    Where fields or ids count, the way they are hashed is named too: it changed once.
    """
    named: list[object] = [settings.exact.fields, settings.scope]
    if settings.exact.fields or settings.scope or settings.near.same_id == "pass":
        named.append(KEYS_BY)
    return scheme_hash(f"{scheme.scheme_id} {orjson.dumps(named).decode()}")


def make_scheme(settings: Settings) -> Scheme:
    """The fingerprint scheme of these settings. raises: ConfigError; UsageError, also for a field's name"""
    MessageReader(settings)
    return scheme_of(settings)


def new_session() -> int:
    """A random session number, never 0."""
    return secrets.randbits(64) or 1
