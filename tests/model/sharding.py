"""Shards of a random run, and what goes wrong with them: killed, frozen, ended, two of one name, one of other
settings, a store that is away or hangs, files that are missing or cut, manifests of others, a full disk, answers that
are lost, damaged or forged.

The near window of such a run is a real one with segments of a few messages, and knows equal texts only, as `HashSieve`.
"""

from __future__ import annotations

import errno
import random
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from io import BytesIO
from typing import Any, BinaryIO
from unittest.mock import patch

from tests.driver import APP, INDEX, INDEX_GROUP, LOG, SCHEME, Process, World
from tests.memory.broker import MemoryBroker
from tests.memory.clients import MemoryReader
from tests.memory.log import PartitionLog
from tests.model.test_mixed_versions import resealed
from tests.shared_store import PROTOCOL
from tests.stored import snapshots_at
from tests.twins import AtOnce, TinyScheme
from twinsieve.pipeline.broker.admin import DEFAULT_MESSAGE_BYTES, NewTopic
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.ports import Hook
from twinsieve.pipeline.broker.records import (
    AbortableError,
    BrokerError,
    FatalError,
    Messages,
    Partition,
    Records,
)
from twinsieve.pipeline.index.config import AnswersConfig
from twinsieve.pipeline.index.segment_answers import Unused
from twinsieve.pipeline.index.snapshot_writer import Sieves
from twinsieve.pipeline.saved import journal, saved_files, segment_files, segment_writer
from twinsieve.pipeline.saved.storage import Storage
from twinsieve.pipeline.shards.config import ShardConfig
from twinsieve.pipeline.shards.holdings import HeldSnapshots, Holdings
from twinsieve.pipeline.shards.shard import JOB, Shard
from twinsieve.pipeline.wire.block import decode_block
from twinsieve.pipeline.wire.frame import SEGMENTS_VERSION, checksum_of
from twinsieve.pipeline.wire.segment_answers import (
    NOTHING,
    AnswersRecord,
    BlockAnswer,
    asked_of,
    decode_answers,
    encode_answers,
)
from twinsieve.stages.contract import (
    BandLayout,
    Batch,
    Differences,
    ExactConfig,
    Kind,
    NearConfig,
    SieveConfig,
    Verdicts,
    Window,
)
from twinsieve.stages.errors import StateError
from twinsieve.stages.judge.batch_sieve import BatchSieve, state_parameters
from twinsieve.stages.judge.frozen import SavedParts
from twinsieve.stages.judge.segment_reader import SegmentReader
from twinsieve.stages.window.segments import IntoFile

ANSWERS = Names(APP).answers
_SEGMENTS = (3, 5, 10)
_PATIENCE_S = (1.0, 4.0, 10.0)
_GRACE_S = (2.0, 10.0, 60.0)
_FROZEN_S = (1.0, 7.0, 20.0, 60.0)
_STORES = (*["quick"] * 12, "late", "away", "hung", "missing", "cut", "full", "foreign")
"""foreign: its manifests are of another scheme; the others: as `_faulty`"""
_MEMORY = (0, 20_000, 1 << 30)
_READING = (1.0, 1.0, 0.3, 0.05, 0.0)
"""Share of its rounds in which a shard reads the log: one that is slow or reads nothing keeps its place in the group."""
_UNDISTURBED = 150
"""Rounds of all processes, at most, before anything happens to them."""


@cache
def _reader(config: SieveConfig) -> SegmentReader:
    """One for all shards, as they are played by one thread."""
    return SegmentReader(config)


class _InLine(AtOnce):
    """In place of a thread that writes files: a run is the same each time."""

    def __init__(self, _name: str) -> None:
        pass


@contextmanager
def without_threads() -> Iterator[None]:
    """Files of segments and of kept messages are written in the thread that asks for it."""
    with (
        patch.object(journal, "DaemonExecutor", _InLine),
        patch.object(segment_files, "DaemonExecutor", _InLine),
        patch.object(segment_writer, "DaemonExecutor", _InLine),
    ):
        yield


class _Store(Executor):
    """The thread of a shard that waits for a store. state: one of `_STORES`"""

    def __init__(self, state: str) -> None:
        self.state = state

    def submit(self, call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        made = partial(call, *args, **kwargs)
        asks_store = isinstance(getattr(made.func, "__self__", None), HeldSnapshots)
        return _Call(self, made) if asks_store else AtOnce().submit(made)


class _Call(Future[Any]):
    """A call to the store, made once it answers."""

    def __init__(self, store: _Store, call: partial[Any]) -> None:
        super().__init__()
        self._store = store
        self._call = call
        self._left = 4 if store.state == "late" else 0

    def done(self) -> bool:
        self._left -= 1
        return self._left < 0 and self._store.state != "hung"

    def result(self, timeout: float | None = None) -> Any:
        state = self._store.state
        if state == "away":
            raise OSError("the store is away")
        if state == "foreign" and isinstance(held := self._call.func.__self__, HeldSnapshots):
            return getattr(held._replace(scheme=bytes(16)), self._call.func.__name__)(*self._call.args)
        with _faulty(state):
            return self._call()


@contextmanager
def _faulty(state: str) -> Iterator[None]:
    """What one shard finds. missing: a sweep took the files of segments; cut: these have no ends; full: the disk
    takes no copy of them"""
    opened = Storage.open

    def open_file(storage: Storage, name: str) -> BinaryIO:
        stream = opened(storage, name)
        if not name.endswith(".segment"):
            return stream
        with stream:
            if state == "missing":
                raise FileNotFoundError(name)
            return BytesIO(stream.read()[:-1])

    def full(_folder: str) -> BinaryIO:
        raise OSError(errno.ENOSPC, "No space left on device")

    with ExitStack() as stack:
        if state == "full":
            stack.enter_context(patch.object(saved_files, "scratch_file", full))
        elif state in ("missing", "cut"):
            stack.enter_context(patch.object(Storage, "open", open_file))
        yield


class _SlowReader(MemoryReader):
    """reads: whether it reads in this round"""

    reads: Callable[[], bool]

    def poll(self, timeout_s: float, max_records: int) -> list[Records]:
        if self.reads():
            return super().poll(timeout_s, max_records)
        self._cluster.clock.sleep(timeout_s)
        return []


class _SlowBroker(MemoryBroker):
    """reads: whether its readers read in this round"""

    reads: Callable[[], bool]

    def reader(self) -> MemoryReader:
        self._hook("broker.reader")
        made = _SlowReader(self._cluster, self._hook, self._clocks)
        made.reads = self.reads
        return made


@dataclass
class ShardProcess(Process):
    """A process with the role "shard". ends: it was told to stop, and hands over; reading: one of `_READING`"""

    roles: str = "shard"
    job: str = JOB
    shard_config: ShardConfig = field(kw_only=True)
    reader: SegmentReader = field(kw_only=True)
    store: _Store = field(kw_only=True)
    memory: int = field(kw_only=True)
    draw: random.Random = field(kw_only=True)
    reading: float = 1.0
    ends: bool = False
    _shard: Shard | None = None
    _holdings: dict[bytes, Holdings] = field(default_factory=dict)

    def _step_roles(self, timeout_s: float) -> None:
        try:
            if self._shard is None:
                self._broker = broker = _SlowBroker(self.world.cluster, self._call_hook, self.clock)
                broker.reads = lambda: self.draw.random() < self.reading
                self._shard = Shard(
                    self._broker, self.clock, self.shard_config, self.reader, self._held, self._call_hook
                )
            if not self.ends:
                self._shard.step(timeout_s)
            elif self._shard.finish(timeout_s):
                self._shard.close()
                self.running = False
        except AbortableError:
            return
        except FatalError as error:
            self.notices.append(str(error))
            if self._shard is not None:
                self._shard.close()
            self._shard = None
            self.running = not (error.fenced or self.ends)

    def _held(self, log_id: bytes) -> Holdings:
        """It outlives a shard that failed."""
        if log_id not in self._holdings:
            assert self.snapshots is not None
            snapshots = HeldSnapshots(
                snapshots_at(self.snapshots), log_id, SCHEME, TinyScheme.scheme_id, None, self.reader.add
            )
            self._holdings[log_id] = Holdings(
                snapshots, self.store, self.clock, self.memory, self.shard_config.grace_s
            )
        return self._holdings[log_id]

    def _leave(self) -> None:
        super()._leave()
        with suppress(BrokerError):
            if self._shard is not None:
                self._shard.close(leaves=True)


def _changed(record: AnswersRecord, change: Callable[[BlockAnswer], BlockAnswer]) -> AnswersRecord:
    """The record with other blocks."""
    return replace(
        record, parts=[part._replace(blocks=list(map(change, part.blocks))) for part in record.parts]
    )


class Sharding:
    """The shards of one run, and the sieves of its indexes.

    folder: of the snapshots; hook: makes that of a process. It does not stall one while others post: an answer is
    written for each block and segment, and posts would come faster than they are judged
    answered: rows times segments that were judged with answers
    """

    def __init__(
        self,
        world: World,
        draw: random.Random,
        window: int,
        folder: str,
        hook: Callable[[], Hook],
    ) -> None:
        self._world = world
        self._draw = draw
        self._window = window
        self._folder = folder
        self._hook = hook
        self._segment = draw.choice(_SEGMENTS)
        self._replicas = draw.choice((1, 1, 2))
        self._grace_s = draw.choice(_GRACE_S)
        self._slots = [f"s{number}" for number in range(draw.randint(1, 3))]
        self._is_over = False
        """Whether all shards are gone for good."""
        self.answered = 0
        self._patience_s = draw.choice(_PATIENCE_S)
        world.copies_are = Kind.NEAR
        world.cluster.create(NewTopic(ANSWERS, draw.randint(1, 3)))

    def _config(self, *, other: bool) -> SieveConfig:
        """other: as a changed configuration: another question, and the same verdicts"""
        near = NearConfig(
            similarity=9_000 if other else 10_000,
            window=Window(self._window),
            segment=self._segment,
            # Buckets in which nothing is ever pushed out, so that all that is equal is found.
            bucket_load=0.1,
            differences=Differences(level=0),
        )
        # An exact stage would find most copies by itself, and answers would decide nothing.
        exact = ExactConfig("none", window=Window(self._window))
        layout = BandLayout(bands=1, rows=1, weak=1)
        return SieveConfig(exact, near, layout=layout, scheme_id=TinyScheme.scheme_id)

    def equip(self, process: Process, *, other: bool = False, row_s: float = 0.0) -> None:
        """Let a process use answers. other, row_s: as `_sieves`"""
        process.index_config = replace(INDEX, answers=AnswersConfig(ANSWERS, self._patience_s))
        process.sieves = self._sieves(other=other, row_s=row_s)

    def _sieves(self, *, other: bool, row_s: float) -> Sieves:
        """As the service makes them. row_s: time that judging takes for each row"""
        config, sharding = self._config(other=other), self

        class Sieve(BatchSieve):
            def judge(self, batch: Batch, *args: Any, **kwargs: Any) -> Verdicts:
                sharding._world.clock.sleep(row_s * len(batch))
                verdicts = super().judge(batch, *args, **kwargs)
                sharding.answered += self.take_answered()[0]
                return verdicts

        def load(stream: BinaryIO, files: SavedParts, write: IntoFile) -> BatchSieve:
            return Sieve.load(stream, config, parts=files, seal_into=write)

        holds = repr(state_parameters(config))
        return Sieves(lambda: Sieve(config), load, load, config.scheme_id, self._window, holds=holds)

    @property
    def _living(self) -> list[ShardProcess]:
        return [each for each in self._world.processes if isinstance(each, ShardProcess) and each.running]

    def start(self, slot: str = "") -> ShardProcess:
        """Start a shard; without a slot, in any: another one of its name may live. Some have other settings."""
        draw = self._draw
        slot = slot or draw.choice(self._slots)
        reader = _reader(self._config(other=draw.random() < 0.1))
        config = ShardConfig(
            scheme=SCHEME,
            log=LOG,
            answers=ANSWERS,
            group=Names(APP).shards(asked_of(reader.question)),
            member=Names(APP).member(slot, JOB),
            index=INDEX_GROUP,
            replicas=self._replicas,
            patience_s=self._patience_s,
            grace_s=self._grace_s,
            check_s=3.0,
            snapshot_every_s=300.0,
        )
        process = ShardProcess(
            self._world,
            slot,
            # A shard maps the files of a local folder where they are, and copies those of another store.
            snapshots=draw.choice((self._folder, f"{PROTOCOL}://{self._folder}")),
            shard_config=config,
            reader=reader,
            store=_Store(draw.choice(_STORES)),
            memory=draw.choice(_MEMORY),
            draw=draw,
        )
        process.hook = self._hook()
        self._world.processes.append(process)
        return process

    def tend(self) -> None:
        """Start what is missing, unless all are gone for good."""
        self._check()
        living = {each.slot for each in self._living}
        for slot in self._slots if not self._is_over else ():
            if slot not in living:
                self.start(slot)

    def _check(self) -> None:
        """raises: AssertionError if two shards answered the same otherwise"""
        indexes = [each.index for each in self._world.processes if each.index is not None]
        answers = [index.answers for index in indexes if index.answers is not None]
        assert not any(each.unused[Unused.DIFFERS] for each in answers), "shards answered the same otherwise"

    def actions(self) -> list[tuple[int, Callable[[], None]]]:
        """What may happen to shards, beside what may to each process, with weights."""
        return [
            (20, self._work),
            (12, self._revive),
            (1, self.start),
            (2, self._kill),
            (3, self._freeze),
            (1, self._end),
            (3, self._disturb_store),
            (3, self._slow_down),
            (2, self._lose_cache),
            (2, self._trim),
            (3, self._spoil),
            (3, self._forge),
            (1, self._grow),
            (1, self._rebalance),
        ]

    def begin(self, revive: Callable[[], None]) -> None:
        """Let the app come so far that shards answer. Else few would, as processes are killed all the time.

        revive: starts a process in a slot without one
        """
        for _ in range(_UNDISTURBED):
            if any(log.end for log in self._logs()):
                return
            revive()
            self._revive()
            self._work()

    def _work(self) -> None:
        """A round of every process."""
        for process in list(self._world.processes):
            process.step(0.1)
        self._check()

    def finish(self) -> None:
        """Nobody disturbs shards any more: all work, or all are gone, or what they wait for never comes."""
        self._is_over = self._draw.random() < 0.3
        for each in self._living:
            if self._is_over:
                each.kill()
            elif self._draw.random() < 0.7:
                each.store.state = "quick"

    def _revive(self) -> None:
        missing = set(self._slots) - {each.slot for each in self._living}
        if missing:
            self.start(self._draw.choice(sorted(missing)))

    def _one(self, do: Callable[[ShardProcess], None]) -> None:
        if self._living:
            do(self._draw.choice(self._living))

    def _kill(self) -> None:
        self._one(lambda each: each.kill(lambda waiting: self._draw.randint(0, waiting)))

    def _freeze(self) -> None:
        self._one(lambda each: each.pause(self._draw.choice(_FROZEN_S)))

    def _end(self) -> None:
        """As SIGTERM."""

        def end(each: ShardProcess) -> None:
            each.ends = True

        self._one(end)

    def _disturb_store(self) -> None:
        def disturb(each: ShardProcess) -> None:
            each.store.state = self._draw.choice(_STORES)

        self._one(disturb)

    def _slow_down(self) -> None:
        def slow_down(each: ShardProcess) -> None:
            each.reading = self._draw.choice(_READING)

        self._one(slow_down)

    def _lose_cache(self) -> None:
        """Somebody deletes the topic of the answers, makes it again, takes the rights on it, or gives them."""
        cluster = self._world.cluster
        denied = cluster.faults.denied
        if ANSWERS not in cluster.topics:
            cluster.create(NewTopic(ANSWERS, self._draw.randint(1, 3)))
        elif ANSWERS in denied:
            denied.discard(ANSWERS)
        elif self._draw.random() < 0.5:
            denied.add(ANSWERS)
        else:
            cluster.delete(ANSWERS)

    def _logs(self) -> list[PartitionLog]:
        topic = self._world.cluster.topics.get(ANSWERS)
        return topic.logs if topic is not None else []

    def _trim(self) -> None:
        """Retention takes answers that nobody has read yet."""
        for log in self._logs():
            log.trim(self._draw.randint(log.beginning, log.end))

    def _values(self) -> list[bytes]:
        return [entry.value for log in self._logs() for _, entry in log.visible() if entry.value]

    def _write(self, values: Iterable[bytes]) -> None:
        """Somebody writes to the topic of the answers."""
        written = Messages()
        for value in values:
            written.add(None, value)
        if len(written) and self._logs():
            at = Partition(ANSWERS, self._draw.randrange(len(self._logs())))
            self._world.cluster.write(at, written)

    def _spoil(self) -> None:
        """Somebody writes answers again: as they were, damaged, or as those of something else."""
        values = self._values()
        for value in self._draw.sample(values, min(len(values), self._draw.randint(1, 20))):
            if self._draw.random() < 0.2:
                far = self._draw.randint(1, 3)
                self._write([value[: self._draw.randrange(len(value))] + self._draw.randbytes(far)])
                continue
            with suppress(StateError):
                record = decode_answers(SCHEME, value, ANSWERS)
                self._write([value, self._draw.choice(self._unfit(record))])

    def _forge(self) -> None:
        """Somebody says before shards do that no segment has anything for blocks that are not judged."""
        committed = self._world.cluster.group(INDEX_GROUP).offsets.get(LOG)
        low = committed.offset if committed is not None else 0
        blocks: list[BlockAnswer] = []
        for offset, entry in self._world.cluster.log(LOG).visible():
            with suppress(StateError):
                data = entry.value or b""
                rows = len(decode_block(data, SCHEME, str(LOG)).batch)
                blocks += [BlockAnswer(offset, checksum_of(data), rows, NOTHING)] if offset >= low else []
        with suppress(StateError):
            for value in self._values()[-1:] if blocks else ():
                record = decode_answers(SCHEME, value, ANSWERS)
                parts = [part._replace(blocks=blocks) for part in record.parts]
                self._write(self._unfit(replace(record, parts=parts), shifts=False))

    def _unfit(self, record: AnswersRecord, *, shifts: bool = True) -> list[bytes]:
        """The record as one of another version, log, question or segment, and as one of other blocks.

        shifts: also with the checksums of these blocks at other offsets. Two that are made of different answers
            would then differ, and tell of a shard that answers otherwise
        """
        draw, other = self._draw, self._draw.randbytes(16)
        far = draw.randint(1, 3)
        foreign = [part._replace(segment=part.segment._replace(digest=other)) for part in record.parts]
        changed = [
            replace(record, log_id=other),
            replace(record, question=other),
            replace(record, parts=foreign),
            _changed(record, lambda block: block._replace(checksum=draw.getrandbits(32))),
        ]
        if shifts:
            changed.append(_changed(record, lambda block: block._replace(offset=block.offset + far)))
        encoded = [encode_answers(SCHEME, each, DEFAULT_MESSAGE_BYTES) for each in (record, *changed)]
        encoded[0] = [resealed(value, SEGMENTS_VERSION + 1) for value in encoded[0]]
        return [value for values in draw.sample(encoded, len(encoded)) for value in values]

    def _grow(self) -> None:
        if self._logs():
            self._world.cluster.add_partitions(ANSWERS, min(4, len(self._logs()) + 1))

    def _rebalance(self) -> None:
        group = Names(APP).shards(asked_of(_reader(self._config(other=False)).question))
        self._world.cluster.group(group).rebalance(self._draw.randint(0, 2))
