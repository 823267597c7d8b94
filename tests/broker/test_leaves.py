"""A process that ends by an error leaves its groups on a real broker too; its members' sessions would last on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.broker.services import Process, Service, value_of, written_settings
from tests.broker.stranger import add_partitions, produce
from tests.broker.worlds import DEADLINE_S, until
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.ports import Broker
from twinsieve.pipeline.commands.kafka.connect import connect_by_settings
from twinsieve.pipeline.settings.model import Settings

COUNT = 4


class DefectError(Exception):
    """What a defect raises."""


class _Defective:
    """A broker client whose transactions fail once `on` is set, as if by a defect."""

    def __init__(self, broker: Broker, on: threading.Event) -> None:
        self._broker, self._on = broker, on

    def __getattr__(self, name: str) -> Any:
        return getattr(self._broker, name)

    def transactor(self, *args: Any) -> Any:
        made = self._broker.transactor(*args)
        send_offsets = made.send_offsets

        def fails(*args: Any) -> None:
            if self._on.is_set():
                raise DefectError
            send_offsets(*args)

        made.send_offsets = fails  # type: ignore[method-assign]
        return made


@pytest.fixture
def first(bootstrap: str, tmp_path: Path) -> Iterator[Service]:
    """The healthy process, and the topics. No session ends before the test does."""
    written = written_settings(bootstrap, tmp_path)
    written["kafka"]["session_timeout"] = f"{2 * DEADLINE_S:g}s"
    made = Service(Settings.model_validate(written))
    add_partitions(bootstrap, made.settings.input.topics[0], COUNT)
    made.start()
    yield made
    made.end()


def test_another_process_gets_the_partitions_of_one_that_a_defect_ends(first: Service) -> None:
    defect = threading.Event()
    second = Process(first.settings, lambda at: _Defective(connect_by_settings(at), defect), member="two")  # type: ignore[arg-type,return-value]
    second.start()
    workers, admin = Names(first.settings.app).workers, first.broker.admin()

    def shares() -> list[int]:
        return sorted(len(member.partitions) for member in admin.members(workers).values())

    until(lambda: shares() == [COUNT // 2, COUNT // 2])
    defect.set()
    _post_to_each(first, "before")
    second.join()
    assert isinstance(second.error, DefectError)
    _post_to_each(first, "after")
    until(lambda: first.count("out") == 2 * COUNT, lambda: f"{first.count('out')} came out")
    assert shares() == [COUNT]


def _post_to_each(service: Service, text: str) -> None:
    """One message without an equal in each partition of the input."""
    bootstrap, topic = service.settings.kafka.bootstrap, service.settings.input.topics[0]
    for number in range(COUNT):
        produce(bootstrap, topic, value_of(f"{text} 今天 {number} 武汉下雨了"), partition=number)
