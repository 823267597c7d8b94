"""Fixtures of real brokers; each starts at the first test that asks.

The plain one serves the whole run, the others a module each: a start takes as much of a core as two minutes of
an idle broker.

Where Java and Maven are missing and cannot be installed, the tests that ask are left out (tests/needs.py).
"""

from __future__ import annotations

import os
from collections.abc import Iterator

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


@pytest.fixture(scope="module")
def mortal_broker() -> Iterator[Cluster]:
    """One broker that tests may kill, freeze and restart; it must run again when a test ends."""
    with Cluster().start() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def three_brokers() -> Iterator[Cluster]:
    """Three brokers, replication 3, two in-sync replicas needed; tests may kill one at a time."""
    with Cluster(3).start() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def secure_broker() -> Iterator[SecureCluster]:
    """One broker with TLS, SCRAM, PLAIN and ACLs."""
    with SecureCluster().start() as cluster:
        yield cluster
