"""A broker that is away for a while; `bench/kafka_outage.py` keeps it away for a minute.

kafka-python alone: confluent does not always go on by itself yet (README, Limits).
"""

from __future__ import annotations

from bench.kafka_outage import outage


def test_processes_wait_for_the_broker_and_go_on_by_themselves() -> None:
    found, said, alive = outage("kafka-python", seconds=10.0, rate=200.0)
    assert found.good, found
    assert alive, "a process ended"
    assert max(said.values()) <= 25, f"log lines in 10 s: {said}"
