"""Leaving a group for good: neither client does that for a static member when it closes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from twinsieve.pipeline.broker.records import BrokerError
from twinsieve.pipeline.kafka.admin import KafkaAdmin
from twinsieve.pipeline.kafka.deadline import DeadlineError, within

_LEAVE_S = 5.0
_log = logging.getLogger(__name__)


def leave(admin: Callable[[], KafkaAdmin], group: str, name: str, member_id: str) -> None:
    """Has the group give this closed member's share to the others at once, not when its session ends.

    A member that is alone stays known: no other member could take over, and an empty group makes its next
    member wait for more to come (`group.initial.rebalance.delay.ms`, 3 s). One that was displaced changes
    nothing. Never fails: in doubt the session ends by itself.
    """
    try:
        within(_LEAVE_S, partial(_leave, admin, group, name, member_id))
    except (BrokerError, DeadlineError) as error:
        _log.info("group %s: its share waits for the end of the session (%s)", group, error)


def _leave(admin: Callable[[], KafkaAdmin], group: str, name: str, member_id: str) -> None:
    client = admin()
    members = client.members(group)
    if len(members) > 1 and member_id in members and members[member_id].name == name:
        client.remove_member(group, name, member_id)
