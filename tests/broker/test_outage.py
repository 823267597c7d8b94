"""A broker that is away for a while; `bench/kafka_outage.py` keeps it away for a minute."""

from __future__ import annotations

import pytest

from tests.broker.cluster import Cluster
from tests.broker.deployment import Deployment, poll_until
from tests.broker.load import PARTITIONS
from tests.broker.outage import max_lines, outage
from tests.broker.worlds import DEADLINE_S, Connect, fresh
from tests.service.scraped import Pages


@pytest.mark.minutes
@pytest.mark.needs("own broker")
def test_processes_wait_for_the_broker_and_go_on_by_themselves() -> None:
    found, said, alive = outage(seconds=10.0, rate=200.0)
    assert found.good, found
    assert alive, "a process ended"
    assert max(said.values()) <= max_lines(10.0), f"log lines in 10 s: {said}"


def test_of_two_processes_in_a_slot_the_older_ends_also_after_an_outage(
    mortal_broker: Cluster, connect: Connect
) -> None:
    app = fresh("slot")
    # A member whose session ends in the outage joins again by itself and may come after the newer one.
    deployment = Deployment(mortal_broker.bootstrap, app, session_timeout="30s")
    broker = connect(mortal_broker.bootstrap)

    def judges(name: str) -> bool:
        return b"index: phase live" in deployment.log(name).read_bytes()

    def emits() -> bool:
        return len(broker.admin().group_offsets(f"{app}.workers")) == PARTITIONS

    try:
        deployment.create_topics()
        older = deployment.start("a")
        assert poll_until(lambda: judges("a") and emits(), DEADLINE_S), deployment.log("a").read_text()
        mortal_broker.restart()
        newer = deployment.start("a", tag="~new")
        assert poll_until(lambda: older.poll() is not None, DEADLINE_S), "both live on"
        assert poll_until(lambda: judges("a~new"), DEADLINE_S), deployment.log("a~new").read_text()
        assert newer.poll() is None, deployment.log("a~new").read_text()
    finally:
        deployment.close()


def all_is_well(pages: Pages) -> bool:
    """As the pages of the only process say."""
    found = pages.metrics()
    known = len(found.get("lag_messages", ())) == PARTITIONS and found.get("index_lag_blocks") == {(): 0.0}
    return known and found["index_live"] == {(): 1.0} and pages.is_ready()


def nothing_is_known(pages: Pages) -> bool:
    """As the pages say."""
    found = pages.metrics()
    unknown = not {"lag_messages", "index_lag_blocks"} & found.keys()
    return unknown and found["index_live"] == {(): 0.0} and pages.status("/readyz") == 503


@pytest.mark.minutes
def test_a_frozen_broker_and_its_return_are_logged_within_half_a_minute(mortal_broker: Cluster) -> None:
    deployment = Deployment(mortal_broker.bootstrap, fresh("frozen"))
    node = mortal_broker.nodes[0]
    try:
        deployment.create_topics()
        pages = deployment.start_shown("a")
        assert poll_until(lambda: all_is_well(pages), DEADLINE_S), deployment.log("a").read_text()
        node.freeze()
        try:
            assert poll_until(lambda: nothing_is_known(pages), 30.0), deployment.log("a").read_text()
            told = poll_until(lambda: b"no broker has answered" in deployment.log("a").read_bytes(), 5.0)
            assert told, deployment.log("a").read_text()
            changed = poll_until(lambda: not nothing_is_known(pages), 10.0)
            assert not changed, "for as long as that lasts"
            assert pages.status("/healthz") == 200
        finally:
            node.thaw()
        assert poll_until(lambda: all_is_well(pages), 30.0), deployment.log("a").read_text()
        assert deployment.processes["a"].poll() is None
    finally:
        deployment.close()


@pytest.mark.minutes
def test_a_process_that_comes_before_its_broker_waits_for_it(mortal_broker: Cluster) -> None:
    deployment = Deployment(mortal_broker.bootstrap, fresh("early"))
    node = mortal_broker.nodes[0]

    def says_what_it_waits_for() -> bool:
        said = deployment.log("a").read_text()
        return mortal_broker.bootstrap in said and pages.status("/readyz") == 503

    try:
        deployment.create_topics()
        node.kill()
        pages = deployment.start_shown("a")
        assert poll_until(says_what_it_waits_for, DEADLINE_S), deployment.log("a").read_text()
        assert pages.status("/healthz") == 200
        assert deployment.processes["a"].poll() is None
        node.start()
        assert poll_until(lambda: all_is_well(pages), DEADLINE_S), deployment.log("a").read_text()
        assert deployment.processes["a"].poll() is None
    finally:
        deployment.close()
