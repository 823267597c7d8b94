"""Log records as text without secrets, and `StreamLog`: writes them in a thread of its own, so that a reader
that hangs stops no role.

A pipe takes 64 KiB. If nobody reads it, a write to it blocks, and with it the role that logs. Here a role
only appends to a queue; while that is full, its lines are dropped and counted.
"""

from __future__ import annotations

import logging
import re
import select
import threading
from queue import SimpleQueue
from typing import NamedTuple, Protocol

from twinsieve.stages.errors import without_secrets

MAX_LINES = 1_000
"""Lines that may wait; each has 12,000 characters at most."""
_RESERVED = 100
"""Further lines that may wait if they are errors, which often say why the process ends."""
_FLUSH_S = 2.0
"""How long the end of the process waits for the reader of the log."""
_LAST_WORD, _FIRST_WORD = re.compile(r"\S*\Z"), re.compile(r"\A\S*")


class Raw(Protocol):
    """A stream without a buffer: one with a buffer holds a lock during a write, for which Python waits at its
    end."""

    def fileno(self) -> int:
        """Its descriptor."""

    def write(self, data: bytes, /) -> int | None:
        """The number of bytes that were written; None if the stream does not block and is full."""


class _Line(NamedTuple):
    """A line that waits. tells: the number of dropped records that it is about; 0 for a record"""

    text: str
    tells: int = 0


class StreamLog(logging.Handler):
    """Writes records to a stream, in their order, without making the caller wait.

    raw: the stream; encoding: its encoding
    dropped: number of records that were dropped because the stream was not read, or failed
    """

    def __init__(self, raw: Raw, encoding: str = "utf-8") -> None:
        super().__init__()
        self._raw = raw
        self._encoding = encoding
        self._lines: SimpleQueue[_Line | threading.Event] = SimpleQueue()
        self._counting = threading.Lock()
        self._untold = 0
        """Dropped records of which no line tells yet."""
        self.dropped = 0
        threading.Thread(target=self._write_all, name="log", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        """Append a record to the queue, or drop it. `logging` calls this for one record at a time."""
        if self._lines.qsize() >= MAX_LINES + (_RESERVED if record.levelno >= logging.ERROR else 0):
            self._drop()
            return
        self._tell()
        self._lines.put(_Line(self.format(record)))

    def _drop(self, tells: int = 0) -> None:
        """Count a line that is not written.

        tells: as in `_Line`. Another line will tell of these records.
        """
        with self._counting:
            self.dropped += 0 if tells else 1
            self._untold += tells or 1

    def _tell(self) -> None:
        """Append a line about the records that were dropped since the last such line."""
        with self._counting:
            count, self._untold = self._untold, 0
        if count:
            text = "log: %d lines were dropped, because stderr was not read or failed"
            told = logging.LogRecord("twinsieve", logging.WARNING, "", 0, text, (count,), None)
            self._lines.put(_Line(self.format(told), count))

    def _write_all(self) -> None:
        while True:
            line = self._lines.get()
            if isinstance(line, threading.Event):
                line.set()
            elif not self._write(f"{line.text}\n".encode(self._encoding, "backslashreplace")):
                self._drop(line.tells)
            elif self._lines.empty():
                self._tell()

    def _write(self, data: bytes) -> bool:
        """Whether all of it was written."""
        try:
            while data:
                count = self._raw.write(data)
                if count is None:
                    select.select([], [self._raw], [])
                data = data[count or 0 :]
        except (OSError, ValueError):  # the disk is full, the reader has ended, or the stream is closed
            return False
        return True

    def flush(self) -> None:
        """Wait until all lines are written, but not long; `logging` calls this at the end of the process."""
        reached = threading.Event()
        self._lines.put(reached)
        reached.wait(_FLUSH_S)


def dropped_lines() -> int:
    """Number of log records that this process has dropped."""
    return sum(each.dropped for each in logging.getLogger().handlers if isinstance(each, StreamLog))


def message_of(record: logging.LogRecord) -> str:
    """The message of a record; only its template if the values do not fit it, so that no record is lost."""
    try:
        return record.getMessage()
    except Exception as error:  # noqa: BLE001 - formatting values of a library may raise any error
        return f"{record.msg} (its values do not fit: {type(error).__name__})"


def shortened(text: str, most: int) -> str:
    """The text without the secrets in addresses. A text longer than `most` is cut to its head and its tail,
    because the tail of a traceback has the error.

    >>> shortened("cannot read s3://key:secret@bucket/x", 100)
    'cannot read s3://bucket/x'
    """
    if len(text) <= most:
        return without_secrets(text)
    # Cut between words, because a part of an address would not be recognized, and its secret would remain.
    head, tail = _LAST_WORD.sub("", text[: most // 2]), _FIRST_WORD.sub("", text[-(most // 2) :])
    return without_secrets(f"{head}… {len(text) - most:,} characters left out …{tail}")
