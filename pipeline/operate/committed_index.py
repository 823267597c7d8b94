"""What the index of an app has committed beside its offset of the log."""

from __future__ import annotations

from twinsieve.pipeline.broker.admin import Admin
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.records import Committed, Partition


def committed_by_index(app: str, admin: Admin) -> Committed | None:
    """The log offset that the index of this app has committed, with what is on record beside it."""
    names = Names(app)
    # Do not wait for stable offsets: the previous index may have died during a transaction, which stays open
    # until the next index takes over.
    return admin.group_offsets(names.index, stable=False).get(Partition(names.fingerprints, 0))
