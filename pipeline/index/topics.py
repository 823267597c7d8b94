"""Topics that an index watches.

An internal topic that is deleted under a running app stops it. An input topic of which nothing will come
out any more is given up: what was judged of it and never came out leads no message any more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from twinsieve.pipeline.broker.admin import Admin
from twinsieve.pipeline.broker.mark import name_topic
from twinsieve.pipeline.broker.ports import Clock
from twinsieve.pipeline.broker.records import BrokerError
from twinsieve.pipeline.index.config import IndexConfig
from twinsieve.pipeline.index.ledger import Ledger, NumberedTopic, Waiting
from twinsieve.stages.errors import StateError

_T = TypeVar("_T")


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
        self._missing: set[str] = set()
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
        missing = {name for name, info in infos.items() if info is None}
        if not at_once:
            if missing & self._missing:
                raise StateError(f"topic {min(missing & self._missing)} was deleted; {_ADVICE}")
            self._missing = missing
        for name, info in infos.items():
            if info is not None and info.topic_id != self.infos[name].topic_id:
                raise StateError(f"topic {name} was deleted and created again; {_ADVICE}")
            self.infos[name] = info or self.infos[name]

    def unreachable(self, name: str, numbers: Collection[int]) -> set[int]:
        """Those of these partitions that no client can write to: they have no leader, or do not exist.

        Asks the broker about numbers that are new: the topic may have got more partitions. raises: as `check`
        """
        if any(number not in range(self.infos[name].partitions) for number in numbers):
            self.check(at_once=True)
        info = self.infos[name]
        there = set(range(info.partitions)) - info.leaderless
        return {number for number in numbers if number not in there}


_ADVICE = "find out what deletes topics; the next start continues where it can, else start a new app"


class InputTopics:
    """Input topics of which nothing will come out any more, found by regular checks of the broker.

    A topic is gone when the broker does not have that very one at two looks in a row, for a broker that has
    just started may not know its topics yet; or when no worker was given any of it for `unread_s`, while they
    were given others. The broker is not asked about a topic without open verdicts, or with sessions that have
    moved since the check before. A request that is not allowed gives one notice, and no topic counts as gone.

    abandoned: ids of these topics that no recorded ruling names yet
    notices: gets a line for what an operator should know
    """

    def __init__(self, admin: Admin, clock: Clock, config: IndexConfig, notices: list[str]) -> None:
        self._admin = admin
        self._clock = clock
        self._config = config
        self._notices = notices
        self._denied: set[str] = set()
        self.abandoned: frozenset[bytes] = frozenset()
        self.begin()

    def begin(self) -> None:
        """Forget what was seen, for another index has judged meanwhile."""
        self._looked_s = self._clock.monotonic_s()
        self._waiting: dict[int, Waiting] = {}
        self._absent: set[int] = set()
        self._unread_s: dict[int, float] = {}
        """Since when no worker was given a topic."""
        self.abandoned = frozenset()

    def look(self, ledger: Ledger) -> None:
        """Find out what is gone, every `inputs_s` seconds; return at once in between."""
        now_s = self._clock.monotonic_s()
        if now_s - self._looked_s < self._config.inputs_s:
            return
        self._looked_s = now_s
        waiting = ledger.waiting()
        names = {
            number: ledger.topics[number].name
            for number, state in waiting.items()
            if self._waiting.get(number) == state
        }
        self._waiting = waiting
        try:
            absent = {number for number in names if self._is_absent(ledger.topics[number])}
            for number in absent:
                del names[number]
            abandoned = (absent & self._absent) | self._unread(names, now_s)
        except BrokerError:
            # No broker answers: the next check repeats this.
            return
        self._absent = absent
        self.abandoned = frozenset(ledger.topics[number].topic_id for number in abandoned)

    def record(self, given_up: Collection[bytes], ledger: Ledger) -> None:
        """These stand in a ruling: what was judged of them leads no message any more."""
        self.abandoned = self.abandoned.difference(given_up)
        names = [topic.name for topic in ledger.topics if topic.topic_id in given_up]
        if names:
            self._notices.append(
                f"input topic {', '.join(names)}: it was deleted, or no worker has read it for "
                f"{self._config.unread_s:.0f} s; what was judged of it and never came out leads nobody now"
            )

    def _is_absent(self, topic: NumberedTopic) -> bool:
        infos = self._answer(lambda: self._admin.topics([topic.name]))
        if infos is None:
            return False
        info = infos[topic.name]
        return info is None or name_topic(info) != topic.topic_id

    def _unread(self, names: Mapping[int, str], now_s: float) -> set[int]:
        """Those of these existing topics that no worker reads."""
        members = self._answer(lambda: self._admin.members(self._config.workers)) if names else None
        read = {partition.topic for member in (members or {}).values() for partition in member.partitions}
        # Nobody has a share while shares are dealt, or while no worker runs: that says nothing.
        self._unread_s = {
            number: self._unread_s.get(number, now_s)
            for number, name in names.items()
            if (name not in read if read else number in self._unread_s)
        }
        overdue = {
            number
            for number, since_s in self._unread_s.items()
            if read and now_s - since_s >= self._config.unread_s
        }
        if not overdue:
            return set()
        # What a seed reads is out already; a seed that was stopped continues when it is run again.
        offsets = self._answer(lambda: self._admin.group_offsets(self._config.seeders, stable=False))
        seeded = {partition.topic for partition in offsets} if offsets is not None else set(names.values())
        return {number for number in overdue if names[number] not in seeded}

    def _answer(self, ask: Callable[[], _T]) -> _T | None:
        """The answer, None if the request is not allowed. raises: BrokerError without an answer"""
        try:
            return ask()
        except BrokerError as error:
            if error.retryable:
                raise
            if str(error) not in self._denied:
                self._denied.add(str(error))
                self._notices.append(
                    f"{error}; copies are dropped on for an input topic that is deleted or read no more"
                )
            return None
