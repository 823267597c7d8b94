"""Watches for foreign members of the app's consumer groups (`operate/foreign_members.py`).

Every process watches, because the app may have one process alone, and that one may be left without a
partition.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress

from twinsieve.pipeline.broker.admin import Admin
from twinsieve.pipeline.broker.ports import Broker
from twinsieve.pipeline.broker.records import BrokerError, Partition
from twinsieve.pipeline.operate.foreign_members import described, foreign_members

_log = logging.getLogger("twinsieve")
_EVERY_S = 1.0
_END_S = 1.0


class ForeignMembers:
    """The foreign members of an app's groups, as seen last; read by other threads.

    on_change: called with their number after each look
    """

    def __init__(self, app: str, on_change: Callable[[int], None]) -> None:
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


@contextmanager
def watched_members(seen: ForeignMembers, connect: Callable[[], Broker]) -> Iterator[None]:
    """Context manager in which a thread looks for foreign members every few seconds.

    connect: makes a broker client
    """
    stop = threading.Event()

    def watch() -> None:
        # Without an answer the thread looks again later: the roles say that no broker answers.
        while not stop.wait(_EVERY_S):
            with suppress(BrokerError), closing(connect()) as broker:
                admin = broker.admin()
                while not stop.is_set():
                    seen.look(admin)
                    stop.wait(_EVERY_S)

    thread = threading.Thread(target=watch, name="foreign-members", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(_END_S)
