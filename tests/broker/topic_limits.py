"""What topics of a running broker take, changed as an operator does."""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType


def limit_topics(bootstrap: str, topics: Sequence[str], batch_bytes: int) -> None:
    """Have these topics refuse batches that are larger, as kafka-configs does."""
    set_topics(bootstrap, topics, "max.message.bytes", str(batch_bytes))


def set_topics(bootstrap: str, topics: Sequence[str], name: str, value: str) -> None:
    """Change one setting of these topics, as kafka-configs does."""
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resources = [ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry]) for topic in topics]
    # Its last reference ends it, whatever is on its way.
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for done in admin.incremental_alter_configs(resources).values():
        done.result()
