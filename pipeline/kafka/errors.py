"""Translation of a client library's errors into the port's errors, with the same texts for both libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum

from twinsieve.pipeline.broker.records import (
    AbortableError,
    BrokerError,
    FatalError,
    MovedOnError,
    RefusedRecordError,
)

GRANT = "grant it (twinsieve topics acls prints what is needed)"
NAME_TAKEN = "another process has taken this member name, so this one ends; give each its own --member"
REFUSED_TIME = "the broker refuses the time of a message; `twinsieve topics check` says what to alter"
UNREADABLE_NAME = "\udcff"
"""Replaces a header name that is not UTF-8, if the client cannot return the original bytes. No client can
send this name, so the message becomes a dead letter (`DeadLetterReason.BAD_HEADER`) instead of being
forwarded with an altered header."""


class Meaning(Enum):
    """What an error of a library means for the client that met it; the value is the end of the error text."""

    MEMBER_FENCED = f"; {NAME_TAKEN}"
    DENIED = f"; {GRANT}"
    EPOCH_OVER = "; the transaction timed out, or another process uses this transactional id"
    FINISHED = "; this client cannot be used any more"
    MOVED_ON = "; the consumer group has rebalanced since"
    REFUSED_RECORD = "; the topic refuses a single message"
    FAILED = ""
    """This attempt failed; the client can be used for another attempt."""


@dataclass(frozen=True, slots=True)
class ErrorRules:
    """How to classify the errors of one library.

    raised: the classes of errors that the library raises
    reason: one line that says what happened
    meaning: what the error means for the client
    may_be_fenced: whether a producer gets this error when another process took its slot (transactional id);
        a producer may get the same error for other causes too
    too_large: whether a topic refused a batch for its size
    """

    raised: tuple[type[Exception], ...]
    reason: Callable[[Exception], str]
    meaning: Callable[[Exception], Meaning]
    may_be_fenced: Callable[[Exception], bool]
    too_large: Callable[[Exception], bool]

    def translated(self, error: Exception, doing: str) -> BrokerError:
        """The port's error for this error of the library; `doing` names the action that failed, and where."""
        meaning = self.meaning(error)
        message = f"{doing}: {self.reason(error)}{meaning.value}"
        if meaning is Meaning.MOVED_ON:
            return MovedOnError(message)
        if meaning is Meaning.REFUSED_RECORD:
            return RefusedRecordError(message)
        if meaning is Meaning.FAILED:
            return AbortableError(message)
        return FatalError(message, fenced=meaning is Meaning.MEMBER_FENCED, denied=meaning is Meaning.DENIED)

    @contextmanager
    def translating(self, doing: str) -> Iterator[None]:
        """Context manager: raises the port's error in place of any error of the library.

        doing: names the action inside, and where it happens
        """
        try:
            yield
        except self.raised as error:
            raise self.translated(error, doing) from error
