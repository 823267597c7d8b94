"""Topics, offsets and groups with confluent-kafka."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka import admin as confluent_admin

from twinsieve.pipeline.broker.admin import NewTopic, TopicInfo
from twinsieve.pipeline.broker.records import NO_TOPIC_ID, BrokerError, Committed, GroupMember, Partition
from twinsieve.pipeline.kafka.admin import EARLIEST, LATEST, LOOK_S, PAUSE_S, RETRY_S, KafkaAdmin
from twinsieve.pipeline.kafka.confluent.options import ClientEvents, code_of, reason
from twinsieve.pipeline.kafka.confluent.refusals import (
    AWAY,
    MISSING,
    NO_LEADER,
    PASSING,
    MissingError,
    admin_error,
)
from twinsieve.pipeline.kafka.deadline import DeadlineError, within
from twinsieve.pipeline.kafka.errors import GRANT
from twinsieve.pipeline.kafka.security import handshake_problem
from twinsieve.pipeline.kafka.unreachable import unreachable
from twinsieve.pipeline.settings.model import KafkaSettings

_ANSWER_S = 10.0
_ATTEMPT_S = 2.0
"""How long one broker is given for a question that changes nothing. librdkafka asks the controller that it
knows of, and Kafka names any broker as that: it may have died, and a new client hears of another."""
_PROBE_S = 2.0
_KNOWN_TOPIC = "__consumer_offsets"
# Its type hints leave out half of what it exports.
_kafka: Any = confluent_admin
_T = TypeVar("_T")


class ConfluentAdmin(KafkaAdmin):
    """make_group_admin: makes the client that is asked for offsets of groups and sizes of topics
    connect_timeout_s: how long to try to reach a broker at all
    raises: BrokerError in one line: unreachable, wrong password, certificate not accepted
    """

    def __init__(
        self,
        settings: KafkaSettings,
        options: Mapping[str, Any],
        make_group_admin: Callable[[], KafkaAdmin],
        connect_timeout_s: float,
    ) -> None:
        self._make_group_admin = make_group_admin
        self._group_admin: KafkaAdmin | None = None
        events = ClientEvents()
        self._options = {**options, **events.options()}
        self._client = _kafka.AdminClient(self._options)
        deadline = time.monotonic() + connect_timeout_s
        # The constructor connects to nobody; only a call shows a wrong address or password.
        while True:
            try:
                self._client.list_topics(topic=_KNOWN_TOPIC, timeout=1.0)
                return
            except KafkaException as error:
                self._client.poll(0)
                said = [*handshake_problem(settings), *events.reasons, reason(error)]
                found = unreachable(settings, said)
                if time.monotonic() >= deadline or (events.reasons and not found.retryable):
                    raise found from error

    def _described(self, names: Collection[str]) -> dict[str, TopicInfo | None]:
        found: dict[str, TopicInfo | None] = {}
        for name in names:
            try:
                row = self._ask(f"topic {name}", partial(self._describe, name))
            except MissingError:
                found[name] = None
                continue
            parts = row.partitions
            found[name] = TopicInfo(
                name,
                _id_bytes(row.topic_id),
                len(parts),
                min((len(part.replicas) for part in parts), default=0),
                leaderless=frozenset(part.id for part in parts if part.leader is None or part.leader.id < 0),
                operations=frozenset(operation.name for operation in row.authorized_operations or ()),
            )
        return found

    def _describe(self, name: str) -> Any:
        futures = self._client.describe_topics(
            TopicCollection([name]), include_authorized_operations=True, request_timeout=_ATTEMPT_S
        )
        return futures[name].result(_ANSWER_S)

    def _settings(self, names: Collection[str]) -> dict[str, dict[str, str]]:
        resources = [_kafka.ConfigResource(_kafka.ConfigResource.Type.TOPIC, name) for name in names]

        def ask() -> dict[str, dict[str, str]]:
            futures = self._client.describe_configs(resources, request_timeout=_ATTEMPT_S)
            return {
                resource.name: {
                    key: entry.value for key, entry in future.result().items() if entry.value is not None
                }
                for resource, future in futures.items()
            }

        return self._ask(f"settings of topic {', '.join(names)}", ask)

    def create_topic(self, topic: NewTopic) -> None:
        wanted = _kafka.NewTopic(
            topic.name,
            num_partitions=topic.partitions,
            replication_factor=topic.replication,
            config=dict(topic.settings),
        )
        doing = f"create topic {topic.name}"
        self._ask(doing, lambda: self._client.create_topics([wanted])[topic.name].result(_ANSWER_S))
        deadline = time.monotonic() + _ANSWER_S
        while time.monotonic() < deadline:
            info = self.topics([topic.name])[topic.name]
            if info is not None and info.partitions == topic.partitions:
                return
            time.sleep(PAUSE_S)
        raise BrokerError(f"{doing}: it did not appear; look at the broker's log", retryable=True)

    def delete_records(self, before: Mapping[Partition, int]) -> None:
        wanted = [TopicPartition(*at, offset) for at, offset in before.items()]
        doing = f"delete records of {', '.join(map(str, before))}"
        self._ask(doing, lambda: _all(self._client.delete_records(wanted)), before)

    def _list_offsets(self, times_ms: Mapping[Partition, int], *, stable: bool) -> dict[Partition, int]:
        isolation = IsolationLevel.READ_COMMITTED if stable else IsolationLevel.READ_UNCOMMITTED
        specs = {TopicPartition(*partition): _spec(time_ms) for partition, time_ms in times_ms.items()}

        def ask() -> dict[Any, Any]:
            return _all(
                self._client.list_offsets(specs, isolation_level=isolation, request_timeout=_ATTEMPT_S)
            )

        found = self._ask(f"offsets of {', '.join(map(str, times_ms))}", ask, times_ms, early=stable)
        return {Partition(key.topic, key.partition): int(row.offset) for key, row in found.items()}

    def group_offsets(self, group: str, *, stable: bool = True) -> dict[Partition, Committed]:
        # librdkafka's own request ends the whole process with SIGSEGV where a broker answers that it does not
        # coordinate the group (its issue 5040). A new cluster says so until it has made its topic of offsets,
        # any cluster while a coordinator moves.
        return self._by_kafka_python(lambda admin: admin.group_offsets(group, stable=stable))

    def log_bytes(self, topics: Collection[str]) -> dict[str, int]:
        # librdkafka has no such request.
        return self._by_kafka_python(lambda admin: admin.log_bytes(topics))

    def _by_kafka_python(self, ask: Callable[[KafkaAdmin], _T]) -> _T:
        try:
            if self._group_admin is None:
                self._group_admin = self._make_group_admin()
            return ask(self._group_admin)
        except BrokerError:
            # It may have been given up in the middle of a call.
            self._drop_group_admin()
            raise

    def members(self, group: str) -> dict[str, GroupMember]:
        def ask() -> Any:
            found = self._client.describe_consumer_groups([group], request_timeout=_ATTEMPT_S)
            return found[group].result(_ANSWER_S)

        found = self._ask(f"members of group {group}", ask).members
        return {
            each.member_id: GroupMember(
                each.group_instance_id or None,
                frozenset(
                    Partition(part.topic, part.partition)
                    for part in (each.assignment.topic_partitions if each.assignment else ())
                ),
            )
            for each in found
        }

    def set_group_offsets(self, group: str, offsets: Mapping[Partition, Committed]) -> None:
        if not offsets:
            return
        parts = [TopicPartition(*at, *committed) for at, committed in offsets.items()]
        doing = f"set offsets of group {group}"
        request = [ConsumerGroupTopicPartitions(group, parts)]

        def ask() -> Any:
            return self._client.alter_consumer_group_offsets(request)[group].result(_ANSWER_S)

        for part in self._ask(doing, ask).topic_partitions:
            if part.error is not None:
                raise admin_error(doing, KafkaException(part.error))

    def close(self) -> None:
        """Librdkafka's admin client ends with its last reference."""
        self.closed = True
        self._drop_group_admin()
        self._client.poll(0)

    def _drop_group_admin(self) -> None:
        dropped, self._group_admin = self._group_admin, None
        if dropped is not None:
            with suppress(DeadlineError):
                within(_ATTEMPT_S, dropped.close)

    def _ask(
        self, doing: str, ask: Callable[[], _T], of: Collection[Partition] = (), *, early: bool = False
    ) -> _T:
        deadline = time.monotonic() + (LOOK_S if early else RETRY_S)
        while True:
            try:
                # With no broker there, an admin request keeps two threads of librdkafka busy connecting until
                # its time is up, and a core with them; this one waits.
                self._client.list_topics(topic=_KNOWN_TOPIC, timeout=_PROBE_S)
                return ask()
            except TimeoutError as error:
                self._client = _kafka.AdminClient(self._options)
                raise BrokerError(f"{doing}: no answer; the broker is away", retryable=True) from error
            except KafkaException as error:
                code = code_of(error)
                if code == NO_LEADER and not self._exist(of):
                    raise MissingError(doing) from error
                if code in PASSING and time.monotonic() < deadline:
                    # librdkafka asks again by the leaders it knew; only new metadata shows it the others.
                    with suppress(KafkaException):
                        self._client.list_topics(timeout=1.0)
                    time.sleep(PAUSE_S)
                    continue
                if code in MISSING:
                    raise MissingError(doing) from error
                if code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                    raise BrokerError(f"{doing}: no permission; {GRANT}", retryable=False) from error
                if code in AWAY:
                    # The brokers that this client knows may have moved; another begins at the bootstrap ones.
                    self._client = _kafka.AdminClient(self._options)
                    if time.monotonic() < deadline:
                        continue
                raise admin_error(doing, error) from error

    def _exist(self, partitions: Collection[Partition]) -> bool:
        """librdkafka says "no leaders" of what does not exist and of what has none just now; this tells."""
        rows = self._described({partition.topic for partition in partitions})
        found = {name: 0 if row is None else row.partitions for name, row in rows.items()}
        return all(partition.number < found[partition.topic] for partition in partitions)


def _spec(time_ms: int) -> Any:
    named = {EARLIEST: _kafka.OffsetSpec.earliest, LATEST: _kafka.OffsetSpec.latest}
    return named[time_ms]() if time_ms in named else _kafka.OffsetSpec.for_timestamp(time_ms)


def _all(futures: Mapping[Any, Any]) -> dict[Any, Any]:
    return {key: future.result(_ANSWER_S) for key, future in futures.items()}


def _id_bytes(topic_id: Any) -> bytes:
    if topic_id is None:
        return NO_TOPIC_ID
    halves = topic_id.get_most_significant_bits(), topic_id.get_least_significant_bits()
    return b"".join((half & (1 << 64) - 1).to_bytes(8, "big") for half in halves)
