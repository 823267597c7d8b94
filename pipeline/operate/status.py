"""`twinsieve status`: who judges, and what waits. Only the broker is asked, so no process needs to run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from typing import Any

from twinsieve.pipeline.broker.admin import Admin
from twinsieve.pipeline.broker.committed_offsets import read_recorded
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.ports import Broker, Clock, Reader
from twinsieve.pipeline.broker.records import (
    NO_TIMESTAMP,
    AbortableError,
    Partition,
    Records,
    UnreadableError,
)
from twinsieve.pipeline.index.ends import recorded_alone, recorded_pause
from twinsieve.pipeline.operate.app_key import recorded_name
from twinsieve.pipeline.operate.committed_index import committed_by_index
from twinsieve.pipeline.operate.foreign_members import described, foreign_members
from twinsieve.pipeline.operate.input_lag import input_lags, member_name, owners
from twinsieve.pipeline.operate.shard_members import ShardsStatus, shards_of
from twinsieve.pipeline.settings.model import Settings

_NEWEST = 64
"""Number of last offsets in which the newest decision is searched: markers of transactions stand between."""
_READ_S = 5.0
_POLL_S = 0.2
_MOST_RECORDS = 1_000
_OBSERVE_S = 10.0
"""For how long a partition may emit nothing although messages wait, and a producer's transaction may be open.
Ours take less."""


@dataclass(frozen=True, slots=True)
class InputStatus:
    """One input partition.

    came_out_up_to: the offset up to which everything came out; None if no worker has ever
        committed one in this topic
    end: last stable offset; waiting: offsets between the two; there are at most as many messages
    since_ms: timestamp of the first message that waits, ms since 1970; None if none waits or it is not known
    worker: name of the member that has the partition; None if nobody has it
    recreated: whether the committed offset belongs to an earlier topic of the same name, which was deleted;
        all of the new topic waits then
    stands_still: whether its messages wait although it has a worker and somebody judges, and none came out
        while the status was taken
    open_at: offset of a transaction of a producer that was open all the time while the status was taken:
        nobody can read what lies behind it, and it does not count as waiting; None if none was
    """

    partition: str
    came_out_up_to: int | None
    end: int
    waiting: int
    since_ms: int | None
    worker: str | None
    recreated: bool = False
    stands_still: bool = False
    open_at: int | None = None


@dataclass(frozen=True, slots=True)
class Status:
    """What the broker knows of an app.

    judge: name of the member that has the log of fingerprints, so it judges; None if nobody does
    standbys: names of the other index members; workers: names of the workers
    blocks: number of blocks in the log that are not judged; None if no index has ever committed
    decided_ms: timestamp of the newest decision, ms since 1970; None if there is none
    foreign: members of the app's groups that are not twinsieve, a line each
    shards: the shards; None if the settings use none
    key: name of the key with which the app has judged, which tells nothing about it; None if none is on
        record
    paused_ms: since when a full disk lets the one that judges judge nothing, ms since 1970; None if it judges
    """

    app: str
    judge: str | None
    standbys: list[str]
    workers: list[str]
    inputs: list[InputStatus]
    blocks: int | None
    decided_ms: int | None
    foreign: list[str]
    shards: ShardsStatus | None = None
    paused_ms: int | None = None
    key: str | None = None

    @property
    def waiting(self) -> int:
        """Offsets of all input partitions that wait."""
        return sum(one.waiting for one in self.inputs)

    def problems(self, most_waiting: int | None) -> list[str]:
        """What is wrong, a line each; empty if nothing is. most_waiting: None for no limit"""
        found = []
        if self.judge is None:
            found.append("nobody judges: start `twinsieve run`, or wait until an index has taken over")
        elif self.paused_ms is not None:
            found.append(
                f"{self.judge} judges nothing, because its disk is full and one more segment would not fit "
                "into its memory: free space there, or start an index whose disk has room; retention of the "
                "input goes on"
            )
        lone = [one.partition for one in self.inputs if one.worker is None]
        if lone:
            found.append(f"no worker has {_listed(lone)}: start `twinsieve run`, or wait for the rebalance")
        again = [one.partition for one in self.inputs if one.recreated]
        if again:
            found.append(
                f"{_listed(again)}: the topic was deleted and created again since an offset was committed: "
                "stop the app, and set the offset to begin at with `twinsieve reset`"
            )
        found += [f"{line}: stop it, nothing of its partitions is judged" for line in self.foreign]
        still = [one.partition for one in self.inputs if one.stands_still]
        if still:
            found.append(
                f"{_listed(still)}: messages wait, and none came out within {_OBSERVE_S:.0f} s: "
                "the page /readyz and the log of the worker say why"
            )
        found += [
            f"{one.partition}: a transaction that began at offset {one.open_at} is open, and nobody can read "
            "what lies behind it: let its producer end it, or abort it with kafka-transactions"
            for one in self.inputs
            if one.open_at is not None
        ]
        if self.shards is not None and not self.shards.has_topic:
            found.append(
                "the topic of the answers of shards is missing, or this user may not describe it: the index "
                "looks up itself; run `twinsieve topics create`"
            )
        if most_waiting is not None and self.waiting > most_waiting:
            found.append(f"{self.waiting:,} messages wait, more than {most_waiting:,}")
        return found

    def as_dict(self, most_waiting: int | None) -> dict[str, Any]:
        """The status as plain values, with the problems."""
        return asdict(self) | {"waiting": self.waiting, "problems": self.problems(most_waiting)}


def status_of(settings: Settings, broker: Broker, clock: Clock) -> Status:
    """What the broker knows of the app now. Nothing is changed, and no group is joined.

    raises: BrokerError if no broker answers, or an input topic is missing; ConfigError for settings whose
        question to shards cannot be made
    """
    names = Names(settings.app)
    log, decisions = Partition(names.fingerprints, 0), Partition(names.decisions, 0)
    with closing(broker.admin()) as admin, closing(broker.reader()) as reader:
        indexes, workers = admin.members(names.index), admin.members(names.workers)
        foreign = foreign_members(settings.app, admin)
        committed = committed_by_index(settings.app, admin)
        shards = shards_of(settings, committed, admin)
        lags = input_lags(settings, admin, workers)
        internal = admin.topics([log.topic, decisions.topic])
        first, end = reader.beginning_offsets(lags), reader.end_offsets(lags)
        blocks = decided = judged = None
        if internal[log.topic] is not None:
            judged = committed
            blocks = max(0, admin.end_offsets([log])[log] - judged.offset) if judged is not None else None
        begins = {at: _begin(lag.committed, first[at], end[at]) for at, lag in lags.items()}
        since = _first_times(reader, {at: offset for at, offset in begins.items() if offset < end[at]}, clock)
        if internal[decisions.topic] is not None:
            decided = _newest_time(reader, decisions, clock)
        judge = owners(indexes).get(log)
        if shards is not None and judge is not None:
            shards = replace(shards, alone=recorded_alone(judged))
        waiting = {at: begins[at] for at, lag in lags.items() if lag.worker and begins[at] < end[at]}
        opened = {at: lag.open_at for at, lag in lags.items() if lag.open_at is not None}
        still, held = _unmoved(admin, names.workers, waiting if judge is not None else {}, opened, clock)
    return Status(
        settings.app,
        judge,
        sorted(member_name(key, member) for key, member in indexes.items() if log not in member.partitions),
        sorted(member_name(key, member) for key, member in workers.items()),
        [
            InputStatus(
                str(at),
                lag.committed,
                end[at],
                max(0, end[at] - begins[at]),
                since.get(at),
                lag.worker,
                lag.recreated,
                at in still,
                held.get(at),
            )
            for at, lag in lags.items()
        ],
        blocks,
        decided,
        [
            f"group {group} has a foreign member, {described(member)}"
            for group, members in foreign.items()
            for member in members.values()
        ],
        shards,
        recorded_pause(judged) if judge is not None else None,
        recorded_name(judged) or None,
    )


def judge_of(app: str, admin: Admin) -> str | None:
    """Name of the member that judges; None if nobody does. raises: BrokerError"""
    names = Names(app)
    return owners(admin.members(names.index)).get(Partition(names.fingerprints, 0))


def _listed(partitions: list[str]) -> str:
    return ", ".join(partitions[:8]) + (", …" if len(partitions) > 8 else "")


def _begin(committed: int | None, first: int, end: int) -> int:
    """Offset of the first message that waits; what retention took does not wait."""
    return min(end, max(first, committed if committed is not None else first))


def _unmoved(
    admin: Admin, group: str, begins: Mapping[Partition, int], opened: Mapping[Partition, int], clock: Clock
) -> tuple[set[Partition], dict[Partition, int]]:
    """Those of these partitions of which nothing comes out, and those of these transactions that do not end,
    for _OBSERVE_S; returns sooner if all move.

    begins: offset of the first message that waits; opened: last stable offset, where a transaction is open
    """
    still, held = set(begins), dict(opened)
    deadline_s = clock.monotonic_s() + _OBSERVE_S
    while (still or held) and clock.monotonic_s() < deadline_s:
        if still:
            committed = read_recorded(admin, group, stable=False)
            still -= {at for at in still if at in committed and committed[at].offset > begins[at]}
        if held:
            ends = admin.stable_offsets(held)
            held = {at: offset for at, offset in held.items() if ends[at] <= offset}
        if still or held:
            clock.sleep(_POLL_S)
    return still, held


def _first_times(reader: Reader, offsets: Mapping[Partition, int], clock: Clock) -> dict[Partition, int]:
    """Timestamp of the first message at or behind each offset.

    Partitions whose message does not come in time, or has no timestamp, are left out.
    """
    found: dict[Partition, int] = {}
    if not offsets:
        return found
    reader.assign(offsets.keys())
    for partition, offset in offsets.items():
        reader.seek(partition, offset)
    for polled in _polls(reader, clock):
        for records in polled:
            found.setdefault(records.partition, records.timestamps_ms[0])
            reader.pause([records.partition])
        if len(found) == len(offsets):
            break
    return {partition: time for partition, time in found.items() if time != NO_TIMESTAMP}


def _newest_time(reader: Reader, partition: Partition, clock: Clock) -> int | None:
    """Timestamp of the newest message of a partition; None if none comes in time."""
    end = reader.end_offsets([partition])[partition]
    begin = max(reader.beginning_offsets([partition])[partition], end - _NEWEST)
    newest = None
    reader.assign([partition])
    reader.seek(partition, begin)
    for polled in _polls(reader, clock):
        for records in polled:
            newest = records.timestamps_ms[-1]
        if reader.position(partition) >= end:
            break
    return newest


def _polls(reader: Reader, clock: Clock) -> Iterator[list[Records]]:
    """What arrives in one poll after the other, perhaps nothing, until the time is up.

    Ends early if retention took meanwhile what was asked for.
    """
    deadline_s = clock.monotonic_s() + _READ_S
    while clock.monotonic_s() < deadline_s:
        try:
            yield reader.poll(_POLL_S, _MOST_RECORDS)
        except UnreadableError as error:
            reader.pause([error.partition])  # its first message has no time then
        except AbortableError:
            return
