"""What the errors of librdkafka's admin requests mean."""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException

from twinsieve.pipeline.broker.records import BrokerError
from twinsieve.pipeline.kafka.admin import has_members
from twinsieve.pipeline.kafka.confluent.options import code_of, reason

MISSING = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
)
NO_LEADER = KafkaError._NOENT
"""Said of what does not exist, and of what has no leader just now."""
PASSING = (
    NO_LEADER,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.NOT_COORDINATOR,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.OFFSET_NOT_AVAILABLE,
    KafkaError.NOT_CONTROLLER,
    KafkaError.UNSTABLE_OFFSET_COMMIT,
)
AWAY = (
    KafkaError._TIMED_OUT,
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.NETWORK_EXCEPTION,
)


class MissingError(BrokerError):
    """A topic or partition that does not exist."""

    def __init__(self, doing: str) -> None:
        super().__init__(f"{doing}: no such topic or partition", retryable=False)


def admin_error(doing: str, error: KafkaException) -> BrokerError:
    """The port's error for one of an admin request; `doing` says what failed."""
    code = code_of(error)
    if code in (KafkaError.UNKNOWN_MEMBER_ID, KafkaError.NON_EMPTY_GROUP):
        return has_members(doing)
    if code == KafkaError.TOPIC_ALREADY_EXISTS:
        return BrokerError(f"{doing}: exists already", retryable=False)
    # An error of an admin request never says by itself that it is retriable.
    return BrokerError(f"{doing}: {reason(error)}", retryable=code in PASSING or code in AWAY)
