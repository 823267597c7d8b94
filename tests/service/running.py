"""A service that runs: one process in a thread of this one, on the memory broker."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.memory.broker import ManualClock, MemoryBroker, MemoryCluster
from twinsieve.pipeline.service.run import no_pages, run_service
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.status_pages.server import watched

DEADLINE_S = 300.0
_QUICKER = 20


def small(folder: Path | str, source: Mapping[str, object], **sections: object) -> Settings:
    """Settings of the app `t` with small windows. source: of its input; sections: more of them"""
    return Settings.model_validate(
        {
            "app": "t",
            "input": {"topics": ["posts"], **source},
            "near": {"window": {"messages": 100}},
            "exact": {"window": {"messages": 100}},
            "kafka": {"idle_report": "50ms"},
            "topics": {"auto_create": True},
            "state": {"dir": str(folder)},
            "http": {"listen": "none"},
            **sections,
        }
    )


class Service:
    """One process in a thread; what it raised is kept."""

    def __init__(
        self,
        settings: Settings,
        cluster: MemoryCluster,
        broker: Callable[[MemoryCluster], MemoryBroker] = MemoryBroker,
        **options: object,
    ) -> None:
        self._broker = broker
        self.stop = threading.Event()
        self.error: Exception | None = None
        self._settings = settings
        self._cluster = cluster
        self._options = options
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            run_service(
                self._settings,
                connect=lambda _: self._broker(self._cluster),
                pages=no_pages if self._settings.http.pages is None else watched,
                stop=self.stop,
                **self._options,  # type: ignore[arg-type]
            )
        except Exception as error:  # noqa: BLE001 - the test looks at it
            self.error = error

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    def end(self) -> None:
        """As SIGTERM; it ends well."""
        self.stop.set()
        self.join()
        assert self.error is None

    def join(self) -> None:
        self._thread.join(DEADLINE_S)
        assert not self._thread.is_alive(), "the service does not stop"


class QuickClock(ManualClock):
    """A clock for threads. One that is moved on at once runs through minutes while another thread waits for a core."""

    def sleep(self, seconds: float) -> None:
        """Wait for a part of this time."""
        time.sleep(seconds / _QUICKER)
        super().sleep(seconds)


def patient_cluster() -> MemoryCluster:
    """A broker for a `Service`. It waits a minute of its clock for each member and transaction."""
    return MemoryCluster(QuickClock(), session_timeout_s=60.0, transaction_timeout_s=60.0)


def came_out(cluster: MemoryCluster, *topics: str) -> int:
    """Messages in these topics, which need not be there yet."""
    return sum(
        len(log.visible()) for name in topics if name in cluster.topics for log in cluster.topics[name].logs
    )


def wait_for(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < deadline, f"not within {DEADLINE_S} s: {what}"
        time.sleep(0.01)
