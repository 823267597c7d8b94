"""The page of each alert that wakes somebody is followed as it stands, against a real broker, in the state that it is about."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.broker.cluster import Cluster
from tests.broker.deployment import Deployment, poll_until
from tests.broker.fixtures import _shared, bootstrap, mortal_broker
from tests.broker.server import free_ports
from tests.broker.stranger import limit_topics
from tests.deploy.scraping import Prometheus
from tests.runbooks.fixtures import alerts, on_call, watched, watched_only
from tests.runbooks.on_call import OnCall
from tests.runbooks.states import comes_in, lose_index, open_transaction, posts, well

__all__ = ["_shared", "alerts", "bootstrap", "mortal_broker", "on_call"]

_JOINS = """
import sys
from tests.broker.stranger import consumer
theirs = consumer(*sys.argv[1:3], client_id="console", session_timeout_ms=6000, partition_assignment_strategy="range")
theirs.subscribe([sys.argv[3]])
while True:
    theirs.poll(1.0)
"""


@watched
def test_gone(on_call: OnCall) -> None:
    well(on_call, "worker", "index")
    on_call.deployment.kill("worker")
    on_call.deployment.kill("index")
    on_call.follow("gone", by_tree=True)


@watched
def test_nothing_comes_out(on_call: OnCall) -> None:
    well(on_call, "worker", "index")
    frozen = on_call.deployment.processes["worker"]
    on_call.name(PID=frozen.pid)
    os.killpg(frozen.pid, signal.SIGSTOP)
    on_call.post(*posts(2, first=3))
    on_call.follow("nothing-comes-out", by_tree=True)
    assert poll_until(lambda: on_call.came_out() == on_call.posts, 60.0)


@watched
def test_open_transaction(on_call: OnCall) -> None:
    well(on_call, "worker", "index")
    open_transaction(on_call, "in")
    on_call.post('{"text": "behind the open transaction"}')
    on_call.look("open-transaction", by_tree=True)
    # The transaction's first message stands between what `well` posted and the last post.
    on_call.name(OFFSET=on_call.posts - 1)
    assert on_call.came_out() == on_call.posts - 1
    on_call.do("open-transaction")
    on_call.see_the_end("open-transaction")
    assert poll_until(lambda: on_call.came_out() == on_call.posts, 60.0)


@pytest.mark.minutes
def test_half_comes_out(on_call: OnCall) -> None:
    well(on_call, "worker", "index")
    limit_topics(on_call.bootstrap, [f"{on_call.deployment.app}.dead"], 200)
    # Too large for the dead letter topic, also compressed.
    on_call.post("{" + random.Random(1).randbytes(500).hex())
    on_call.name(PID=on_call.deployment.processes["worker"].pid)
    on_call.follow("half-comes-out", by_tree=True)


@pytest.mark.minutes
@watched_only
def test_one_of_two_partitions_waits(bootstrap: str, tmp_path: Path, alerts: Prometheus) -> None:
    with OnCall(bootstrap, tmp_path, alerts, partitions=2, session_timeout="6s") as on_call:
        on_call.deployment.create_topics()
        well(on_call, "worker", "index")
        limit_topics(on_call.bootstrap, [f"{on_call.deployment.app}.dead"], 200)
        on_call.post("{" + random.Random(1).randbytes(500).hex())
        on_call.name(PID=on_call.deployment.processes["worker"].pid)
        with comes_in(on_call, partition=1):
            on_call.follow("half-comes-out")


@watched
def test_no_index(on_call: OnCall) -> None:
    lose_index(on_call, *posts(2))
    on_call.follow("no-index", by_tree=True)


def test_two_indexes(on_call: OnCall) -> None:
    well(on_call, "worker", "index")
    frozen = on_call.deployment.processes["index"]
    on_call.name(PID=frozen.pid)
    os.killpg(frozen.pid, signal.SIGSTOP)
    on_call.start("index", member="other")
    on_call.follow("two-indexes")
    assert frozen.wait(30) == -signal.SIGKILL


@pytest.mark.minutes
@watched_only
@pytest.mark.needs("own broker")
def test_one_name_on_two_clusters(on_call: OnCall, mortal_broker: Cluster) -> None:
    well(on_call, "worker", "index")
    other = Deployment(mortal_broker.bootstrap, on_call.deployment.app, partitions=1)
    (port,) = free_ports(1)
    try:
        other.create_topics()
        on_call.name(PID=other.start("other", "both", listen=f"127.0.0.1:{port}").pid)
        on_call.watch(port, "other")
        on_call.follow("two-indexes")
    finally:
        other.close()


@watched
@pytest.mark.needs("own broker")
def test_broker_unreachable(mortal_broker: Cluster, tmp_path: Path, alerts: Prometheus | None) -> None:
    with OnCall(mortal_broker.bootstrap, tmp_path, alerts) as on_call:
        on_call.deployment.create_topics()
        well(on_call, "worker", "index")
        (node,) = mortal_broker.nodes
        node.kill()
        try:
            on_call.look("broker-unreachable", by_tree=True)
        finally:
            node.start()
            node.wait_ready()
        on_call.do("broker-unreachable")
        on_call.see_the_end("broker-unreachable")


@watched
def test_messages_lost(on_call: OnCall) -> None:
    on_call.deployment.set("input", trimmed="continue")
    well(on_call, "worker", "index")
    on_call.deployment.kill("worker")
    on_call.post(*posts(5))
    on_call.trim("in")
    on_call.start("worker")
    on_call.follow("messages-lost")


@watched
def test_foreign_consumer(on_call: OnCall) -> None:
    well(on_call, "worker", "index")
    app = on_call.deployment.app
    command = [sys.executable, "-c", _JOINS, on_call.bootstrap, f"{app}.workers", f"{app}.in"]
    with subprocess.Popen(command) as stranger:
        on_call.name(PID=stranger.pid)
        on_call.look("foreign-consumer", by_tree=True)
        on_call.do("foreign-consumer")
        on_call.see_the_end("foreign-consumer")
