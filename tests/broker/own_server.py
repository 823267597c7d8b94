"""An HTTP server of the tests' own on 127.0.0.1, which ends with a block."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple, Self


class Asked(NamedTuple):
    """A request. path: with its query"""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class Told(NamedTuple):
    """An answer. headers: beside the length of its body"""

    status: int
    body: bytes
    headers: Mapping[str, str]


class OwnServer:
    """Sends what `answer` returns; nothing at all if it raises ConnectionError."""

    def __init__(self, answer: Callable[[Asked], Told]) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._tell()

            def do_POST(self) -> None:
                self._tell()

            def _tell(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                told = answer(Asked(self.command, self.path, dict(self.headers), body))
                self.send_response(told.status)
                for name, value in told.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(told.body)))
                self.end_headers()
                self.wfile.write(told.body)

            def handle(self) -> None:
                with suppress(ConnectionError):  # also of a client that waits no longer
                    super().handle()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
