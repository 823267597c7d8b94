"""The mark of what was emitted: what is committed beside each offset of an input partition."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from twinsieve.pipeline.broker.admin import TopicInfo
from twinsieve.pipeline.broker.records import NO_EPOCH, NO_TOPIC_ID, Committed


class Mark(NamedTuple):
    """What is committed beside an input offset: offsets [first, end) of this very topic were emitted.

    It travels in the offset's metadata, is written by emissions and carried over by `twinsieve reset`, and
    tells
    the index what a crash kept from being reported.

    partitions: how many the topic had when the app began with it, under `input.start: latest`; else 0
    fresh: nothing was asked for yet: the index has not said whether the session may begin here
    read, epoch: offset behind the last message below `end`, and the epoch of the leader that wrote that
        message; an epoch of NO_EPOCH where neither is known
    """

    topic_id: bytes
    first: int
    end: int
    partitions: int = 0
    fresh: bool = False
    read: int = 0
    epoch: int = NO_EPOCH

    def text(self) -> str:
        """As committed."""
        text = f"{self.topic_id.hex()} {self.first} {self.end}"
        if self.fresh:
            return f"fresh {text} {self.partitions}"
        return f"3 {text} {self.partitions} {self.read} {self.epoch}"

    def committed(self) -> Committed:
        """What to commit when everything below `end` is out."""
        return Committed(self.end, self.text())


_PARTS = {"1": 4, "2": 5, "3": 7, "fresh": 5}
"""Parts of each version, the version with them. Every one begins with those of the one before."""


def read_mark(metadata: str) -> Mark | None:
    """The mark of an offset's metadata, None where another program has committed.

    >>> read_mark(Mark(bytes(16), 3, 9, 12, read=8, epoch=2).text())[1:]
    (3, 9, 12, False, 8, 2)
    >>> read_mark("1 00000000000000000000000000000000 3 9")[1:]
    (3, 9, 0, False, 0, -1)
    """
    parts = metadata.split(" ")
    if len(parts) != _PARTS.get(parts[0]):
        return None
    try:
        first, end, *more = int(parts[2]), int(parts[3]), *map(int, parts[4:])
        partitions, read, epoch = [*more, *(0, 0, NO_EPOCH)[len(more) :]]
        return Mark(bytes.fromhex(parts[1]), first, end, partitions, parts[0] == "fresh", read, epoch)
    except ValueError:
        return None


def moved(committed: Committed | None, topic_id: bytes, offset: int) -> Committed:
    """What `twinsieve reset` commits: the offset moves, the mark of what was emitted stays.

    But for the epoch: whoever resets an input that lost messages says where to go on.

    committed: as it stands; topic_id: of the topic as it is now (one created again gets an empty mark)

    >>> moved(Committed(9, Mark(bytes(16), 3, 9, read=8, epoch=2).text()), bytes(16), 0).metadata.split()[2:]
    ['3', '9', '0', '0', '-1']
    """
    mark = read_mark(committed.metadata) if committed is not None else None
    if mark is None or mark.topic_id != topic_id or mark.fresh:
        mark = Mark(topic_id, offset, offset, mark.partitions if mark is not None else 0)
    return Committed(offset, mark._replace(read=0, epoch=NO_EPOCH).text())


def name_topic(info: TopicInfo) -> bytes:
    """16 bytes that tell a topic from another; made of its name where the broker has no ids."""
    if info.topic_id != NO_TOPIC_ID:
        return info.topic_id
    return hashlib.blake2b(info.name.encode(), digest_size=16).digest()
