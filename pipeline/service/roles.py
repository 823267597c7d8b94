"""What one process of `run` does, as `--role` says it."""

from __future__ import annotations

from typing import Literal, get_args

from twinsieve.pipeline.settings.model import Settings
from twinsieve.stages.errors import UsageError

Role = Literal["worker", "index", "shard"]
ROLES: tuple[Role, ...] = get_args(Role)
BOTH = "both"
"""A worker and an index; a shard is only where it is asked for."""


def roles_of(written: str) -> frozenset[Role]:
    """The roles in this text: `both`, one role, or several with commas between them. raises: UsageError

    >>> sorted(roles_of("both")), sorted(roles_of("shard,worker"))
    (['index', 'worker'], ['shard', 'worker'])
    """
    if written == BOTH:
        return frozenset({"worker", "index"})
    named = [name.strip() for name in written.split(",")]
    found = frozenset(role for role in ROLES if role in named)
    if unknown := [name for name in named if name not in ROLES]:
        known = f"{BOTH}, {', '.join(ROLES)}, or several with commas, as worker,index,shard"
        raise UsageError(f"--role names {unknown[0]!r}; there are {known}")
    if len(named) > len(found):
        raise UsageError(f"--role is {written!r}, which names a role twice; remove one")
    return found


def check_roles(roles: frozenset[Role], settings: Settings) -> None:
    """Check that these settings have a use for these roles. raises: UsageError"""
    if "shard" in roles and settings.near.answers != "shards":
        raise UsageError(
            f"--role shard: near.answers is {settings.near.answers}, so nobody reads what a shard finds; set "
            "near.answers: shards for all processes of this app"
        )
