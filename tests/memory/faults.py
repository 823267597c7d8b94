"""What can go wrong in a memory cluster; nothing does until a test says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from twinsieve.pipeline.broker.records import Partition


def at_once() -> float:
    """Seconds until a message is written: none."""
    return 0.0


def never_fails(waiting: int) -> int | None:
    """The append succeeds."""
    return None


def commits(transactional_id: str, count: int) -> bool:
    """The transaction is not refused."""
    return False


def takes(topic: str, key: bytes | None, value: bytes | None) -> str | None:
    """The topic takes every message."""
    return None


@dataclass(slots=True)
class Faults:
    """The faults of a cluster, each as a real one shows it.

    leaderless: partitions without a leader. Nothing is read there, questions about their offsets fail after
        `MemoryCluster.lookup_timeout_s`, and what is written waits for a leader until its producer gives up.
    append_latency_s: asked for each appended message: seconds until the broker writes it. Messages of one
        appender keep their order. What a process leaves behind when it dies is written all the same.
    append_failure: asked at each `confirm` that leaves messages unacknowledged, with their number. None: they
        go on waiting. A number: the append fails; that many of its messages, the oldest, are written all the same, and
        perhaps later than what a new producer appends.

    fetches_late: whether a worker that asks for records ahead of its poll is told that they are on their way.

    denied: topics that no user may read or write. hidden: topics that no user may describe.

    unreadable: offsets [start, stop) of batches that nobody can read; they stand in the log like others.

    refuses_commit: asked at each commit, with the transactional id and the number of messages in it: whether
        the broker refuses the transaction, which then must be aborted.

    refuses_record: asked for each message that is sent in a transaction, with its topic, key and value: the
        words with which the topic refuses this record; no client knows it beforehand.

    Others need no switch: `MemoryCluster.reachable`, `delete` and `create`; `PartitionLog.trim` (retention)
    and `truncate`; a hook that lets time pass, or other processes act, is a process that stalls in a call.
    """

    leaderless: set[Partition] = field(default_factory=set)
    append_latency_s: Callable[[], float] = at_once
    append_failure: Callable[[int], int | None] = never_fails
    fetches_late: bool = False
    refuses_commit: Callable[[str, int], bool] = commits
    refuses_record: Callable[[str, bytes | None, bytes | None], str | None] = takes
    denied: set[str] = field(default_factory=set)
    hidden: set[str] = field(default_factory=set)
    unreadable: dict[Partition, list[range]] = field(default_factory=dict)
