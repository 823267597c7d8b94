"""Where an app begins with a topic, and that it notices another one in its place, on a real broker with either client."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from tests.broker.services import Row, Service, origins, settings_for, until_ended, wait_for
from tests.broker.worlds import until
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.mark import Mark, name_topic, read_mark
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.records import BrokerError, Partition

POSTS = [
    "今天武汉下雨了，大家出门记得带伞",
    "地铁二号线晚点十分钟，请换乘公交",
    "新店开张，凉皮和奶茶都打八折哦",
]
MORE = ["图书馆周末延长开放到晚上十点", "明天上午小区停水，请提前储水备用"]


def rows(texts: list[str]) -> list[Row]:
    return [(b"k", b'{"text": "%s"}' % text.encode(), []) for text in texts]


@pytest.fixture
def service(client: str, bootstrap: str, tmp_path: Path) -> Iterator[Service]:
    made = Service(settings_for(client, bootstrap, tmp_path, start="latest"))
    yield made
    made.end()


def mark_of(service: Service) -> Mark | None:
    at = Partition(service.settings.input.topics[0], 0)
    held = service.broker.admin().group_offsets(Names(service.settings.app).workers, stable=False).get(at)
    return read_mark(held.metadata) if held is not None else None


def test_what_the_topic_held_is_skipped_and_the_time_is_noted(service: Service) -> None:
    service.produce(*rows(POSTS))
    service.start()
    wait_for(lambda: (mark := mark_of(service)) is not None and not mark.fresh, service)
    service.produce(*rows(MORE))
    wait_for(lambda: len(service.read("out")) == 2, service)
    assert sorted(origins(service.read("out"))) == [3, 4]
    mark = mark_of(service)
    assert mark is not None
    assert abs(mark.since_ms - 1000 * time.time()) < 600_000


def test_a_partition_that_waited_begins_at_the_time_of_its_first_sight(service: Service) -> None:
    now_ms = int(1000 * time.time())
    service.produce(*rows(POSTS), timestamp_ms=now_ms - 7_200_000)
    service.produce(*rows(MORE), timestamp_ms=now_ms - 3_600_000)
    name = service.settings.input.topics[0]
    info = service.broker.admin().topics([name])[name]
    assert info is not None
    seen = Mark(name_topic(info), 0, 0, 1, now_ms - 3_500_000, fresh=True, placed=False)
    group = Names(service.settings.app).workers
    service.broker.admin().set_group_offsets(group, {Partition(name, 0): seen.committed()})
    service.start()
    wait_for(lambda: len(service.read("out")) == 2, service)
    assert sorted(origins(service.read("out"))) == [3, 4], "which producers may have held back"


def test_an_input_that_is_made_again_under_a_running_process_stops_it(service: Service) -> None:
    service.start()
    wait_for(lambda: mark_of(service) is not None, service)
    service.produce(*rows(POSTS))
    wait_for(lambda: len(service.read("out")) == 3, service)
    name, admin = service.settings.input.topics[0], service.broker.admin()
    operator = AdminClient({"bootstrap.servers": service.settings.kafka.bootstrap})
    operator.delete_topics([name])[name].result()
    until(lambda: admin.topics([name])[name] is None)

    def made() -> bool:
        try:
            admin.create_topic(NewTopic(name, 1))
        except BrokerError:
            return False
        return True

    until(made)
    service.produce(*rows([f"{text}。{number}" for number in range(3) for text in POSTS + MORE]))
    assert "created again" in str(until_ended(service))
    out = service.read("out")
    # What is read before the next look at topic ids may come out, of places alone that came out of neither topic.
    assert len(origins(out)) == len(out.offsets) >= 3
    assert min(sorted(origins(out))[3:], default=3) >= 3
