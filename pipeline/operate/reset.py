"""`twinsieve reset`: move the offsets from which the workers continue to read.

A reset moves the offsets, but not the marks that record what was emitted (`broker/mark.py`); its own kind of
mark tells the workers that the move was asked for. So no message is
emitted twice: an emitted message that the workers read again gets the verdict `replayed`. A message that an
earlier reset had skipped is judged when the workers read it now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from twinsieve.pipeline.broker.admin import TopicInfo
from twinsieve.pipeline.broker.committed_offsets import read_recorded
from twinsieve.pipeline.broker.mark import Mark, moved, name_topic, read_mark
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.ports import Broker
from twinsieve.pipeline.broker.records import BrokerError, Committed, Partition
from twinsieve.pipeline.operate.input_topics import described_inputs
from twinsieve.pipeline.operate.reset_targets import ResetTargets, TargetKind
from twinsieve.pipeline.settings import ConfigError
from twinsieve.pipeline.settings.model import Settings


@dataclass(frozen=True, slots=True)
class Move:
    """The change of the committed offset of one partition.

    before: None if no offset was committed
    mark: which offsets of this partition were emitted; None if unknown, or if the topic was recreated
    recreated: whether `before` belongs to an earlier topic of the same name, which was deleted
    """

    partition: Partition
    before: Committed | None
    after: Committed
    mark: Mark | None
    recreated: bool

    @property
    def changes(self) -> bool:
        """Whether `apply` has to commit this move."""
        return self.before != self.after

    def __str__(self) -> str:
        before = "none" if self.before is None else str(self.before.offset)
        return f"{self.partition}: {before} -> {self.after.offset}{self._meaning()}"

    def _meaning(self) -> str:
        to = self.after.offset
        if self.recreated:
            return ", in the topic that was created again: all of it counts as new"
        if self.before is None:
            return ", none was committed: what was judged before is passed over as replayed"
        by = to - self.before.offset
        if by > 0:
            return f", skips {by}: not judged unless the offset is moved back"
        if by < 0:
            return f", goes back {-by}: what was emitted is passed over as replayed, what never was is judged"
        return ", stays"


def plan(settings: Settings, broker: Broker, targets: ResetTargets) -> list[Move]:
    """The moves that bring the worker group to the targets, in order of partitions. Commits nothing.

    Partitions without a target are left out.

    raises: BrokerError if no broker answers or a topic is missing; ConfigError with one line for each target
        that does not fit its partition, and for each partition that a reset cannot repair
    """
    admin, reader = broker.admin(), broker.reader()
    infos = described_inputs(settings, admin)
    partitions = [
        Partition(name, number) for name in settings.input.topics for number in range(infos[name].partitions)
    ]
    wrong = [f"--to {name}: no such input partition" for name in targets.named if name not in partitions]
    wanted = {partition: target for partition in partitions if (target := targets.of(partition)) is not None}
    beginning, stable_end = reader.beginning_offsets([*wanted]), reader.end_offsets([*wanted])
    times = {key: target.number for key, target in wanted.items() if target.kind is TargetKind.TIME}
    by_time = admin.offsets_at(times) if times else {}
    group = Names(settings.app).workers
    found, recorded = admin.group_offsets(group), read_recorded(admin, group)
    moves = []
    for partition, (kind, offset) in wanted.items():
        first, end = beginning[partition], stable_end[partition]
        if kind is TargetKind.EARLIEST:
            offset = first
        elif kind is TargetKind.LATEST:
            offset = end
        elif kind is TargetKind.TIME:
            # The first message at or after this time may come after the start of an open transaction. But
            # readers cannot pass that start, which is `end`.
            offset = min(by_time[partition], end)
        elif not first <= offset <= end:
            wrong.append(f"--to {offset}: {partition} holds {first} to {end}; choose from these")
            continue
        move = _move(partition, infos[partition.topic], found, recorded, offset)
        if move.mark is not None and move.mark.end > end:
            wrong.append(
                f"{partition}: ends at {end}, but was emitted up to {move.mark.end}: "
                "it lost messages, and new ones would take their offsets; start a new app"
            )
        moves.append(move)
    reader.close()
    admin.close()
    if wrong:
        raise ConfigError(wrong)
    return moves


def apply(settings: Settings, broker: Broker, moves: Sequence[Move]) -> None:
    """Commit the moves.

    They go on record too, so that they stay if somebody else moves the offsets before the workers start. The
    record comes first: while there is no such offset in the group of the workers, nobody takes it for newer
    than theirs.

    raises: BrokerError, also while workers of this app are running
    """
    group = Names(settings.app).workers
    offsets = {move.partition: move.after for move in moves if move.changes}
    admin = broker.admin()
    try:
        if admin.members(group):
            # The broker refuses an offset in a group with members, but not in the record, which has none.
            raise BrokerError(f"group {group} has members", retryable=False)
        for each in (Names.emitted(group), group):
            admin.set_group_offsets(each, offsets)
    except BrokerError as error:
        if error.retryable:
            raise
        raise BrokerError(
            f"{error}; stop every `twinsieve run` of app {settings.app} with SIGTERM, wait for "
            f"kafka.session_timeout ({settings.kafka.session_timeout_ms / 1000:g} s) and try again",
            retryable=False,
        ) from error
    finally:
        admin.close()


def _move(
    partition: Partition,
    info: TopicInfo,
    found: Mapping[Partition, Committed],
    recorded: Mapping[Partition, Committed],
    offset: int,
) -> Move:
    before, own = found.get(partition), recorded.get(partition)
    topic_id = name_topic(info)
    mark = read_mark(own.metadata) if own is not None else None
    recreated = mark is not None and mark.topic_id != topic_id
    return Move(partition, before, moved(own, topic_id, offset), None if recreated else mark, recreated)
