"""Messages whose schemas a registry holds, on a real broker: what it does not tell stops no other message."""

from __future__ import annotations

import time
from collections.abc import Iterator

import orjson
import pytest

from tests.broker.deployment import Deployment, Watcher, in_thread
from tests.broker.load import PARTITIONS
from tests.broker.worlds import KafkaWorld, fresh, until, write
from tests.registry import posts
from tests.registry.own_registry import OwnRegistry
from twinsieve.pipeline.broker.records import Partition

DENIED = (403, {"error_code": 40301, "message": "User is denied operation Read on Subject: other-value"})
BAD = (400, {"error_code": 400, "message": "HTTP 400 Bad Request"})
STRANGE = b"\0\0\0\0\7\2a"


class App:
    """Two processes, four partitions, and messages of Avro."""

    def __init__(self, bootstrap: str, registry: OwnRegistry) -> None:
        self.registry = registry
        self._encode = posts.writer(registry, "avro")
        source = {**posts.settings(registry, "avro"), "time_field": "none"}
        self.deployment = Deployment(bootstrap, fresh("registry"), source=source)
        self.deployment.create_topics()
        self.watcher = Watcher(bootstrap, self.deployment.outputs)
        in_thread(self.watcher.run)
        self.world = KafkaWorld(bootstrap)
        self._broker = self.world.broker()
        self._written = 0
        for member in ("a", "b"):
            self.deployment.start(member)

    def write(self, partition: int, *values: bytes) -> None:
        write(self._broker, Partition(f"{self.deployment.app}.in", partition), values)

    def write_posts(self, count: int, encode: bytes = b"") -> None:
        """So many messages in each partition, none a copy of another. encode: head of another schema"""
        for partition in range(PARTITIONS):
            values = []
            for _ in range(count):
                self._written += 1
                text = f"{self._written:x} is the text of a post and {self._written * 7919:x}"
                value = self._encode(orjson.dumps({"id": f"{self._written}", "text": text, "created_at": ""}))
                values.append(encode + value[len(encode) :])
            self.write(partition, *values)

    def comes_out(self, count: int) -> None:
        """Wait until this number of messages has come out."""
        logs = self.deployment.log
        until(
            lambda: len(self.watcher.seen) == count,
            lambda: f"{len(self.watcher.seen)} of {count}\n{logs('a').read_text()[-2000:]}",
        )

    def dead(self) -> list[tuple[int, int]]:
        """Places of the dead letters."""
        topic = self.deployment.outputs[2]
        return [place for place, seen in self.watcher.seen.items() if seen[0].topic == topic]

    def close(self) -> None:
        self.watcher.stop.set()
        self.deployment.close()
        self.world.close()


@pytest.fixture
def app(bootstrap: str) -> Iterator[App]:
    with OwnRegistry() as registry:
        made = App(bootstrap, registry)
        yield made
        made.close()


@pytest.mark.parametrize("says", [DENIED, BAD])
def test_an_id_that_is_refused_stops_no_partition(says: tuple[int, object], app: App) -> None:
    app.write_posts(50)
    app.comes_out(4 * 50)
    app.registry.says = lambda _: says
    app.write(0, STRANGE)
    app.write_posts(100)
    app.comes_out(4 * 150 + 1)
    assert app.dead() == [(0, 50)]
    assert app.watcher.disorder == 0


@pytest.mark.minutes
def test_a_registry_that_is_dead_for_three_minutes_costs_no_message(app: App) -> None:
    """Known schemas go on meanwhile."""
    fields = [{"name": name, "type": "string"} for name in posts.FIELDS]
    app.write_posts(50)
    app.comes_out(4 * 50)
    number = app.registry.add("other-value", {"type": "record", "name": "Other", "fields": fields})
    app.registry.is_dead = True
    app.write_posts(50)
    app.comes_out(4 * 100)
    app.write_posts(10, b"\0" + number.to_bytes(4, "big"))
    time.sleep(180)
    assert len(app.watcher.seen) == 4 * 100
    app.registry.is_dead = False
    app.comes_out(4 * 110)
    assert app.dead() == []
    assert app.watcher.disorder == 0
