"""An output that takes next to nothing stops the start: not even a dead letter without its message could be written."""

from __future__ import annotations

import pytest

from tests.memory.broker import ManualClock, MemoryBroker, MemoryCluster
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.records import BrokerError
from twinsieve.pipeline.operate.topic_checks import Severity, check, create
from twinsieve.pipeline.service.start_checks import check_app
from twinsieve.pipeline.settings.model import Settings

SETTINGS = Settings.model_validate(
    {"app": "t", "output": {"topic": "out", "duplicates": "dup", "dead_letter": "dead"}}
)


def broker_with(topic: str, max_bytes: int) -> MemoryBroker:
    cluster = MemoryCluster(ManualClock())
    cluster.create(NewTopic("posts", 1))
    broker = MemoryBroker(cluster)
    create(SETTINGS, broker.admin())
    cluster.topics[topic].settings["max.message.bytes"] = str(max_bytes)
    return broker


@pytest.mark.parametrize("topic", ["out", "dup", "dead"])
def test_an_output_with_a_tiny_limit_stops_the_start_with_the_number_to_set(topic: str) -> None:
    broker = broker_with(topic, 1023)
    with pytest.raises(BrokerError, match=rf"^{topic}: .*1023 bytes.*max\.message\.bytes to 1024"):
        check_app(SETTINGS, lambda: broker, ManualClock(), auto_create=False)


@pytest.mark.parametrize("topic", ["out", "dup", "dead"])
def test_a_small_output_is_a_warning(topic: str) -> None:
    found = check(SETTINGS, broker_with(topic, 1024).admin())
    assert {finding.severity for finding in found if finding.topic == topic} == {Severity.WARNS}
