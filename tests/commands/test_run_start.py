"""`twinsieve run` as a process whose broker does not answer: pages, log and signals work from the start."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.broker.server import free_ports
from tests.calling import Run, setting
from tests.full_pipe import full_pipe
from tests.logfmt import last_words, read_line

pytestmark = pytest.mark.heavy

_DEADLINE_S = 300.0
_RUN = [sys.executable, "-m", "twinsieve", "run", "--member", "one"]


def _page(port: int, path: str) -> tuple[int, str]:
    """Status and body; 0 while nothing listens."""
    asked = http.client.HTTPConnection("127.0.0.1", port, timeout=_DEADLINE_S)
    try:
        asked.request("GET", path)
        answer = asked.getresponse()
        return answer.status, answer.read().decode()
    except ConnectionRefusedError:
        return 0, ""
    finally:
        asked.close()


@contextmanager
def _broker(kind: str) -> Iterator[str]:
    """An address where nobody listens, or where somebody listens and says nothing."""
    with ExitStack() as stack:
        listening = stack.enter_context(socket.socket())
        listening.bind(("127.0.0.1", 0))
        if kind == "silent":
            listening.listen(100)
        yield f"127.0.0.1:{listening.getsockname()[1]}"


@pytest.mark.parametrize("kind", ["silent", "closed"])
def test_a_process_without_a_broker_tells_so_and_ends_by_sigterm(tmp_path: Path, kind: str) -> None:
    (port,) = free_ports(1)
    with _broker(kind) as bootstrap, open(tmp_path / "log", "wb") as log:
        options = setting(
            "kafka.client=confluent",  # of the version before, told once
            f"kafka.bootstrap={bootstrap}",
            f"http.listen=127.0.0.1:{port}",
            f"state.dir={tmp_path}/state",
        )
        process = subprocess.Popen([*_RUN, *options], stderr=log)
        try:
            until_s = time.monotonic() + _DEADLINE_S
            while _page(port, "/healthz") == (0, ""):
                assert process.poll() is None, (tmp_path / "log").read_text()
                assert time.monotonic() < until_s, "no page"
                time.sleep(0.1)
            assert _page(port, "/healthz") == (200, "ok\n")
            cause = "nothing listens there" if kind == "closed" else ""
            while cause not in (page := _page(port, "/readyz"))[1]:
                assert time.monotonic() < until_s, page
                time.sleep(0.1)
            assert page[0] == 503
            assert page[1].startswith("waiting for broker")
            assert bootstrap in page[1]
            assert 'twinsieve_process_phase{phase="waiting_for_broker"} 1.0' in _page(port, "/metrics")[1]
            process.send_signal(signal.SIGTERM)
            assert process.wait(_DEADLINE_S) == 0
        finally:
            process.kill()
            process.wait()
    said = (tmp_path / "log").read_text()
    assert last_words(said) == []
    records = [read_line(line) for line in said.splitlines()]
    assert {record["logger"] for record in records} == {"twinsieve"}, "lines of a client hide ours"
    former = records.pop(0)
    assert (former["level"], "kafka.client has no effect" in former["msg"]) == ("warning", True)
    assert bootstrap in records[0]["msg"]
    warnings = [record["msg"] for record in records if record["level"] == "warning"]
    assert len(warnings) == (1 if kind == "closed" else 0)
    assert all(bootstrap in line and cause in line for line in warnings)
    assert records[-1]["msg"] == "run: stopped"


@pytest.mark.parametrize("stderr", ["full", "closed"])
def test_a_log_that_nobody_reads_hinders_neither_a_start_nor_a_stop(tmp_path: Path, stderr: str) -> None:
    (port,) = free_ports(1)
    with full_pipe() as writes, _broker("closed") as bootstrap:
        options = setting(
            f"kafka.bootstrap={bootstrap}", f"http.listen=127.0.0.1:{port}", f"state.dir={tmp_path}/state"
        )
        words = [*_RUN, *options]
        if stderr == "closed":
            words = ["sh", "-c", 'exec "$@" 2>&-', "sh", *words]
        process = subprocess.Popen(words, stderr=writes)
        os.close(writes)
        try:
            until_s = time.monotonic() + _DEADLINE_S
            while "nothing listens there" not in (page := _page(port, "/readyz"))[1]:
                assert process.poll() is None
                assert time.monotonic() < until_s, page
                time.sleep(0.1)
            assert "twinsieve_dropped_log_lines_total 0.0" in _page(port, "/metrics")[1]
            process.send_signal(signal.SIGTERM)
            assert process.wait(_DEADLINE_S) == 0
        finally:
            process.kill()
            process.wait()


_COMMANDS = {
    "status": ("status",),
    "topics check": ("topics", "check"),
    "reset": ("reset", "--to", "latest"),
    "why": ("why", "posts[0]@3"),
}


@pytest.mark.parametrize("name", _COMMANDS)
def test_a_command_without_a_broker_prints_one_line_that_names_it(run: Run, name: str) -> None:
    with _broker("closed") as bootstrap:
        ran = run(*_COMMANDS[name], *setting(f"kafka.bootstrap={bootstrap}", "app=one"))
    assert (ran.code, ran.out) == (1, "")
    (line,) = ran.err.splitlines()
    assert f"broker {bootstrap}: nothing listens there" in line


@pytest.mark.parametrize("key", ["http.listen", "http.pages"])
def test_a_port_in_use_ends_it_before_a_broker_is_asked(tmp_path: Path, key: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, socket.create_server(("127.0.0.1", 0)) as broker:
        listen, bootstrap = (f"127.0.0.1:{one.getsockname()[1]}" for one in (taken, broker))
        http = {"http.listen": "none", key: listen}
        given = [f"{name}={value}" for name, value in http.items()]
        words = [*_RUN, *setting(*given, f"kafka.bootstrap={bootstrap}")]
        ran = subprocess.run(
            words, cwd=tmp_path, capture_output=True, text=True, timeout=_DEADLINE_S, check=False
        )
        broker.setblocking(False)
        with pytest.raises(BlockingIOError):
            broker.accept()
    (said,) = last_words(ran.stderr)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert said == f"{key} is '{listen}'; the service cannot listen there (Address already in use)"


_FIRST_PROCESS = """
import os, sys, types
os.getpid = lambda: 1
cli = types.ModuleType("twinsieve.pipeline.commands.cli")
def main():
    print("works", flush=True)
    sys.stdin.read()
    return 0
cli.main = main
import twinsieve.pipeline.commands
twinsieve.pipeline.commands.cli = cli
from twinsieve.__main__ import main
main()
"""


def test_the_first_process_of_a_container_ends_by_a_signal() -> None:
    """The kernel ends no first process by a signal; so one that is caught ends it, with the usual exit code."""
    with subprocess.Popen(
        [sys.executable, "-c", _FIRST_PROCESS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "works\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(_DEADLINE_S) == 128 + signal.SIGTERM
