"""Topics, offsets and groups with confluent-kafka."""

from __future__ import annotations

import math
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

from twinsieve.pipeline.broker.ports import (
    NO_TOPIC_ID,
    BrokerError,
    Committed,
    NewTopic,
    Partition,
    TopicInfo,
)
from twinsieve.pipeline.kafka.closing import Closing
from twinsieve.pipeline.kafka.confluent.options import Heard, cause, reason
from twinsieve.pipeline.kafka.confluent.refusals import (
    AWAY,
    MISSING,
    NO_LEADER,
    PASSING,
    MissingError,
    admin_error,
)
from twinsieve.pipeline.kafka.tls import handshake_problem
from twinsieve.pipeline.kafka.unreachable import unreachable
from twinsieve.pipeline.settings.model import KafkaSettings

_ANSWER_S = 10.0
_ATTEMPT_S = 2.0
"""How long one broker is given for a question that changes nothing. librdkafka asks the controller that it
knows of, and Kafka names any broker as that: it may have died, and a new client hears of another."""
_RETRY_S = 10.0
_LOOK_S = 2.0
"""A question that is asked again and again anyway gives up earlier: whoever asks waits meanwhile."""
_PAUSE_S = 0.1
_PROBE_S = 2.0
_KNOWN_TOPIC = "__consumer_offsets"
# Its type hints leave out half of what it exports.
_kafka: Any = confluent_admin
_T = TypeVar("_T")


class ConfluentAdmin(Closing):
    """`ports.Admin` on confluent-kafka.

    connect_timeout_s: how long to try to reach a broker at all
    raises: BrokerError in one line: unreachable, wrong password, certificate not accepted
    """

    def __init__(self, settings: KafkaSettings, options: Mapping[str, Any], connect_timeout_s: float) -> None:
        heard = Heard()
        self._options = {**options, **heard.options()}
        self._client = _kafka.AdminClient(self._options)
        deadline = time.monotonic() + connect_timeout_s
        # The constructor connects to nobody; only a call shows a wrong address or password.
        while True:
            try:
                self._client.list_topics(topic=_KNOWN_TOPIC, timeout=1.0)
                return
            except KafkaException as error:
                self._client.poll(0)
                said = [*handshake_problem(settings), *heard.reasons, reason(error)]
                found = unreachable(settings, said)
                if time.monotonic() >= deadline or (heard.reasons and not found.retryable):
                    raise found from error

    def topics(self, names: Collection[str], *, settings: bool = False) -> dict[str, TopicInfo | None]:
        if not names:
            return {}
        rows = self._described(names)
        known = [name for name in names if rows[name] is not None]
        held = self._settings(known) if settings and known else {}
        found: dict[str, TopicInfo | None] = dict.fromkeys(names)
        for name in known:
            row = rows[name]
            replication = min((len(part.replicas) for part in row.partitions), default=0)
            found[name] = TopicInfo(
                name,
                _id_bytes(row.topic_id),
                len(row.partitions),
                replication,
                held.get(name, {}),
                frozenset(part.id for part in row.partitions if part.leader is None or part.leader.id < 0),
            )
        return found

    def _described(self, names: Collection[str]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name in names:
            try:
                found[name] = self._ask(f"topic {name}", partial(self._describe, name))
            except MissingError:
                found[name] = None
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

    def require(self, topics: Collection[str], operations: Collection[str]) -> None:
        """Fails with a clear text unless every topic exists and these operations on it are allowed.

        raises: BrokerError(retryable=False)
        """
        for name, row in self._described(topics).items():
            if row is None:
                raise BrokerError(
                    f"topic {name}: does not exist; create it (twinsieve topics create) or correct its name",
                    retryable=False,
                )
            allowed = {operation.name for operation in row.authorized_operations or ()}
            denied = set(operations) - allowed if allowed else set()
            if denied:
                raise BrokerError(
                    f"topic {name}: no permission for {', '.join(sorted(denied))}; grant it "
                    "(twinsieve topics acls prints what is needed)",
                    retryable=False,
                )

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
            time.sleep(_PAUSE_S)
        raise BrokerError(f"{doing}: it did not appear; look at the broker's log", retryable=True)

    def delete_records(self, before: Mapping[Partition, int]) -> None:
        wanted = [TopicPartition(part.topic, part.number, offset) for part, offset in before.items()]
        doing = f"delete records of {', '.join(map(str, before))}"
        self._ask(doing, lambda: _all(self._client.delete_records(wanted)), before)

    def beginning_offsets(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        return self._offsets({partition: _kafka.OffsetSpec.earliest() for partition in partitions})

    def end_offsets(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        return self._offsets({partition: _kafka.OffsetSpec.latest() for partition in partitions})

    def stable_offsets(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """Last stable offset of each: where a read-committed reader waits. Gives up early."""
        latest = {partition: _kafka.OffsetSpec.latest() for partition in partitions}
        return self._offsets(latest, IsolationLevel.READ_COMMITTED, _LOOK_S)

    def offsets_at(self, times_ms: Mapping[Partition, int]) -> dict[Partition, int]:
        found = self._offsets(
            {part: _kafka.OffsetSpec.for_timestamp(time) for part, time in times_ms.items()}
        )
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

        def ask() -> dict[Any, Any]:
            return _all(
                self._client.list_offsets(specs, isolation_level=isolation, request_timeout=_ATTEMPT_S)
            )

        found = self._ask(doing, ask, wanted, max_s)
        return {Partition(key.topic, key.partition): int(row.offset) for key, row in found.items()}

    def group_offsets(self, group: str, *, stable: bool = True) -> dict[Partition, Committed]:
        request = [ConsumerGroupTopicPartitions(group)]

        def ask() -> Any:
            found = self._client.list_consumer_group_offsets(
                request, require_stable=stable, request_timeout=_ATTEMPT_S
            )
            parts = found[group].result(_ANSWER_S).topic_partitions
            for part in parts:
                if part.error is not None:
                    raise KafkaException(part.error)
            return parts

        return {
            Partition(part.topic, part.partition): Committed(part.offset, part.metadata or "")
            for part in self._ask(f"offsets of group {group}", ask)
            if part.offset >= 0
        }

    def members(self, group: str) -> dict[str, str | None]:
        """The group's member ids, each with its static name."""

        def ask() -> Any:
            found = self._client.describe_consumer_groups([group], request_timeout=_ATTEMPT_S)
            return found[group].result(_ANSWER_S)

        found = self._ask(f"members of group {group}", ask).members
        return {each.member_id: each.group_instance_id or None for each in found}

    def set_group_offsets(self, group: str, offsets: Mapping[Partition, Committed]) -> None:
        if not offsets:
            return
        parts = [
            TopicPartition(part.topic, part.number, committed.offset, committed.metadata)
            for part, committed in offsets.items()
        ]
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
        self._client.poll(0)

    def _ask(
        self, doing: str, ask: Callable[[], _T], of: Collection[Partition] = (), max_s: float = math.inf
    ) -> _T:
        # A fresh cluster has no group coordinator for its first seconds, and a leader may be moving.
        deadline = time.monotonic() + min(max_s, _RETRY_S)
        while True:
            reached = False
            try:
                # With no broker there, an admin request keeps two threads of librdkafka busy connecting until
                # its time is up, and a core with them; this one waits.
                self._client.list_topics(topic=_KNOWN_TOPIC, timeout=_PROBE_S)
                reached = True
                return ask()
            except TimeoutError as error:
                self._client = _kafka.AdminClient(self._options)
                raise BrokerError(f"{doing}: no answer; the broker is away", retryable=True) from error
            except KafkaException as error:
                inner = cause(error)
                code = None if inner is None else inner.code()
                if code == NO_LEADER and not self._exist(of):
                    raise MissingError(doing) from error
                if code in PASSING and time.monotonic() < deadline:
                    # librdkafka asks again by the leaders it knew; only new metadata shows it the others.
                    with suppress(KafkaException):
                        self._client.list_topics(timeout=_PAUSE_S * 10)
                    time.sleep(_PAUSE_S)
                    continue
                if code in MISSING:
                    raise MissingError(doing) from error
                if code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                    said = f"{doing}: no permission; grant it (twinsieve topics acls prints what is needed)"
                    raise BrokerError(said, retryable=False) from error
                if code in AWAY:
                    # The brokers that this client knows may have moved; another begins at the bootstrap ones.
                    self._client = _kafka.AdminClient(self._options)
                    if reached and time.monotonic() < deadline:
                        continue
                raise admin_error(doing, error) from error

    def _exist(self, partitions: Collection[Partition]) -> bool:
        """librdkafka says "no leaders" of what does not exist and of what has none just now; this tells."""
        rows = self._described({partition.topic for partition in partitions})
        found = {name: 0 if row is None else len(row.partitions) for name, row in rows.items()}
        return all(partition.number < found[partition.topic] for partition in partitions)


def _all(futures: Mapping[Any, Any]) -> dict[Any, Any]:
    return {key: future.result(_ANSWER_S) for key, future in futures.items()}


def _id_bytes(topic_id: Any) -> bytes:
    if topic_id is None:
        return NO_TOPIC_ID
    halves = topic_id.get_most_significant_bits(), topic_id.get_least_significant_bits()
    return b"".join((half & (1 << 64) - 1).to_bytes(8, "big") for half in halves)
