"""/healthz, /readyz and /metrics."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from twinsieve.stages.errors import UsageError

MAX_CONNECTIONS = 16
_MAKE_ROOM_S = 1.0


class _Server(ThreadingHTTPServer):
    """A thread for each connection, of which there are a few: the oldest one makes room for the next.

    So whoever opens connections and says nothing, or one byte every nine seconds, keeps nobody out.
    """

    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self._room = threading.BoundedSemaphore(MAX_CONNECTIONS)
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Called for each connection, one at a time."""
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
        """Called at the end of each connection."""
        with self._lock:
            ours = request in self._open
            if ours:
                self._open.remove(request)
        super().shutdown_request(request)
        if ours:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log nothing: clients break connections as they like, and a line each time would fill the log."""


class Pages:
    """A small server in a thread of its own; a page's work is bounded and needs no role's lock."""

    def __init__(
        self,
        listen: str,
        registry: CollectorRegistry,
        healthy: Callable[[], bool],
        ready: Callable[[], bool],
    ) -> None:
        host, colon, port = listen.rpartition(":")
        if not colon or not port.isdigit() or int(port) > 65_535:
            raise UsageError(f"http.listen is {listen!r}; write host:port, as in 127.0.0.1:8080")

        class Handler(BaseHTTPRequestHandler):
            timeout = 10

            def do_GET(self) -> None:
                if self.path == "/metrics":
                    self._send(200, generate_latest(registry), CONTENT_TYPE_LATEST)
                elif self.path == "/healthz":
                    self._answer(healthy())
                elif self.path == "/readyz":
                    self._answer(ready())
                else:
                    self._send(404, b"no such page; there are /healthz, /readyz and /metrics\n")

            def _answer(self, good: bool) -> None:
                self._send(200 if good else 503, b"ok\n" if good else b"not now\n")

            def _send(self, status: int, body: bytes, kind: str = "text/plain; charset=utf-8") -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base's name)
                """Requests are not logged."""

        try:
            self._server = _Server((host.strip("[]") or "127.0.0.1", int(port)), Handler)
        except OSError as error:
            raise UsageError(f"http.listen is {listen!r}, which cannot be had ({error.strerror})") from error
        self._thread = threading.Thread(target=self._server.serve_forever, name="http", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.server_address[1])

    def close(self) -> None:
        """Answer nothing more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
