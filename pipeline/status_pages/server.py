"""The status pages of `run`: `/` for a browser and `/status.json` for programs (`http.pages`).

They listen on loopback alone. A site that the user of a browser visits could still reach them by a host name
of its own that leads to 127.0.0.1 (DNS rebinding), so the header `Host` must name loopback too.
"""

from __future__ import annotations

import ipaddress
import json
import logging
import secrets
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from urllib.parse import parse_qs

from twinsieve.pipeline.basics.amounts import repeats
from twinsieve.pipeline.broker.ports import Clock
from twinsieve.pipeline.messages.columns import MEANINGS
from twinsieve.pipeline.messages.reader import MessageReader
from twinsieve.pipeline.pages.differing import parts_of
from twinsieve.pipeline.pages.render import fragment, render, require_reports
from twinsieve.pipeline.service.http import HTML, Answer, PageServer, Request
from twinsieve.pipeline.service.metrics import Metrics
from twinsieve.pipeline.service.run import Connect, Status, Watch
from twinsieve.pipeline.settings.checks import LOOPBACK
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.sizing.process_memory import MOST_DROPS
from twinsieve.pipeline.status_pages.drops import MAX_TEXT, Drop, Drops, text_reader
from twinsieve.pipeline.status_pages.figures import Figures, StatusFigures
from twinsieve.pipeline.status_pages.leader_texts import LeaderTexts
from twinsieve.pipeline.status_pages.log_tail import LogTail
from twinsieve.stages.errors import UsageError

_log = logging.getLogger("twinsieve")
_JSON = "application/json"
_PATHS = ("", "/status.json")
_MOST_QUERY = 100
_DEFAULT_PORT = 80
_GUARDS = (
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Referrer-Policy", "no-referrer"),
)
"""With these a browser hands nothing of an answer to a page of another site."""


@contextmanager
def watched(
    settings: Settings, metrics: Metrics, clock: Clock, status: Status, connect: Connect
) -> Iterator[Watch]:
    """Context manager that serves the status pages at the address of the settings.

    connect: makes a broker client, for the texts of leaders
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
        drops = leaders = None
        if settings.http.texts:
            part = settings.input.part
            drops = Drops(clock, part, text_reader(MessageReader(settings)))
            read = text_reader(MessageReader(settings))
            leaders = LeaderTexts(drops, lambda: connect(settings), part, read, clock)
            stack.callback(leaders.close)
        asked = leaders.ask if leaders is not None else lambda: None
        server = StatusServer(address, StatusPages(figures, tail, drops, asked))
        stack.callback(server.close)
        host = f"[{address[0]}]" if ":" in address[0] else address[0]
        shown = "with" if drops is not None else "without"
        _log.info("run: status pages, %s texts, at http://%s:%d/", shown, host, server.port)
        yield Watch(figures.named, figures.tick, drops.take if drops is not None else None)


class StatusPages:
    """Makes the answers to requests.

    figures, tail: what the pages show; drops: None if no texts are shown
    asked: called at each request for a page
    """

    def __init__(
        self,
        figures: StatusFigures,
        tail: LogTail,
        drops: Drops | None,
        asked: Callable[[], None] = lambda: None,
    ) -> None:
        self._figures = figures
        self._tail = tail
        self._drops = drops
        self._asked = asked
        self._making = threading.Lock()
        self._run = secrets.token_hex(8)
        """Numbers of drops begin at 1 with each process, so an open page must notice a new one."""

    def answer(self, request: Request) -> Answer:
        """The page or the JSON for this request, which names a host of loopback."""
        if request.path not in _PATHS:
            return _text(404, "no such page; there are / and /status.json")
        after = _after(request.query)
        if after is None:
            return _text(400, "the query may be after=N alone, N being the number that the last answer named")
        self._asked()
        # One after the other: a page of hostile texts takes megabytes while it is made.
        with self._making:
            return self._json(after) if request.path else self._html(after)

    def _newer(self, after: int) -> list[Drop] | None:
        return self._drops.newer(after) if self._drops is not None else None

    def _html(self, after: int) -> Answer:
        drops = self._newer(after)
        now = self._figures.now()
        page = render(
            "status.html",
            script="status.js",
            now=now,
            sentence=_sentence(now["messages"]),
            meanings=MEANINGS,
            run=self._run,
            errors=self._tail.lines(),
            drops=None if drops is None else self._made(drops, "html", _drop_html),
            last=_last(drops, after),
            most=MOST_DROPS,
            most_text=MAX_TEXT,
        )
        # This part of a policy counts in the header alone.
        policy = f"{page.policy}; frame-ancestors 'none'"
        return Answer(200, page.html, HTML, [("Content-Security-Policy", policy), *_GUARDS])

    def _json(self, after: int) -> Answer:
        drops = self._newer(after)
        lines = self._tail.lines()
        errors = [{"time_s": one.time_s, "level": one.level, "message": one.message} for one in lines]
        values = {**self._figures.now(), "run": self._run, "errors": errors}
        body = _ascii(values)
        if drops is not None:
            made = ", ".join(self._made(drops, "json", _drop_json))
            body = f'{body[:-1]}, "last": {_last(drops, after)}, "drops": [{made}]}}'
        policy = "default-src 'none'; frame-ancestors 'none'"
        return Answer(200, body.encode(), _JSON, [("Content-Security-Policy", policy), *_GUARDS])

    def _made(self, drops: list[Drop], form: str, make: Callable[[Drop], str]) -> list[str]:
        """Each drop in this form. A form is made once and kept until the drop changes."""
        made = []
        for drop in drops:
            changed, kept = drop.changed, getattr(drop, form)
            if kept is None:
                kept = make(drop)
                if drop.changed == changed:
                    setattr(drop, form, kept)
            made.append(kept)
        return made


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


def _after(query: str) -> int | None:
    """The number N of `after=N`, 0 without a query; None if the query is something else."""
    if not query:
        return 0
    values = parse_qs(query[:_MOST_QUERY], keep_blank_values=True, max_num_fields=None)
    (name, numbers), *others = values.items() or [("", [])]
    is_number = len(numbers) == 1 and numbers[0].isascii() and numbers[0].isdigit()
    return int(numbers[0]) if name == "after" and is_number and not others else None


def _text(status: int, line: str) -> Answer:
    return Answer(status, f"{line}\n".encode(), headers=_GUARDS)


def _sentence(messages: Figures) -> str:
    dropped = sum(messages["by_verdict"][stage]["total"] for stage in ("exact", "near"))
    return repeats(int(dropped), int(messages["total"]))


def _last(drops: list[Drop] | None, after: int) -> int:
    return max((drop.changed for drop in drops or ()), default=after)


def _drop_html(drop: Drop) -> str:
    parts = [] if drop.why or drop.why_leader else parts_of(drop.leader_text, drop.text, MAX_TEXT + 1)
    return fragment("drop.html", drop=drop, parts=parts)


def _drop_json(drop: Drop) -> str:
    return _ascii(
        {
            "number": drop.number,
            "time_s": drop.time_ms / 1000,
            "position": str(drop.position),
            "stage": drop.stage,
            drop.measure: drop.likeness,
            "text": None if drop.why else drop.text,
            "why_no_text": drop.why or None,
            "leader": None if drop.leader is None else str(drop.leader),
            "leader_text": None if drop.why_leader else drop.leader_text,
            "why_no_leader_text": drop.why_leader or None,
        }
    )


def _ascii(values: object) -> str:
    """JSON without any character that a terminal or a page would obey."""
    return json.dumps(values).replace("<", "\\u003c").replace("&", "\\u0026")
