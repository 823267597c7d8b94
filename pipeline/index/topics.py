"""The internal topics of an app, watched by its index: one that is deleted under a running app stops it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from twinsieve.pipeline.broker.admin import Admin
from twinsieve.pipeline.broker.ports import Clock
from twinsieve.pipeline.broker.records import BrokerError
from twinsieve.stages.errors import StateError


class InternalTopics:
    """Topics that must stay those that they are when this is made.

    every_s: a topic that was created again is noticed within this time; one that is gone must be gone at two
        checks, for a broker that has just started may not know its topics yet
    infos: by name, as of the last check
    raises: StateError when one does not exist; BrokerError
    """

    def __init__(self, admin: Admin, clock: Clock, names: Sequence[str], every_s: float) -> None:
        self._admin = admin
        self._clock = clock
        self._every_s = every_s
        infos = admin.topics(names)
        missing = " and ".join(name for name in names if infos[name] is None)
        if missing:
            raise StateError(f"topic {missing} does not exist; `twinsieve topics create` makes it")
        self.infos = {name: info for name, info in infos.items() if info is not None}
        self._gone: set[str] = set()
        self._checked_s = clock.monotonic_s()

    def check(self, *, at_once: bool = False) -> None:
        """Compare the topics with those of the start, every `every_s` seconds; return at once in between.

        at_once: compare in any case; a topic that is gone is left to the checks at their time
        raises: StateError for one that is gone or another topic now; BrokerError when asking makes no sense
        """
        now_s = self._clock.monotonic_s()
        if not at_once:
            if now_s - self._checked_s < self._every_s:
                return
            self._checked_s = now_s
        try:
            infos = self._admin.topics(tuple(self.infos))
        except BrokerError as error:
            if not error.retryable:
                raise
            return
        gone = {name for name, info in infos.items() if info is None}
        if not at_once:
            if gone & self._gone:
                raise StateError(f"topic {min(gone & self._gone)} was deleted; {_ADVICE}")
            self._gone = gone
        for name, info in infos.items():
            if info is not None and info.topic_id != self.infos[name].topic_id:
                raise StateError(f"topic {name} was deleted and created again; {_ADVICE}")
            self.infos[name] = info or self.infos[name]

    def unreachable(self, name: str, numbers: Collection[int]) -> set[int]:
        """Those of these partitions that nobody can write to: they have no leader, or do not exist.

        Asks the broker about numbers that are new: the topic may have got more partitions. raises: as `check`
        """
        if any(number not in range(self.infos[name].partitions) for number in numbers):
            self.check(at_once=True)
        info = self.infos[name]
        there = set(range(info.partitions)) - info.leaderless
        return {number for number in numbers if number not in there}


_ADVICE = "find out what deletes topics; the next start goes on where it can, else start a new app"
