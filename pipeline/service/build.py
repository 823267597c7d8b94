"""Make the roles (worker, index, shard) of one process from its settings."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import cache, partial
from threading import Event
from typing import BinaryIO, Literal

import orjson

from twinsieve.pipeline.basics.daemon_executor import DaemonExecutor
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.ports import Broker, Clock, Hook
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.index.config import (
    INPUTS_S,
    JOIN_PATIENCES,
    MAX_BLOCKS,
    MAX_STEP_BYTES,
    MAX_STEP_S,
    UNREAD_S,
    AnswersConfig,
    IndexConfig,
)
from twinsieve.pipeline.index.ends import JudgedUnder
from twinsieve.pipeline.index.index import Index
from twinsieve.pipeline.index.snapshot_store import SnapshotStore
from twinsieve.pipeline.index.snapshot_writer import Sieves
from twinsieve.pipeline.index.transaction import Pace
from twinsieve.pipeline.messages.reader import KEYS_BY, MessageReader
from twinsieve.pipeline.operate.log_sizes import LogSizes
from twinsieve.pipeline.operate.topic_checks import block_bytes
from twinsieve.pipeline.operate.topic_plan import plan_of, trims_log
from twinsieve.pipeline.registry.beside import AskedBeside
from twinsieve.pipeline.saved import Watch, no_watch
from twinsieve.pipeline.saved.segment_files import is_in_memory, scratch_folder
from twinsieve.pipeline.saved.signing import Signing
from twinsieve.pipeline.saved.storage import Storage
from twinsieve.pipeline.saved.store_calls import StoreCalls
from twinsieve.pipeline.service.memory_limit import spare_bytes
from twinsieve.pipeline.service.probe_limits import alive_s
from twinsieve.pipeline.settings.common import common_settings
from twinsieve.pipeline.settings.fixed import (
    encode_fixed,
    fixed_settings,
    profile_cost,
    reading_digest,
)
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.settings.named_files import file_system, store_error
from twinsieve.pipeline.settings.proposal import proposal_for
from twinsieve.pipeline.settings.stage_config import judging_scheme_of, sieve_config
from twinsieve.pipeline.settings.state_keys import state_keys
from twinsieve.pipeline.shards.config import ShardConfig
from twinsieve.pipeline.shards.holdings import HeldSnapshots, Holdings
from twinsieve.pipeline.shards.shard import JOB, Shard
from twinsieve.pipeline.wire.frame import scheme_hash
from twinsieve.pipeline.wire.segment_answers import asked_of
from twinsieve.pipeline.worker.config import CHECK_S, MAX_EMITTED, WorkerConfig
from twinsieve.pipeline.worker.emit import EmitConfig
from twinsieve.pipeline.worker.record_reader import RecordReader
from twinsieve.pipeline.worker.worker import WhoHad, Worker, no_one
from twinsieve.stages.contract import SieveConfig
from twinsieve.stages.errors import StateError, is_address
from twinsieve.stages.fingerprint.secret import Secret
from twinsieve.stages.judge.batch_sieve import BatchSieve, most_bytes, state_parameters
from twinsieve.stages.judge.frozen import SavedParts
from twinsieve.stages.judge.scheme import Scheme
from twinsieve.stages.judge.segment_reader import SegmentReader
from twinsieve.stages.window.segments import IntoFile


@dataclass(frozen=True, slots=True)
class Builder:
    """Makes the roles of a process, at the start and again after failures.

    scheme: shared by all roles, because making it is slow
    connect: makes a broker client for settings
    slot: name of this process, unique among the processes of the app
    emit: False in shadow mode, which writes to no output
    background: runs the writing of snapshots; it waits for a folder that hangs
    queries: runs what asks a broker beside the roles
    job: task of the worker; `seed` reads an existing output and `redrive` dead letters, each in a consumer
        group of its own
    group: consumer group of the worker; empty for that of all workers
    inputs: as in `EmitConfig`
    needs_snapshots, has_text: as in `IndexConfig`; its worker, too, sets `has_text`
    who_had: as for `Worker`
    calls: those to the folder of the snapshots that have not returned
    """

    settings: Settings
    scheme: Scheme
    clock: Clock
    connect: Callable[[Settings], Broker]
    slot: str
    emit: bool
    background: Executor
    job: Literal["worker", "seed", "redrive"] = "worker"
    group: str = ""
    inputs: tuple[str, ...] = ()
    needs_snapshots: bool = True
    has_text: Event = field(default_factory=Event)
    who_had: WhoHad = no_one
    calls: StoreCalls = field(default_factory=StoreCalls)
    queries: Executor = field(default_factory=lambda: DaemonExecutor("queries"))

    def worker_config(self) -> WorkerConfig:
        """The configuration of this process's worker."""
        settings, names = self.settings, Names(self.settings.app)
        kafka, source, output = settings.kafka, settings.input, settings.output
        return WorkerConfig(
            scheme=wire_scheme(settings, self.scheme),
            settings=common_settings(settings) if self.job == "worker" else "",
            topics=tuple(source.topics),
            log=Partition(names.fingerprints, 0),
            verdicts=names.verdicts,
            group=self.group or names.workers,
            transactional_id=names.worker_transactions(self.job, self.slot),
            emit=EmitConfig(
                output=output.topic,
                duplicates=output.duplicates,
                dead_letter=output.dead_letter,
                inputs=self.inputs,
                origin_header=output.origin_header,
                kept_apart_header=output.kept_apart_header,
                null_value=source.null_value,
                on_refused=output.on_refused,
                emit=self.emit,
            ),
            member=names.member(self.slot, self.job),
            poll_messages=kafka.poll_messages,
            block_bytes=kafka.block_bytes,
            max_pending=kafka.pending_messages,
            max_pending_bytes=kafka.pending_bytes,
            max_emitted=MAX_EMITTED,
            transaction_s=kafka.transaction_timeout_ms / 1000,
            answer_s=settings.answer_ms / 1000,
            report_s=kafka.idle_report_ms / 1000,
            check_s=CHECK_S,
            start=source.start,
            trimmed=source.trimmed,
            on_unreadable=source.on_unreadable_batch,
        )

    def index_config(self) -> IndexConfig:
        """The configuration of this process's index."""
        settings, names = self.settings, Names(self.settings.app)
        under = judged_under(settings, self.scheme)
        if self.job != "worker":
            # It reads another topic than the app.
            under = under._replace(settings="")
        return IndexConfig(
            scheme=wire_scheme(settings, self.scheme),
            log=Partition(names.fingerprints, 0),
            decisions=Partition(names.decisions, 0),
            verdicts=names.verdicts,
            group=names.index,
            transactional_id=names.index_transactions,
            member=names.member(self.slot, "index"),
            max_blocks=MAX_BLOCKS,
            max_step_bytes=MAX_STEP_BYTES,
            max_step_s=MAX_STEP_S,
            snapshot_every_s=settings.state.snapshot_every_ms / 1000,
            check_s=CHECK_S,
            trim_log=trims_log(settings),
            needs_snapshots=self.needs_snapshots,
            output=settings.output.topic if self.emit or self.job == "seed" else "",
            under=under,
            has_text=self.has_text,
            workers=names.workers,
            seeders=names.seed,
            redrivers=names.redrivers,
            inputs_s=INPUTS_S,
            unread_s=UNREAD_S,
            join_s=JOIN_PATIENCES * settings.patience_ms / 1000,
            answers=AnswersConfig(names.answers, settings.patience_ms / 1000)
            if settings.near.answers == "shards"
            else None,
            memory=settings.state.memory or 0,
            spare_bytes=spare_bytes,
        )

    def worker(self, hook: Hook) -> Worker:
        """A new worker with its own clients. raises: BrokerError"""
        settings, source = self.settings, self.settings.input
        config = self.worker_config()
        now_s = self.clock.monotonic_s
        messages = MessageReader(
            settings,
            passes_null=settings.passes_null_text(on_files=False),
            now_s=now_s,
            secret=self.scheme.config.digest.secret,
        )
        reader = RecordReader(
            messages,
            self.scheme,
            part=source.part,
            stamped=source.time_field is None,
            proposal=proposal_for(settings, on_kafka=True),
            proposal_cost=profile_cost(settings),
            has_text=self.has_text,
            schemas=AskedBeside(messages.values, now_s) if messages.values is not None else None,
        )
        with ExitStack() as stack:
            broker = self.connect(settings)
            stack.callback(broker.close)
            config = replace(config, block_bytes=block_bytes(settings, broker.admin()))
            worker = Worker(broker, self.clock, config, reader, new_session, hook, self.who_had)
            stack.pop_all()
        return worker

    def other_workers(self) -> set[str]:
        """Names of the other workers in the worker's group. raises: BrokerError"""
        config = self.worker_config()
        with closing(self.connect(self.settings)) as broker:
            members = broker.admin().members(config.group).values()
        workers = {one.name for one in members if one.name and Names.does(self.job, one.name)}
        return workers - {config.member}

    def log_sizes(self) -> LogSizes:
        """An object that queries the sizes of this app's internal topics."""
        topics = [need.name for need in plan_of(self.settings).internal]
        return LogSizes(partial(self.connect, self.settings), topics, self.queries, self.clock)

    @property
    def has_folder(self) -> bool:
        """Whether snapshots are in a folder that this machine has mounted, and not at an address."""
        return not is_address(self.settings.state.dir)

    @property
    def alive_s(self) -> float:
        """Seconds without progress after which a role counts as hanging."""
        return alive_s(self.settings)

    def index(self, hook: Hook, watch: Watch = no_watch, pace: Pace | None = None) -> Index:
        """A new index with its own clients, restored from the newest snapshot. raises: BrokerError,
        StateError

        watch, pace: as for `Index`
        """
        settings, config = self.settings, self.index_config()
        sieve = sieve_config(settings, self.scheme.scheme_id)
        storage = state_storage(settings, self.calls)
        storage.is_mapped = _is_mapped(storage, settings.state.scratch)
        store = SnapshotStore(storage, settings.state.keep)
        # With shards, memory is for the segments that none of them answers for. The index learns later which.
        load = partial(_loaded, sieve, fills_memory=settings.near.answers == "none")
        # The client must not compress: rulings, the messages of an index, are already compressed.
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
                    load,
                    partial(_salvage, sieve, load),
                    self.scheme.scheme_id,
                    sieve.near.window.messages,
                    settings.state.scratch,
                    most_bytes(sieve),
                    orjson.dumps(state_parameters(sieve), option=orjson.OPT_SORT_KEYS).decode(),
                ),
                store,
                self.background,
                hook,
                watch,
                pace,
            )
            stack.pop_all()
        return index

    def shard_maker(self) -> Callable[[Hook], Shard]:
        """A function that makes a shard with its own clients; it raises BrokerError and StateError. The files
        that one of them holds are there for the next one. raises: UsageError for settings without segments"""
        settings, names = self.settings, Names(self.settings.app)
        sieve = sieve_config(settings, self.scheme.scheme_id)
        reader = SegmentReader(sieve)
        scheme = wire_scheme(settings, self.scheme)
        config = ShardConfig(
            scheme=scheme,
            log=Partition(names.fingerprints, 0),
            answers=names.answers,
            group=names.shards(asked_of(reader.question)),
            member=names.member(self.slot, JOB),
            index=names.index,
            replicas=settings.near.replicas,
            patience_s=settings.patience_ms / 1000,
            grace_s=settings.near.grace_ms / 1000,
            check_s=CHECK_S,
            snapshot_every_s=settings.state.snapshot_every_ms / 1000,
        )
        storage = state_storage(settings, self.calls)
        storage.is_mapped = _is_mapped(storage, settings.state.scratch)
        store = SnapshotStore(storage, settings.state.keep)
        thread = DaemonExecutor("segments")

        @cache
        def holdings_of(log_id: bytes) -> Holdings:
            snapshots = HeldSnapshots(
                store, log_id, scheme, self.scheme.scheme_id, settings.state.scratch, reader.add
            )
            return Holdings(snapshots, thread, self.clock, sieve.near.memory, config.grace_s)

        def made(hook: Hook) -> Shard:
            broker = self.connect(settings)
            return Shard(broker, self.clock, config, reader, holdings_of, hook)

        return made


def _is_mapped(storage: Storage, scratch: str | None) -> bool:
    """Whether segments are mapped from the folder of the snapshots: if it is on the file system of the
    scratch folder, which the operator has on a local disk. So too if there is only the folder of the system,
    and that is in memory, which copies of segments would fill. Otherwise it may be on a network."""
    try:
        folder = scratch_folder(scratch)
        is_of_no_use = scratch is None and storage.is_local and is_in_memory(folder)
    except OSError:
        return False
    return is_of_no_use or storage.shares_device(folder)


def state_storage(settings: Settings, calls: StoreCalls | None = None) -> Storage:
    """The folder with the snapshots of the app. calls: notes the calls to it. raises: UsageError if nothing
    serves its address"""
    files, folder = file_system(settings.state.dir)
    secret, signing = settings.state.key, Signing()
    if secret is not None:
        keys, takes_unsigned = state_keys(secret.get_secret_value())
        signing = Signing(keys, takes_unsigned=takes_unsigned, app=settings.app)
    return Storage((files, f"{folder.rstrip('/')}/{settings.app}"), store_error, calls, signing)


def _loaded(
    config: SieveConfig,
    saved: BinaryIO,
    files: SavedParts,
    write: IntoFile,
    *,
    fills_memory: bool,
    forget_exact: bool = False,
) -> BatchSieve:
    return BatchSieve.load(
        *(saved, config),
        parts=files,
        forget_exact=forget_exact,
        seal_into=write,
        fills_memory=fills_memory,
    )


def _salvage(
    config: SieveConfig,
    load: Callable[..., BatchSieve],
    saved: BinaryIO,
    files: SavedParts,
    write: IntoFile,
) -> BatchSieve:
    """A sieve with the near stage of the saved one and an empty exact stage. If the near stage does not fit
    the configuration either, the whole sieve is empty."""
    try:
        return load(saved, files, write, forget_exact=True)
    except StateError:
        return BatchSieve(config)


def wire_scheme(settings: Settings, scheme: Scheme) -> bytes:
    """16-byte hash of the fingerprint scheme and of the fields that are keys and scopes. Blocks, decisions
    and snapshots carry it, because after a change of these, old and new keys would never be equal, or
    messages of different scopes would be compared.

    If fields or ids are hashed, the hash also covers how (`KEYS_BY`), because that has changed once.
    """
    named: list[object] = [settings.exact.fields, settings.scope]
    if settings.exact.fields or settings.scope or settings.near.same_id == "pass":
        named.append(KEYS_BY)
    return scheme_hash(f"{scheme.scheme_id} {orjson.dumps(named).decode()}")


def judged_under(settings: Settings, scheme: Scheme) -> JudgedUnder:
    """What stands on record of an app that has judged under these settings."""
    fixed = encode_fixed(fixed_settings(settings, scheme.config))
    wire = wire_scheme(settings, scheme).hex()[:16]
    return JudgedUnder(reading_digest(settings.input), wire, fixed, common_settings(settings))


def make_scheme(settings: Settings, secret: Secret | None = None) -> Scheme:
    """The fingerprint scheme of these settings. raises: ConfigError; UsageError, also for a bad field name

    secret: of digests; None: that of the settings, if they have one
    """
    MessageReader(settings)
    return judging_scheme_of(settings, secret)


def new_session() -> int:
    """A random session number, never 0."""
    return secrets.randbits(64) or 1
