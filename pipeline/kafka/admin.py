"""The administration client: topics, offsets and groups."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from kafka import KafkaAdminClient, TopicPartition, errors
from kafka.admin import ConfigResource, ConfigResourceType, MemberToRemove
from kafka.protocol.consumer.offsets import IsolationLevel

from twinsieve.pipeline.broker.admin import Admin, NewTopic, TopicInfo
from twinsieve.pipeline.broker.records import (
    NO_TOPIC_ID,
    BrokerError,
    Committed,
    FatalError,
    GroupMember,
    Partition,
)
from twinsieve.pipeline.kafka.client import Client
from twinsieve.pipeline.kafka.committed import committed_of, offset_and_metadata
from twinsieve.pipeline.kafka.deadline import DeadlineError, within
from twinsieve.pipeline.kafka.errors import GRANT, Meaning, meaning, reason
from twinsieve.pipeline.kafka.options import connected
from twinsieve.pipeline.kafka.patches import (
    ask_for_stable_offsets,
    forget_brokers,
    forget_coordinators,
    raise_refused_settings,
)
from twinsieve.pipeline.kafka.unreachable import is_refused
from twinsieve.pipeline.settings.model import KafkaSettings

RETRY_S = 10.0
"""How long a request is repeated after a temporary error: a new cluster has no group coordinator in its first
seconds, and the leader of a partition may be changing."""
LOOK_S = 2.0
"""The same for requests that the caller repeats regularly anyway. It is shorter because the caller waits."""
_PAUSE_S = 0.1
_ANSWER_S = 10.0
_CREATED_S = 2 * _ANSWER_S
"""Time limit for creating a topic: one answer for the creation, one until every broker knows the topic."""
_EARLIEST, _LATEST = -2, -1
"""Special values in Kafka's protocol, used instead of a timestamp in a request for offsets."""
_UNKNOWN_TOPIC = 3
_NOT_ALLOWED = 29
_UNKNOWN_GROUP = 69
_MOST_LISTED = 8
_CODE = re.compile(r"\[Error (\d+)\]")
_T = TypeVar("_T")


class KafkaAdmin(Client, Admin):
    """`ports.Admin`, with two further calls that the other clients of a process need. Each request has a time
    limit and is repeated after temporary errors.

    raises: BrokerError in one line: unreachable, wrong password, certificate not accepted
    """

    def __init__(self, settings: KafkaSettings, options: Mapping[str, Any]) -> None:
        limit_ms = min(int(_ANSWER_S * 1000), options["request_timeout_ms"])
        self._client = connected(settings, KafkaAdminClient, **{**options, "request_timeout_ms": limit_ms})
        raise_refused_settings(self._client)

    def topics(self, names: Collection[str], *, settings: bool = False) -> dict[str, TopicInfo | None]:
        if not names:
            return {}
        infos: dict[str, TopicInfo | None] = dict.fromkeys(names)
        described = self._described(names)
        existing = {name: row for name in names if (row := described[name]) is not None}
        settings_of = self._settings(existing) if settings and existing else {}
        return infos | {
            name: replace(row, settings=settings_of.get(name, {})) for name, row in existing.items()
        }

    def require(self, topics: Collection[str], operations: Collection[str]) -> None:
        """Check that every topic exists and that these operations on it are allowed.

        Without this check a consumer of kafka-python would return nothing, forever and without an error, if
        a topic does not exist or reading it is not allowed.
        raises: BrokerError(retryable=False) if a topic is missing or an operation is not allowed
        """
        described = self._described(topics)
        for name in topics:
            row = described[name]
            if row is None:
                raise BrokerError(
                    f"topic {name}: does not exist; create it (twinsieve topics create) or correct its name",
                    retryable=False,
                )
            denied = set(operations) - row.operations if row.operations else set()
            if denied:
                raise BrokerError(
                    f"topic {name}: no permission for {', '.join(sorted(denied))}; {GRANT}", retryable=False
                )

    def _described(self, names: Collection[str]) -> dict[str, TopicInfo | None]:
        doing = f"topic {', '.join(names)}"

        def ask() -> list[dict[str, Any]]:
            rows: list[dict[str, Any]] = self._client.describe_topics(list(names))
            for row in rows:
                # A new topic has no leaders for a moment. Raised as an exception, such an error makes `_ask`
                # repeat the request.
                if row["error_code"] not in (0, _UNKNOWN_TOPIC, _NOT_ALLOWED):
                    raise errors.for_code(row["error_code"])()
            return rows

        infos: dict[str, TopicInfo | None] = {}
        for row in self._ask(doing, ask):
            name, parts = row["name"], row["partitions"]
            if row["error_code"] == _NOT_ALLOWED:
                raise BrokerError(f"topic {name}: no permission to describe it; {GRANT}", retryable=False)
            infos[name] = None
            if row["error_code"] == 0:
                infos[name] = TopicInfo(
                    name,
                    uuid.UUID(row["topic_id"]).bytes if row["topic_id"] else NO_TOPIC_ID,
                    len(parts),
                    min((len(part["replica_nodes"]) for part in parts), default=0),
                    leaderless=frozenset(part["partition_index"] for part in parts if part["leader_id"] < 0),
                    operations=frozenset(row["authorized_operations"] or ()),
                )
        return infos

    def _settings(self, names: Collection[str]) -> dict[str, dict[str, str]]:
        resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
        doing = f"settings of topic {', '.join(names)}"
        answer = self._ask(doing, lambda: self._client.describe_configs(resources, config_filter="all"))
        return {
            name: {key: row["value"] for key, row in rows.items() if row["value"] is not None}
            for name, rows in answer["topic"].items()
        }

    def create_topic(self, topic: NewTopic) -> None:
        wanted = {
            topic.name: {
                "num_partitions": topic.partitions,
                "replication_factor": topic.replication,
                "configs": dict(topic.settings),
            }
        }
        self._ask(
            f"create topic {topic.name}",
            lambda: self._client.create_topics(wanted, wait_for_metadata=True),
            answer_s=_CREATED_S,
        )

    def delete_records(self, before: Mapping[Partition, int]) -> None:
        wanted = {TopicPartition(*partition): offset for partition, offset in before.items()}
        doing = f"delete records of {', '.join(map(str, before))}"
        self._ask(doing, lambda: self._client.delete_records(wanted))

    def log_bytes(self, topics: Collection[str]) -> dict[str, int]:
        doing = f"sizes of {', '.join(topics)}"
        largest: dict[Partition, int] = {}
        for broker in self._ask(doing, lambda: self._client.describe_log_dirs(list(topics)), early=True):
            for folder in broker["log_dirs"]:
                for topic in folder["topics"]:
                    for part in topic["partitions"]:
                        if not part["is_future_key"]:
                            partition = Partition(topic["name"], part["partition_index"])
                            largest[partition] = max(largest.get(partition, 0), part["partition_size"])
        sizes: dict[str, int] = {}
        for partition, size in largest.items():
            sizes[partition.topic] = sizes.get(partition.topic, 0) + size
        return sizes

    def beginning_offsets(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        return self._offsets(dict.fromkeys(partitions, _EARLIEST))

    def end_offsets(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        return self._offsets(dict.fromkeys(partitions, _LATEST))

    def stable_offsets(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        return self._offsets(dict.fromkeys(partitions, _LATEST), stable=True)

    def offsets_at(self, times_ms: Mapping[Partition, int]) -> dict[Partition, int]:
        offsets = self._offsets(times_ms)
        return offsets | self.end_offsets([partition for partition, offset in offsets.items() if offset < 0])

    def _offsets(self, times_ms: Mapping[Partition, int], *, stable: bool = False) -> dict[Partition, int]:
        """First offset of each partition with that timestamp or a later one; negative if there is none.

        times_ms: ms since 1970 for each partition, or _EARLIEST or _LATEST
        stable: _LATEST means the last stable offset, and the time limits are shorter
        """
        if not times_ms:
            return {}
        isolation = IsolationLevel.READ_COMMITTED if stable else IsolationLevel.READ_UNCOMMITTED
        specs = {TopicPartition(*partition): time_ms for partition, time_ms in times_ms.items()}
        doing = f"offsets of {_listed(times_ms)}"
        answers = self._ask(
            doing,
            lambda: self._client.list_partition_offsets(specs, isolation),
            early=stable,
            answer_s=LOOK_S if stable else _ANSWER_S,
        )
        offsets = {Partition(key.topic, key.partition): int(row.offset) for key, row in answers.items()}
        return {partition: offsets.get(partition, -1) for partition in times_ms}

    def group_offsets(
        self, group: str, partitions: Collection[Partition] | None = None, *, stable: bool = True
    ) -> dict[Partition, Committed]:
        ask_for_stable_offsets(self._client, stable=stable)
        wanted = {group: None if partitions is None else [TopicPartition(*part) for part in partitions]}
        # A worker asks for some partitions, and repeats that anyway.
        answers = self._ask(
            f"offsets of group {group}",
            lambda: self._client.list_group_offsets(wanted),
            early=partitions is not None,
        )
        return {
            Partition(key.topic, key.partition): committed_of(row.offset, row.metadata)
            for key, row in answers.get(group, {}).items()
            if row.offset >= 0
        }

    def set_group_offsets(self, group: str, offsets: Mapping[Partition, Committed]) -> None:
        wanted = {
            TopicPartition(*part): offset_and_metadata(committed) for part, committed in offsets.items()
        }
        doing = f"set offsets of group {group}"
        for key, error in self._ask(doing, lambda: self._client.alter_group_offsets(group, wanted)).items():
            if error is errors.UnknownMemberIdError:
                raise BrokerError(
                    f"{doing}: the group has running members; stop them all first", retryable=False
                )
            if error is not errors.NoError:
                where = Partition(key.topic, key.partition)
                raise BrokerError(f"{doing}: {where}: {_problem(error())}", retryable=bool(error.retriable))

    def groups(self, prefix: str) -> list[str]:
        rows = self._ask("consumer groups", self._client.list_groups)
        return sorted(row["group_id"] for row in rows if row["group_id"].startswith(prefix))

    def members(self, group: str) -> dict[str, GroupMember]:
        def ask() -> list[dict[str, Any]]:
            description = self._client.describe_groups([group])[group]
            # kafka-python puts the error here as the text of an exception, and does not raise it.
            match = _CODE.match(description["error"] or "")
            code = int(match[1]) if match else 0
            if code not in (0, _UNKNOWN_GROUP):
                raise errors.for_code(code)()
            rows: list[dict[str, Any]] = description["members"]
            return rows

        return {
            row["member_id"]: GroupMember(
                row["group_instance_id"],
                _share(row["member_assignment"]),
                row["client_id"] or "",
                (row["client_host"] or "").removeprefix("/"),
            )
            for row in self._ask(f"members of group {group}", ask)
        }

    def remove_member(self, group: str, name: str, member_id: str) -> None:
        """Remove this static member from the group, unless another member id has the name by now."""
        wanted = [MemberToRemove(member_id, name)]
        self._ask(f"leave group {group}", lambda: self._client.remove_group_members(group, wanted))

    def close(self) -> None:
        self.closed = True
        self._client.close()

    def _ask(
        self, doing: str, ask: Callable[[], _T], *, early: bool = False, answer_s: float = _ANSWER_S
    ) -> _T:
        deadline = time.monotonic() + (LOOK_S if early else RETRY_S)
        while True:
            try:
                return within(answer_s, ask)
            except DeadlineError as error:
                raise BrokerError(
                    f"{doing}: {error}; check that the broker is running", retryable=True
                ) from error
            except errors.SaslAuthenticationFailedError as error:
                # It was accepted when this client was made.
                raise FatalError(f"{doing}: the broker refuses the login now", denied=True) from error
            except errors.KafkaError as error:
                if isinstance(error, errors.KafkaConnectionError) and is_refused(str(error)):
                    raise FatalError(f"{doing}: {_problem(error)}", denied=True) from error
                missing = isinstance(error, errors.UnknownTopicOrPartitionError)
                # If a leader disappears from the metadata between two requests, the client reports it as
                # unknown, an error that is not retryable. The next metadata contain the new leader, so retry.
                moved = isinstance(error, errors.UnknownBrokerIdError)
                if moved:
                    forget_brokers(self._client)
                passing = moved or (bool(error.retriable) and not missing)
                if passing:
                    forget_coordinators(self._client)
                if passing and time.monotonic() < deadline:
                    time.sleep(_PAUSE_S)
                    continue
                raise BrokerError(f"{doing}: {_problem(error)}", retryable=passing) from error


def _listed(partitions: Collection[Partition]) -> str:
    """The first few partitions, and how many more there are."""
    shown = ", ".join(map(str, list(partitions)[:_MOST_LISTED]))
    more = len(partitions) - _MOST_LISTED
    return f"{shown} and {more} more" if more > 0 else shown


def _problem(error: Exception) -> str:
    """The error text without the topic or group: the caller's text names it."""
    if isinstance(error, errors.UnknownTopicOrPartitionError):
        return "no such topic or partition"
    return f"no permission; {GRANT}" if meaning(error) is Meaning.DENIED else reason(error)


def _share(assignment: Any) -> frozenset[Partition]:
    """The partitions in a member's assignment. Empty during a rebalance, when the assignment is empty or
    undecoded bytes."""
    if not isinstance(assignment, Mapping):
        return frozenset()
    rows = assignment["assigned_partitions"]
    return frozenset(Partition(row["topic"], number) for row in rows for number in row["partitions"])
