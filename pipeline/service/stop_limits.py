"""How long the roles of a process may take to end after a stop."""

from __future__ import annotations

from twinsieve.pipeline.service.roles import BOTH, roles_of
from twinsieve.pipeline.settings.model import Settings

END_S = 30.0
"""For a worker, and for a shard after its grace; for an index too, if another role has failed."""
SNAPSHOT_S = 600.0
"""For an index, which writes a last snapshot."""


def hand_over_s(settings: Settings) -> float:
    """For a shard, which goes on until others do its work."""
    return settings.near.grace_ms / 1000 + END_S


def stop_s(settings: Settings, role: str = BOTH) -> float:
    """The longest time from a stop to the end of the process, with time for Python to end.

    role: as `roles_of` reads it
    """
    limits = {"worker": END_S, "index": SNAPSHOT_S, "shard": hand_over_s(settings)}
    return sum(limits[name] for name in roles_of(role)) + END_S
