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

    So clients that open connections and send nothing, or one byte every nine seconds, block no others.
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


class HealthServer:
    """Serves health, readiness and metrics in a thread of its own; an answer needs no role's lock.

    address: host and port; port 0: a free one
    raises: UsageError where it cannot listen there
    """

    def __init__(
        self,
        address: tuple[str, int],
        registry: CollectorRegistry,
        healthy: Callable[[], bool],
        ready: Callable[[], bool],
    ) -> None:
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
            self._server = _Server(address, Handler)
        except OSError as error:
            shown = f"{address[0]}:{address[1]}"
            raise UsageError(
                f"http.listen is {shown!r}; the service cannot listen there ({error.strerror})"
            ) from error
        self._thread = threading.Thread(target=self._server.serve_forever, name="http", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.server_address[1])

    def close(self) -> None:
        """Close all connections and the port."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
