from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.broker.fixtures import _shared, bootstrap, mortal_broker, secure_broker, three_brokers
from tests.broker.harmed import HarmedKafka, HarmedMemory, HarmedWorld
from tests.broker.services import Service, settings_for
from tests.broker.worlds import Connect, KafkaWorld, MemoryWorld, World
from twinsieve.pipeline.broker.ports import Broker

__all__ = ["_shared", "bootstrap", "mortal_broker", "secure_broker", "three_brokers"]


@pytest.fixture(params=["memory", pytest.param("kafka", marks=pytest.mark.needs("broker"))])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """Every implementation of the port in turn."""
    made: World
    if request.param == "memory":
        made = MemoryWorld()
    else:
        made = KafkaWorld(request.getfixturevalue("bootstrap"))
    yield made
    made.close()


@pytest.fixture(params=["memory", pytest.param("kafka", marks=pytest.mark.needs("own broker"))])
def harmed(request: pytest.FixtureRequest) -> Iterator[HarmedWorld]:
    """Every implementation of the port in turn, on a cluster that the test may harm."""
    made: HarmedWorld
    if request.param == "memory":
        made = HarmedMemory()
    else:
        made = HarmedKafka(request.getfixturevalue("three_brokers"))
    yield made
    made.close()


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Makes brokers, each as one more process sees it; what is given beside an address are settings of `kafka`."""
    worlds: list[KafkaWorld] = []

    def make(bootstrap: str, **settings: object) -> Broker:
        worlds.append(KafkaWorld(bootstrap, **settings))
        return worlds[-1].broker()

    yield make
    for each in worlds:
        each.close()


@pytest.fixture
def broker(connect: Connect, bootstrap: str) -> Broker:
    """A broker with the usual settings."""
    return connect(bootstrap)


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Callable[..., Service]]:
    """Makes services on a broker, each with an app of its own; what is given beside its address are settings of the
    section `input`."""
    made: list[Service] = []

    def make(bootstrap: str, **source: object) -> Service:
        made.append(Service(settings_for(bootstrap, tmp_path, **source)))
        return made[-1]

    yield make
    for each in made:
        each.end()


@pytest.fixture
def service(serving: Callable[..., Service], bootstrap: str) -> Service:
    """A service with the usual settings."""
    return serving(bootstrap)


_LEFT_SOCKETS = (
    # kafka-python leaves the sockets of failed connections to the garbage collector.
    "ignore::ResourceWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            for each in _LEFT_SOCKETS:
                item.add_marker(pytest.mark.filterwarnings(each))


@pytest.fixture(scope="module", autouse=True)
def _collect_left_sockets() -> Iterator[None]:
    """They are collected here, and not in the middle of somebody else's test."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
