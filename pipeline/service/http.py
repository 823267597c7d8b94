"""The HTTP server of a process, and the pages /healthz, /readyz and /metrics.

The server is our own, because libraries fail where many clients open connections and send half a request line
on each. Servers on an event loop take a file for each connection, so the process could open neither a broker
nor a snapshot; bounded ones wait for the silent clients until a time-out.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from twinsieve.pipeline.basics.printable import printable
from twinsieve.stages.errors import UsageError

MAX_CONNECTIONS = 16
TEXT, HTML = "text/plain; charset=utf-8", "text/html; charset=utf-8"
_MAKE_ROOM_S = 1.0
_MAX_REASON = 500
_LOOKS_S = 0.05
"""How soon the server notices that it is to end."""
_PAGES = {
    "/healthz": "whether this process makes progress",
    "/readyz": "whether it does its work",
    "/metrics": "its metrics, for Prometheus",
}
_INDEX = "".join(
    [
        "<!doctype html><meta charset=utf-8><title>twinsieve</title><ul>\n",
        *(f'<li><a href="{path}">{path}</a> {about}\n' for path, about in _PAGES.items()),
        "</ul>\n",
    ]
).encode()


@dataclass(frozen=True, slots=True)
class Request:
    """A GET or HEAD request.

    path: without the query and without a slash at the end; query: what stands behind the `?`
    hosts: values of the header `Host`; there should be one
    """

    path: str
    query: str
    hosts: Sequence[str]


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer. kind: its content type; headers: further headers"""

    status: int
    body: bytes
    kind: str = TEXT
    headers: Sequence[tuple[str, str]] = ()


class _Server(ThreadingHTTPServer):
    """Serves each connection in a thread. If MAX_CONNECTIONS are open, the oldest is closed for a new one.

    Therefore clients that open connections and send nothing, or one byte every nine seconds, cannot block
    other clients, nor take the files and threads of the process.
    """

    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        addresses = socket.getaddrinfo(*address, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        # A host name may have IPv4 and IPv6 addresses. Prefer IPv4, because scrapers use 127.0.0.1 more often
        # than ::1.
        self.address_family, _, _, _, chosen = min(addresses, key=lambda info: info[0] != socket.AF_INET)
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self._room = threading.BoundedSemaphore(MAX_CONNECTIONS)
        super().__init__((str(chosen[0]), int(chosen[1])), handler)

    def server_bind(self) -> None:
        """Bind the address, without the base class's lookup of the host name: a name server may be slow.

        With `[::]` accept IPv4 connections too, whatever the system's default is.
        """
        if self.server_address[0] == "::" and socket.has_dualstack_ipv6():
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start the thread of a new connection; the base class calls this for one connection at a time."""
        if not self._room.acquire(blocking=False):
            with self._lock, suppress(IndexError, OSError):
                self._open[0].shutdown(socket.SHUT_RDWR)
            if not self._room.acquire(timeout=_MAKE_ROOM_S):
                super().shutdown_request(request)
                return
        with self._lock:
            self._open.append(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection and free its place; the base class calls this at the end of each connection."""
        with self._lock:
            ours = request in self._open
            if ours:
                self._open.remove(request)
        super().shutdown_request(request)
        if ours:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log nothing: a client may break connections often, and one line for each would fill the log."""


class PageServer:
    """Answers GET and HEAD requests in its own threads.

    setting: name of the setting that holds the address, for errors
    address: host and port; port 0 means any free port
    answer: makes the answer; called by several threads at once
    raises: UsageError if the server cannot listen on the address
    """

    def __init__(self, setting: str, address: tuple[str, int], answer: Callable[[Request], Answer]) -> None:
        class Handler(BaseHTTPRequestHandler):
            timeout = 10
            # With the base's default, HTTP/0.9, a refusal would have no status line.
            default_request_version = "HTTP/1.0"

            def version_string(self) -> str:
                """The `Server` header, without the version of Python, which would only help attackers."""
                return "twinsieve"

            def do_GET(self) -> None:
                path, _, query = self.path.partition("?")
                self._send(answer(Request(path.rstrip("/"), query, self.headers.get_all("Host", []))))

            def do_HEAD(self) -> None:
                self.do_GET()

            def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002
                """Refuse a request: a method without a handler, or what is not HTTP. Nothing of the request
                is repeated."""
                self.close_connection = True
                if code == HTTPStatus.NOT_IMPLEMENTED:
                    body = b"method not allowed; use GET or HEAD\n"
                    self._send(Answer(HTTPStatus.METHOD_NOT_ALLOWED, body, headers=[("Allow", "GET, HEAD")]))
                else:
                    self._send(Answer(code, f"{HTTPStatus(code).phrase}\n".encode()))

            def _send(self, made: Answer) -> None:
                self.send_response(made.status)
                self.send_header("Content-Type", made.kind)
                self.send_header("Content-Length", str(len(made.body)))
                self.send_header("Cache-Control", "no-store")
                self.send_header("X-Content-Type-Options", "nosniff")
                for name, value in made.headers:
                    self.send_header(name, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(made.body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base's name)
                """Log no requests."""

        try:
            self._server = _Server(address, Handler)
        except OSError as error:
            host, port = address
            shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            raise UsageError(
                f"{setting} is {shown!r}; the service cannot listen there ({error.strerror})"
            ) from error
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_LOOKS_S,), name=setting, daemon=True
        )
        self._thread.start()

    @property
    def port(self) -> int:
        """The port on which the server listens."""
        return int(self._server.server_address[1])

    def close(self) -> None:
        """Close all connections and the port."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class HealthServer(PageServer):
    """Serves health, readiness and metrics. No answer waits for a lock of a role.

    why_not_healthy, why_not_ready: return one line, shown with status 503; an empty line means status 200
    remark: returns one line to show on the page of a process that is healthy or ready
    address, raises: as for `PageServer`
    """

    def __init__(
        self,
        address: tuple[str, int],
        registry: CollectorRegistry,
        why_not_healthy: Callable[[], str],
        why_not_ready: Callable[[], str],
        remark: Callable[[], str] = lambda: "",
    ) -> None:
        def answer(request: Request) -> Answer:
            if request.path == "/metrics":
                return Answer(200, generate_latest(registry), CONTENT_TYPE_LATEST)
            if request.path == "/healthz":
                return _state(why_not_healthy(), remark())
            if request.path == "/readyz":
                return _state(why_not_ready(), remark())
            if not request.path:
                return Answer(200, _INDEX, HTML)
            return Answer(404, f"no such page; there are {', '.join(_PAGES)}\n".encode())

        super().__init__("http.listen", address, answer)


def _state(why_not: str, remark: str = "") -> Answer:
    text = why_not or (f"ok; {remark}" if remark else "ok")
    return Answer(503 if why_not else 200, f"{printable(text[:_MAX_REASON])}\n".encode())
