"""A real Prometheus with our alert rules that scrapes real processes."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.broker.server import free_ports
from tests.deploy.played import RULES

_CONFIG = """
global: {{scrape_interval: 5s, evaluation_interval: 5s}}
rule_files: ["{rules}"]
scrape_configs:
  - job_name: twinsieve
    file_sd_configs: [{{files: ["{targets}"], refresh_interval: 1s}}]
"""


class Prometheus:
    """A server that scrapes what it is told to every five seconds.

    folder: for its files; what it has of the past is in `data` there
    """

    def __init__(self, program: str, folder: Path) -> None:
        (self._port,) = free_ports(1)
        self._targets = folder / "targets.json"
        self.scrape([])
        config = folder / "prometheus.yaml"
        config.write_text(_CONFIG.format(rules=RULES, targets=self._targets))
        self.process = subprocess.Popen(
            [
                program,
                f"--config.file={config}",
                f"--storage.tsdb.path={folder}/data",
                f"--web.listen-address=127.0.0.1:{self._port}",
            ],
            stderr=subprocess.DEVNULL,
        )

    def scrape(self, ports: Iterable[int]) -> None:
        """From now on, scrape these ports of 127.0.0.1 and no other."""
        written = self._targets.with_suffix(".new")
        written.write_text(json.dumps([{"targets": [f"127.0.0.1:{port}" for port in ports]}]))
        os.replace(written, self._targets)

    def firing(self) -> set[str]:
        """Names of the alerts that fire; empty while the server starts."""
        alerts = self._get("alerts").get("alerts", [])
        return {one["labels"]["alertname"] for one in alerts if one["state"] == "firing"}

    def found(self, query: str) -> list[dict[str, Any]]:
        """The series that a query finds now; none while the server starts. raises: HTTPError if it is refused"""
        return self._get("query?" + urllib.parse.urlencode({"query": query})).get("result", [])

    def _get(self, path: str) -> dict[str, Any]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/api/v1/{path}", timeout=30) as page:
                data: dict[str, Any] = json.load(page)["data"]
                return data
        except urllib.error.HTTPError:
            raise
        except OSError:
            return {}


@contextmanager
def scraping(program: str, past: str = "", promtool: str = "") -> Iterator[Prometheus]:
    """A server that ends with the block.

    program, promtool: paths; past: samples that it has when it starts, in the OpenMetrics text format
    """
    with tempfile.TemporaryDirectory(prefix="twinsieve-prometheus-") as folder:
        if past:
            samples = Path(folder, "past")
            samples.write_text(past)
            write = [promtool, "tsdb", "create-blocks-from", "openmetrics", samples, Path(folder, "data")]
            subprocess.run(write, stdout=subprocess.DEVNULL, check=True)
        server = Prometheus(program, Path(folder))
        try:
            yield server
        finally:
            server.process.kill()
            server.process.wait()
