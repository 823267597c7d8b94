"""Whether an HTTP server answers a probe while clients open connections and send half a request line.

    python -m bench.http_flood [ours cheroot waitress uvicorn hypercorn tornado aiohttp] [--python PYTHON]

PYTHON: the interpreter of an environment in which the libraries are installed, with starlette for uvicorn and
hypercorn; ours runs in this one. Each server is a process that may open 1,024 files. Where a library can
bound its connections and its waiting, it does. Printed: how long a probe waits behind 20 and behind 1,500
such connections, how many files the server has open then, and how many probes of one second fail while each
of 20 clients sends a byte every two seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import importlib
import os
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[1]
_FILES = 1_024
_CONNECTIONS = 16
_TIMEOUT_S = 10
_DRIP_S = 16.0
_BODY = b"ok\n"


def _wsgi(_: object, start: Callable[..., object]) -> list[bytes]:
    start("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(_BODY)))])
    return [_BODY]


def _starlette() -> object:
    responses, routing = (importlib.import_module(f"starlette.{name}") for name in ("responses", "routing"))

    async def answer(_: object) -> object:
        return responses.PlainTextResponse(_BODY)

    return importlib.import_module("starlette.applications").Starlette(
        routes=[routing.Route("/healthz", answer)]
    )


def _ours(port: int) -> None:
    from prometheus_client import CollectorRegistry

    from twinsieve.pipeline.service.http import HealthServer

    HealthServer(("127.0.0.1", port), CollectorRegistry(), str, str)
    threading.Event().wait()


def _cheroot(port: int) -> None:
    made = importlib.import_module("cheroot.wsgi")
    made.Server(("127.0.0.1", port), _wsgi, numthreads=_CONNECTIONS, timeout=_TIMEOUT_S).start()


def _waitress(port: int) -> None:
    limits = {"connection_limit": _CONNECTIONS, "channel_timeout": _TIMEOUT_S, "cleanup_interval": 1}
    importlib.import_module("waitress").serve(_wsgi, host="127.0.0.1", port=port, **limits)


def _uvicorn(port: int) -> None:
    importlib.import_module("uvicorn").run(
        _starlette(), host="127.0.0.1", port=port, log_level="critical", timeout_keep_alive=_TIMEOUT_S
    )


def _hypercorn(port: int) -> None:
    config = importlib.import_module("hypercorn.config").Config()
    config.bind, config.read_timeout, config.errorlog = [f"127.0.0.1:{port}"], _TIMEOUT_S, None
    asyncio.run(importlib.import_module("hypercorn.asyncio").serve(_starlette(), config))


def _tornado(port: int) -> None:
    web: Any = importlib.import_module("tornado.web")

    def get(handler: Any) -> None:
        handler.write(_BODY)

    async def serve() -> None:
        application = web.Application([("/healthz", type("Handler", (web.RequestHandler,), {"get": get}))])
        made = importlib.import_module("tornado.httpserver").HTTPServer
        made(application, idle_connection_timeout=_TIMEOUT_S).listen(port, "127.0.0.1")
        await asyncio.Event().wait()

    asyncio.run(serve())


def _aiohttp(port: int) -> None:
    web: Any = importlib.import_module("aiohttp.web")

    async def answer(_: object) -> object:
        return web.Response(body=_BODY)

    application = web.Application()
    application.router.add_get("/healthz", answer)
    web.run_app(application, host="127.0.0.1", port=port, print=None, keepalive_timeout=_TIMEOUT_S)


SERVERS: dict[str, Callable[[int], None]] = {
    "ours": _ours,
    "cheroot": _cheroot,
    "waitress": _waitress,
    "uvicorn": _uvicorn,
    "hypercorn": _hypercorn,
    "tornado": _tornado,
    "aiohttp": _aiohttp,
}


def probe(port: int, limit_s: float) -> tuple[bool, float]:
    """Whether the server answers within this time, and how long that took."""
    began_s = time.monotonic()
    asked = http.client.HTTPConnection("127.0.0.1", port, timeout=limit_s)
    try:
        asked.request("GET", "/healthz")
        is_answered = asked.getresponse().read() == _BODY
    except (OSError, http.client.HTTPException):
        is_answered = False
    finally:
        asked.close()
    return is_answered, time.monotonic() - began_s


def _half_requests(port: int, count: int) -> list[socket.socket]:
    opened = []
    for _ in range(count):
        try:
            opened.append(socket.create_connection(("127.0.0.1", port), timeout=2))
            opened[-1].sendall(b"GET /heal")
        except OSError:
            break
    return opened


def _drip(port: int, clients: list[socket.socket]) -> str:
    """How many probes of a second fail while each client sends a byte now and then."""
    end_s = time.monotonic() + _DRIP_S

    def send() -> None:
        while time.monotonic() < end_s:
            for number, client in enumerate(clients):
                try:
                    client.sendall(b"a")
                except OSError:
                    clients[number : number + 1] = _half_requests(port, 1) or [client]
            time.sleep(2)

    sending = threading.Thread(target=send)
    sending.start()
    answers = []
    while time.monotonic() < end_s:
        answers.append(probe(port, 1.0)[0])
        time.sleep(1)
    sending.join()
    return f"{answers.count(False)} of {len(answers)} probes fail"


def tried(name: str, python: str) -> str:
    """All that is to be said of one server."""
    said = []
    for count, limit_s in ((20, 60.0), (1_500, 8.0)):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = int(free.getsockname()[1])
        command = [
            sys.executable if name == "ours" else python,
            str(Path(__file__)),
            name,
            "--serve",
            str(port),
        ]
        server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        clients: list[socket.socket] = []
        try:
            while not probe(port, 5.0)[0]:
                if server.poll() is not None:
                    return f"{name}: does not start; is it installed in {python}?"
                time.sleep(0.1)
            clients = _half_requests(port, count)
            is_answered, took_s = probe(port, limit_s)
            files = len(os.listdir(f"/proc/{server.pid}/fd"))
            shown = f"{took_s:.2f} s" if is_answered else f"no answer within {limit_s:.0f} s"
            said.append(f"{count:,} connections: {shown}, {files:,} files open")
            if count < _CONNECTIONS * 2:
                said.append(f"a byte every 2 s: {_drip(port, clients)}")
        finally:
            for client in clients:
                client.close()
            server.kill()
            server.wait()
    return f"{name}: {'; '.join(said)}"


def main() -> None:
    """Print a line for each server."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("servers", nargs="*", default=["ours"], choices=list(SERVERS))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        resource.setrlimit(resource.RLIMIT_NOFILE, (_FILES, _FILES))
        SERVERS[given.servers[0]](given.serve)
        return
    resource.setrlimit(resource.RLIMIT_NOFILE, (4 * _FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    for name in given.servers:
        print(tried(name, given.python), flush=True)


if __name__ == "__main__":
    main()
