"""A message whose schema a registry does not tell costs itself, or holds its own partition; never the app.

Both roles on a clock that moves by hand, and a registry that is asked in the same thread.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.memory.broker import ManualClock, MemoryBroker, MemoryCluster
from tests.registry import posts
from tests.registry.own_registry import OwnRegistry
from tests.service.running import small
from tests.service.test_changed_settings import Deployment
from tests.service.turned import Turned
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.records import Messages, Partition
from twinsieve.pipeline.operate.topic_checks import create
from twinsieve.pipeline.registry import beside
from twinsieve.pipeline.service import build
from twinsieve.pipeline.service.build import make_scheme
from twinsieve.pipeline.wire.headers import origin_of, reason_of
from twinsieve.pipeline.worker import schema_holds
from twinsieve.pipeline.worker.waiting import WaitReason
from twinsieve.stages.judge.scheme import Scheme

PARTITIONS = 3
DENIED = (403, {"error_code": 40301, "message": "User is denied operation Read on Subject: other-value"})
BAD = (400, {"error_code": 400, "message": "HTTP 400 Bad Request"})
GONE = (410, "<html>gone</html>")
UNPROCESSABLE = (422, {"error_code": 42202, "message": "no valid id"})
FAILS = (500, {"error_code": 50001, "message": "error in the backend"})
BUSY = (429, {"error_code": 429, "message": "Too Many Requests"})
Says = Callable[[str], tuple[int, Any] | None]


@pytest.fixture(scope="module")
def scheme(own: OwnRegistry) -> Scheme:
    return make_scheme(small(".", posts.settings(own, "avro")))


class App:
    """One process of an app with three input partitions, whose messages are posts of Avro."""

    def __init__(self, registry: OwnRegistry, scheme: Scheme, folder: Path, **kafka: object) -> None:
        self.registry = registry
        self._post = posts.writer(registry, "avro")
        self.settings = small(folder, posts.settings(registry, "avro"), kafka={"idle_report": "1s", **kafka})
        clock = ManualClock()
        self.cluster = MemoryCluster(clock, session_timeout_s=6.0, transaction_timeout_s=8.0)
        self.cluster.create(NewTopic("posts", PARTITIONS))
        create(self.settings, MemoryBroker(self.cluster).admin())
        self._world = Deployment(self.cluster, clock, scheme)
        self._scheme = scheme
        self._written = 0
        self.turned = self.start()

    def start(self) -> Turned:
        """A process in place of that before."""
        self.turned = Turned(self.settings, self._scheme, world=self._world)
        return self.turned

    def value(self) -> bytes:
        """A message that no other is a copy of."""
        self._written += 1
        text = f"{self._written:x} is the text of a post and {self._written * 7919:x}"
        return self._post(orjson.dumps({"id": f"{self._written}", "text": text, "created_at": ""}))

    def value_of(self, name: str) -> bytes:
        """The same with a schema of this name."""
        fields = [{"name": field, "type": "string"} for field in posts.FIELDS]
        number = self.registry.add(f"{name}-value", {"type": "record", "name": name, "fields": fields})
        return framed(number)[:5] + self.value()[5:]

    def write(self, partition: int, *values: bytes) -> None:
        messages = Messages()
        for value in values:
            messages.add(b"k", value)
        self.cluster.write(Partition("posts", partition), messages)

    def write_posts(self, count: int) -> None:
        """So many good messages in each partition."""
        for partition in range(PARTITIONS):
            self.write(partition, *(self.value() for _ in range(count)))

    def pass_time(self, seconds: float) -> None:
        """In steps that are shorter than the time-outs of groups and transactions."""
        ends_s = self.turned.clock.monotonic_s() + seconds
        while self.turned.clock.monotonic_s() < ends_s:
            self.turned.turn(1)
            self.turned.clock.sleep(4.0)

    def out(self) -> dict[str, list[int]]:
        """Offsets that came out, in their order, by input partition."""
        found: dict[str, list[int]] = {}
        for entry in self._entries("posts.unique"):
            partition, _, offset = (dict(entry.headers)["twinsieve-origin"] or b"").decode().partition("@")
            found.setdefault(partition, []).append(int(offset))
        return found

    def count(self) -> int:
        return sum(map(len, self.out().values()))

    def dead(self) -> list[tuple[str, str]]:
        """Place and reason of each dead letter."""
        return [(f"{origin_of(e.headers)}", f"{reason_of(e.headers)}") for e in self._entries("posts.dead")]

    def _entries(self, topic: str) -> list[Any]:
        return [entry for log in self.cluster.topics[topic].logs for _, entry in log.visible()]

    def waiting(self) -> dict[str, float]:
        """Waiting partitions by reason."""
        page = self.turned.page()["waiting_partitions"]
        return {reason: count for (reason,), count in page.items() if count}


@pytest.fixture(autouse=True)
def _in_this_thread(own: OwnRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    start = partial(beside.AskedBeside, start=lambda work: work())
    monkeypatch.setattr(build, "AskedBeside", start)
    own.answer_again()


@pytest.fixture
def app(own: OwnRegistry, scheme: Scheme, tmp_path: Path) -> App:
    return App(own, scheme, tmp_path)


def framed(number: int) -> bytes:
    """Seven bytes with the id of a schema that the registry does not hold."""
    return b"\0" + number.to_bytes(4, "big") + b"\2a"


@pytest.mark.parametrize("says", [DENIED, BAD, GONE, UNPROCESSABLE, None])
def test_an_answer_about_one_id_costs_its_message_alone(says: tuple[int, Any] | None, app: App) -> None:
    """So too for an id beyond those of a registry, and for a GUID."""
    app.registry.says = lambda _: says
    app.write_posts(5)
    app.turned.run_until(lambda: app.count() == 15, 60)
    app.write(0, framed(777), framed(0xFFFFFFFF), b"\1" + bytes(16) + b"\2a")
    app.write_posts(5)
    app.turned.run_until(lambda: app.count() == 30, 60)
    assert app.dead() == [(f"posts[0]@{offset}", "unknown_schema") for offset in (5, 6, 7)]
    assert app.waiting() == {}


def test_a_new_app_begins_though_its_first_message_is_of_an_id_that_is_refused(app: App) -> None:
    app.registry.says = lambda _: DENIED
    app.write(0, framed(777))
    app.turned.run_until(lambda: len(app.dead()) == 1, 60)
    assert app.dead() == [("posts[0]@0", "unknown_schema")]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422, 429, 503])
def test_while_the_registry_itself_answers_nothing_its_codes_say_nothing_about_an_id(
    status: int, app: App
) -> None:
    """Known schemas go on, and each partition up to its first message of another one; for an hour."""
    app.write_posts(5)
    app.turned.run_until(lambda: app.count() == 15, 60)
    app.pass_time(64)  # an answer counts for a minute
    app.registry.status = status
    app.write_posts(3)
    app.write(1, app.value_of("Other"))
    app.write_posts(3)
    app.turned.run_until(lambda: app.count() == 15 + 9 + 6, 60)
    app.pass_time(3_600 if status == 503 else 60)
    assert app.waiting() == {WaitReason.SCHEMA: 1}
    assert app.turned.ready
    assert "schema registry: " in app.turned.worker.remark
    assert app.out()["posts[1]"] == [*range(8)]
    app.registry.status = None
    began_s = app.turned.clock.monotonic_s()
    app.turned.run_until(lambda: app.count() == 15 + 18 + 1, 60)
    assert app.turned.clock.monotonic_s() - began_s < 60
    assert app.out()["posts[1]"] == [*range(12)]
    assert app.dead() == []
    assert app.waiting() == {}


def test_a_registry_that_is_away_at_a_start_holds_every_message(app: App) -> None:
    app.registry.is_dead = True
    app.write_posts(5)
    app.pass_time(120)
    assert (app.count(), app.dead()) == (0, [])
    assert app.waiting() == {WaitReason.SCHEMA: PARTITIONS}
    app.registry.is_dead = False
    app.turned.run_until(lambda: app.count() == 15, 60)


@pytest.mark.parametrize("says", [FAILS, BUSY])
def test_an_id_that_is_not_answered_while_others_are_holds_its_partition_for_half_a_minute(
    says: tuple[int, Any], app: App
) -> None:
    app.registry.says = lambda _: says
    app.write(0, framed(777))
    app.write_posts(5)
    app.turned.run(schema_holds.PATIENCE_S - 5)
    assert (sorted(app.out()), app.dead()) == (["posts[1]", "posts[2]"], [])
    assert app.waiting() == {WaitReason.SCHEMA: 1}
    app.turned.run_until(lambda: app.count() == 15, 20)
    assert app.dead() == [("posts[0]@0", "schema_unanswered")]
    assert app.waiting() == {}


def test_what_waits_behind_an_id_has_waited_with_it(own: OwnRegistry, scheme: Scheme, tmp_path: Path) -> None:
    """A partition full of ids that are not answered is passed at once, and not poll by poll."""
    app = App(own, scheme, tmp_path, poll_messages=10)
    own.says = lambda _: FAILS
    for number in range(150):
        app.write(0, framed(1_000 + number), app.value())
    app.write_posts(1)
    app.turned.run_until(lambda: app.count() == 150 + PARTITIONS, schema_holds.PATIENCE_S + 60)
    assert app.out()["posts[0]"] == [*range(1, 300, 2), 300]
    assert {reason for _, reason in app.dead()} == {"schema_unanswered"}
    assert len(app.dead()) == 150


def test_a_message_that_comes_while_another_waits_has_its_own_time(app: App) -> None:
    app.registry.says = lambda _: FAILS
    app.write(0, framed(777))
    app.turned.run(schema_holds.PATIENCE_S / 2)
    app.write(0, framed(778))
    app.turned.run_until(lambda: len(app.dead()) == 1, 30)
    app.registry.says = lambda _: None
    app.turned.run_until(lambda: len(app.dead()) == 2, 30)
    assert app.dead() == [("posts[0]@0", "schema_unanswered"), ("posts[0]@1", "unknown_schema")]


def test_a_schema_that_is_known_later_is_asked_for_again(app: App) -> None:
    number = app.registry.add("numbers-value", {"type": "int"}) + 1
    app.write(0, framed(number))
    app.turned.run_until(lambda: len(app.dead()) == 1, 60)
    later = app.value_of("Later")
    assert later[:5] == framed(number)[:5]
    app.pass_time(60)
    app.write(0, later)
    app.turned.run_until(lambda: app.count() == 1, 60)


def test_a_partition_that_moves_to_another_process_is_held_there_too(app: App) -> None:
    app.registry.says = lambda _: FAILS
    app.write(0, framed(777))
    app.write_posts(5)
    app.turned.run(20)
    app.start()
    app.turned.run(20)
    assert app.dead() == []
    app.turned.run_until(lambda: app.count() == 15, 60)
    assert app.dead() == [("posts[0]@0", "schema_unanswered")]


def test_what_waits_behind_an_id_is_asked_for_before_it_is_given_up(
    own: OwnRegistry, scheme: Scheme, tmp_path: Path
) -> None:
    """A poll ends before it, so nobody asked for its schema while the first one waited."""
    app = App(own, scheme, tmp_path, poll_messages=10)
    later = app.value_of("Behind")
    own.says = lambda path: None if path.endswith(f"/{int.from_bytes(later[1:5], 'big')}") else FAILS
    app.write(0, framed(777), *(app.value() for _ in range(20)), later, app.value())
    app.turned.run_until(lambda: app.count() == 22, schema_holds.PATIENCE_S + 20)
    assert app.dead() == [("posts[0]@0", "schema_unanswered")]
