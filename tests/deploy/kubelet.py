"""What a kubelet does to a container, by its documented rules, played against a real process.

The startup probe comes first and alone. A probe fails by another status than 2xx or 3xx, or by silence of
`timeoutSeconds`; `failureThreshold` failures in a row of the startup or liveness probe end the container: SIGTERM, and
SIGKILL after the grace. Too many failures of the readiness probe make it not ready. A container above its limit of
memory is killed at once.
Source: https://kubernetes.io/docs/concepts/configuration/liveness-readiness-startup-probes
"""

from __future__ import annotations

import signal
import subprocess
import threading
import time
import urllib.request
from collections.abc import Mapping
from typing import Any

from tests.deploy.manifests import mib

_TICK_S = 0.1


class _Probe:
    """One probe, which is asked in a thread of its own."""

    def __init__(self, container: Mapping[str, Any], name: str, port: int) -> None:
        written = container[name]
        self.name = name
        self.fails = self.successes = 0
        self.ended = threading.Event()
        self.failures_allowed = written["failureThreshold"]
        self._timeout_s = written["timeoutSeconds"]
        self._period_s = written["periodSeconds"]
        self._url = f"http://127.0.0.1:{port}{written['httpGet']['path']}"

    def begin(self) -> None:
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while not self.ended.wait(self._period_s):
            if self._is_well():
                self.fails, self.successes = 0, self.successes + 1
            else:
                self.fails += 1

    @property
    def has_failed(self) -> bool:
        return self.fails >= self.failures_allowed

    def _is_well(self) -> bool:
        try:
            with urllib.request.urlopen(self._url, timeout=self._timeout_s) as answer:
                return bool(200 <= answer.status < 400)
        except OSError:
            return False


class Kubelet:
    """One process in the place of a container. A context manager, which kills it at its end.

    killed: why the kubelet ended it, empty while it has no reason to
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        port: int,
        pod: Mapping[str, Any],
        container: Mapping[str, Any],
    ) -> None:
        self.killed = ""
        self.peak_bytes = 0
        self._process = process
        self._grace_s = pod["terminationGracePeriodSeconds"]
        self._limit_bytes = mib(container["resources"]["limits"]["memory"]) << 20
        self._startup, self._liveness, self._readiness = (
            _Probe(container, name, port) for name in ("startupProbe", "livenessProbe", "readinessProbe")
        )
        self._ended = threading.Event()
        self._startup.begin()
        threading.Thread(target=self._watch, daemon=True).start()

    def __enter__(self) -> Kubelet:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        self._process.kill()
        self._process.wait()

    @property
    def is_started(self) -> bool:
        """Whether the startup probe has succeeded."""
        return self._startup.successes > 0

    @property
    def is_ready(self) -> bool:
        return self._readiness.successes > 0 and not self._readiness.has_failed

    @property
    def code(self) -> int | None:
        """Exit code of the process; None while it lives."""
        return self._process.poll()

    def is_checked(self, times: int) -> bool:
        """Whether the liveness probe has been well so often."""
        return self._liveness.successes >= times

    def stop(self) -> float:
        """Delete the pod: seconds from SIGTERM to the end."""
        began_s = time.monotonic()
        self._end()
        self._terminate()
        return time.monotonic() - began_s

    def _end(self) -> None:
        self._ended.set()
        for probe in (self._startup, self._liveness, self._readiness):
            probe.ended.set()

    def _watch(self) -> None:
        others = [self._liveness, self._readiness]
        while not self._ended.wait(_TICK_S):
            if self.is_started and others:
                self._startup.ended.set()
                for probe in others:
                    probe.begin()
                others = []
            self._measure()
            failed = self._liveness if self.is_started else self._startup
            if failed.has_failed:
                self.killed = f"{failed.name}: {failed.fails} failures"
                self._terminate()
                return

    def _measure(self) -> None:
        try:
            with open(f"/proc/{self._process.pid}/status", encoding="ascii") as status:
                lines = dict(line.split(":", 1) for line in status)
        except OSError:
            return
        if "VmHWM" in lines:  # not of a process that has ended
            self.peak_bytes = int(lines["VmHWM"].split()[0]) << 10
        if self.peak_bytes > self._limit_bytes:
            self.killed = f"memory: {self.peak_bytes >> 20} MiB"
            self._process.kill()

    def _terminate(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(self._grace_s)
        except subprocess.TimeoutExpired:
            self.killed = f"{self.killed}, after SIGTERM and {self._grace_s} s".lstrip(", ")
            self._process.kill()
            self._process.wait()
