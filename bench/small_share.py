"""Whether `run` comes up on a small share of a core with no kernel compiled, watched by a liveness probe.

    python -m bench.small_share --millicores 250

A service on a broker in memory, on one core, is stopped whenever it ran for more than that share of the time.
/healthz is asked as Kubernetes does by default: at once and every 10 s, with 1 s for the answer; after three
failures in a row the service would be killed.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

from bench.machine import machine_line

_PERIOD_S = 0.1
_PROBE_EVERY_S = 10.0
_PROBE_TIMEOUT_S = 1.0
_FAILURES = 3

_SERVICE = """
import logging, sys, tempfile
from tests.memory.broker import MemoryBroker, MemoryCluster
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.service.run import SystemClock, run_service
from twinsieve.pipeline.settings.model import Settings
logging.basicConfig(level="INFO", format="%(message)s")
cluster = MemoryCluster(SystemClock())
cluster.create(NewTopic("posts", 2))
settings = Settings.model_validate({
    "app": "small", "topics": {"auto_create": True}, "state": {"dir": tempfile.mkdtemp()},
    "http": {"listen": sys.argv[1]},
})
run_service(settings, connect=lambda _: MemoryBroker(cluster), member="one")
"""


def main() -> None:
    """Print what the probe saw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--millicores", type=int, default=250)
    parser.add_argument("--seconds", type=float, default=1_200.0, help="give up after this time")
    options = parser.parse_args()
    print(machine_line(), flush=True)
    with tempfile.TemporaryDirectory() as cache:
        raise SystemExit(_watch(options.millicores / 1_000, options.seconds, cache))


def _watch(share: float, max_s: float, cache: str) -> int:
    address = _free_address()
    began_s = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVICE, address],
        env={**os.environ, "NUMBA_CACHE_DIR": cache},
        start_new_session=True,
        preexec_fn=lambda: os.sched_setaffinity(0, {0}),
    )
    over = threading.Event()
    throttles = threading.Thread(target=throttle, args=(process.pid, share, over))
    throttles.start()
    answers: list[bool] = []
    try:
        while time.monotonic() - began_s < max_s and process.poll() is None:
            probed_s = time.monotonic()
            answers.append(_says_ok(f"http://{address}/healthz"))
            if _says_ok(f"http://{address}/readyz"):
                break
            if answers[-_FAILURES:] == [False] * _FAILURES:
                print(f"killed: {_FAILURES} probes in a row failed after {time.monotonic() - began_s:.0f} s")
                return 1
            time.sleep(max(0.0, probed_s + _PROBE_EVERY_S - time.monotonic()))
        ready = process.poll() is None and _says_ok(f"http://{address}/readyz")
    finally:
        over.set()
        throttles.join()
        os.killpg(process.pid, signal.SIGCONT)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    print(
        f"{share * 1_000:.0f} millicores: ready: {ready} after {time.monotonic() - began_s:.0f} s; "
        f"{answers.count(False)} of {len(answers)} liveness probes failed, the first that did not was number "
        f"{answers.index(True) + 1 if True in answers else 0}"
    )
    return 0 if ready else 1


def throttle(process: int, share: float, over: threading.Event) -> None:
    """Let the process run until it had its share of all time from now on, as a control group's limit does.

    By the time that it ran, not by the clock: others may keep it from running meanwhile.
    """
    began_s, ran_s = time.monotonic(), _ran_s(process)
    while not over.wait(_PERIOD_S / 10):
        had = _ran_s(process) - ran_s >= share * (time.monotonic() - began_s)
        os.kill(process, signal.SIGSTOP if had else signal.SIGCONT)


def _ran_s(process: int) -> float:
    """Seconds of a core that all its threads had."""
    after_name = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")


def _says_ok(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=_PROBE_TIMEOUT_S) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False


def _free_address() -> str:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{listening.getsockname()[1]}"


if __name__ == "__main__":
    main()
