"""Keeps kafka-python's log readable, and finds in it why a connection failed.

While a broker is away or a transaction of a dead worker is open, kafka-python repeats a dozen different
lines every 100 ms at ERROR. Each is worth reading once; after that one line every few seconds is enough.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections import Counter
from collections.abc import Callable

_EVERY_S = 5.0
_QUIET_S = 60.0
_MAX_KINDS = 1_000

_Kind = tuple[str, str]
"""Logger, and message template without its digits: some templates have addresses and waits filled in."""


class OneLineAtATime(logging.Filter):
    """Lets the first complaint of a kind through, and of repeated ones of all kinds one every few seconds.

    That one says how many were held back since the last, of its own kind and of which loggers. Growing
    counters and addresses do not make a new kind; one that was not logged for a minute is first again.
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
        counted = [f"{like_it} like it"] if like_it else []
        counted += [f"{count} of {name}" for name, count in others.most_common()]
        return f"held back in {now - self._passed_s:.0f} s: {', '.join(counted)}"


class ConnectionFailures(logging.Filter):
    """Collects why kafka-python could not connect.

    Its constructors raise "Unable to bootstrap" for a refused connection, a wrong password and an expired
    certificate alike; the difference stands in the log alone.
    """

    def __init__(self) -> None:
        super().__init__()
        self.reasons: list[str] = []

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno >= logging.WARNING and len(self.reasons) < _MAX_KINDS:
            self.reasons.append(record.getMessage())
        return True


_thinned = OneLineAtATime()


def quieten() -> None:
    """Thin out the lines of every kafka-python logger; safe to call again."""
    # Below WARNING kafka-python logs whole requests, and those of SASL/PLAIN hold the password.
    root = logging.getLogger("kafka")
    if root.getEffectiveLevel() < logging.WARNING:
        root.setLevel(logging.WARNING)
    # Metrics show a busy process; here it would be a warning for every large transaction.
    logging.getLogger("kafka.net.selector").setLevel(logging.ERROR)
    # A filter acts on its own logger only, never on children, so each one needs it.
    for name in [name for name in logging.root.manager.loggerDict if name.startswith("kafka.")]:
        logger = logging.getLogger(name)
        if logger.level and logger.level < logging.WARNING:
            logger.setLevel(logging.WARNING)
        if _thinned not in logger.filters:
            logger.addFilter(_thinned)
