"""Fixtures of real brokers; each starts at the first test that asks.

The plain one serves the whole run, the others all their tests, which stand beside each other (tests/processes.py).

Where Java and Maven are missing and cannot be installed, the tests that ask are left out (tests/needs.py).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from tests.broker.cluster import Cluster, SecureCluster


@pytest.fixture(scope="session")
def bootstrap() -> Iterator[str]:
    """Address of a broker without security: TWINSIEVE_TEST_BOOTSTRAP, or one of our own."""
    given = os.environ.get("TWINSIEVE_TEST_BOOTSTRAP")
    if given:
        yield given
        return
    with Cluster().start() as cluster:
        yield cluster.bootstrap


class _Shared:
    """Clusters by fixture name: each lives from the first test that asks for it to the last one of the run."""

    def __init__(self) -> None:
        self._running: dict[str, Cluster] = {}

    def lend(self, name: str, make: Callable[[], Cluster]) -> Cluster:
        if name not in self._running:
            self._running[name] = make().start()
        return self._running[name]

    def give_back(self, name: str, item: pytest.Item) -> None:
        """Ends it behind the last test that asks: three idle nodes take their share of a core too."""
        items = item.session.items
        if not any(_asks(later, name) for later in items[items.index(item) + 1 :]):
            self._running.pop(name).close()

    def close(self) -> None:
        for cluster in self._running.values():
            cluster.close()


def _asks(item: pytest.Item, name: str) -> bool:
    """Whether a test uses that cluster; those on `harmed` ask for it while they run."""
    names = {"three_brokers": {"three_brokers", "harmed"}}.get(name, {name})
    return not names.isdisjoint(getattr(item, "fixturenames", ()))


@pytest.fixture(scope="session")
def _shared() -> Iterator[_Shared]:
    shared = _Shared()
    yield shared
    shared.close()


@pytest.fixture
def mortal_broker(_shared: _Shared, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """One broker that tests may kill, freeze and restart; it must run again when a test ends."""
    yield _shared.lend("mortal_broker", lambda: Cluster(mortal=True))
    _shared.give_back("mortal_broker", request.node)


@pytest.fixture
def three_brokers(_shared: _Shared, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Three brokers, replication 3, two in-sync replicas needed; tests may kill one at a time."""
    yield _shared.lend("three_brokers", lambda: Cluster(3, mortal=True))
    _shared.give_back("three_brokers", request.node)


@pytest.fixture
def secure_broker(_shared: _Shared, request: pytest.FixtureRequest) -> Iterator[SecureCluster]:
    """One broker with TLS, SCRAM, PLAIN and ACLs."""
    cluster = _shared.lend("secure_broker", SecureCluster)
    assert isinstance(cluster, SecureCluster)
    yield cluster
    _shared.give_back("secure_broker", request.node)
