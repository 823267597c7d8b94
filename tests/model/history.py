"""What was done to a world's input, for whoever judges it later: the broker itself does not say why a message is gone."""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import StrEnum
from typing import NamedTuple

from tests.memory.cluster import MemoryCluster
from tests.memory.log import Entry
from twinsieve.pipeline.broker.admin import DEFAULT_MESSAGE_BYTES
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.records import Committed, Partition

Place = tuple[bytes, int, int]
"""Topic id, partition, offset."""


Refuses = Callable[[bytes | None, bytes | None], bool]
"""Whether an output refuses a message with this key and this value."""


class Cause(StrEnum):
    """Why the app cannot emit a message any more, or is not to."""

    RETENTION = "retention took it"
    COMPACTION = "compaction took it"
    DELETED = "its topic was deleted"
    SKIPPED = "an operator moved the offset behind it"
    TAKEN_OUT = "its topic is no longer an input"
    REFUSED = "the output does not take it"
    UNREADABLE = "its batch could not be read and was skipped"


class Loss(NamedTuple):
    """A message was lost; `at_s`: when, None where nobody knows; `passed`: the group's offset was behind it then, so that it
    is out."""

    cause: Cause
    at_s: float | None
    passed: bool


class History:
    """Losses, oldest first, and moments at which nothing was left to do.

    skipped: places that an operator's last move leaves out
    unreadable: places of batches that workers may have skipped; calm_s: in seconds of the cluster's clock
    least_limit: smallest `max.message.bytes` that an output ever had
    limited_s: when an output began to refuse messages that it had taken
    """

    def __init__(self, cluster: MemoryCluster, group: str) -> None:
        self._cluster = cluster
        self._group = group
        self.losses: dict[Place, list[Loss]] = {}
        self.skipped: set[Place] = set()
        self.unreadable: set[Place] = set()
        self.calm_s: list[float] = []
        self.least_limit = DEFAULT_MESSAGE_BYTES
        self.limited_s: list[float] = []
        self._refused: list[Refuses] = []

    def recorded(self, at: Partition) -> Committed | None:
        """The offset that the app committed last: what others commit has no text."""
        held = self._cluster.group(self._group).offsets.get(at)
        if held is not None and held.metadata:
            return held
        return self._cluster.group(Names.emitted(self._group)).offsets.get(at)

    def is_calm(self) -> None:
        """Nothing is left to do at this moment."""
        self.calm_s.append(self._cluster.clock.monotonic_s())

    def first_calm_after(self, moment_s: float) -> float | None:
        """The first moment of calm that came later."""
        return next((each for each in self.calm_s if each > moment_s), None)

    def lose(self, at: Partition, offsets: Collection[int], cause: Cause) -> None:
        """Note that these are about to be lost."""
        committed = self._committed(at)
        for offset in offsets:
            place = self._place(at, offset)
            passed = offset < committed and place not in self.skipped
            self.losses.setdefault(place, []).append(Loss(cause, self._cluster.clock.monotonic_s(), passed))

    def lose_all(self, topic: str, cause: Cause) -> None:
        """The same for all that a topic holds, and for what it has lost before."""
        now_s = self._cluster.clock.monotonic_s()
        for number, log in enumerate(self._cluster.topics[topic].logs):
            at = Partition(topic, number)
            held = {offset for offset, _ in log.visible()}
            self.lose(at, sorted(held), cause)
            for place in {
                self._place(at, offset) for offset, _ in log.ever() if offset not in held
            } & self.losses.keys():
                before = self.losses[place]
                before.append(Loss(cause, now_s, any(loss.passed for loss in before)))

    def limit(self, most: int) -> None:
        """Note that an output takes no larger message from now on."""
        self.least_limit = min(self.least_limit, most)
        self.limited_s.append(self._cluster.clock.monotonic_s())

    def refuse(self, refuses: Refuses) -> None:
        """Note that an output refuses such messages from now on."""
        self._refused.append(refuses)
        self.limited_s.append(self._cluster.clock.monotonic_s())

    def may_refuse(self, entry: Entry) -> bool:
        """Whether an output ever refused such a message, for its size or for something else."""
        size = len(entry.key or b"") + len(entry.value or b"")
        return size > self.least_limit or any(refuses(entry.key, entry.value) for refuses in self._refused)

    def move(self, at: Partition, offset: int) -> None:
        """Note that an operator is about to move the offset of a partition."""
        committed, held = self._committed(at), self._cluster.log(at).visible()
        left_out = [each for each, _ in held if committed <= each < offset]
        self.lose(at, left_out, Cause.SKIPPED)
        self.skipped |= {self._place(at, each) for each in left_out}
        self.skipped -= {self._place(at, each) for each, _ in held if each >= offset}

    def cannot_read(self, at: Partition, offsets: Collection[int]) -> None:
        """Note that workers may skip these, which then are lost, also when they can be read again."""
        self.lose(at, offsets, Cause.UNREADABLE)
        self.unreadable |= {self._place(at, each) for each in offsets}

    def _committed(self, at: Partition) -> int:
        held = self.recorded(at)
        return held.offset if held is not None else 0

    def _place(self, at: Partition, offset: int) -> Place:
        return self._cluster.topics[at.topic].topic_id, at.number, offset
