"""Which message a topic refuses. The error of a transaction does not name it, so transactions get smaller
until one holds a single message."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from twinsieve.pipeline.basics.printable import beginning, printable
from twinsieve.pipeline.broker.records import Committed, Partition

_TRIES = 2
"""A topic has refused a message when it refused this many transactions that held no other one."""
_UNLIMITED = 1 << 62
_MANY = 256
_WORDS = 300

Refusals = Mapping[int, Mapping[str, Sequence[str]]]
"""By offset and by topic, what the broker said each time it refused the message for that topic."""


@dataclass(frozen=True, slots=True)
class _Search:
    """rows: most messages of one transaction; end: the refused message is below this offset
    tries: how many transactions with a single message were refused"""

    rows: int
    end: int
    tries: int = 0


class Suspects:
    """Searches for refused messages, by input partition, and remembers those that it found until the
    partition has passed them.

    >>> at, suspects = Partition("posts", 0), Suspects()
    >>> for offsets in ([4, 5, 6], [4], [5, 6], [5]):
    ...     suspects.refused(at, offsets, "out", "no key", is_alone=len(offsets) == 1)
    False
    False
    False
    False
    >>> suspects.refused(at, [5], "out", "no key", is_alone=True), suspects.of(at)
    (True, {5: {'out': ['no key']}})
    >>> suspects.passed({at: Committed(6)})
    >>> suspects.of(at), suspects.rows(at)
    ({}, 2)
    """

    def __init__(self) -> None:
        self._searches: dict[Partition, _Search] = {}
        self._found: dict[Partition, dict[int, dict[str, list[str]]]] = {}

    def __contains__(self, partition: Partition) -> bool:
        return partition in self._searches

    def of(self, partition: Partition) -> Refusals:
        """The refused messages of this partition that were found."""
        return self._found.get(partition, {})

    def rows(self, partition: Partition) -> int:
        """How many messages of this partition may go into one transaction, and wait for answers."""
        search = self._searches.get(partition)
        return search.rows if search is not None else _UNLIMITED

    def refused(
        self, partition: Partition, offsets: Sequence[int], topic: str, words: str, *, is_alone: bool
    ) -> bool:
        """Note that a topic refused a transaction with these messages of a partition; returns whether that
        shows which message it refuses.

        is_alone: whether the transaction held one message, which was for `topic`
        words: what the broker said
        """
        if not offsets:
            return False
        before = self._searches.get(partition)
        tries = 0
        if is_alone:
            is_again = before is not None and before.end == offsets[0] + 1
            tries = 1 + (before.tries if before is not None and is_again else 0)
        self._searches[partition] = _Search(max(1, len(offsets) // 2), offsets[-1] + 1, tries)
        if tries < _TRIES:
            return False
        by_topic = self._found.setdefault(partition, {}).setdefault(offsets[0], {})
        by_topic.setdefault(topic, []).append(printable(beginning(words, _WORDS)))
        return True

    def hold(self, partition: Partition, offset: int, topic: str) -> None:
        """Note that the partition stops at this message, which `topic` refused more than once: its next
        session sends that message alone, once."""
        self._searches[partition] = _Search(1, offset + 1, _TRIES - 1)
        del self._found.get(partition, {}).get(offset, {}).get(topic, [])[1:]

    def passed(self, offsets: Mapping[Partition, Committed]) -> None:
        """Note that these partitions have committed these offsets. Behind the end of its search, a partition
        may send twice as much each time, until it may send all."""
        for partition in offsets.keys() & self._found.keys():
            found, end = self._found.pop(partition), offsets[partition].offset
            left = {offset: refusals for offset, refusals in found.items() if offset >= end}
            if left:
                self._found[partition] = left
        for partition in offsets.keys() & self._searches.keys():
            search = self._searches[partition]
            if offsets[partition].offset >= search.end:
                self._searches[partition] = replace(search, rows=2 * search.rows, tries=0)
                if search.rows >= _MANY:
                    del self._searches[partition]

    def keep(self, partitions: Collection[Partition]) -> None:
        """Forget all partitions but these, because others belong to another worker now."""
        for known in (self._searches, self._found):
            for partition in known.keys() - partitions:
                del known[partition]
