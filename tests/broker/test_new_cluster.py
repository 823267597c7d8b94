"""What no cluster of the other tests is any more when they ask: one that has never served a group."""

from __future__ import annotations

import pytest

from tests.broker.cluster import Cluster
from tests.broker.worlds import Connect

_AS_BY_DEFAULT = {"offsets.topic.num.partitions": "50"}
"""Kafka's own number. The fewer there are, the earlier the first coordinator is there."""


@pytest.mark.needs("own broker")
def test_the_first_question_about_a_group_is_answered(connect: Connect) -> None:
    with Cluster(extra=_AS_BY_DEFAULT).start() as cluster:
        assert connect(cluster.bootstrap).admin().group_offsets("new") == {}
