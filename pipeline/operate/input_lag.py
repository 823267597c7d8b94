"""How far the app is behind the ends of its input partitions, and who works on each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from twinsieve.pipeline.broker.admin import Admin, TopicInfo
from twinsieve.pipeline.broker.committed_offsets import read_recorded
from twinsieve.pipeline.broker.mark import name_topic, read_mark
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.records import Committed, GroupMember, Partition
from twinsieve.pipeline.operate.input_topics import described_inputs
from twinsieve.pipeline.settings.model import Settings


@dataclass(frozen=True, slots=True)
class InputLag:
    """One input partition.

    committed: offset up to which everything came out; None if no worker has ever committed one in this topic
    end: last stable offset; None where no leader tells it
    open_at: offset of the oldest open transaction, behind which nobody can read; None if none is open
    worker: name of the member that has the partition; None if nobody has it
    recreated: whether the committed offset is of an earlier topic of the same name, which was deleted; all of
        the new topic waits then
    """

    committed: int | None
    end: int | None
    open_at: int | None
    worker: str | None
    recreated: bool


def input_lags(
    settings: Settings, admin: Admin, workers: Mapping[str, GroupMember] | None = None
) -> dict[Partition, InputLag]:
    """All partitions of the input, by six requests to the broker, however many there are.

    workers: members of the workers' group; None: the broker is asked
    raises: BrokerError if no broker answers, or an input topic is missing
    """
    group = Names(settings.app).workers
    infos = described_inputs(settings, admin)
    inputs = [
        Partition(name, number) for name in settings.input.topics for number in range(infos[name].partitions)
    ]
    owner = owners(admin.members(group) if workers is None else workers)
    # Before the ends: a message that arrives in between must not count as one that came out.
    committed = read_recorded(admin, group, stable=False)
    led = [at for at in inputs if at.number not in infos[at.topic].leaderless]
    # Before the stable ends: messages that arrive in between must not look like an open transaction.
    written = admin.end_offsets(led)
    ends = admin.stable_offsets(led)
    found = {}
    for at in inputs:
        old = _is_of_another(committed.get(at), infos[at.topic])
        offset = committed[at].offset if at in committed and not old else None
        end = ends.get(at)
        open_at = end if end is not None and end < written[at] else None
        found[at] = InputLag(offset, end, open_at, owner.get(at), old)
    return found


def owners(members: Mapping[str, GroupMember]) -> dict[Partition, str]:
    """Name of the member that has each partition. members: by member id"""
    return {at: member_name(key, member) for key, member in members.items() for at in member.partitions}


def member_name(key: str, member: GroupMember) -> str:
    """The static name of a member, or its id."""
    return member.name or key


def _is_of_another(committed: Committed | None, info: TopicInfo) -> bool:
    """Whether the offset was committed for an earlier topic of this name."""
    mark = read_mark(committed.metadata) if committed is not None else None
    return mark is not None and mark.topic_id != name_topic(info)
