"""Fixtures of real brokers; each starts once for a whole test run, at the first test that asks.

Without Java and Maven, and without permission to install them, the tests that ask fail and say what to
install: a run without them has not tested the service. Who wants one all the same says so, by `--ignore`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest

from tests.broker.cluster import Cluster, SecureCluster
from tests.broker.distribution import NoBrokerError

_C = TypeVar("_C", bound=Cluster)


@pytest.fixture(scope="session")
def bootstrap() -> Iterator[str]:
    """Address of a broker without security: TWINSIEVE_TEST_BOOTSTRAP, or one of our own."""
    given = os.environ.get("TWINSIEVE_TEST_BOOTSTRAP")
    if given:
        yield given
        return
    with _start(Cluster) as cluster:
        yield cluster.bootstrap


@pytest.fixture(scope="session")
def mortal_broker() -> Iterator[Cluster]:
    """One broker that tests may kill, freeze and restart; it must run again when a test ends."""
    with _start(Cluster) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def three_brokers() -> Iterator[Cluster]:
    """Three brokers, replication 3, two in-sync replicas needed; tests may kill one at a time."""
    with _start(lambda: Cluster(3)) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def secure_broker() -> Iterator[SecureCluster]:
    """One broker with TLS, SCRAM, PLAIN and ACLs."""
    with _start(SecureCluster) as cluster:
        yield cluster


def _start(make: Callable[[], _C]) -> _C:
    try:
        return make().start()
    except NoBrokerError as error:
        pytest.fail(f"no real broker: {error}", pytrace=False)
