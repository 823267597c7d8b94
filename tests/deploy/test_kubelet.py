"""The probes, times and limits of the manifests end no process that works, starts, waits or stops."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.broker.cluster import Cluster
from tests.broker.deployment import Deployment, Watcher, in_thread, judge, poll_until
from tests.broker.held_memory import CASES, fill
from tests.broker.load import Load
from tests.broker.server import free_ports
from tests.broker.worlds import fresh
from tests.deploy.kubelet import Kubelet
from tests.deploy.manifests import processes
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.sizing.process_memory import held_by

_DEADLINE_S = 600.0
_FILLED = 300_000
"""Posts that fill the near window, so that the snapshot is one of a full window."""
_RATE = 40.0
_AGAIN_AND_AGAIN = 4
"""Times that the liveness probe is asked; three failures end a process."""
_SERVER = """
import http.server, pathlib, sys
ended = pathlib.Path(sys.argv[2])
class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(503 if ended.exists() == (self.path == "/healthz") else 200)
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Answers).serve_forever()
"""
"""Healthy and not ready until the file of its second argument is there, then the other way round."""


class Pods:
    """Pods of one app by their names, each with the probes, grace and limit of the manifests."""

    def __init__(self, deployment: Deployment) -> None:
        (self._of_sieve,) = processes("example")
        self._deployment = deployment
        self._ends = ExitStack()
        self._starts = itertools.count()

    def start(self, name: str) -> Kubelet:
        (port,) = free_ports(1)
        process = self._deployment.start(name, tag=f"-{next(self._starts)}", listen=f"127.0.0.1:{port}")
        _, pod, container = self._of_sieve
        return self._ends.enter_context(Kubelet(process, port, pod, container))

    def close(self) -> None:
        self._ends.close()


def _wait(what: Callable[[], bool], *pods: Kubelet) -> None:
    """raises: AssertionError where a pod was killed meanwhile"""
    assert poll_until(lambda: what() or any(pod.killed for pod in pods), _DEADLINE_S)
    assert [pod.killed for pod in pods] == [""] * len(pods)


@pytest.mark.minutes
@pytest.mark.needs("kubernetes", "own broker")
def test_no_pod_is_killed_while_it_waits_starts_moves_or_stops() -> None:
    # Not one for tests that kill brokers: its sessions are so short that a busy machine loses its partitions.
    with Cluster().start() as cluster:
        _play(cluster)


def _play(cluster: Cluster) -> None:
    app = fresh("pods")
    deployment = Deployment(cluster.bootstrap, app)
    deployment.create_topics()
    load = Load(cluster.bootstrap, f"{app}.in", 10_000_000, _RATE)
    watcher = Watcher(cluster.bootstrap, deployment.outputs)
    pods = Pods(deployment)
    try:
        # The broker is away at the start, for longer than any probe waits.
        cluster.nodes[0].stop()
        first = pods.start("pod-0")
        _wait(lambda: first.is_checked(_AGAIN_AND_AGAIN), first)
        assert not first.is_ready
        cluster.restart()
        _wait(lambda: first.is_ready, first)

        in_thread(watcher.run)
        filling = Load(cluster.bootstrap, f"{app}.in", _FILLED, seed=2)
        filling.run()
        _wait(lambda: len(watcher.seen) >= _FILLED, first)
        in_thread(load.run)
        second = pods.start("pod-1")
        _wait(lambda: second.is_ready, first, second)

        # The index moves, and its pod ends within its grace, with a snapshot.
        stopped_s = first.stop()
        assert (first.killed, first.code) == ("", 0)
        seen = len(watcher.seen)
        _wait(lambda: len(watcher.seen) > seen + 10 * _RATE, second)

        # A cold start with that snapshot, alone.
        second.stop()
        assert (second.killed, second.code) == ("", 0)
        again = pods.start("pod-0")
        began_s = time.monotonic()
        _wait(lambda: again.is_ready, again)
        print(f"stopped within {stopped_s:.1f} s, ready after {time.monotonic() - began_s:.1f} s")
        _wait(lambda: again.is_checked(_AGAIN_AND_AGAIN), again)

        load.stop.set()
        load.sent_s.update(filling.sent_s)
        _wait(lambda: load.sent_s.keys() <= watcher.seen.keys(), again)
        found = judge(load, watcher, deployment.outputs[0])
        assert found.good, found
    finally:
        load.stop.set()
        watcher.stop.set()
        pods.close()
        deployment.close()


@pytest.mark.minutes
@pytest.mark.needs("kubernetes")
@pytest.mark.parametrize("case", CASES)
def test_the_limit_that_lint_says_holds_hostile_input(bootstrap: str, case: str) -> None:
    app = fresh("limit")
    deployment = Deployment(bootstrap, app, partitions=1, pending_bytes="64MiB")
    deployment.create_topics(max_bytes=8 << 20)
    settings = Settings.model_validate(deployment.settings)
    count = fill(settings, CASES[case]())
    _, pod, container = processes("example")[0]
    limit = f"{held_by(settings, 1).limit >> 20}Mi"
    (port,) = free_ports(1)
    watcher = Watcher(bootstrap, deployment.outputs, partitions=1)
    in_thread(watcher.run)
    container = {**container, "resources": {"limits": {"memory": limit}}}
    try:
        process = deployment.start("pod-0", listen=f"127.0.0.1:{port}")
        with Kubelet(process, port, pod, container) as kubelet:
            _wait(lambda: len(watcher.seen) == count, kubelet)
            _wait(lambda: kubelet.is_ready, kubelet)
            print(f"{case}: {kubelet.peak_bytes >> 20} of {limit}")
    finally:
        watcher.stop.set()
        deployment.close()


@pytest.fixture
def container() -> Mapping[str, Any]:
    """Probes that take seconds."""
    probe = {"periodSeconds": 0.2, "timeoutSeconds": 10, "failureThreshold": 3}
    return {
        "startupProbe": {**probe, "httpGet": {"path": "/healthz"}, "failureThreshold": 300},
        "livenessProbe": {**probe, "httpGet": {"path": "/healthz"}},
        "readinessProbe": {**probe, "httpGet": {"path": "/readyz"}},
        "resources": {"limits": {"memory": "300Mi"}},
    }


def _kubelet(container: Mapping[str, Any], *command: str, grace_s: float = 20) -> Kubelet:
    (port,) = free_ports(1)
    process = subprocess.Popen(
        [sys.executable, "-c", command[0], str(port), *command[1:]], stderr=subprocess.DEVNULL
    )
    return Kubelet(process, port, {"terminationGracePeriodSeconds": grace_s}, container)


def test_a_kubelet_kills_what_is_no_longer_healthy(container: Mapping[str, Any], tmp_path: Path) -> None:
    ended = tmp_path / "ended"
    with _kubelet(container, _SERVER, str(ended)) as kubelet:
        assert poll_until(lambda: kubelet.is_checked(3), 60)
        assert not kubelet.killed
        assert not kubelet.is_ready
        ended.touch()
        assert poll_until(lambda: kubelet.code is not None, 60)
        assert kubelet.killed.startswith("livenessProbe: 3 failures")


def test_a_kubelet_kills_what_never_answers(container: Mapping[str, Any]) -> None:
    short = {**container, "startupProbe": {**container["startupProbe"], "failureThreshold": 4}}
    with _kubelet(short, "import time; time.sleep(1000)") as kubelet:
        assert poll_until(lambda: kubelet.code is not None, 60)
        assert kubelet.killed == "startupProbe: 4 failures"


def test_a_kubelet_kills_what_takes_too_much_memory(container: Mapping[str, Any]) -> None:
    with _kubelet(container, "import time; held = b'x' * (400 << 20); time.sleep(1000)") as kubelet:
        assert poll_until(lambda: kubelet.code is not None, 60)
        assert (kubelet.killed.split()[0], kubelet.code) == ("memory:", -signal.SIGKILL)


def test_a_kubelet_kills_what_does_not_stop(container: Mapping[str, Any], tmp_path: Path) -> None:
    began = tmp_path / "began"
    deaf = (
        "import pathlib, signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        "pathlib.Path(sys.argv[2]).touch(); time.sleep(1000)"
    )
    with _kubelet(container, deaf, str(began), grace_s=1) as kubelet:
        assert poll_until(began.exists, 60)
        assert kubelet.stop() >= 1
        assert (kubelet.killed, kubelet.code) == ("after SIGTERM and 1 s", -signal.SIGKILL)
