"""Administration: what both clients do the same way, whatever the library."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import replace

from twinsieve.pipeline.broker.admin import Admin, TopicInfo
from twinsieve.pipeline.broker.records import BrokerError, Partition
from twinsieve.pipeline.kafka.client import Client
from twinsieve.pipeline.kafka.errors import GRANT

RETRY_S = 10.0
"""How long a question is asked again: a fresh cluster has no group coordinator for its first seconds, and a
leader may be moving."""
PAUSE_S = 0.1
LOOK_S = 2.0
"""A question that is asked again and again anyway gives up earlier: whoever asks waits meanwhile."""
EARLIEST, LATEST = -2, -1
"""In place of a time, as in Kafka's protocol."""


class KafkaAdmin(Client, Admin):
    """`ports.Admin`, as far as it is the same on both libraries. Subclasses say how each request is made."""

    def topics(self, names: Collection[str], *, settings: bool = False) -> dict[str, TopicInfo | None]:
        if not names:
            return {}
        found: dict[str, TopicInfo | None] = dict.fromkeys(names)
        described = self._described(names)
        known = {name: row for name in names if (row := described[name]) is not None}
        held = self._settings(known) if settings and known else {}
        return found | {name: replace(row, settings=held.get(name, {})) for name, row in known.items()}

    def require(self, topics: Collection[str], operations: Collection[str]) -> None:
        """Check that every topic exists and that these operations on it are allowed.

        Without this check a consumer of kafka-python would return nothing, for ever and without an error,
        both for a topic that does not exist and for one that may not be read.
        raises: BrokerError(retryable=False)
        """
        described = self._described(topics)
        for name in topics:
            row = described[name]
            if row is None:
                raise BrokerError(
                    f"topic {name}: does not exist; create it (twinsieve topics create) or correct its name",
                    retryable=False,
                )
            denied = set(operations) - row.operations if row.operations else set()
            if denied:
                raise BrokerError(
                    f"topic {name}: no permission for {', '.join(sorted(denied))}; {GRANT}", retryable=False
                )

    def beginning_offsets(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        return self._offsets(dict.fromkeys(partitions, EARLIEST))

    def end_offsets(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        return self._offsets(dict.fromkeys(partitions, LATEST))

    def stable_offsets(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """Last stable offset of each: where a read-committed reader waits. Gives up early."""
        return self._offsets(dict.fromkeys(partitions, LATEST), stable=True)

    def offsets_at(self, times_ms: Mapping[Partition, int]) -> dict[Partition, int]:
        found = self._offsets(times_ms)
        return found | self.end_offsets([partition for partition, offset in found.items() if offset < 0])

    def _offsets(self, times_ms: Mapping[Partition, int], *, stable: bool = False) -> dict[Partition, int]:
        return self._list_offsets(times_ms, stable=stable) if times_ms else {}

    @abstractmethod
    def _described(self, names: Collection[str]) -> dict[str, TopicInfo | None]:
        """Each of these topics, None where there is none. raises: BrokerError, also for one that is denied"""

    @abstractmethod
    def _settings(self, names: Collection[str]) -> dict[str, dict[str, str]]: ...

    @abstractmethod
    def _list_offsets(self, times_ms: Mapping[Partition, int], *, stable: bool) -> dict[Partition, int]:
        """The first offset of each partition at that time or later; below 0 where there is none.

        stable: `LATEST` is the last stable offset, and giving up comes early
        """


def has_members(doing: str) -> BrokerError:
    """The error for offsets of a group that is at work."""
    return BrokerError(f"{doing}: the group has running members; stop them all first", retryable=False)
