"""Members of the app's consumer groups that are no processes of twinsieve.

Somebody who types the workers' group into an ordinary consumer takes input partitions away, and nothing of
them is judged while that consumer runs.
"""

from __future__ import annotations

from twinsieve.pipeline.basics.printable import printable
from twinsieve.pipeline.broker.admin import Admin
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.records import GroupMember


def foreign_members(app: str, admin: Admin) -> dict[str, dict[str, GroupMember]]:
    """By group of the app, its members whose names show that they are no processes of twinsieve, by their
    ids. raises: BrokerError"""
    names = Names(app)
    found = {}
    for group in names.run_groups:
        members = admin.members(group)
        found[group] = {key: each for key, each in members.items() if not names.is_own(group, each.name)}
    return {group: members for group, members in found.items() if members}


def described(member: GroupMember) -> str:
    """The client of a member, for the operator. Safe to print."""
    parts = ", ".join(map(str, sorted(member.partitions)))
    which = f" with {parts}" if parts else ""
    return printable(
        f"client {member.client_id or 'without an id'} on {member.host or 'unknown host'}{which}"
    )
