"""Remove a static member from its group. kafka-python does not do that when a consumer closes.

A process leaves its groups after an error too: a rebalance costs its share less than a second. A supervisor
that starts a failing process again and again would otherwise keep its partitions out of service. The last
member stays, because an empty group makes its next member wait 3 s.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from twinsieve.pipeline.broker.records import BrokerError
from twinsieve.pipeline.kafka.admin import KafkaAdmin
from twinsieve.pipeline.kafka.deadline import DeadlineError, within

_LEAVE_S = 5.0
_log = logging.getLogger(__name__)


def leave(admin: Callable[[], KafkaAdmin], group: str, name: str, member_id: str) -> None:
    """Remove this closed member, so that other members get its partitions before its session times out.

    The only member of a group is not removed: no other member could take over, and the first member of an
    empty group must wait for further members (`group.initial.rebalance.delay.ms`, 3 s). If another process
    has taken the member name, nothing is removed. Never raises a BrokerError: if the removal fails, the
    session times out by itself.
    """
    try:
        within(_LEAVE_S, lambda: _leave(admin(), group, name, member_id))
    except (BrokerError, DeadlineError) as error:
        _log.info(
            "group %s: could not leave it (%s); other members get its partitions after kafka.session_timeout",
            group,
            error,
        )


def _leave(client: KafkaAdmin, group: str, name: str, member_id: str) -> None:
    members = client.members(group)
    if len(members) > 1 and member_id in members and members[member_id].name == name:
        client.remove_member(group, name, member_id)
