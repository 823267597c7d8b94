"""What keeps messages from coming out is in the gauges, on the pages and in `twinsieve status`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from tests.broker.server import free_ports
from tests.broker.services import Process, settings_for, value_of
from tests.broker.stranger import delete_topics, produce
from tests.broker.worlds import read_all, until, until_done
from tests.service.scraped import Pages, Series
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.ports import Broker
from twinsieve.pipeline.broker.records import AbortableError, Partition
from twinsieve.pipeline.operate.status import status_of
from twinsieve.pipeline.operate.topic_checks import create
from twinsieve.pipeline.service.run import SystemClock
from twinsieve.pipeline.settings.model import HttpSettings, Settings

_TOO_LARGE = 48 << 20


class Member(Pages):
    """One process in a thread, with pages."""

    def __init__(self, settings: Settings, name: str, role: str = "both") -> None:
        (port,) = free_ports(1)
        super().__init__(port)
        http = HttpSettings.model_validate({"listen": f"127.0.0.1:{port}"})
        self.process = Process(settings.model_copy(update={"http": http}), member=name, role=role)
        self.process.start()

    def page(self, path: str) -> tuple[int, str]:
        assert self.process.error is None, f"stopped: {self.process.error!r}"
        return super().page(path)


class App:
    """An app with topics of its own and several processes; every partition has as many messages."""

    def __init__(self, settings: Settings, broker: Broker, partitions: int) -> None:
        self.settings = settings
        self.source, self.output = settings.input.topics[0], settings.output.topic
        self.partitions = partitions
        self.members: list[Member] = []
        self.broker = broker
        self.admin = self.broker.admin()
        self.written = 0
        self.make_topic(self.source)
        create(settings, self.admin)

    def make_topic(self, name: str) -> None:
        self.admin.create_topic(NewTopic(name, self.partitions))

    def start(self, name: str, role: str = "both") -> Member:
        self.members.append(Member(self.settings, name, role))
        return self.members[-1]

    def write(self, count: int) -> None:
        """As many messages without a twin to each partition."""
        numbers = range(self.written, self.written + count)
        for at in range(self.partitions):
            texts = [" ".join(f"{number:x}-{at}-{word * 7919:x}" for word in range(12)) for number in numbers]
            produce(self.settings.kafka.bootstrap, self.source, *map(value_of, texts), partition=at, key=b"k")
        self.written += count

    def out(self) -> list[int]:
        """Messages that came out of each input partition, by the topics alone."""
        counts = [0] * self.partitions
        for number in range(self.partitions):
            for topic in (self.output, self.settings.output.duplicates):
                for headers in read_all(self.broker, Partition(str(topic), number)).headers:
                    where = (dict(headers)["twinsieve-origin"] or b"").decode()
                    counts[int(where.partition("[")[2].partition("]")[0])] += 1
        return counts

    def until_out(self, *wanted: int) -> None:
        seen: list[int] = []

        def is_out() -> bool:
            with suppress(AbortableError):  # a busy machine's broker may not answer at once
                seen[:] = self.out()
            return seen == list(wanted)

        until(is_out, lambda: f"{seen}, not {wanted}")

    def problems(self) -> list[str]:
        return status_of(self.settings, self.broker, SystemClock()).problems(None)

    def close(self) -> None:
        for member in self.members:
            member.process.stop()


@pytest.fixture
def app_on(bootstrap: str, broker: Broker, tmp_path: Path) -> Iterator[Callable[..., App]]:
    made: list[App] = []

    def make(partitions: int, source: dict[str, object], **kafka: object) -> App:
        settings = settings_for(bootstrap, tmp_path, **source)
        kafka = settings.kafka.model_dump(by_alias=True) | kafka
        settings = settings.model_copy(update={"kafka": type(settings.kafka).model_validate(kafka)})
        made.append(App(settings, broker, partitions))
        return made[-1]

    yield make
    for each in made:
        each.close()


def waits(page: dict[str, Series]) -> set[str]:
    """Reasons for which partitions wait."""
    return {reason for (reason,), count in page.get("waiting_partitions", {}).items() if count}


def beyond(values: Series, least: float) -> Sequence[int]:
    """Partitions whose value is that or more."""
    return [int(number) for (number, _), value in sorted(values.items()) if value >= least]


def test_an_output_that_is_deleted_is_seen_on_every_process(
    app_on: Callable[..., App], bootstrap: str
) -> None:
    app = app_on(2, {})
    worker, index = app.start("one"), app.start("two", "index")
    until(lambda: worker.is_ready() and index.is_ready())
    app.write(3)
    app.until_out(3, 3)
    delete_topics(bootstrap, app.output)
    until(lambda: app.admin.topics([app.output])[app.output] is None)
    app.write(5)

    def seen() -> bool:
        pages = [worker.metrics(), index.metrics()]
        told = all(
            beyond(page.get("lag_messages", {}), 5.0) == [0, 1]
            and beyond(page.get("oldest_waiting_seconds", {}), 1.0) == [0, 1]
            for page in pages
        )
        retries = pages[0]["role_phase"]["retrying", "worker"] == 1.0
        status, text = worker.page("/readyz")
        return told and retries and bool(waits(pages[0])) and status == 503 and app.output in text

    until(seen, lambda: f"{worker.page('/readyz')}, {worker.metrics()}")
    assert any("none came out" in line for line in app.problems())
    until_done(lambda: app.make_topic(app.output))
    until(lambda: read_all(app.broker, Partition(app.output, 0)) is not None)
    for at in range(2):
        at_output = Partition(app.output, at)
        until(lambda at_output=at_output: len(read_all(app.broker, at_output)) == 5)  # type: ignore[misc]
    until(lambda: not waits(worker.metrics()) and worker.is_ready())
    until(lambda: not beyond(index.metrics()["oldest_waiting_seconds"], 0.1))
    assert app.problems() == []


@pytest.mark.parametrize("mode", ["hold", "skip"])
def test_a_batch_that_cannot_be_read_holds_its_own_partition_on_every_process(
    app_on: Callable[..., App], bootstrap: str, mode: str
) -> None:
    app = app_on(3, {"on_unreadable_batch": mode}, max_unpacked_bytes="8MiB", message_bytes="1MiB")
    bad = 2
    for name in ("one", "two", "three"):
        app.start(name)
    until(lambda: all(map(Member.is_ready, app.members)))
    app.write(3)
    app.until_out(3, 3, 3)
    produce(
        bootstrap,
        app.source,
        bytes(_TOO_LARGE),
        partition=bad,
        compression_type="zstd",
        message_max_bytes=2 * _TOO_LARGE,
    )
    app.write(5)
    if mode == "skip":
        app.until_out(8, 8, 8)

        def skipped() -> float:
            pages = [member.metrics()["skipped_messages_total"] for member in app.members]
            return sum(page["unreadable_batch",] for page in pages)

        until(lambda: skipped() == 1)
        return
    app.until_out(8, 8, 3)
    place = f"{app.source}[{bad}]@3: cannot be decoded"

    def holder() -> Member | None:
        for member in app.members:
            if waits(member.metrics()) == {"unreadable_batch"} and place in member.page("/readyz")[1]:
                return member
        return None

    first = until(holder)
    until(lambda: beyond(first.metrics().get("lag_messages", {}), 5.0) == [bad])
    assert any(f"{app.source}[{bad}]: messages wait" in line for line in app.problems())
    first.process.stop()
    app.members.remove(first)
    app.write(2)
    app.until_out(10, 10, 3)
    assert until(holder) is not first
    assert all(map(Member.is_ready, app.members))
