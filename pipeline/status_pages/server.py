"""The status pages of `run`: `/` for a browser and `/status.json` for programs (`http.pages`).

They listen on loopback alone. A site that the user of a browser visits could still reach them by a host name
of its own that leads to 127.0.0.1 (DNS rebinding), so the header `Host` must name loopback too.
"""

from __future__ import annotations

import ipaddress
import json
import logging
import socket
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass

from twinsieve.pipeline.basics.shown_amounts import repeats
from twinsieve.pipeline.broker.ports import Clock
from twinsieve.pipeline.messages.verdict_values import MEANINGS
from twinsieve.pipeline.pages.extra import require_reports
from twinsieve.pipeline.pages.render import render
from twinsieve.pipeline.service.http import HTML, Answer, PageServer, Request
from twinsieve.pipeline.service.metrics import Metrics
from twinsieve.pipeline.service.run import Status, Watch
from twinsieve.pipeline.service.stream_log import message_of, shortened
from twinsieve.pipeline.settings.checks import LOOPBACK
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.status_pages.figures import StatusFigures
from twinsieve.stages.errors import UsageError

_log = logging.getLogger("twinsieve")
_JSON = "application/json"
_PATHS = ("", "/status.json")
_DEFAULT_PORT = 80
_GUARDS = (
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Referrer-Policy", "no-referrer"),
)
"""With these a browser hands nothing of an answer to a page of another site."""


@contextmanager
def watched(settings: Settings, metrics: Metrics, clock: Clock, status: Status) -> Iterator[Watch]:
    """Context manager that serves the status pages at the address of the settings.

    raises: UsageError if the server cannot listen there, or without the extra `reports`
    """
    address = settings.http.pages_address
    assert address is not None
    require_reports("http.pages")
    figures = StatusFigures(settings, metrics, clock, status.why_not_ready, status.remark)
    with ExitStack() as stack:
        tail = LogTail()
        _log.addHandler(tail)
        stack.callback(_log.removeHandler, tail)
        server = StatusServer(address, StatusPages(figures, tail))
        stack.callback(server.close)
        host = f"[{address[0]}]" if ":" in address[0] else address[0]
        _log.info("run: status pages at http://%s:%d/", host, server.port)
        yield Watch(figures.named, figures.tick)


class StatusPages:
    """Makes the answers to requests. figures, tail: what the pages show"""

    def __init__(self, figures: StatusFigures, tail: LogTail) -> None:
        self._figures = figures
        self._tail = tail

    def answer(self, request: Request) -> Answer:
        """The page or the JSON for this request, which names a host of loopback."""
        if request.path not in _PATHS:
            return _text(404, "no such page; there are / and /status.json")
        return self._json() if request.path else self._html()

    def _html(self) -> Answer:
        now = self._figures.now()
        messages = now["messages"]
        dropped = sum(messages["by_verdict"][stage]["total"] for stage in ("exact", "near"))
        page = render(
            "status.html",
            script="status.js",
            now=now,
            sentence=repeats(int(dropped), int(messages["total"])),
            meanings=MEANINGS,
            errors=self._tail.lines(),
        )
        # This part of a policy counts in the header alone.
        policy = f"{page.policy}; frame-ancestors 'none'"
        return Answer(200, page.html, HTML, [("Content-Security-Policy", policy), *_GUARDS])

    def _json(self) -> Answer:
        errors = [asdict(line) for line in self._tail.lines()]
        # Without any character that a terminal or a page would obey.
        body = json.dumps({**self._figures.now(), "errors": errors})
        body = body.replace("<", "\\u003c").replace("&", "\\u0026")
        policy = "default-src 'none'; frame-ancestors 'none'"
        return Answer(200, body.encode(), _JSON, [("Content-Security-Policy", policy), *_GUARDS])


class StatusServer(PageServer):
    """Serves the status pages on loopback.

    raises: UsageError if the server cannot listen on the address, or if it is not loopback
    """

    def __init__(self, address: tuple[str, int], pages: StatusPages) -> None:
        _require_loopback(*address)

        def answer(request: Request) -> Answer:
            problem = misdirected(request.hosts, self.port)
            return _text(421, problem) if problem else pages.answer(request)

        super().__init__("http.pages", address, answer)


def misdirected(hosts: Sequence[str], port: int) -> str:
    """Why a request with these `Host` headers is refused; empty if it is not.

    >>> misdirected(["localhost:8081"], 8081), misdirected(["[::1]:8081"], 8081)
    ('', '')
    >>> misdirected(["evil.example:8081"], 8081)[:44]
    'refused: the header Host must be localhost:8'
    """
    shown = [f"[{host}]" if ":" in host else host for host in LOOPBACK]
    allowed = [f"{host}:{port}" for host in shown] + (shown if port == _DEFAULT_PORT else [])
    if len(hosts) == 1 and hosts[0].strip().lower() in allowed:
        return ""
    return (
        f"refused: the header Host must be {', '.join(allowed[:-1])} or {allowed[-1]}; through a tunnel, use "
        f"the same port on both sides (ssh -L {port}:127.0.0.1:{port} HOST)"
    )


def _require_loopback(host: str, port: int) -> None:
    """raises: UsageError if the host leads elsewhere, as `localhost` may by a wrong /etc/hosts"""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise UsageError(f"http.pages: host {host!r} is not found ({error.strerror})") from error
    foreign = [str(at[4][0]) for at in found if not ipaddress.ip_address(str(at[4][0])).is_loopback]
    if foreign:
        raise UsageError(f"http.pages: host {host!r} leads to {foreign[0]}; write 127.0.0.1:{port}")


def _text(status: int, line: str) -> Answer:
    return Answer(status, f"{line}\n".encode(), headers=_GUARDS)


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
