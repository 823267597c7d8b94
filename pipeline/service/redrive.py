"""`twinsieve redrive`: judge dead letters again, for example after a wrong setting was corrected.

For each reason a worker reads the dead letters of that reason like an input topic (`broker/redriven.py`), in
a consumer group of its own, up to the end that the dead letter topic has at the start. It asks the index and
writes to the outputs as every worker does: messages and the group's offset in one transaction. Therefore a
redrive that is killed anywhere continues where it was, and one that is run again finds nothing to do.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial

from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason
from twinsieve.pipeline.broker.admin import Admin
from twinsieve.pipeline.broker.committed_offsets import read_recorded
from twinsieve.pipeline.broker.mark import moved
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.ports import Broker, Clock
from twinsieve.pipeline.broker.records import BrokerError, Committed, Partition
from twinsieve.pipeline.broker.redriven import RedrivenTopic, input_id
from twinsieve.pipeline.operate.dead_letters import LetterTopic, letter_topic, redrive_marks, survey
from twinsieve.pipeline.service.build import Builder
from twinsieve.pipeline.service.ending_loop import EndingLoop, offsets_left, reading
from twinsieve.pipeline.service.index_loop import IndexLoop
from twinsieve.pipeline.service.metrics import Metrics
from twinsieve.pipeline.service.redriven_broker import redriven_broker
from twinsieve.pipeline.service.run import SystemClock, drive, log_compiling, process
from twinsieve.pipeline.service.seed_order import ordered_broker
from twinsieve.pipeline.service.start_checks import check_app, until_answered
from twinsieve.pipeline.service.warm_up import warm_up
from twinsieve.pipeline.service.watchdog import Watchdog
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.worker.emit import Emission
from twinsieve.stages.contract import Kind
from twinsieve.stages.judge.scheme import Scheme

_log = logging.getLogger("twinsieve")


@dataclass(slots=True)
class RedriveResult:
    """What this run has judged.

    finished: whether it read everything up to the end that the topic had at its start
    kinds: messages by verdict; dead: those that became dead letters again, by their new reason
    same: those of them whose reason is the one that they had before
    """

    finished: bool = False
    kinds: Counter[Kind] = field(default_factory=Counter)
    dead: Counter[DeadLetterReason] = field(default_factory=Counter)
    same: Counter[DeadLetterReason] = field(default_factory=Counter)

    def lines(self) -> list[str]:
        """The result for an operator."""
        kinds, again = self.kinds, self.dead.total()
        end = "done" if self.finished else "stopped; run it again to continue"
        first = (
            f"redrive: {kinds.total() - kinds[Kind.REPLAYED]} dead letters judged: {kinds[Kind.UNIQUE]} "
            f"unique, {kinds[Kind.EXACT] + kinds[Kind.NEAR]} duplicates, {kinds[Kind.UNREADABLE]} not "
            f"readable; {kinds[Kind.REPLAYED]} were redriven before; {end}"
        )
        if not again:
            return [first]
        reasons = ", ".join(f"{reason} {count}" for reason, count in sorted(self.dead.items()))
        return [first, f"{again} are dead letters again: {reasons}", *map(self._advice, sorted(self.same))]

    def _advice(self, reason: DeadLetterReason) -> str:
        what = _CHECKS.get(reason, "see Dead letters in OPERATIONS.md")
        return f"{self.same[reason]} of them have the reason {reason} again: {what}, then redrive them again"


_CHECKS = {
    DeadLetterReason.MISSING_FIELD: "check input.text_field",
    DeadLetterReason.NOT_TEXT: "check input.text_field",
    DeadLetterReason.EMPTY_KEY: "check exact.fields and exact.empty_key",
}
"""What to do about messages that settings do not fit."""


@dataclass(frozen=True, slots=True)
class Pass:
    """The redrive of one reason. ends: for each partition of `letters`, the offset up to which it is read"""

    letters: RedrivenTopic
    ends: Mapping[Partition, int]


def run_redrive(
    settings: Settings,
    connect: Callable[[Settings], Broker],
    *,
    reason: DeadLetterReason | None = None,
    since_ms: int | None = None,
    member: str | None = None,
    clock: Clock | None = None,
    stop: threading.Event | None = None,
) -> RedriveResult:
    """Judge the dead letters of a reason, or of all reasons, up to the current end of their topic. An earlier
    run that was interrupted is continued, and nothing that was redriven comes out again.

    since_ms: begin at the first dead letter with this timestamp or a later one
    member, connect, clock, stop: as for `run_service`
    raises: UsageError without a topic for dead letters; BrokerError and StateError as `run_service`
    """
    clock = clock or SystemClock()
    stop = stop or threading.Event()

    def look() -> tuple[LetterTopic, list[DeadLetterReason], Scheme]:
        scheme = check_app(
            settings,
            partial(connect, settings),
            clock,
            auto_create=settings.topics.auto_create,
            command="redrive",
        )
        with closing(connect(settings)) as broker:
            topic = letter_topic(settings, broker, since_ms)
            reasons = [reason] if reason is not None else _reasons(settings, broker, clock, topic)
            if since_ms is None:
                _warn_of_deleted(settings.app, broker, topic, reasons)
            return topic, reasons, scheme

    def begin(topic: LetterTopic, reasons: Sequence[DeadLetterReason]) -> list[Pass]:
        with closing(connect(settings)) as broker:
            return begin_redrive(settings.app, broker, topic, reasons)

    # Looking reads the whole topic, so it is not repeated while another redrive keeps this one waiting.
    found = until_answered(look, clock, stop, command="redrive")
    passes = until_answered(partial(begin, *found[:2]), clock, stop, command="redrive") if found else None
    if found is None or not passes:
        return RedriveResult(finished=passes is not None)
    metrics = Metrics(clock)
    with process(settings, member) as (slot, background), closing(connect(settings)) as broker:
        builder = Builder(settings, found[2], clock, connect, slot, emit=True, background=background)
        index = IndexLoop(builder, clock, metrics)
        planned = [(each, _builder(builder, each)) for each in passes]
        worker = RedriveLoop(planned, clock, metrics, broker.admin(), stop, index=index)
        warm_up(partial(log_compiling, command="redrive"), stopped=stop.is_set)
        with Watchdog(stop, clock) as watchdog:
            watchdog.watch([worker, index])
            drive([worker], [index], stop)
    return worker.redriven


def _reasons(settings: Settings, broker: Broker, clock: Clock, topic: LetterTopic) -> list[DeadLetterReason]:
    found = survey(settings, broker, clock, topic)
    for reason, letters in sorted(found.letters.items()):
        _log.info(
            "redrive: %s: %d dead letters, of which %d were redriven for certain",
            reason,
            letters.count,
            letters.redriven,
        )
    if found.others:
        _log.warning(
            "redrive: %d messages in %s have no reason that this program writes; they stay there",
            found.others,
            topic.info.name,
        )
    return sorted(found.letters)


def _builder(builder: Builder, one: Pass) -> Builder:
    """The same builder, whose worker reads the dead letters of one reason."""
    settings, connect, clock, letters = builder.settings, builder.connect, builder.clock, one.letters
    return replace(
        builder,
        settings=reading(settings, letters.name),
        connect=lambda chosen: redrive_broker(connect(chosen), clock, one),
        # A dead letter with a text does not show that other messages have one there.
        has_text=threading.Event(),
        job="redrive",
        group=Names(settings.app).redrive(letters.reason),
        inputs=settings.input.topics,
    )


def redrive_broker(inner: Broker, clock: Clock, one: Pass) -> Broker:
    """The broker of a worker that redrives: with the dead letters of one reason as a topic, whose partitions
    are read side by side in time."""
    return ordered_broker(redriven_broker(inner, one.letters, one.ends), clock, one.ends)


def begin_redrive(
    app: str, broker: Broker, topic: LetterTopic, reasons: Sequence[DeadLetterReason]
) -> list[Pass]:
    """The passes of a redrive, after each reason's consumer group was moved to where its pass begins.

    A partition that was redriven without a gap from `topic.begins` on continues after that. Any other one
    begins at `topic.begins`; the index knows what of it was redriven. Each group gets an offset in each
    partition, because after a redrive Kafka may forget the offsets, and a group without one would be refused.

    raises: BrokerError; a retryable one while a redrive of a reason that began elsewhere is running
    """
    with closing(broker.admin()) as admin, closing(broker.reader()) as reader:
        for reason in reasons:
            group = Names(app).redrive(reason)
            # The ends are asked for after the offsets: a partition that ends before one has lost messages.
            committed, ends = read_recorded(admin, group, stable=False), reader.end_offsets([*topic.ends])
            if _moves(topic, reason, committed, ends):
                if admin.members(group):
                    raise BrokerError(
                        f"group {group} has members: another redrive of {reason} is running, or has ended "
                        "seconds ago; its offsets are moved when it is gone",
                        retryable=True,
                    )
                committed, ends = read_recorded(admin, group), reader.end_offsets([*topic.ends])
                admin.set_group_offsets(group, _moves(topic, reason, committed, ends))
    letters = [RedrivenTopic(topic.info.name, reason) for reason in reasons]
    return [
        Pass(each, {Partition(each.name, at.number): end for at, end in topic.ends.items()})
        for each in letters
    ]


def _moves(
    topic: LetterTopic,
    reason: DeadLetterReason,
    committed: Mapping[Partition, Committed],
    ends: Mapping[Partition, int],
) -> dict[Partition, Committed]:
    """The offsets to commit for a group, so that each partition begins where `begin_redrive` says.

    raises: BrokerError if the topic has lost messages that were redriven
    """
    topic_id = input_id(topic.info, RedrivenTopic(topic.info.name, reason))
    marks = redrive_marks(topic, reason, committed)
    moves = {}
    for at, begin in topic.begins.items():
        held, mark = committed.get(at), marks.get(at)
        if mark is not None and mark.end > ends[at]:
            raise BrokerError(
                f"{at}: ends at {ends[at]}, but was redriven up to {mark.end}: it lost messages, and "
                "new ones would take their offsets; name a new topic as output.dead_letter",
                retryable=False,
            )
        if mark is not None and mark.first <= begin <= mark.end:
            begin = mark.end
        if mark is None or held is None or held.offset != begin:
            moves[at] = moved(held, topic_id, begin)
    return moves


def _warn_of_deleted(
    app: str, broker: Broker, topic: LetterTopic, reasons: Sequence[DeadLetterReason]
) -> None:
    """Say what retention deleted before it was redriven, or that no record says whether it was."""
    with closing(broker.admin()) as admin:
        for reason in reasons:
            committed = read_recorded(admin, Names(app).redrive(reason), stable=False)
            marks = redrive_marks(topic, reason, committed)
            for at, first in topic.first.items():
                if at in marks and marks[at].end < first:
                    _log.warning(
                        "redrive: %s: retention deleted the offsets from %d to %d before dead letters of "
                        "reason %s among them were redriven: at most %d are lost",
                        at,
                        marks[at].end,
                        first - 1,
                        reason,
                        first - marks[at].end,
                    )
                elif at not in marks and first:
                    _log.warning(
                        "redrive: %s: retention deleted the offsets below %d; no record says whether dead "
                        "letters of reason %s among them were redriven (Kafka forgets that after "
                        "offsets.retention.minutes, 7 days by default)",
                        at,
                        first,
                        reason,
                    )


class RedriveLoop(EndingLoop):
    """Runs the worker of one pass after the other, and ends after the last one.

    passes: each with the builder of its worker
    """

    def __init__(
        self,
        passes: Sequence[tuple[Pass, Builder]],
        clock: Clock,
        metrics: Metrics,
        admin: Admin,
        stop: threading.Event,
        *,
        index: IndexLoop,
    ) -> None:
        super().__init__(passes[0][1], clock, metrics, index=index)
        self._passes = [*passes]
        self._admin = admin
        self._all_done = stop
        self.redriven = RedriveResult()

    @property
    def _pass(self) -> Pass:
        return self._passes[0][0]

    def _count(self, emission: Emission) -> None:
        super()._count(emission)
        self.redriven.kinds.update(emission.kinds)
        self.redriven.dead.update(emission.dead)
        reason = self._pass.letters.reason
        if emission.dead[reason]:
            self.redriven.same[reason] += emission.dead[reason]

    def _reads_to(self, partition: Partition, end: int) -> int:
        return min(end, self._pass.ends.get(partition, 0))

    def _check(self) -> None:
        letters, ends = self._pass.letters, self._pass.ends
        left = offsets_left(
            self._admin,
            self._builder.group,
            {Partition(letters.topic, at.number): end for at, end in ends.items()},
        )
        kinds = self.redriven.kinds
        judged = kinds.total() - kinds[Kind.REPLAYED]
        _log.info("redrive: %s: %d judged; %d offsets still to read", letters.reason, judged, left)
        if left:
            return
        if len(self._passes) == 1:
            self.redriven.finished = True
            self._all_done.set()
            return
        self._finish()
        self._give_up(leaves=True)
        del self._passes[0]
        self._builder = self._passes[0][1]
