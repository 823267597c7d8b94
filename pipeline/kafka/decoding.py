"""Stored messages that cannot be decoded: what both clients say of one."""

from __future__ import annotations

from twinsieve.pipeline.broker.ports import BrokerError, Partition

UNREADABLE_NAME = "\udcff"
"""Stands for header names that are not UTF-8 where a client does not hand them out: no client can send it,
so that the message becomes a dead letter (`Reason.BAD_HEADER`) and nothing of it passes for what it was."""


def undecodable(partition: Partition, offset: int, why: str, after: int | None = None) -> BrokerError:
    """Ends the process: read again it fails again, and going on behind it would lose it in silence.

    why: one line; after: first offset behind the damage, where that is known
    """
    past = "OFFSET" if after is None else after
    return BrokerError(
        f"{partition}@{offset}: cannot be decoded ({why}); repair the topic, or pass over it, which "
        f"loses what is there (twinsieve reset --to '{partition}={past}')",
        retryable=False,
    )
