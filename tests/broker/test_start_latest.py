"""Where an app begins with a topic, and that it notices another one in its place, on a real broker with either client."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.broker.services import POSTS, Service, origins, until_ended, wait_for
from twinsieve.pipeline.broker.mark import Mark, name_topic, read_mark
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.records import Partition


@pytest.fixture
def service(serving: Callable[..., Service], bootstrap: str) -> Service:
    return serving(bootstrap, start="latest")


def mark_of(service: Service) -> Mark | None:
    at = Partition(service.settings.input.topics[0], 0)
    held = service.broker.admin().group_offsets(Names(service.settings.app).workers, stable=False).get(at)
    return read_mark(held.metadata) if held is not None else None


def test_what_the_topic_held_is_skipped_and_the_time_is_noted(service: Service) -> None:
    service.post(*POSTS[:3])
    service.start()
    wait_for(lambda: (mark := mark_of(service)) is not None and not mark.fresh, service)
    service.post(*POSTS[3:])
    wait_for(lambda: service.count("out") == 2, service)
    assert sorted(origins(service.read("out"))) == [3, 4]
    mark = mark_of(service)
    assert mark is not None
    assert abs(mark.since_ms - 1000 * time.time()) < 600_000


def test_a_partition_that_waited_begins_at_the_time_of_its_first_sight(service: Service) -> None:
    now_ms = int(1000 * time.time())
    service.post(*POSTS[:3], timestamp_ms=now_ms - 7_200_000)
    service.post(*POSTS[3:], timestamp_ms=now_ms - 3_600_000)
    name = service.settings.input.topics[0]
    info = service.broker.admin().topics([name])[name]
    assert info is not None
    seen = Mark(name_topic(info), 0, 0, 1, now_ms - 3_500_000, fresh=True, placed=False)
    group = Names(service.settings.app).workers
    service.broker.admin().set_group_offsets(group, {Partition(name, 0): seen.committed()})
    service.start()
    wait_for(lambda: service.count("out") == 2, service)
    assert sorted(origins(service.read("out"))) == [3, 4], "which producers may have held back"


def test_an_input_that_is_made_again_under_a_running_process_stops_it(service: Service) -> None:
    service.start()
    wait_for(lambda: mark_of(service) is not None, service)
    service.post(*POSTS[:3])
    wait_for(lambda: service.count("out") == 3, service)
    service.make_input_again()
    service.post(*(f"{text}。{number}" for number in range(3) for text in POSTS))
    assert "created again" in str(until_ended(service))
    out = service.read("out")
    # What is read before the next look at topic ids may come out, of places alone that came out of neither topic.
    assert len(origins(out)) == len(out.offsets) >= 3
    assert min(sorted(origins(out))[3:], default=3) >= 3
