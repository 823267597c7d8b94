"""The mark: metadata that is committed with each offset of an input partition and says what was emitted."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

from twinsieve.pipeline.broker.admin import TopicInfo
from twinsieve.pipeline.broker.records import NO_EPOCH, NO_TOPIC_ID, Committed


class Mark(NamedTuple):
    """Metadata of a committed input offset: the offsets [first, end) of this very topic were emitted.

    The transaction that emits messages writes it, and `twinsieve reset` keeps it. If a worker dies before it
    reports to the index what it emitted, the next worker reads that here. The committed offset is `end`,
    except after a `reset` that no worker has seen yet.

    partitions, since_ms: under `input.start: latest` the topic's number of partitions when the app began with
        it, and that time; else 0
    fresh: the index has not accepted yet that the session begins here
    placed: False if it is not decided where to begin, because the end of the partition was unknown; only a
        fresh mark can be unplaced
    read, epoch: the offset after the last message below `end`, and the leader epoch of that message; the
        epoch is NO_EPOCH if both are unknown
    reset: `twinsieve reset` may have moved the offset after `end`, or chosen `first`, and the index has not
        passed over yet what that leaves out
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
    reset: bool = False

    def text(self) -> str:
        """The mark as the metadata text that is committed."""
        kind = (_RESET if self.reset else "5") if not self.fresh else _FRESH if self.placed else _UNPLACED
        numbers = (str(getattr(self, name)) for name in _NUMBERS[kind])
        return " ".join((kind, self.topic_id.hex(), *numbers))

    def committed(self) -> Committed:
        """What to commit when everything below `end` is emitted."""
        return Committed(self.end, self.text())


_RESET, _FRESH, _UNPLACED = "5-reset", "5-fresh", "5-unplaced"
_OLD_FRESH = "fresh"
_ALL_FRESH = (_OLD_FRESH, "4-fresh", _FRESH)
_ALL_UNPLACED = ("4-unplaced", _UNPLACED)
_MAY_BE_RESET = ("1", "2", "3", "4", _RESET)
"""Before version 5 a mark that `reset` wrote looked like any other."""
_NUMBERS = {
    "1": ("first", "end"),
    "2": ("first", "end", "partitions"),
    "3": ("first", "end", "partitions", "read", "epoch"),
    "4": ("first", "end", "partitions", "read", "epoch", "since_ms"),
    "5": ("first", "end", "partitions", "read", "epoch", "since_ms"),
    _RESET: ("first", "end", "partitions", "read", "epoch", "since_ms"),
    _OLD_FRESH: ("first", "end", "partitions"),
    **dict.fromkeys(("4-fresh", _FRESH), ("first", "end", "partitions", "since_ms")),
    **dict.fromkeys(_ALL_UNPLACED, ("partitions", "since_ms")),
}
"""The numbers after the topic id, by the first word of the text (version and kind)."""


def read_mark(metadata: str) -> Mark | None:
    """The mark in an offset's metadata; None if another program has committed the offset.

    >>> read_mark(Mark(bytes(16), 3, 9, 12, 1_600_000_000_000, read=8, epoch=2).text())[1:]
    (3, 9, 12, 1600000000000, False, True, 8, 2, False)
    >>> read_mark("1 00000000000000000000000000000000 3 9")[1:]
    (3, 9, 0, 0, False, True, 0, -1, True)
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
    placed = kind not in _ALL_UNPLACED
    return mark._replace(fresh=not placed or kind in _ALL_FRESH, placed=placed, reset=kind in _MAY_BE_RESET)


def on_record(found: Committed | None, record: Committed | None) -> Committed | None:
    """The offset from which a partition continues; None if twinsieve has committed none.

    Only a worker's transaction and `twinsieve reset` may move it. Any client that uses the group can commit
    other offsets, so each of these transactions commits its offset in a second group too, the record.

    found: the offset in the group of the workers; if somebody else has committed it, the result is `record`
    record: the offset in the second group; None if a version without that group committed `found`, or if
        Kafka has forgotten it

    >>> ours, newer = (Mark(bytes(16), 3, end).committed() for end in (9, 12))
    >>> on_record(Committed(500), ours) == on_record(None, ours) == on_record(ours, None) == ours
    True
    >>> on_record(newer, ours) == newer, on_record(ours, newer) == newer
    (True, True)
    >>> on_record(moved(ours, bytes(16), 0), ours).offset, on_record(Committed(500), None)
    (0, None)
    """
    mark, kept = _own_mark(found), _own_mark(record)
    if mark is None or found is None:
        return record if kept is not None else None
    if kept is None or found == record:
        return found
    # `reset` keeps the mark that is on record, unless that is of an earlier topic, or not accepted yet.
    if kept.fresh or mark.topic_id != kept.topic_id:
        is_newer = mark.reset
    elif found.offset != mark.end:
        is_newer = (mark.first, mark.end) == (kept.first, kept.end)
    else:
        # Or a worker of an earlier version has committed it, which keeps no record.
        is_newer = mark.end >= kept.end
    return found if is_newer else record


def _own_mark(committed: Committed | None) -> Mark | None:
    """The mark of an offset that twinsieve committed; None for any other."""
    mark = read_mark(committed.metadata) if committed is not None else None
    is_own = mark is not None and (mark.reset or mark.end == committed.offset)  # type: ignore[union-attr]
    return mark if is_own else None


def moved(committed: Committed | None, topic_id: bytes, offset: int) -> Committed:
    """What `twinsieve reset` commits: the offset moves, the mark of what was emitted stays.

    `read` and `epoch` do not stay, because `reset` must also help after an input has lost messages. A fresh
    mark does not stay either: the index has not accepted it, so other partitions of the topic must not rely
    on it.

    committed: offset and mark that are committed now; None if nothing is
    topic_id: id of the topic now. If it is not the mark's, the topic was created again: the new mark is empty

    >>> moved(Committed(9, Mark(bytes(16), 3, 9, read=8, epoch=2).text()), bytes(16), 0).metadata.split()[2:]
    ['3', '9', '0', '0', '-1', '0']
    """
    mark = read_mark(committed.metadata) if committed is not None else None
    if mark is None or mark.topic_id != topic_id or mark.fresh:
        mark = Mark(topic_id, offset, offset)
    return Committed(offset, mark._replace(read=0, epoch=NO_EPOCH, reset=True).text())


def name_topic(info: TopicInfo) -> bytes:
    """16 bytes that identify a topic: its id, or a hash of its name if the broker has no topic ids."""
    if info.topic_id != NO_TOPIC_ID:
        return info.topic_id
    return hashlib.blake2b(info.name.encode(), digest_size=16).digest()
