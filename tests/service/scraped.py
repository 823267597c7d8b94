"""A running service whose pages are read, and whose clock moves by hand."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from http.client import HTTPException

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from tests.memory.broker import ManualClock, MemoryBroker, MemoryCluster
from tests.service.running import Service, wait_for
from twinsieve.pipeline.service import run
from twinsieve.pipeline.service.http import HealthServer
from twinsieve.pipeline.settings.model import Settings

Series = dict[tuple[str, ...], float]
"""Values by the values of their labels."""


def series(families: Iterable[Metric]) -> dict[str, Series]:
    """Series by name, without the program's own."""
    found: dict[str, Series] = {}
    for family in families:
        for sample in family.samples:
            labels = tuple(sample.labels[name] for name in sorted(sample.labels))
            found.setdefault(sample.name.removeprefix("twinsieve_"), {})[labels] = sample.value
    return found


def listening(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Ports of the services that are started from now on, as each begins to listen."""
    ports: list[int] = []

    class Listening(HealthServer):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments)  # type: ignore[arg-type]
            ports.append(self.port)

    monkeypatch.setattr(run, "HealthServer", Listening)
    return ports


class Pages:
    """The pages of one process."""

    def __init__(self, port: int) -> None:
        self._port = port

    def page(self, path: str) -> tuple[int, str]:
        """Status and text; 0 where nobody listens, or where the process ends within its answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}{path}", timeout=10) as answer:
                return int(answer.status), answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except (OSError, HTTPException):
            return 0, ""

    def status(self, path: str) -> int:
        return self.page(path)[0]

    def is_ready(self) -> bool:
        return self.status("/readyz") == 200

    def metrics(self) -> dict[str, Series]:
        """Values by name (without the program's) and the values of the labels."""
        return series(text_string_to_metric_families(self.page("/metrics")[1]))

    def total(self, name: str) -> float | None:
        """Sum of the series of a metric; None while the process does not say, or has none."""
        found = self.metrics().get(name)
        return None if found is None else sum(found.values())


class Scraped(Pages):
    """A service with a clock that stands still, and its pages."""

    def __init__(
        self,
        settings: Settings,
        cluster: MemoryCluster,
        ports: list[int],
        broker: Callable[[MemoryCluster], MemoryBroker] = MemoryBroker,
        **options: object,
    ) -> None:
        known = len(ports)
        self.clock = ManualClock()
        self.service = Service(settings, cluster, broker, clock=self.clock, **options)
        wait_for(lambda: len(ports) > known or self.service.error is not None, "it listens")
        assert self.service.error is None
        super().__init__(ports[-1])

    def stop(self) -> None:
        """End the service; one that waits for answers gives up after some time, which does not pass by itself."""
        self.service.stop.set()

        def ended() -> bool:
            self.clock.sleep(1.0)
            return not self.service.running

        wait_for(ended, "the service ends")

    def tells(self, **wanted: float | dict[tuple[str, ...], float]) -> None:
        """Wait until the metrics of these names are exactly these."""
        expected = {name: held if isinstance(held, dict) else {(): held} for name, held in wanted.items()}

        def now() -> dict[str, dict[tuple[str, ...], float] | None]:
            metrics = self.metrics()
            return {name: metrics.get(name) for name in expected}

        try:
            wait_for(lambda: now() == expected, "the metrics")
        except AssertionError:
            assert now() == expected
