"""A whole deployment in one thread: processes with both roles on the memory broker, driven step by step.

Every process can be crashed, stopped for a while (a zombie that comes back), restarted in its slot or
replaced. The clock moves only by polls that find nothing and by hand.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple

from tests.configs import emit_config, index_config, worker_config
from tests.memory.broker import CrashError, LocalClock, ManualClock, MemoryBroker, MemoryCluster
from tests.memory.log import Entry
from tests.model.history import Cause, History, Place, Refuses
from tests.stored import hash_sieves, snapshots_at
from tests.twins import HashSieve, Later, TinyScheme
from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.mark import moved, on_record
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.ports import Broker, Hook, no_hook
from twinsieve.pipeline.broker.records import (
    AbortableError,
    BrokerError,
    FatalError,
    Header,
    Messages,
    Partition,
)
from twinsieve.pipeline.index.config import IndexConfig
from twinsieve.pipeline.index.index import Index
from twinsieve.pipeline.index.snapshot_writer import Sieves
from twinsieve.pipeline.index.transaction import Pace
from twinsieve.pipeline.messages.reader import MessageReader
from twinsieve.pipeline.settings.model import InputSettings, Settings
from twinsieve.pipeline.wire.frame import What, scheme_hash
from twinsieve.pipeline.wire.ruling import decode_ruling
from twinsieve.pipeline.worker.backoff import Refused
from twinsieve.pipeline.worker.config import WorkerConfig
from twinsieve.pipeline.worker.record_reader import RecordReader
from twinsieve.pipeline.worker.worker import Worker
from twinsieve.stages.contract import Kind
from twinsieve.stages.errors import StateError

LOG = Partition("app.fingerprints", 0)
DECISIONS = Partition("app.decisions", 0)
VERDICTS = "app.verdicts"
OUTPUT, DUPLICATES, DEAD = "out", "dup", "dead"
APP, SEEDED = "app", "seeded"
GROUP, INDEX_GROUP, SEED_GROUP = Names(APP).workers, Names(APP).index, Names(APP).seed
SCHEME = scheme_hash(TinyScheme.scheme_id)

_STUCK_ROUNDS, _STUCK_S, _MOST_ROUNDS = 600, 300.0, 3_000
"""Longer than any pause: a session that ends, a role that steps aside."""

WORKER = worker_config(
    scheme=SCHEME,
    topics=("in",),
    log=LOG,
    verdicts=VERDICTS,
    group=GROUP,
    transactional_id="app-worker",
    member=None,
    emit=emit_config(OUTPUT, DUPLICATES, DEAD),
    poll_messages=7,
    block_bytes=1_200,
    max_pending=20,
    max_emitted=12,
    answer_s=4.0,
    report_s=0.5,
    check_s=3.0,
    trimmed="continue",
)
INDEX = index_config(
    scheme=SCHEME,
    log=LOG,
    decisions=DECISIONS,
    verdicts=VERDICTS,
    group=INDEX_GROUP,
    transactional_id="app-index",
    member=None,
    max_blocks=3,
    snapshot_every_s=2.0,
    check_s=3.0,
    workers=GROUP,
    seeders=SEED_GROUP,
    redrivers=Names(APP).redrivers,
    inputs_s=3.0,
    unread_s=30.0,
)
READER = MessageReader(Settings(input=InputSettings(encoding="text")))
JSON_READER = MessageReader(Settings(), passes_null=True)
NO_TEXTS = (b'{"text": null}', b"{}")
"""Values that `JSON_READER` finds no text in."""


def post(text: str) -> bytes:
    """The value of a message with that text, as `JSON_READER` reads it."""
    return f'{{"text": "{text}"}}'.encode()


def texts(first: int, end: int) -> list[bytes | None]:
    """Values of messages that differ, told by their numbers."""
    return [b"text %d" % number for number in range(first, end)]


def crash_at(step: str, nth: int) -> Hook:
    """A hook that crashes at the n-th call of a step."""
    left = nth

    def hook(at: str) -> None:
        nonlocal left
        left -= at == step
        if at == step and left == 0:
            raise CrashError("crash")

    return hook


def origin_of(entry: Entry) -> tuple[str, int, int]:
    """Topic, partition and offset of the origin header."""
    origin = dict(entry.headers)["twinsieve-origin"]
    assert origin is not None
    where, _, offset = origin.decode().partition("@")
    name, _, number = where.removesuffix("]").partition("[")
    return name, int(number), int(offset)


class Taken(NamedTuple):
    """Retention took the record of the blocks below `before`, when those below `decided` had one."""

    before: int
    decided: int


def log_offset(decision: Entry) -> int:
    """The block that a decision is about."""
    return decode_ruling(What.DECISION, decision.value or b"", SCHEME, "decision").log_offset


class World:
    """The cluster, its topics, and a record of what retention took from the log (for the checker).

    partitions: of each input and output topic; other: of those that have another number
    reader: of what is produced
    """

    def __init__(
        self,
        partitions: int = 3,
        topics: Sequence[str] = ("in",),
        other: Mapping[str, int] = MappingProxyType({}),
        reader: MessageReader = READER,
    ) -> None:
        self.reader = reader
        self.clock = ManualClock()
        self.cluster = MemoryCluster(self.clock, session_timeout_s=6.0, transaction_timeout_s=8.0)
        # One thread plays all processes: while one of them waits, the others cannot send heartbeats.
        self.cluster.lookup_timeout_s, self.cluster.request_timeout_s = 0.5, 3.0
        for name in (*topics, OUTPUT, DUPLICATES, DEAD):
            self.cluster.create(NewTopic(name, other.get(name, partitions)))
        for name, count in ((LOG.topic, 1), (DECISIONS.topic, 1), (VERDICTS, 2)):
            self.cluster.create(NewTopic(name, count, settings={"message.timestamp.type": "LogAppendTime"}))
        self.topic_ids = {name: {self.cluster.topics[name].topic_id} for name in topics}
        self._taken_out: set[str] = set()
        self.history = History(self.cluster, GROUP)
        self.sessions = itertools.count(1)
        self._written = itertools.count(1)
        self.processes: list[Process] = []
        self.trimmed_log: dict[int, Entry] = {}
        self.trimmed_decisions: dict[int, Entry] = {}
        self.lost_log: dict[int, Entry] = {}
        self.lost_decisions: list[Entry] = []
        self.taken: list[Taken] = []
        self.stops: list[str] = []
        self.copies_are = Kind.EXACT
        """The verdict on a copy."""

    def has_schema(self, value: bytes | None) -> bool | None:
        """Whether it is known how to read this value; None: at some times only."""
        return True

    def record_reader(self) -> RecordReader:
        """What a worker reads texts with."""
        return RecordReader(self.reader, TinyScheme(), part="value", stamped=False)

    def produce(
        self, topic: str, partition: int, values: Sequence[bytes | None], key: bytes | None = b"k"
    ) -> None:
        messages = Messages()
        for value in values:
            messages.add(key, value, (self.next_header(),), self.clock.now_ms())
        self.cluster.write(Partition(topic, partition), messages)

    @property
    def inputs(self) -> set[str]:
        """Names of every topic that is or was an input."""
        return self._taken_out.union(self.topic_ids)

    @property
    def left_out(self) -> set[Place]:
        """Places of the input that nobody owes: an operator moved the offset behind them, or workers may have skipped
        their batch."""
        return self.history.skipped | self.history.unreadable

    def next_header(self) -> Header:
        """A header that no other message has, so that each can be told in the outputs."""
        return "h", b"%d" % next(self._written)

    def wall_ms(self, moment_s: float) -> int:
        """The wall clock at a moment of the cluster's clock."""
        return self.clock.now_ms() + round((moment_s - self.clock.monotonic_s()) * 1000)

    def trim(self, partition: Partition, before: int) -> None:
        """Retention on an input partition."""
        log = self.cluster.log(partition)
        end = min(before, log.stable_end)
        self.history.lose(partition, [at for at, _ in log.visible() if at < end], Cause.RETENTION)
        log.trim(before)

    def compact(self, partition: Partition, offsets: Collection[int]) -> None:
        """Compaction takes these from an input partition."""
        self.history.lose(partition, offsets, Cause.COMPACTION)
        for offset in offsets:
            self.cluster.log(partition).compact(offset)

    def delete(self, name: str) -> None:
        """Somebody deletes a topic, perhaps an input."""
        if name in self.topic_ids:
            self.history.lose_all(name, Cause.DELETED)
        self.cluster.delete(name)

    def make_again(self, name: str, partitions: int) -> None:
        """Somebody deletes a topic and creates another one of that name."""
        if name in self.cluster.topics:
            self.delete(name)
        self.cluster.create(NewTopic(name, partitions))
        if name in self.topic_ids:
            self.topic_ids[name].add(self.cluster.topics[name].topic_id)

    def take_out(self, name: str) -> None:
        """The topic is no input any more; processes that start from now on are to be told so by their configs."""
        if name in self.cluster.topics:
            self.history.lose_all(name, Cause.TAKEN_OUT)
        self._taken_out.add(name)
        del self.topic_ids[name]

    def take_in(self, name: str) -> None:
        """The topic is an input again."""
        if name not in self.cluster.topics:
            self.cluster.create(NewTopic(name, 1))
        self.topic_ids[name] = {self.cluster.topics[name].topic_id}

    def limit(self, topic: str, most: int) -> None:
        """Somebody sets the largest message that an output takes: bytes of key and value."""
        self.cluster.topics[topic].settings["max.message.bytes"] = str(most)
        self.history.limit(most)

    def compact_output(self, topic: str) -> None:
        """Somebody has an output compacted, so that it refuses messages without a key."""
        self.cluster.topics[topic].settings["cleanup.policy"] = "compact"
        self.history.refuse(lambda key, _: key is None)

    def refuse(self, topic: str, refuses: Refuses) -> None:
        """From now on an output refuses such messages, and nothing that clients can ask for says so."""
        before = self.cluster.faults.refuses_record

        def answer(name: str, key: bytes | None, value: bytes | None) -> str | None:
            return (
                "a policy forbids it" if name == topic and refuses(key, value) else before(name, key, value)
            )

        self.cluster.faults.refuses_record = answer
        self.history.refuse(refuses)

    def trim_log(self, before: int) -> None:
        """Retention on the fingerprint log."""
        log = self.cluster.log(LOG)
        for offset in range(log.beginning, min(before, log.stable_end)):
            self.trimmed_log[offset] = log.entries[offset - log.beginning]
        log.trim(before)
        self.taken.append(Taken(log.beginning, self._decided()))

    def trim_decisions(self, before: int) -> None:
        """Retention on the decisions."""
        log, decided = self.cluster.log(DECISIONS), self._decided()
        for offset in range(log.beginning, min(before, log.stable_end)):
            self.trimmed_decisions[offset] = log.entries[offset - log.beginning]
        log.trim(before)
        first = next((log_offset(entry) for _, entry in log.visible()), decided)
        self.taken.append(Taken(first, decided))

    def truncate(self, partition: Partition, end: int) -> bool:
        """The partition loses its tail; whether anything of the decisions, or a block that was decided, was in it.

        An index cannot tell a lost end of a transaction from a lost decision: it may stop for either.
        """
        log, decided = self.cluster.log(partition), self._decided()
        lost = {at: log.entries[at - log.beginning] for at in range(max(end, log.beginning), log.end)}
        log.truncate(end)
        if partition == LOG:
            self.lost_log |= {at: entry for at, entry in lost.items() if at < decided}
            # Blocks that an index passed over count as judged, though nobody decided on them.
            committed = self.cluster.group(INDEX_GROUP).offsets.get(LOG)
            return end < max(decided, committed.offset if committed is not None else 0)
        if partition == DECISIONS:
            self.lost_decisions += [entry for entry in lost.values() if entry.visible]
        return partition == DECISIONS and bool(lost)

    def _decided(self) -> int:
        """Log offset behind the last block whose decision is on record."""
        return max((log_offset(entry) + 1 for entry in self.decision_entries()), default=0)

    def decision_entries(self) -> list[Entry]:
        """Every committed decision ever recorded and not lost, in order."""
        trimmed = [entry for _, entry in sorted(self.trimmed_decisions.items()) if entry.visible]
        return trimmed + [entry for _, entry in self.cluster.log(DECISIONS).visible()]

    def log_entries(self) -> dict[int, Entry]:
        """Every block ever appended, by log offset."""
        log = self.cluster.log(LOG)
        held = {log.beginning + place: entry for place, entry in enumerate(log.entries)}
        return {**self.trimmed_log, **held, **self.lost_log}

    def emitted(self, topic: str = OUTPUT, number: int = 0) -> list[int]:
        """Input offsets of what came out in a partition, in its order."""
        return [origin_of(entry)[2] for _, entry in self.cluster.log(Partition(topic, number)).visible()]

    def kill_all(self) -> None:
        """As kill -9 of every process; their sessions and transactions have timed out then."""
        for process in self.processes:
            process.kill()
        self.clock.sleep(20.0)

    def forget_offsets(self, group: str = GROUP) -> None:
        """Kafka forgets a group that was idle for long, and its record."""
        for name in (group, Names.emitted(group)):
            self.cluster.group(name).offsets.clear()

    def move_offset(self, partition: Partition, offset: int) -> None:
        """As `twinsieve reset` does: the offset moves, the mark stays."""
        offsets, records = (self.cluster.group(name).offsets for name in (GROUP, Names.emitted(GROUP)))
        topic_id = self.cluster.topics[partition.topic].topic_id
        self.history.move(partition, offset)
        own = on_record(offsets.get(partition), records.get(partition))
        offsets[partition] = records[partition] = moved(own, topic_id, offset)

    def start(self, slot: str, **settings: object) -> Process:
        process = Process(self, slot, **settings)  # type: ignore[arg-type]
        self.processes.append(process)
        return process

    def run(self, rounds: int) -> None:
        for _ in range(rounds):
            for process in self.processes:
                process.step()

    def quiet(self) -> bool:
        """Everything read, answered, emitted and reported."""
        # The record too, because a foreign consumer may have committed offsets of messages that never came out.
        groups = [self.cluster.group(name).offsets for name in (GROUP, Names.emitted(GROUP))]
        for name in self.topic_ids:
            for number, log in enumerate(
                self.cluster.topics[name].logs if name in self.cluster.topics else []
            ):
                for offsets in groups:
                    committed = offsets.get(Partition(name, number))
                    if committed is None or committed.offset < log.end:
                        return False
        running = [process for process in self.processes if process.running]
        if any(process.job == "seed" for process in running):
            return False  # it ends where its app is live
        workers = [process.worker for process in running if process.roles in ("both", "worker")]
        return bool(workers) and all(worker is not None and worker.idle for worker in workers)

    def settle(self, tend: Callable[[], None] = lambda: None) -> None:
        """Run until quiet, which the diary notes; as `run_until`."""
        self.run_until(self.quiet, tend)
        self.history.is_calm()

    def run_until(self, done: Callable[[], bool], tend: Callable[[], None] = lambda: None) -> None:
        """Run until `done` says so; a deployment that emits nothing for `_STUCK_ROUNDS` and `_STUCK_S` is stuck.

        tend: called before each round, as a supervisor that restarts what has ended
        raises: AssertionError
        """
        left, moved_s, emitted = _STUCK_ROUNDS, self.clock.monotonic_s(), self._committed()
        # The clock stands still where every step fails before it asks a broker.
        while left > 0 or (left > -_MOST_ROUNDS and self.clock.monotonic_s() < moved_s + _STUCK_S):
            if done():
                return
            tend()
            if not any(process.running for process in self.processes):
                break  # the clock stands still, because only running processes move it
            self.run(1)
            left -= 1
            # One that judges slowly, or whose outputs take little at a time, is not stuck.
            before, emitted = emitted, self._committed()
            if emitted > before:
                left, moved_s = _STUCK_ROUNDS, self.clock.monotonic_s()
        raise AssertionError(f"stuck: {self.describe()}")

    def _committed(self) -> int:
        """Input messages that are done with, in all partitions."""
        return sum(each.offset for each in self.cluster.group(GROUP).offsets.values())

    def describe(self) -> str:
        offsets = {str(at): each for at, each in self.cluster.group(GROUP).offsets.items()}
        ends = {name: [log.end for log in self.cluster.topics[name].logs] for name in self.topic_ids}
        notices = [process.notices[-5:] for process in self.processes]
        return f"committed {offsets}, ends {ends}, stops {self.stops}, notices {notices}"


@dataclass
class Process:
    """One process with both roles (or one of them). `stop_s`: it stands still until then (SIGSTOP).

    ahead_s: how far its clock runs ahead of the broker's at first; `clock` is that clock
    leaves: a crash ends it as a defect does, not as kill -9
    sieves: in place of those that `sieve` makes
    """

    world: World
    slot: str
    static: bool = True
    roles: str = "both"
    job: str = "worker"
    worker_config: WorkerConfig = WORKER
    index_config: IndexConfig = INDEX
    sieve: Callable[[], HashSieve] = HashSieve
    sieves: Sieves | None = None
    snapshots: str | None = None
    background: Callable[[], Executor] = Later
    hook: Hook = no_hook
    ahead_s: float = 0.0
    running: bool = True
    stop_s: float = 0.0
    leaves: bool = False
    worker: Worker | None = None
    index: Index | None = None
    gaps: int = 0
    notices: list[str] = field(default_factory=list)
    refused: dict[Partition, Refused] = field(default_factory=dict)
    skipped: Counter[DeadLetterReason] = field(default_factory=Counter)
    _inside: bool = False
    pace: Pace = field(init=False)
    """Outlives an index, as in a loop of the service."""

    def __post_init__(self) -> None:
        self.clock = LocalClock(self.world.clock, self.ahead_s)
        self._broker = MemoryBroker(self.world.cluster, lambda step: self.hook(step), self.clock)
        self.pace = Pace(self.index_config.max_blocks)

    def step(self, timeout_s: float = 0.1) -> None:
        """One round of each role. A crash or a lost slot ends the process, other errors its roles.

        A process that stalls in its own step, while others go on, does nothing.
        """
        if self._inside or not self.running or self.world.clock.monotonic_s() < self.stop_s:
            return
        self._inside = True
        try:
            self._step_roles(timeout_s)
        except CrashError:
            self.running = False
            if self.leaves:
                self._leave()
        except StateError as error:
            self.world.stops.append(str(error))
            self.running = False
            self._leave()
        finally:
            self._inside = False

    def _step_roles(self, timeout_s: float) -> None:
        if self.roles in ("both", "index"):
            self._step_index(timeout_s)
        if self.roles in ("both", "worker"):
            self._step_worker(timeout_s)

    def _leave(self) -> None:
        """What every error does that ends a process: its clients are closed, and it leaves its groups."""
        self.hook = no_hook
        with suppress(BrokerError):
            if self.worker is not None:
                self.worker.close(leaves=True)
        with suppress(BrokerError):
            if self.index is not None:
                self.index.abandon(leaves=True)

    def _step_index(self, timeout_s: float) -> None:
        try:
            if self.index is None:
                self.index = self._make_index()
            self.index.step(timeout_s)
            self.gaps = max(self.gaps, self.index.follower.gaps)
        except AbortableError:
            return
        except FatalError as error:
            self.notices.append(str(error))
            if self.index is not None:
                self.index.abandon()
            self.index = None
            self.running = not error.fenced

    def _step_worker(self, timeout_s: float) -> None:
        try:
            if self.worker is None:
                self.worker = self._make_worker()
                self.worker.refused.update(self.refused)
            self.skipped.update(self.worker.step(timeout_s).skipped)
            self.notices += self.worker.notices
            self.worker.notices.clear()
        except AbortableError:
            return
        except FatalError as error:
            self.notices.append(str(error))
            if self.worker is not None:
                self.refused = dict(self.worker.refused)
                self.worker.close()
            self.worker = None
            self.running = self.running and not error.fenced

    def _worker_broker(self) -> Broker:
        return self._broker

    def _make_worker(self) -> Worker:
        config = replace(
            self.worker_config,
            transactional_id=f"app-{self.job}-{self.slot}",
            member=f"{self.slot}-{self.job}" if self.static else None,
        )
        reader = self.world.record_reader()
        sessions = self.world.sessions
        hook = self._call_hook
        broker = self._worker_broker()
        return Worker(broker, self.clock, config, reader, lambda: next(sessions), hook)

    def _make_index(self) -> Index:
        config = replace(self.index_config, member=f"{self.slot}-index" if self.static else None)
        store = snapshots_at(self.snapshots) if self.snapshots else None
        return Index(
            self._broker,
            self.clock,
            config,
            self.sieves or hash_sieves(self.sieve),
            store,
            self.background(),
            self._call_hook,
            pace=self.pace,
        )

    def _call_hook(self, step: str) -> None:
        self.hook(step)

    def kill(self, keep: Callable[[int], int] = lambda waiting: waiting) -> None:
        """As kill -9: nothing is closed; of n appends on their way the first `keep(n)` arrive."""
        self.running = False
        self._broker.die(keep)

    def pause(self, seconds: float) -> None:
        """As SIGSTOP, and SIGCONT after that time."""
        self.stop_s = self.world.clock.monotonic_s() + seconds

    def terminate(self, rounds: int = 100) -> None:
        """As SIGTERM: finish, report, leave, while the others go on."""
        self.running = False
        if self.worker is not None:
            for _ in range(rounds):
                try:
                    self.worker.finish(0.1)
                except FatalError:
                    break
                if self.worker.idle:
                    break
                for process in self.world.processes:
                    process.step()
                if self.index is not None:
                    self._step_index(0.1)
            self.worker.close(leaves=True)
        if self.index is not None:
            # As the loop around it: an error in the last step ends the process too, and the next start follows the
            # log from the snapshot before.
            with suppress(AbortableError, FatalError):
                self.index.close()
