from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.broker.fixtures import _shared, bootstrap, mortal_broker, secure_broker, three_brokers
from tests.broker.harmed import HarmedKafka, HarmedMemory, HarmedWorld
from tests.broker.services import Service, settings_for
from tests.broker.worlds import KafkaWorld, MemoryWorld, World

__all__ = ["_shared", "bootstrap", "mortal_broker", "secure_broker", "three_brokers"]

CLIENTS = ("kafka-python", "confluent")
long_with_confluent = pytest.mark.parametrize(
    "client", ["kafka-python", pytest.param("confluent", marks=pytest.mark.minutes)], indirect=True
)
"""A test of this program beside a broker more than of a client, and a long one."""
_WORLDS = ["memory", *(pytest.param(name, marks=pytest.mark.needs("broker")) for name in CLIENTS)]
_HARMED = ["memory", *(pytest.param(name, marks=pytest.mark.needs("own broker")) for name in CLIENTS)]


@pytest.fixture(params=_WORLDS)
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """Every implementation of the port in turn."""
    made: World
    if request.param == "memory":
        made = MemoryWorld()
    else:
        made = KafkaWorld(request.param, request.getfixturevalue("bootstrap"))
    yield made
    made.close()


@pytest.fixture(params=_HARMED)
def harmed(request: pytest.FixtureRequest) -> Iterator[HarmedWorld]:
    """Every implementation of the port in turn, on a cluster that the test may harm."""
    made: HarmedWorld
    if request.param == "memory":
        made = HarmedMemory()
    else:
        made = HarmedKafka(request.param, request.getfixturevalue("three_brokers"))
    yield made
    made.close()


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest) -> str:
    """Each of the two Kafka clients."""
    return str(request.param)


@pytest.fixture
def serving(client: str, tmp_path: Path) -> Iterator[Callable[..., Service]]:
    """Makes services on a broker, each with an app of its own; what is given beside its address are settings of the
    section `input`."""
    made: list[Service] = []

    def make(bootstrap: str, **source: object) -> Service:
        made.append(Service(settings_for(client, bootstrap, tmp_path, **source)))
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
