"""Keeps kafka-python's log readable, and listens to the one thing it only logs.

While a broker is away or a transaction of a dead worker is open, kafka-python repeats the same line every
100 ms at ERROR. One line of a kind every few seconds is enough.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

_EVERY_S = 5.0
_MOST_KINDS = 1_000
_FENCED = "Heartbeat thread caught fenced group_instance_id"


class OncePerKind(logging.Filter):
    """Lets one log record of a kind through every few seconds; the next one says how many were held back.

    A kind is logger and message template, so that growing counters and addresses do not make new kinds.
    """

    def __init__(self, every_s: float = _EVERY_S, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._every_s = every_s
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: dict[tuple[str, object], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        now = self._clock()
        kind = (record.name, record.msg if isinstance(record.msg, str) else type(record.msg))
        with self._lock:
            last, held = self._seen.get(kind, (-self._every_s, 0))
            if now - last < self._every_s:
                self._seen[kind] = (last, held + 1)
                return False
            if len(self._seen) >= _MOST_KINDS:
                self._seen.clear()
            self._seen[kind] = (now, 0)
        if held:
            record.msg = f"{record.getMessage()} (and {held} more like it)"
            record.args = None
        return True


class FencedMembers(logging.Filter):
    """Remembers which consumers kafka-python has found fenced, by the thread that does their network work.

    Its heartbeat logs FencedInstanceIdError and stops, but poll() goes on returning records and later
    nothing, for ever; the log line is the only sign of it that the client gives. Every consumer has a
    thread of its own, so the thread tells two consumers of one member name apart.
    """

    def __init__(self) -> None:
        super().__init__()
        self._threads: set[int] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.msg, str) and record.msg.startswith(_FENCED) and record.thread is not None:
            self._threads.add(record.thread)
        return True

    def holds(self, thread: int) -> bool:
        """True if the consumer of that thread was fenced since `forget`."""
        return thread in self._threads

    def forget(self, thread: int) -> None:
        """That thread begins a new membership (thread numbers are used again)."""
        self._threads.discard(thread)


class ConnectionFailures(logging.Filter):
    """Collects why kafka-python could not connect.

    Its constructors raise "Unable to bootstrap" for a refused connection, a wrong password and an expired
    certificate alike; the difference stands in the log alone.
    """

    def __init__(self) -> None:
        super().__init__()
        self.reasons: list[str] = []

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno >= logging.WARNING and len(self.reasons) < _MOST_KINDS:
            self.reasons.append(record.getMessage())
        return True


fenced_members = FencedMembers()
_once = OncePerKind()


def quieten() -> None:
    """Installs both filters on every kafka-python logger; safe to call again."""
    # Below WARNING kafka-python logs whole requests, and those of SASL/PLAIN hold the password.
    root = logging.getLogger("kafka")
    if root.getEffectiveLevel() < logging.WARNING:
        root.setLevel(logging.WARNING)
    # A busy process is told by its metrics; here it would be a warning for every large transaction.
    logging.getLogger("kafka.net.selector").setLevel(logging.ERROR)
    # A filter acts on its own logger only, never on children, so each one needs it.
    for name in [name for name in logging.root.manager.loggerDict if name.startswith("kafka.")]:
        logger = logging.getLogger(name)
        if logger.level and logger.level < logging.WARNING:
            logger.setLevel(logging.WARNING)
        if name == "kafka.coordinator.heartbeat" and fenced_members not in logger.filters:
            logger.addFilter(fenced_members)
        if _once not in logger.filters:
            logger.addFilter(_once)
