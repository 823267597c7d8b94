"""A real Prometheus scrapes real processes: alerts fire when the state is brought about, and clear when it ends."""

from __future__ import annotations

import json
import signal
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.broker.deployment import Deployment, in_thread, poll_until
from tests.broker.load import Load
from tests.broker.server import free_ports
from tests.broker.worlds import fresh
from tests.deploy.played import RULES

_DEADLINE_S = 600.0
_RATE = 20.0
_CONFIG = """
global: {{scrape_interval: 5s, evaluation_interval: 5s}}
rule_files: ["{rules}"]
scrape_configs:
  - job_name: twinsieve
    static_configs: [{{targets: {targets}}}]
"""


class Prometheus:
    """A server that scrapes these ports of 127.0.0.1 every five seconds."""

    def __init__(self, program: str, folder: Path, ports: list[int]) -> None:
        self._port, *_ = free_ports(1)
        targets = json.dumps([f"127.0.0.1:{port}" for port in ports])
        config = folder / "prometheus.yaml"
        config.write_text(_CONFIG.format(rules=RULES, targets=targets))
        self.process = subprocess.Popen(
            [
                program,
                f"--config.file={config}",
                f"--storage.tsdb.path={folder}/data",
                f"--web.listen-address=127.0.0.1:{self._port}",
            ],
            stderr=subprocess.DEVNULL,
        )

    def firing(self) -> set[str]:
        """Names of the alerts that fire, without "Twinsieve"; empty while the server starts."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/api/v1/alerts", timeout=30) as page:
                alerts = json.load(page)["data"]["alerts"]
        except OSError:
            return set()
        names = (one["labels"]["alertname"] for one in alerts if one["state"] == "firing")
        return {name.removeprefix("Twinsieve") for name in names}


@contextmanager
def _scraped(program: str, ports: list[int]) -> Iterator[Prometheus]:
    with tempfile.TemporaryDirectory(prefix="twinsieve-prometheus-") as folder:
        server = Prometheus(program, Path(folder), ports)
        try:
            yield server
        finally:
            server.process.kill()
            server.process.wait()


@pytest.mark.minutes
def test_alerts_fire_for_what_happens_to_processes_and_clear(bootstrap: str, prometheus: str) -> None:
    deployment = Deployment(bootstrap, "confluent", fresh("alerts"))
    deployment.create_topics()
    load = Load(bootstrap, f"{deployment.app}.in", 1_000_000, _RATE)
    ports = dict(zip(("index", "worker"), free_ports(2), strict=True))

    def start(role: str) -> None:
        deployment.start(role, role, listen=f"127.0.0.1:{ports[role]}")

    def refused() -> None:
        producer = Producer({"bootstrap.servers": bootstrap})
        producer.produce(f"{deployment.app}.in", b"{")
        producer.flush(60)

    def freeze() -> None:
        deployment.signal("worker", signal.SIGSTOP)

    def thaw() -> None:
        deployment.signal("worker", signal.SIGCONT)

    def kill_all() -> None:
        deployment.kill("index")
        deployment.kill("worker")

    def start_all() -> None:
        start("index")
        start("worker")

    states: list[tuple[str, Callable[[], None], Callable[[], None]]] = [
        ("NothingComesOut", freeze, thaw),
        ("NoIndex", lambda: deployment.kill("index"), lambda: start("index")),
        ("Gone", kill_all, start_all),
        # The last one, as it stays on for ten minutes.
        ("DeadLetters", refused, lambda: None),
    ]
    try:
        start_all()
        in_thread(load.run)
        with _scraped(prometheus, list(ports.values())) as server:
            for alert, begin, end in states:
                assert poll_until(lambda: not server.firing(), _DEADLINE_S), server.firing()
                # Prometheus has seen that all is well for longer than any rule waits.
                time.sleep(90)
                assert not server.firing()
                begin_s = time.monotonic()
                begin()
                assert poll_until(lambda at=alert: at in server.firing(), _DEADLINE_S), alert  # type: ignore[misc]
                print(f"{alert}: {time.monotonic() - begin_s:.0f} s; firing: {sorted(server.firing())}")
                end()
    finally:
        load.stop.set()
        deployment.close()
