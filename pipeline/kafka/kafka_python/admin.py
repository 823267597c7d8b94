"""Topics, offsets and groups with kafka-python."""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, TypeVar

from kafka import KafkaAdminClient, TopicPartition, errors
from kafka.admin import ConfigResource, ConfigResourceType, MemberToRemove, OffsetSpec
from kafka.protocol.consumer.offsets import IsolationLevel
from kafka.structs import OffsetAndMetadata

from twinsieve.pipeline.broker.ports import (
    NO_TOPIC_ID,
    BrokerError,
    Committed,
    NewTopic,
    Partition,
    TopicInfo,
)
from twinsieve.pipeline.kafka.closing import Closing
from twinsieve.pipeline.kafka.deadline import DeadlineError, within
from twinsieve.pipeline.kafka.kafka_python.options import connected, reason
from twinsieve.pipeline.settings.model import KafkaSettings

_ANSWER_S = 30.0
_RETRY_S = 10.0
_LOOK_S = 2.0
"""A question that is asked again and again anyway gives up earlier: whoever asks waits meanwhile."""
_PAUSE_S = 0.1
_UNKNOWN_TOPIC = 3
_NOT_ALLOWED = 29
_T = TypeVar("_T")


class PythonAdmin(Closing):
    """`ports.Admin` on kafka-python."""

    def __init__(self, settings: KafkaSettings, options: Mapping[str, Any]) -> None:
        self._client = connected(settings, lambda network: KafkaAdminClient(**options, kafka_client=network))

    def topics(self, names: Collection[str], *, settings: bool = False) -> dict[str, TopicInfo | None]:
        if not names:
            return {}
        rows = self._described(names)
        known = [name for name in names if rows[name]["error_code"] == 0]
        held = self._settings(known) if settings and known else {}
        found: dict[str, TopicInfo | None] = dict.fromkeys(names)
        for name in known:
            row = rows[name]
            topic_id = uuid.UUID(row["topic_id"]).bytes if row["topic_id"] else NO_TOPIC_ID
            replication = min((len(part["replica_nodes"]) for part in row["partitions"]), default=0)
            found[name] = TopicInfo(
                name,
                topic_id,
                len(row["partitions"]),
                replication,
                held.get(name, {}),
                frozenset(part["partition_index"] for part in row["partitions"] if part["leader_id"] < 0),
            )
        return found

    def _described(self, names: Collection[str]) -> dict[str, dict[str, Any]]:
        doing = f"topic {', '.join(names)}"

        def ask() -> list[dict[str, Any]]:
            rows: list[dict[str, Any]] = self._client.describe_topics(list(names))
            for row in rows:
                # A topic that was just made has no leaders for a moment; as an exception it is asked again.
                if row["error_code"] not in (0, _UNKNOWN_TOPIC, _NOT_ALLOWED):
                    raise errors.for_code(row["error_code"])()
            return rows

        rows = {row["name"]: row for row in self._ask(doing, ask)}
        for name in names:
            if rows[name]["error_code"] == _NOT_ALLOWED:
                raise BrokerError(
                    f"topic {name}: no permission to describe it; grant it "
                    "(twinsieve topics acls prints what is needed)",
                    retryable=False,
                )
        return rows

    def _settings(self, names: Collection[str]) -> dict[str, dict[str, str]]:
        resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
        doing = f"settings of topic {', '.join(names)}"
        answer = self._ask(doing, lambda: self._client.describe_configs(resources, config_filter="all"))
        return {
            name: {key: row["value"] for key, row in rows.items() if row["value"] is not None}
            for name, rows in answer["topic"].items()
        }

    def require(self, topics: Collection[str], operations: Collection[str]) -> None:
        """Fails with a clear text unless every topic exists and these operations on it are allowed.

        kafka-python's poll() returns nothing, for ever and without an error, both for a topic that does not
        exist and for one that may not be read.
        raises: BrokerError(retryable=False)
        """
        rows = self._described(topics)
        for name in topics:
            if rows[name]["error_code"] == _UNKNOWN_TOPIC:
                raise BrokerError(
                    f"topic {name}: does not exist; create it (twinsieve topics create) or correct its name",
                    retryable=False,
                )
            denied = set(operations) - set(rows[name]["authorized_operations"] or operations)
            if denied:
                raise BrokerError(
                    f"topic {name}: no permission for {', '.join(sorted(denied))}; grant it "
                    "(twinsieve topics acls prints what is needed)",
                    retryable=False,
                )

    def create_topic(self, topic: NewTopic) -> None:
        wanted = {
            topic.name: {
                "num_partitions": topic.partitions,
                "replication_factor": topic.replication,
                "configs": dict(topic.settings),
            }
        }
        self._ask(
            f"create topic {topic.name}", lambda: self._client.create_topics(wanted, wait_for_metadata=True)
        )

    def delete_records(self, before: Mapping[Partition, int]) -> None:
        wanted = {TopicPartition(*partition): offset for partition, offset in before.items()}
        doing = f"delete records of {', '.join(map(str, before))}"
        self._ask(doing, lambda: self._client.delete_records(wanted))

    def beginning_offsets(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        return self._offsets(dict.fromkeys(partitions, OffsetSpec.EARLIEST))

    def end_offsets(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        return self._offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))

    def stable_offsets(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """Last stable offset of each: where a read-committed reader waits. Gives up early."""
        latest = dict.fromkeys(partitions, OffsetSpec.LATEST)
        return self._offsets(latest, IsolationLevel.READ_COMMITTED, _LOOK_S)

    def offsets_at(self, times_ms: Mapping[Partition, int]) -> dict[Partition, int]:
        found = self._offsets(times_ms)
        later = [partition for partition, offset in found.items() if offset < 0]
        return found | self.end_offsets(later)

    def _offsets(
        self,
        wanted: Mapping[Partition, Any],
        isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
        max_s: float = math.inf,
    ) -> dict[Partition, int]:
        if not wanted:
            return {}
        specs = {TopicPartition(*partition): spec for partition, spec in wanted.items()}
        doing = f"offsets of {', '.join(map(str, wanted))}"
        found = self._ask(doing, lambda: self._client.list_partition_offsets(specs, isolation), max_s)
        held = {Partition(key.topic, key.partition): int(row.offset) for key, row in found.items()}
        return {partition: held.get(partition, -1) for partition in wanted}

    def group_offsets(self, group: str, *, stable: bool = True) -> dict[Partition, Committed]:
        _ask_for_stable_offsets(self._client, stable)
        found = self._ask(f"offsets of group {group}", lambda: self._client.list_group_offsets(group))
        return {
            Partition(key.topic, key.partition): Committed(row.offset, row.metadata or "")
            for key, row in found.get(group, {}).items()
            if row.offset >= 0
        }

    def set_group_offsets(self, group: str, offsets: Mapping[Partition, Committed]) -> None:
        wanted = {
            TopicPartition(*partition): OffsetAndMetadata(committed.offset, committed.metadata, -1)
            for partition, committed in offsets.items()
        }
        doing = f"set offsets of group {group}"
        for key, error in self._ask(doing, lambda: self._client.alter_group_offsets(group, wanted)).items():
            if error is errors.UnknownMemberIdError:
                raise BrokerError(
                    f"{doing}: the group has running members; stop them all first", retryable=False
                )
            if error is not errors.NoError:
                where = Partition(key.topic, key.partition)
                raise BrokerError(f"{doing}: {where}: {error.__name__}", retryable=bool(error.retriable))

    def members(self, group: str) -> dict[str, str | None]:
        """The group's member ids, each with its static name."""
        found = self._ask(f"members of group {group}", lambda: self._client.describe_groups([group]))
        return {each["member_id"]: each["group_instance_id"] for each in found[group]["members"]}

    def remove_member(self, group: str, name: str, member_id: str) -> None:
        """The group forgets this static member, unless the name belongs to another id by now."""
        wanted = [MemberToRemove(member_id, name)]
        self._ask(f"leave group {group}", lambda: self._client.remove_group_members(group, wanted))

    def close(self) -> None:
        self.closed = True
        self._client.close()

    def _ask(self, doing: str, ask: Callable[[], _T], max_s: float = math.inf) -> _T:
        # A fresh cluster has no group coordinator for its first seconds, and a leader may be moving.
        deadline = time.monotonic() + min(max_s, _RETRY_S)
        while True:
            try:
                return within(_ANSWER_S, ask)
            except DeadlineError as error:
                raise BrokerError(f"{doing}: {error}; the broker is away", retryable=True) from error
            except errors.KafkaError as error:
                missing = isinstance(error, errors.UnknownTopicOrPartitionError)
                # A leader that left the metadata between two requests is unknown to the client, and it calls
                # that final; the next metadata name another.
                moved = isinstance(error, errors.UnknownBrokerIdError)
                if moved:
                    # It asks who leads, but keeps its list of brokers for five minutes: one that was away and
                    # is back would be unknown for as long. There is no public way to look anew.
                    self._client._manager.cluster.request_update()
                passing = moved or (bool(error.retriable) and not missing)
                if passing and time.monotonic() < deadline:
                    time.sleep(_PAUSE_S)
                    continue
                said = "no such topic or partition" if missing else reason(error)
                raise BrokerError(f"{doing}: {said}", retryable=passing) from error


def _ask_for_stable_offsets(client: KafkaAdminClient, stable: bool) -> None:
    """With `stable`, an offset that an open transaction is about to move is an error that passes, not the one
    before it."""

    # There is no public way in: kafka-python 3.0 asks so for consumers alone.
    def requests(groups: Mapping[str, Any]) -> Iterator[tuple[str | None, Any]]:
        for group, request in KafkaAdminClient._list_group_offsets_requests(client, groups):
            request.require_stable = stable
            yield group, request

    client._list_group_offsets_requests = requests
