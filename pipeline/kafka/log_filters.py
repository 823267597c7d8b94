"""Filters for kafka-python's log: one limits repeated lines, one collects why a connection failed.

While a broker is away or a transaction of a dead worker is open, kafka-python repeats a dozen different
lines every 100 ms at ERROR. Each is worth reading once; afterwards one line every few seconds is enough.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

_EVERY_S = 5.0
_QUIET_S = 60.0
_MAX_KINDS = 1_000
_FAILED_ADDRESS = re.compile(r"Bootstrap connection to (\S+) failed")

_NOT_YET_ADDED = "Unable to verify the partition has been added to the transaction"

_Kind = tuple[str, str]
"""Name of the logger, and message template with every number replaced by 0, because some templates already
contain addresses and durations. Log lines with the same pair are of the same kind."""


class OneLineAtATime(logging.Filter):
    """Passes the first line of each kind at once, and of all repeated lines one every `_EVERY_S` seconds.

    A repeated line that passes also says how many lines were suppressed since the last one, of its own kind
    and per logger. Lines that differ only in numbers are of the same kind. A kind that was not logged for
    `_QUIET_S` seconds counts as new.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._lock = threading.Lock()
        self._logged_s: dict[_Kind, float] = {}
        self._suppressed: Counter[_Kind] = Counter()
        self._passed_s = -_EVERY_S

    def filter(self, record: logging.LogRecord) -> bool:
        template = record.msg if isinstance(record.msg, str) else type(record.msg).__name__
        kind = record.name, re.sub(r"\d+", "0", template)
        with self._lock:
            now = self._clock()
            first = self._is_first(kind, now)
            if not first and now - self._passed_s < _EVERY_S:
                self._suppressed[kind] += 1
                return False
            summary = self._summary(kind, now) if not first and self._suppressed else ""
            self._passed_s = now
        if summary:
            record.msg = f"{record.getMessage()} ({summary})"
            record.args = None
        return True

    def _is_first(self, kind: _Kind, now: float) -> bool:
        if kind not in self._logged_s and len(self._logged_s) >= _MAX_KINDS:
            self._logged_s = {
                other: logged_s for other, logged_s in self._logged_s.items() if now - logged_s < _QUIET_S
            }
            if len(self._logged_s) >= _MAX_KINDS:
                return False
        before = self._logged_s.get(kind)
        self._logged_s[kind] = now
        return before is None or now - before >= _QUIET_S

    def _summary(self, kind: _Kind, now: float) -> str:
        like_it = self._suppressed.pop(kind, 0)
        others: Counter[str] = Counter()
        for (name, _), count in self._suppressed.items():
            others[name] += count
        self._suppressed.clear()
        counted = [f"{like_it} similar"] if like_it else []
        counted += [f"{count} of {name}" for name, count in others.most_common()]
        return f"suppressed in {now - self._passed_s:.0f} s: {', '.join(counted)}"


class ConnectionFailures(logging.Filter):
    """Collects the warnings and errors of a client that is connecting, and lets none of them pass.

    The constructors of kafka-python raise the same "Unable to bootstrap" for a refused connection, a wrong
    password and an expired certificate; only the log contains the cause. Our own error names it in one line.

    threads: returns the ids of the threads that work for this client; lines of other clients pass
    """

    def __init__(self, threads: Callable[[], Collection[int | None]]) -> None:
        super().__init__()
        self._threads = threads
        self.reasons: list[str] = []

    def filter(self, record: logging.LogRecord) -> bool:
        if record.thread not in self._threads():
            return True
        if record.levelno >= logging.WARNING and len(self.reasons) < _MAX_KINDS:
            self.reasons.append(record.getMessage())
        return False

    @property
    def failed_addresses(self) -> set[str]:
        """kafka-python's names of the bootstrap addresses that failed at least once."""
        return {name for text in self.reasons for name in _FAILED_ADDRESS.findall(text)}

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Context manager: collect until the end of the block."""
        loggers = _kafka_loggers()
        for logger in loggers:
            # Insert this filter first: behind the filter that suppresses repeated lines, it would miss those.
            logger.filters.insert(0, self)
        try:
            yield
        finally:
            for logger in loggers:
                logger.removeFilter(self)


def is_unusual(record: logging.LogRecord) -> bool:
    """False for a line that kafka-python logs as a warning in healthy operation.

    A broker refuses a batch while it adds another partition to the same transaction, or while it writes the
    markers of the last one, and kafka-python sends the batch again after 20 ms. If the broker goes on to
    refuse it, the transaction fails with an error of its own.
    """
    return record.name != "kafka.producer.sender" or _NOT_YET_ADDED not in record.getMessage()


_thinned = OneLineAtATime()


def quieten() -> None:
    """Limit the repeated lines of every kafka-python logger; may be called again."""
    # Below WARNING kafka-python logs whole requests, and a SASL/PLAIN request contains the password.
    root = logging.getLogger("kafka")
    if root.getEffectiveLevel() < logging.WARNING:
        root.setLevel(logging.WARNING)
    # This logger warns about a busy process at every large transaction; our metrics show the load already.
    logging.getLogger("kafka.net.selector").setLevel(logging.ERROR)
    for logger in _kafka_loggers():
        if logger.level and logger.level < logging.WARNING:
            logger.setLevel(logging.WARNING)
        if is_unusual not in logger.filters:
            logger.addFilter(is_unusual)
        if _thinned not in logger.filters:
            logger.addFilter(_thinned)


def _kafka_loggers() -> list[logging.Logger]:
    """All loggers of kafka-python. A filter acts only on its own logger, not on child loggers."""
    names = list(logging.root.manager.loggerDict)
    return [logging.getLogger(name) for name in names if name.startswith("kafka.")]
