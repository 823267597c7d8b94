"""The mark of what was emitted: what is committed beside each offset of an input partition."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

from twinsieve.pipeline.broker.admin import TopicInfo
from twinsieve.pipeline.broker.records import NO_EPOCH, NO_TOPIC_ID, Committed


class Mark(NamedTuple):
    """What is committed beside an input offset: offsets [first, end) of this very topic were emitted.

    It travels in the offset's metadata, is written by emissions and carried over by `twinsieve reset`, and
    shows the index what a crash kept from being reported.

    partitions, since_ms: how many the topic had when the app began with it, and when that was, under
        `input.start: latest`; else 0
    fresh: no block was sent yet: the index has not accepted that the session begins here
    placed: False only of a fresh mark: the end of the partition was unknown
    read, epoch: offset behind the last message below `end`, and the epoch of the leader that wrote that
        message; an epoch of NO_EPOCH where neither is known
    """

    topic_id: bytes
    first: int
    end: int
    partitions: int = 0
    since_ms: int = 0
    fresh: bool = False
    placed: bool = True
    read: int = 0
    epoch: int = NO_EPOCH

    def text(self) -> str:
        """As committed."""
        kind = "4" if not self.fresh else _FRESH if self.placed else _UNPLACED
        numbers = (str(getattr(self, name)) for name in _NUMBERS[kind])
        return " ".join((kind, self.topic_id.hex(), *numbers))

    def committed(self) -> Committed:
        """What to commit when everything below `end` is out."""
        return Committed(self.end, self.text())


_FRESH, _UNPLACED = "4-fresh", "4-unplaced"
_OLD_FRESH = "fresh"
_NUMBERS = {
    "1": ("first", "end"),
    "2": ("first", "end", "partitions"),
    "3": ("first", "end", "partitions", "read", "epoch"),
    "4": ("first", "end", "partitions", "read", "epoch", "since_ms"),
    _OLD_FRESH: ("first", "end", "partitions"),
    _FRESH: ("first", "end", "partitions", "since_ms"),
    _UNPLACED: ("partitions", "since_ms"),
}
"""What stands behind the topic id, by version."""


def read_mark(metadata: str) -> Mark | None:
    """The mark of an offset's metadata, None where another program has committed.

    >>> read_mark(Mark(bytes(16), 3, 9, 12, 1_600_000_000_000, read=8, epoch=2).text())[1:]
    (3, 9, 12, 1600000000000, False, True, 8, 2)
    >>> read_mark("1 00000000000000000000000000000000 3 9")[1:]
    (3, 9, 0, 0, False, True, 0, -1)
    """
    kind, *parts = metadata.split(" ")
    names = _NUMBERS.get(kind)
    if names is None or len(parts) != 1 + len(names):
        return None
    try:
        numbers: dict[str, Any] = dict(zip(names, map(int, parts[1:]), strict=True))
        mark = Mark(bytes.fromhex(parts[0]), 0, 0)._replace(**numbers)
    except ValueError:
        return None
    return mark._replace(fresh=kind in (_OLD_FRESH, _FRESH, _UNPLACED), placed=kind != _UNPLACED)


def moved(committed: Committed | None, topic_id: bytes, offset: int) -> Committed:
    """What `twinsieve reset` commits: the offset moves, the mark of what was emitted stays.

    But for the epoch: a reset of an input that lost messages names the next offset. And a mark that the
    index had not agreed to says nothing: other partitions of that topic are not judged by it.

    committed: as it stands; topic_id: of the topic as it is now (one created again gets an empty mark)

    >>> moved(Committed(9, Mark(bytes(16), 3, 9, read=8, epoch=2).text()), bytes(16), 0).metadata.split()[2:]
    ['3', '9', '0', '0', '-1', '0']
    """
    mark = read_mark(committed.metadata) if committed is not None else None
    if mark is None or mark.topic_id != topic_id or mark.fresh:
        mark = Mark(topic_id, offset, offset)
    return Committed(offset, mark._replace(read=0, epoch=NO_EPOCH).text())


def name_topic(info: TopicInfo) -> bytes:
    """16 bytes that tell a topic from another; made of its name where the broker has no ids."""
    if info.topic_id != NO_TOPIC_ID:
        return info.topic_id
    return hashlib.blake2b(info.name.encode(), digest_size=16).digest()
