"""A broker that is away for a while; `bench/kafka_outage.py` keeps it away for a minute."""

from __future__ import annotations

import pytest

from tests.broker.cluster import Cluster
from tests.broker.deployment import Deployment, poll_until
from tests.broker.load import PARTITIONS
from tests.broker.outage import max_lines, outage
from tests.broker.worlds import DEADLINE_S, fresh
from twinsieve.pipeline.commands.kafka.connect import connect
from twinsieve.pipeline.settings.model import KafkaSettings


@pytest.mark.needs("own broker", "minutes")
def test_processes_wait_for_the_broker_and_go_on_by_themselves(client: str) -> None:
    found, said, alive = outage(client, seconds=10.0, rate=200.0)
    assert found.good, found
    assert alive, "a process ended"
    assert max(said.values()) <= max_lines(10.0), f"log lines in 10 s: {said}"


def test_of_two_processes_in_a_slot_the_older_ends_also_after_an_outage(mortal_broker: Cluster) -> None:
    app = fresh("slot")
    # A member whose session ends in the outage joins again by itself and may come after the newer one.
    deployment = Deployment(mortal_broker.bootstrap, "confluent", app, session_timeout="30s")
    broker = connect(KafkaSettings(client="confluent", bootstrap=mortal_broker.bootstrap))

    def judges(name: str) -> bool:
        return b"index: live" in deployment.log(name).read_bytes()

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
        broker.close()
