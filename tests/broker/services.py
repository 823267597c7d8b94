"""The whole service in a thread, on a real broker, with topics and state of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.broker.stranger import delete_topics, producer
from tests.broker.worlds import DEADLINE_S, fresh, read, until, until_done
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.ports import Broker
from twinsieve.pipeline.broker.records import AbortableError, Partition, Records
from twinsieve.pipeline.commands.kafka.connect import connect_by_settings
from twinsieve.pipeline.kafka.broker import KafkaBroker
from twinsieve.pipeline.operate.topic_checks import create
from twinsieve.pipeline.service.run import run_service
from twinsieve.pipeline.settings.model import Settings

Row = tuple[bytes | None, bytes | None, list[tuple[str, str | bytes | None]]]
"""Key, value and headers."""

LARGE = 16 << 20
POSTS = (
    "今天武汉下雨了，大家出门记得带伞",
    "地铁二号线晚点十分钟，请换乘公交",
    "新店开张，凉皮和奶茶都打八折哦",
    "图书馆周末延长开放到晚上十点",
    "明天上午小区停水，请提前储水备用",
)
"""No two of them are alike."""


def written_settings(bootstrap: str, folder: Path, **source: object) -> dict[str, Any]:
    """As they stand in a file; nobody else uses these topics."""
    app = fresh("app")
    return {
        "app": app,
        "input": {"topics": [f"{app}-in"], "time_field": "none", **source},
        "output": {"topic": f"{app}-out", "duplicates": f"{app}-dup", "dead_letter": f"{app}-dead"},
        "near": {"window": {"messages": 1_000}},
        "exact": {"window": {"messages": 1_000}},
        "kafka": {"bootstrap": bootstrap, "idle_report": "100ms"},
        "state": {"dir": str(folder)},
        "http": {"listen": "none"},
    }


def value_of(text: str) -> bytes:
    """A message with this text."""
    return b'{"text": "%s"}' % text.encode()


def settings_for(bootstrap: str, folder: Path, **source: object) -> Settings:
    return Settings.model_validate(written_settings(bootstrap, folder, **source))


class Process:
    """One process in a thread, and the error that ended it.

    connect: makes its broker; options: further arguments of `run_service`
    """

    def __init__(
        self, settings: Settings, connect: Callable[[Settings], Broker] = connect_by_settings, **options: Any
    ) -> None:
        self.settings = settings
        self.error: Exception | None = None
        self._connect = connect
        self._options = options
        self._stop = threading.Event()
        self._thread = threading.Thread()

    def _run(self) -> None:
        try:
            run_service(self.settings, self._connect, stop=self._stop, **self._options)
        except Exception as error:  # noqa: BLE001 - the test in the other thread fails with it
            self.error = error

    def start(self) -> None:
        """It begins; another one may have been stopped before."""
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Wait for its end."""
        self._thread.join(DEADLINE_S)
        assert not self._thread.is_alive(), "the process does not stop"

    def stop(self) -> None:
        """As SIGTERM."""
        self._stop.set()
        self.join()


class Service(Process):
    """All topics of these settings, and one process in a thread."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, member="one")
        self.broker: Broker = KafkaBroker(settings.kafka)
        self._reader = self.broker.reader()
        admin = self.broker.admin()
        admin.create_topic(NewTopic(settings.input.topics[0], 1, 1, {"max.message.bytes": str(LARGE)}))
        create(settings, admin)

    def produce(self, *rows: Row, topic: str = "", timestamp_ms: int = 0) -> None:
        """Write to partition 0 of the input, or of `topic`; with timestamp 0 now, with -1 without any."""
        sends = producer(self.settings.kafka.bootstrap, message_max_bytes=LARGE)
        for key, value, headers in rows:
            sends.produce(
                topic or self.settings.input.topics[0], value, key, 0, timestamp=timestamp_ms, headers=headers
            )
        assert sends.flush(60) == 0

    def post(self, *texts: str, topic: str = "", timestamp_ms: int = 0) -> None:
        """As `produce`, messages with these texts and one key."""
        rows: list[Row] = [(b"k", value_of(text), []) for text in texts]
        self.produce(*rows, topic=topic, timestamp_ms=timestamp_ms)

    def make_input_again(self) -> None:
        """Somebody deletes the input and makes another topic of its name."""
        name, admin = self.settings.input.topics[0], self.broker.admin()
        delete_topics(self.settings.kafka.bootstrap, name)
        until(lambda: admin.topics([name])[name] is None)
        until_done(lambda: admin.create_topic(NewTopic(name, 1)))

    def end(self) -> None:
        """Stop and disconnect."""
        if self._thread.ident is not None:
            self.stop()
        self.broker.close()

    def count(self, *kinds: str) -> int:
        """Messages that `read` finds of these kinds."""
        return sum(len(self.read(kind)) for kind in kinds)

    def read(self, kind: str) -> Records:
        """All of the output (`out`), the duplicates (`dup`) or the dead letters (`dead`) so far."""
        output = self.settings.output
        topic = {"out": output.topic, "dup": output.duplicates, "dead": output.dead_letter}[kind]
        assert topic is not None
        at = Partition(topic, 0)
        self._reader.assign([at])
        self._reader.seek(at, 0)

        def end() -> dict[Partition, int]:
            try:
                return self._reader.end_offsets([at])
            except AbortableError:
                return {}  # a busy machine's broker may not answer at once

        return read(self._reader, until(end)[at], at)


def origins(records: Records) -> dict[int, int]:
    """Row by input offset."""
    found = {}
    for row, headers in enumerate(records.headers):
        where = dict(headers)["twinsieve-origin"]
        assert where is not None
        found[int(where.decode().partition("@")[2])] = row
    return found


def wait_for(holds: Callable[[], bool], service: Service) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        assert service.error is None, f"stopped: {service.error!r}"
        assert time.monotonic() < deadline, "not all came out in time"
        time.sleep(0.2)
