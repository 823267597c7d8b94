"""The topic of the shards' answers, a cache on which nothing depends: what is wrong with it stops nobody."""

from __future__ import annotations

from twinsieve.pipeline.broker.admin import Admin, TopicInfo
from twinsieve.pipeline.broker.ports import Clock
from twinsieve.pipeline.broker.records import NO_TOPIC_ID, BrokerError

READS, WRITES = "READ", "WRITE"
NOT_THERE = "does not exist; run: twinsieve topics create"


def denied(info: TopicInfo, operations: frozenset[str]) -> str:
    """That this user may not do all of these operations on a topic, and what to do; empty if he may, or if
    the broker does not say"""
    missing = operations - info.operations if info.operations else ()
    return f"no permission for {' and '.join(sorted(missing))}; grant it" if missing else ""


class AnswersTopic:
    """The topic of this name, as regular checks find it. It may be gone, come back as another one, or be
    closed to this user.

    operations: what this process does with it; every_s: time between two checks
    topic_id: as of the last check, `NO_TOPIC_ID` if nothing can be read there
    problem: why that is so, and what to do; empty if the topic can be used
    """

    def __init__(
        self, admin: Admin, clock: Clock, name: str, operations: frozenset[str], every_s: float
    ) -> None:
        self._admin = admin
        self._clock = clock
        self._name = name
        self._operations = operations
        self._every_s = every_s
        self._info: TopicInfo | None = None
        self._checked_s: float | None = None
        self.problem = f"{name}: no broker has told of it yet"

    def look(self, *, at_once: bool = False) -> None:
        """Ask the broker, every `every_s` seconds or at once; else return. If no broker answers, what was
        found last stays."""
        now_s = self._clock.monotonic_s()
        is_known = self._checked_s is not None and now_s - self._checked_s < self._every_s
        if is_known and not at_once:
            return
        self._checked_s = now_s
        try:
            info = self._admin.topics([self._name])[self._name]
            why = NOT_THERE if info is None else denied(info, self._operations)
            self.problem = why and f"{self._name}: {why}"
        except BrokerError as error:
            if error.retryable:
                return
            info, self.problem = None, str(error)
        self._info = None if self.problem else info

    @property
    def topic_id(self) -> bytes:
        return self._info.topic_id if self._info is not None else NO_TOPIC_ID

    @property
    def numbers(self) -> set[int]:
        """The partitions that have leaders; none if there is a problem."""
        info = self._info
        return set(range(info.partitions)) - info.leaderless if info is not None else set()
