"""kafka-python's errors in one line each, and as errors of the port."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum

from kafka import errors

from twinsieve.pipeline.broker.records import (
    AbortableError,
    BrokerError,
    FatalError,
    MovedOnError,
    Partition,
    RefusedRecordError,
    TruncatedError,
)

GRANT = "grant it (twinsieve topics acls prints what is needed)"
NAME_TAKEN = "another process has taken this member name, so this one ends; give each its own --member"
_MOVED_ON = (errors.IllegalGenerationError, errors.UnknownMemberIdError, errors.RebalanceInProgressError)
_FIRST_RECORD = re.compile(
    r"One or more records have been rejected .*?RecordError\(batchIndex=\d+, message='(.*?)'\).*"
)
"""How a broker refuses a batch in which it refuses some records. Its long first sentence says nothing."""


class Meaning(Enum):
    """What an error means for the client that met it; the value is the end of the error text."""

    MEMBER_FENCED = f"; {NAME_TAKEN}"
    DENIED = f"; {GRANT}"
    EPOCH_OVER = "; the transaction timed out, or another process uses this transactional id"
    FINISHED = "; this client cannot be used any more"
    MOVED_ON = "; the consumer group has rebalanced since"
    REFUSED_RECORD = "; the topic refuses a single message"
    FAILED = ""
    """This attempt failed; the client can be used for another attempt."""


def meaning(error: Exception) -> Meaning:
    """What this error means for the client that met it."""
    error = _refusal(error)
    if isinstance(error, errors.FencedInstanceIdError | errors.UnreleasedInstanceIdError):
        return Meaning.MEMBER_FENCED
    if may_be_fenced(error):
        return Meaning.EPOCH_OVER
    if isinstance(error, errors.AuthorizationError | errors.SaslAuthenticationFailedError):
        return Meaning.DENIED
    if isinstance(error, errors.InvalidTxnStateError | errors.IllegalStateError):
        return Meaning.FINISHED
    if isinstance(error, _MOVED_ON):
        return Meaning.MOVED_ON
    if too_large(error) or isinstance(error, errors.InvalidRecordError | errors.InvalidTimestampError):
        return Meaning.REFUSED_RECORD
    return Meaning.FAILED


def may_be_fenced(error: Exception) -> bool:
    """Whether Kafka's error means that a newer producer has this one's transactional id, or may mean it."""
    return isinstance(error, errors.ProducerFencedError | errors.InvalidProducerEpochError)


def too_large(error: Exception) -> bool:
    """Whether a topic refused a batch for its size."""
    return isinstance(error, errors.MessageSizeTooLargeError | errors.RecordListTooLargeError)


def reason(error: Exception) -> str:
    """One line that describes an error of kafka-python, cut to 300 characters.

    >>> reason(errors.InvalidRecordError(
    ...     "One or more records have been rejected due to 1 record errors in total, and only showing "
    ...     "the first three errors at most: [RecordError(batchIndex=0, message='no key in out-0')]"
    ... ))
    'InvalidRecordError: [Error 87] InvalidRecordError: no key in out-0'
    """
    error = _refusal(error)
    if isinstance(error, errors.TopicAuthorizationFailedError):
        return f"not allowed for topic {_names(error)}"
    if isinstance(error, errors.GroupAuthorizationFailedError):
        return f"not allowed for group {_names(error)}"
    if isinstance(error, errors.TopicAlreadyExistsError):
        return "exists already"
    if isinstance(error, errors.InvalidTimestampError):
        return "the broker refuses the time of a message; `twinsieve topics check` says what to alter"
    text = _FIRST_RECORD.sub(r"\1", " ".join(str(error).split()))
    name = type(error).__name__
    return (text if text.startswith(name) else f"{name}: {text}" if text else name)[:300]


def translated(error: Exception, doing: str) -> BrokerError:
    """The port's error for this error of kafka-python; `doing` names the action that failed, and where."""
    means = meaning(error)
    message = f"{doing}: {reason(error)}{means.value}"
    if means is Meaning.MOVED_ON:
        return MovedOnError(message)
    if means is Meaning.REFUSED_RECORD:
        return RefusedRecordError(message)
    if means is Meaning.FAILED:
        return AbortableError(message)
    return FatalError(message, fenced=means is Meaning.MEMBER_FENCED, denied=means is Meaning.DENIED)


@contextmanager
def translating(doing: str) -> Iterator[None]:
    """Context manager: raises the port's error in place of any error of kafka-python.

    doing: names the action inside, and where it happens
    """
    try:
        yield
    except errors.LogTruncationError as error:
        # kafka-python raises one error for all truncated partitions. The port's error names only one of
        # them, which is enough to stop.
        partition = Partition(*min(error.divergent_offsets))
        raise TruncatedError(partition, f"{doing}: {reason(error)}") from error
    except errors.KafkaError as error:
        raise translated(error, doing) from error


def _refusal(error: Exception) -> Exception:
    # After the first error every call of a producer raises an error whose `args` contain the first one.
    return next((cause for cause in error.args if isinstance(cause, errors.AuthorizationError)), error)


def _names(error: Exception) -> str:
    names = error.args[0] if error.args else "?"
    return (
        ", ".join(sorted(map(str, names)))
        if isinstance(names, set | frozenset | list | tuple)
        else str(names)
    )
