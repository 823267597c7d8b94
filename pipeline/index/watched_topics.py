"""Checks of the topics that an index depends on.

If an internal topic is deleted while the app runs, the app stops. If no message of an input topic can come
out any more, that topic is given up: its judged messages that never came out are no longer leaders.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from twinsieve.pipeline.broker.admin import Admin
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.ports import Clock
from twinsieve.pipeline.broker.records import BrokerError, FatalError
from twinsieve.pipeline.broker.redriven import held_by, input_id, read_redriven
from twinsieve.pipeline.index.config import IndexConfig
from twinsieve.pipeline.index.ledger import Ledger, NumberedTopic, Waiting
from twinsieve.stages.errors import StateError

_T = TypeVar("_T")


class InternalTopics:
    """Internal topics, which must stay the same topics as when this object was made.

    every_s: time between two checks. A topic that was created again is noticed at the next check; a missing
        topic must be missing at two checks, because a broker that has just started may not know its topics
    infos: descriptions by name, as of the last check
    raises: StateError if a topic does not exist; BrokerError
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

        at_once: compare in any case; a missing topic is left to the regular checks
        raises: StateError if a topic is gone or was created again; BrokerError if waiting does not help
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
        """The given partitions that no client can write to, because they have no leader or do not exist.

        Asks the broker if a number is unknown, because the topic may have got more partitions. raises: as
        `check`
        """
        if any(number not in range(self.infos[name].partitions) for number in numbers):
            self.check(at_once=True)
        info = self.infos[name]
        there = set(range(info.partitions)) - info.leaderless
        return {number for number in numbers if number not in there}


_ADVICE = "find out what deletes topics, then start again; if that start is refused, start a new app"


class InputTopics:
    """Input topics of which no message will come out any more, found by regular checks of the broker.

    Such a topic is called gone. Either the broker does not have it, with this topic id, at two checks in a
    row (two, because a broker that has just started may not know its topics yet). Or no worker was assigned
    any of it for `unread_s`, while workers were assigned other topics; dead letters of a reason count as
    read while a `redrive` of that reason runs. A topic is not checked if it has no open verdicts, or if one
    of its sessions has moved since the last check. If a request is not allowed, there is one notice, and no
    topic counts as gone.

    abandoned: ids of gone topics that no recorded ruling names yet
    notices: receives a line for each event that an operator should know of
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
        """Forget the results of earlier checks, because another index may have judged since."""
        self._looked_s = self._clock.monotonic_s()
        self._waiting: dict[int, Waiting] = {}
        self._absent: set[int] = set()
        self._unread_s: dict[int, float] = {}
        """By topic number: since when no worker was assigned the topic."""
        self.abandoned = frozenset()

    def look(self, ledger: Ledger) -> None:
        """Find out which topics are gone, every `inputs_s` seconds; return at once in between."""
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
        """Note that a ruling names these topic ids: their judged messages that never came out are no longer
        leaders."""
        self.abandoned = self.abandoned.difference(given_up)
        names = [topic.name for topic in ledger.topics if topic.topic_id in given_up]
        if names:
            self._notices.append(
                f"input topic {', '.join(names)}: it was deleted, or no worker has read it for "
                f"{self._config.unread_s:.0f} s; its messages that were never emitted no longer count as "
                "originals of duplicates"
            )

    def _is_absent(self, topic: NumberedTopic) -> bool:
        name = held_by(topic.name)
        infos = self._answer(lambda: self._admin.topics([name]))
        if infos is None:
            return False
        info = infos[name]
        return info is None or input_id(info, read_redriven(topic.name)) != topic.topic_id

    def _unread(self, names: Mapping[int, str], now_s: float) -> set[int]:
        """Numbers of the given topics, which exist, that no worker has read for `unread_s`."""
        members = self._answer(lambda: self._admin.members(self._config.workers)) if names else None
        workers = [one for one in (members or {}).values() if Names.does("worker", one.name)]
        read = {partition.topic for worker in workers for partition in worker.partitions}
        redriven = {number for number, name in names.items() if self._is_redriven(name)}
        # If no member has any partition, a rebalance is in progress or no worker runs. That does not show
        # that a topic is not read.
        self._unread_s = {
            number: self._unread_s.get(number, now_s)
            for number, name in names.items()
            if number not in redriven and (name not in read if read else number in self._unread_s)
        }
        overdue = {
            number
            for number, since_s in self._unread_s.items()
            if read and now_s - since_s >= self._config.unread_s
        }
        if not overdue:
            return set()
        # Do not give up topics that `seed` reads: their messages are in the output already, and a seed that
        # was stopped continues when it is run again.
        offsets = self._answer(lambda: self._admin.group_offsets(self._config.seeders, stable=False))
        seeded = {partition.topic for partition in offsets} if offsets is not None else set(names.values())
        return {number for number in overdue if names[number] not in seeded}

    def _is_redriven(self, name: str) -> bool:
        """Whether these are dead letters, and a `redrive` of their reason runs, or may run."""
        redriven = read_redriven(name)
        if redriven is None:
            return False
        group = self._config.redrivers + redriven.reason
        members = self._answer(lambda: self._admin.members(group))
        return members is None or bool(members)

    def _answer(self, ask: Callable[[], _T]) -> _T | None:
        """The answer to a request, None if the request is not allowed. raises: BrokerError if no broker
        answers"""
        try:
            return ask()
        except BrokerError as error:
            if error.retryable or isinstance(error, FatalError):
                raise
            if str(error) not in self._denied:
                self._denied.add(str(error))
                self._notices.append(
                    f"{error}; without an answer, deleted and unread input topics go unnoticed, and copies "
                    "of their messages that were never emitted are dropped"
                )
            return None
