"""What the errors of a client library mean, in the port's errors; the same words for both clients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum

from twinsieve.pipeline.broker.records import AbortableError, BrokerError, FatalError, MovedOnError, Partition

GRANT = "grant it (twinsieve topics acls prints what is needed)"
REFUSED_TIME = "the broker refuses the time of a message; `twinsieve topics check` says what to alter"
UNREADABLE_NAME = "\udcff"
"""Stands for header names that are not UTF-8 where a client does not hand them out: no client can send it,
so that the message becomes a dead letter (`DeadLetterReason.BAD_HEADER`) and nothing of it passes for what it
was."""


class Meaning(Enum):
    """What an error of a library means for the client that met it; the value ends the line of the error."""

    MEMBER_FENCED = "; another process runs as this member, so this one ends"
    DENIED = f"; {GRANT}"
    EPOCH_OVER = "; the transaction timed out or another process has this slot"
    FINISHED = "; the client is finished"
    MOVED_ON = "; its group has moved on"
    FAILED = ""
    """This attempt failed; the client is good for another one."""


@dataclass(frozen=True, slots=True)
class ErrorRules:
    """How to read the errors of one library.

    raised: their classes; reason: one line that says what happened
    may_be_fenced: the error is what a producer meets whose slot another process took, and others meet too
    too_large: a topic refused a batch for its size
    """

    raised: tuple[type[Exception], ...]
    reason: Callable[[Exception], str]
    meaning: Callable[[Exception], Meaning]
    may_be_fenced: Callable[[Exception], bool]
    too_large: Callable[[Exception], bool]

    def translated(self, error: Exception, doing: str) -> BrokerError:
        """The port's error for one of the library's; `doing` says what failed where."""
        meaning = self.meaning(error)
        message = f"{doing}: {self.reason(error)}{meaning.value}"
        if meaning is Meaning.MOVED_ON:
            return MovedOnError(message)
        if meaning is Meaning.FAILED:
            return AbortableError(message)
        return FatalError(message, fenced=meaning is Meaning.MEMBER_FENCED, denied=meaning is Meaning.DENIED)

    @contextmanager
    def translating(self, doing: str) -> Iterator[None]:
        """Raises the port's error for any of the library's; `doing` says what failed where."""
        try:
            yield
        except self.raised as error:
            raise self.translated(error, doing) from error


def undecodable(partition: Partition, offset: int, why: str, after: int | None = None) -> BrokerError:
    """The error that ends the process: to read the batch again fails again, to skip it would lose it
    silently.

    why: one line; after: first offset behind the damage, where that is known
    """
    past = "OFFSET" if after is None else after
    return BrokerError(
        f"{partition}@{offset}: cannot be decoded ({why}); repair the topic, or pass over it, which "
        f"loses what is there (twinsieve reset --to '{partition}={past}')",
        retryable=False,
    )
