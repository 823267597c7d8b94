"""The last warnings and errors of this program's log, for the status pages."""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import dataclass

from twinsieve.pipeline.service.stream_log import message_of, shortened

_MOST_RECORDS = 50
_MAX_MESSAGE = 500


@dataclass(frozen=True, slots=True)
class LogLine:
    """A record of the log. time_s: seconds since 1970; level: `warning`, `error` or `critical`"""

    time_s: float
    level: str
    message: str


class LogTail(logging.Handler):
    """Keeps the last 50 warnings and errors, without the secrets in addresses, and at most 500 characters of
    each.

    >>> log, tail = logging.getLogger("doctest"), LogTail()
    >>> log.addHandler(tail)
    >>> log.error("cannot read %s", "s3://key:secret@bucket/x")
    >>> [(line.level, line.message) for line in tail.lines()]
    [('error', 'cannot read s3://bucket/x')]
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._lines: deque[LogLine] = deque(maxlen=_MOST_RECORDS)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the record. `logging` calls this for one record at a time."""
        message = shortened(message_of(record), _MAX_MESSAGE)
        self._lines.append(LogLine(record.created, record.levelname.lower(), message))

    def lines(self) -> list[LogLine]:
        """The records, newest first."""
        return list(self._lines)[::-1]
