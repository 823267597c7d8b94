"""The log of a process: exactly one line on stderr for each record, as logfmt or JSON.

Keys in both: `time` (RFC 3339, UTC, milliseconds), `level`, `app`, `logger`, `msg`, and `trace` for the
traceback of a defect. Values are quoted like JSON strings, so a line break, quote or control character in a
message cannot end the line or the value.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

from click.exceptions import Exit

from twinsieve.pipeline.basics.printable import acts
from twinsieve.pipeline.service.stream_log import StreamLog, message_of, shortened
from twinsieve.stages.errors import SieveError

if TYPE_CHECKING:
    from twinsieve.pipeline.settings.model import Settings

_OURS = "twinsieve"
_log = logging.getLogger(_OURS)
_MAX_MESSAGE = 4_000
_MAX_TRACE = 8_000
NEEDS_SOMEBODY = 3
"""Exit code if a new start would fail in the same way until an operator follows the advice of the last
record."""
_BARE = re.compile(r"[A-Za-z0-9_.:+-]+")


class LineFormatter(logging.Formatter):
    """Formats a record as one line.

    form: `logfmt` or `json`; app: the app of this process; any_text: False if stderr can show only ASCII
    """

    def __init__(self, form: str, app: str, *, any_text: bool = True) -> None:
        super().__init__()
        self._json = form == "json"
        self._app = app
        self._any_text = any_text

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields = {
            "time": moment.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "app": self._app,
            "logger": record.name,
            "msg": shortened(message_of(record), _MAX_MESSAGE),
        }
        if record.exc_info:
            fields["trace"] = shortened(self.formatException(record.exc_info), _MAX_TRACE)
        if self._json:
            return "{" + ", ".join(f'"{key}": {self._quoted(text)}' for key, text in fields.items()) + "}"
        return " ".join(
            f"{key}={text if _BARE.fullmatch(text) else self._quoted(text)}" for key, text in fields.items()
        )

    def _quoted(self, text: str) -> str:
        quoted = json.dumps(text, ensure_ascii=not self._any_text)
        if quoted.isprintable():
            return quoted
        return "".join(f"\\u{ord(char):04x}" if acts(char) else char for char in quoted)


def _for_this_log(record: logging.LogRecord) -> bool:
    """Whether to log the record: all records of twinsieve, and warnings and errors of libraries. Below
    warnings some libraries log whole requests, with passwords."""
    ours = record.name == _OURS or record.name.startswith(f"{_OURS}.")
    return ours or record.levelno >= logging.WARNING


class _TextOnly:
    """A text stream that has no stream of bytes beneath it, as one."""

    def __init__(self, stream: TextIO, encoding: str) -> None:
        self._stream = stream
        self._encoding = encoding

    def fileno(self) -> int:
        return self._stream.fileno()

    def write(self, data: bytes) -> int:
        self._stream.write(data.decode(self._encoding))
        self._stream.flush()
        return len(data)


def log_to_stderr(settings: Settings, app: str) -> None:
    """Write log records to stderr, under `log.level` and `log.format` of the settings. No caller waits for
    the reader of stderr.

    app: name of the app in each record
    """
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    # A Python caller may have replaced sys.stderr by a stream that has only text.
    stream = getattr(sys.stderr, "buffer", None) or _TextOnly(sys.stderr, encoding)
    handler = StreamLog(getattr(stream, "raw", stream), encoding)
    any_text = encoding.lower().replace("-", "") == "utf8"
    handler.setFormatter(LineFormatter(settings.log.format, app, any_text=any_text))
    handler.addFilter(_for_this_log)
    level = logging.getLevelNamesMapping()[settings.log.level.upper()]
    logging.basicConfig(level=max(level, logging.WARNING), handlers=[handler], force=True)
    _log.setLevel(level)
    logging.captureWarnings(capture=True)


@contextmanager
def ends_logged() -> Iterator[None]:
    """Context manager: log an error that ends the block, each line as a record. Nothing else is printed.

    raises: Exit with the exit code, instead of the error
    """
    before = threading.excepthook, sys.unraisablehook
    threading.excepthook = _log_thread
    sys.unraisablehook = _log_unraisable
    try:
        yield
    except SieveError as error:
        for line in error.lines():
            _log.critical("%s", line.removeprefix("twinsieve: "))
        raise Exit(NEEDS_SOMEBODY if error.lasting else error.exit_code) from None
    except Exception as error:  # noqa: BLE001 - a traceback beside the log would break its lines
        _log.critical(
            "a bug in twinsieve ended this process; please report it: %s", _named(error), exc_info=True
        )
        raise Exit(SieveError.exit_code) from None
    finally:
        threading.excepthook, sys.unraisablehook = before


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _log_thread(ended: threading.ExceptHookArgs) -> None:
    if ended.exc_value is not None and ended.exc_type is not SystemExit:
        name = ended.thread.name if ended.thread is not None else "?"
        _log.error("thread %s: %s", name, _named(ended.exc_value), exc_info=ended.exc_value)


def _log_unraisable(lost: Any) -> None:
    error: BaseException | None = lost.exc_value
    trace: TracebackType | None = lost.exc_traceback
    if error is not None:
        what = lost.err_msg or "error ignored"
        _log.error("%s: %s", what, _named(error), exc_info=(type(error), error, trace))
