"""What no cluster of the other tests is any more when they ask: one that has never served a group."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.broker.cluster import Cluster

_ASKS = """
import sys
from twinsieve.pipeline.commands.kafka.connect import connect
from twinsieve.pipeline.settings.model import KafkaSettings

broker = connect(KafkaSettings(client=sys.argv[1], bootstrap=sys.argv[2]))
print(broker.admin().group_offsets("new"))
broker.close()
"""
_AS_BY_DEFAULT = {"offsets.topic.num.partitions": "50"}
"""Kafka's own number. The fewer there are, the earlier the first coordinator is there."""


@pytest.mark.needs("own broker")
def test_the_first_question_about_a_group_ends_no_process(client: str) -> None:
    """In a process of its own: librdkafka answered with SIGSEGV."""
    with Cluster(extra=_AS_BY_DEFAULT).start() as cluster:
        command = [sys.executable, "-c", _ASKS, client, cluster.bootstrap]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.returncode) == ("{}\n", 0), done.stderr
