"""HTTP server for the pages /healthz, /readyz and /metrics."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from twinsieve.stages.errors import UsageError

MAX_CONNECTIONS = 16
_MAKE_ROOM_S = 1.0
_MAX_REASON = 500
_TEXT, _HTML = "text/plain; charset=utf-8", "text/html; charset=utf-8"
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


class _Server(ThreadingHTTPServer):
    """Serves each connection in a thread. If MAX_CONNECTIONS are open, the oldest is closed for a new one.

    Therefore clients that open connections and send nothing, or one byte every nine seconds, cannot block
    other clients.
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


class HealthServer:
    """Serves health, readiness and metrics in its own threads. No answer waits for a lock of a role.

    address: host and port; port 0 means any free port
    why_not_healthy, why_not_ready: return one line, shown with status 503; an empty line means status 200
    remark: returns one line to show on the page of a process that is ready
    raises: UsageError if the server cannot listen on the address
    """

    def __init__(
        self,
        address: tuple[str, int],
        registry: CollectorRegistry,
        why_not_healthy: Callable[[], str],
        why_not_ready: Callable[[], str],
        remark: Callable[[], str] = lambda: "",
    ) -> None:
        class Handler(BaseHTTPRequestHandler):
            timeout = 10

            def version_string(self) -> str:
                """The `Server` header, without the version of Python, which would only help attackers."""
                return "twinsieve"

            def do_GET(self) -> None:
                path = self.path.partition("?")[0].rstrip("/")
                if path == "/metrics":
                    self._send(200, generate_latest(registry), CONTENT_TYPE_LATEST)
                elif path == "/healthz":
                    self._answer(why_not_healthy())
                elif path == "/readyz":
                    self._answer(why_not_ready(), remark())
                elif not path:
                    self._send(200, _INDEX, _HTML)
                else:
                    self._send(404, f"no such page; there are {', '.join(_PAGES)}\n".encode())

            def do_HEAD(self) -> None:
                self.do_GET()

            def _answer(self, why_not: str, remark: str = "") -> None:
                text = why_not or (f"ok; {remark}" if remark else "ok")
                line = text[:_MAX_REASON].encode("unicode_escape")
                self._send(503 if why_not else 200, line + b"\n")

            def _send(self, status: int, body: bytes, kind: str = _TEXT) -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Cache-Control", "no-store")
                self.send_header("X-Content-Type-Options", "nosniff")
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base's name)
                """Log no requests."""

        try:
            self._server = _Server(address, Handler)
        except OSError as error:
            host, port = address
            shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            raise UsageError(
                f"http.listen is {shown!r}; the service cannot listen there ({error.strerror})"
            ) from error
        self._thread = threading.Thread(target=self._server.serve_forever, name="http", daemon=True)
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
