"""Watches for foreign members of the app's consumer groups (`operate/foreign_members.py`).

Every process watches, because the app may have one process alone, and that one may be left without a
partition.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager

from twinsieve.pipeline.broker.admin import Admin
from twinsieve.pipeline.broker.ports import Broker, Clock
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.operate.foreign_members import described, foreign_members
from twinsieve.pipeline.service.watching import watching

_log = logging.getLogger("twinsieve")
_EVERY_S = 1.0


class ForeignMembers:
    """The foreign members of an app's groups, as seen last; read by other threads.

    on_change: called with their number after each look; with None when it is not known any more
    """

    def __init__(self, app: str, on_change: Callable[[int | None], None]) -> None:
        self._app = app
        self._on_change = on_change
        self._remark = ""
        self._had: dict[Partition, str] = {}
        self._said: set[str] = set()

    @property
    def remark(self) -> str:
        """What an operator should know of the members that are there now; empty if there are none."""
        return self._remark

    def who_had(self, partition: Partition) -> str:
        """The client that was seen last with this partition; empty if none was."""
        return self._had.get(partition, "")

    def look(self, admin: Admin) -> None:
        """Ask the broker, and log members that were not there before. raises: BrokerError"""
        found = foreign_members(self._app, admin)
        lines = []
        for group, members in found.items():
            for key, member in members.items():
                lines.append(f"group {group} has a foreign member: {described(member)}")
                self._had.update(dict.fromkeys(member.partitions, described(member)))
                if key not in self._said:
                    self._said.add(key)
                    _log.warning(
                        "run: %s; nothing of the partitions that it gets is judged: stop it; its offsets do "
                        "not count",
                        lines[-1],
                    )
        gone = self._said.difference(*found.values())
        self._said -= gone
        for _ in gone:
            _log.info("run: a foreign member has left the groups of app %s", self._app)
        self._remark = "; ".join(lines)
        self._on_change(len(lines))

    def forget(self) -> None:
        """Record that the members that are there now are not known."""
        self._remark = ""
        self._on_change(None)


def watched_members(
    seen: ForeignMembers, connect: Callable[[], Broker], clock: Clock
) -> AbstractContextManager[None]:
    """Context manager in which a thread looks for foreign members every few seconds.

    connect: makes a broker client
    """
    return watching(
        "foreign-members",
        seen.look,
        connect,
        clock,
        every_s=_EVERY_S,
        problem="run: cannot see whether other clients have joined the groups of the app",
        on_failure=seen.forget,
    )
