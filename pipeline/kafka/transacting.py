"""What every transactor refuses before its client does anything; the same for both clients."""

from __future__ import annotations

from twinsieve.pipeline.broker.ports import AbortableError, Membership, Messages, Reason
from twinsieve.pipeline.kafka.closing import Closing
from twinsieve.pipeline.kafka.limits import Limits


class Transacting(Closing):
    """The rules of `ports.Transactor` that need no client."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._open = False

    def unsendable(self, topic: str, messages: Messages) -> dict[int, Reason]:
        return self._limits.unsendable(topic, messages)

    def _require_open(self, call: str) -> None:
        if not self._open:
            raise RuntimeError(f"{call} outside a transaction; call begin first")

    def _require_member(self, membership: Membership) -> None:
        # With what a consumer that has left its group says of itself the broker asks no questions: it would
        # commit for a process that no longer owns the partition.
        if membership.generation < 0:
            raise AbortableError("offsets: not a member of the group any more")
