"""What the broker says of a group, asked with no code of ours."""

from __future__ import annotations

from typing import Any

from tests.broker.stranger import AdminClient, KafkaError, KafkaException
from tests.broker.worlds import until

_NOT_YET = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
)
"""Answers of a broker that has just been started, or has just taken a group over."""


def described(admin: AdminClient, group: str) -> Any:
    """Members, shares and coordinator of a group, once a broker knows: confluent-kafka's description."""

    def ask() -> Any:
        try:
            return admin.describe_consumer_groups([group], request_timeout=30)[group].result()
        except KafkaException as error:
            if error.args[0].code() not in _NOT_YET:
                raise
            return None

    return until(ask)


def shares(admin: AdminClient, group: str) -> dict[str | None, set[int]]:
    """Partitions of each member by its static name."""
    return {
        member.group_instance_id: {at.partition for at in member.assignment.topic_partitions}
        for member in described(admin, group).members
    }
