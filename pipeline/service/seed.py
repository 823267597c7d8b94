"""`twinsieve seed`: fill the windows of an app from an existing output topic, before the app goes live.

A worker that emits nothing reads this topic like an input, in its own consumer group. Its messages are sent
to the index, judged, recorded and answered like all others. Therefore a crash costs no more than a crash of
a worker, the index restores seeded messages with all others, and a verdict names a seeded leader by its
position in this topic.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial

from twinsieve.pipeline.broker.admin import Admin
from twinsieve.pipeline.broker.committed_offsets import read_recorded
from twinsieve.pipeline.broker.mark import moved, name_topic
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.ports import Broker, Clock
from twinsieve.pipeline.broker.records import BrokerError, Committed, Partition
from twinsieve.pipeline.saved.segment_files import make_scratch
from twinsieve.pipeline.service.build import Builder
from twinsieve.pipeline.service.ending_loop import EndingLoop, offsets_left, reading
from twinsieve.pipeline.service.index_loop import IndexLoop
from twinsieve.pipeline.service.metrics import Metrics
from twinsieve.pipeline.service.run import SystemClock, drive, log_compiling, process
from twinsieve.pipeline.service.seed_order import ordered_broker
from twinsieve.pipeline.service.start_checks import check_app, until_answered
from twinsieve.pipeline.service.text_check import require_texts
from twinsieve.pipeline.service.warm_up import warm_up
from twinsieve.pipeline.service.watchdog import Watchdog
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.worker.emit import Emission
from twinsieve.stages.contract import Kind
from twinsieve.stages.errors import UsageError
from twinsieve.stages.judge.scheme import Scheme

_log = logging.getLogger("twinsieve")


@dataclass(slots=True)
class SeedResult:
    """Number of messages that this run has judged.

    finished: whether the run read everything up to the end that the topic had at its start
    kinds: messages by verdict; no_text: messages without text, counted as unique
    """

    finished: bool = False
    kinds: Counter[Kind] = field(default_factory=Counter)
    no_text: int = 0

    @property
    def kept(self) -> int:
        """Number of messages that this run made leaders."""
        return self.kinds[Kind.UNIQUE] - self.no_text

    def __str__(self) -> str:
        others = self.kinds.total() - self.kept
        end = "done" if self.finished else "stopped; run it again to continue"
        return f"seed: {self.kept} messages kept, {others} passed over as duplicates or unreadable; {end}"


def run_seed(
    settings: Settings,
    topic: str,
    connect: Callable[[Settings], Broker],
    *,
    since_ms: int | None = None,
    member: str | None = None,
    clock: Clock | None = None,
    stop: threading.Event | None = None,
) -> SeedResult:
    """Judge the messages of `topic` up to its current end, or continue an earlier run that was interrupted.

    since_ms: begin at the first message with this time or a later one (only in the first run)
    member, connect, clock, stop: as for `run_service`
    raises: UsageError if `topic` is an input topic of the app; BrokerError if the topic is missing or the app
        is already live; StateError as `run_service`
    """
    if topic in settings.input.topics:
        raise UsageError(
            f"--topic {topic}: is an input topic of app {settings.app}, which `run` reads itself; name an "
            "existing output topic, because a seed emits no messages"
        )
    make_scratch(settings.state.scratch)
    clock = clock or SystemClock()
    stop = stop or threading.Event()
    seeding = reading(settings, topic)

    def begin() -> tuple[dict[Partition, int], Scheme]:
        scheme = check_app(
            settings,
            partial(connect, settings),
            clock,
            auto_create=settings.topics.auto_create,
            command="seed",
        )
        with closing(connect(settings)) as broker:
            ends, starts = seed_range(settings, topic, broker, since_ms)
            group = Names(settings.app).seed
            require_texts(seeding, connect(settings), clock, group=group, moved=starts)
            if starts:
                broker.admin().set_group_offsets(group, starts)
        return ends, scheme

    begun = until_answered(begin, clock, stop, command="seed")
    if begun is None:
        return SeedResult()
    ends, scheme = begun
    metrics = Metrics(clock)
    with process(settings, member) as (slot, background), closing(connect(settings)) as broker:
        builder = Builder(
            seeding,
            scheme,
            clock,
            lambda chosen: ordered_broker(connect(chosen), clock, ends),
            slot,
            emit=False,
            background=background,
            job="seed",
            group=Names(settings.app).seed,
        )
        index = IndexLoop(builder, clock, metrics)
        watch = SeedWatch(broker.admin(), settings.app, ends)
        worker = SeedLoop(builder, clock, metrics, watch, stop, index=index)
        warm_up(partial(log_compiling, command="seed"), stopped=stop.is_set)
        with Watchdog(stop, clock) as watchdog:
            watchdog.watch([worker, index])
            drive([worker], [index], stop)
    return worker.seeded


@dataclass(slots=True)
class SeedWatch:
    """Queries the progress of a seed, and checks that the app has not gone live meanwhile.

    ends: end offset of each partition of the topic when the seed began
    left: number of offsets that were not yet committed at the last call of `done`; -1 before the first call
    """

    admin: Admin
    app: str
    ends: Mapping[Partition, int]
    left: int = -1

    def done(self) -> bool:
        """Whether all messages that the topic held when the seed began are committed.

        raises: BrokerError if the app has gone live, or if no broker answers
        """
        live = Names(self.app).workers
        if read_recorded(self.admin, live):
            raise BrokerError(
                f"app {self.app} was started by `run` during its seed (group {live} has offsets), so the "
                "seed ends: its older messages must not follow newer ones; nothing is lost, the windows hold "
                "what was seeded until now",
                retryable=False,
            )
        self.left = offsets_left(self.admin, Names(self.app).seed, self.ends)
        return not self.left


class SeedLoop(EndingLoop):
    """Runs the worker of a seed until `watch.done` returns True."""

    def __init__(
        self,
        builder: Builder,
        clock: Clock,
        metrics: Metrics,
        watch: SeedWatch,
        stop: threading.Event,
        *,
        index: IndexLoop,
    ) -> None:
        super().__init__(builder, clock, metrics, index=index)
        self._watch = watch
        self._all_done = stop
        self.seeded = SeedResult()

    def _count(self, emission: Emission) -> None:
        super()._count(emission)
        self.seeded.kinds.update(emission.kinds)
        self.seeded.no_text += emission.no_text

    def _check(self) -> None:
        done = self._watch.done()
        seeded = self.seeded
        _log.info(
            "seed: %d messages judged, %d kept; %d offsets still to read",
            seeded.kinds.total(),
            seeded.kept,
            self._watch.left,
        )
        if done:
            self.seeded.finished = True
            self._all_done.set()


def seed_range(
    settings: Settings, topic: str, broker: Broker, since_ms: int | None = None
) -> tuple[dict[Partition, int], dict[Partition, Committed]]:
    """The end offset of each partition of the topic, and the offsets to commit for the consumer group of the
    seed before it begins: those of `since_ms`, if it is given and the group has none yet.

    raises: BrokerError if the topic does not exist, or if `run` was already started for the app
    """
    with closing(broker.admin()) as admin, closing(broker.reader()) as reader:
        info = admin.topics([topic])[topic]
        if info is None:
            raise BrokerError(f"--topic {topic}: there is no such topic", retryable=False)
        if read_recorded(admin, Names(settings.app).workers):
            raise BrokerError(
                f"app {settings.app} was already started by `run` (group {Names(settings.app).workers} has "
                "offsets), and older messages must not follow newer ones; seed a new app before its first "
                "run",
                retryable=False,
            )
        partitions = [Partition(topic, number) for number in range(info.partitions)]
        ends = reader.end_offsets(partitions)
        if since_ms is None or admin.group_offsets(Names(settings.app).seed):
            return ends, {}
        starts, topic_id = admin.offsets_at(dict.fromkeys(partitions, since_ms)), name_topic(info)
        return ends, {at: moved(None, topic_id, min(start, ends[at])) for at, start in starts.items()}
