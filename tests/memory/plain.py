"""`delivery: at-least-once` on the memory broker: no transactions, offsets after the messages."""

from __future__ import annotations

from collections.abc import Mapping

from tests.memory.clients import flush, reach, too_large
from tests.memory.cluster import MemoryCluster
from tests.memory.groups import Handle
from tests.memory.in_flight import InFlight
from tests.memory.lock import CLUSTER_LOCK, one_at_a_time, waits
from twinsieve.pipeline.broker.ports import AbortableError, Committed, Hook, Membership, Messages, Partition
from twinsieve.stages.dead_letter_reasons import Reason


@one_at_a_time
class MemoryPlainTransactor:
    """Without transactions: what was sent stays sent, whatever becomes of the rest."""

    def __init__(self, cluster: MemoryCluster, hook: Hook) -> None:
        self._cluster = cluster
        self._hook = hook
        self._open = False
        self._in_flight = InFlight()
        self._offsets: list[tuple[dict[Partition, Committed], Membership]] = []
        reach(cluster, "transactor")

    def begin(self) -> None:
        self._hook("transactor.begin")
        self._open = True

    def unsendable(self, topic: str, messages: Messages) -> dict[int, Reason]:
        return too_large(self._cluster, topic, messages)

    def send(self, topic: str, partition: int | None, messages: Messages) -> None:
        """Visible at once."""
        self._hook("transactor.send.before")
        self._need_open("send")
        reach(self._cluster, "send")
        shares = {partition: messages} if partition is not None else self._cluster.by_key(topic, messages)
        for number, share in shares.items():
            self._cluster.check(Partition(topic, number), share)
            self._cluster.hand_over(self._in_flight, Partition(topic, number), share)
        self._hook("transactor.send.after")

    def send_offsets(self, offsets: Mapping[Partition, Committed], membership: Membership) -> None:
        """Done by `commit`."""
        self._hook("transactor.send_offsets.before")
        self._need_open("send_offsets")
        if membership.generation < 0 or not isinstance(membership.handle, Handle):
            raise AbortableError("send_offsets: no membership of a group; poll first")
        self._offsets.append((dict(offsets), membership))
        self._hook("transactor.send_offsets.after")

    @waits
    def commit(self) -> None:
        """The offsets, if all was written and the group has not moved on."""
        self._hook("transactor.commit.before")
        self._need_open("commit")
        reach(self._cluster, "commit")
        left = flush(self._cluster, self._in_flight)
        if left:
            raise AbortableError(f"commit: {left} messages were not acknowledged")
        with CLUSTER_LOCK:
            self._commit_offsets()
        self._hook("transactor.commit.after")

    def _commit_offsets(self) -> None:
        self._cluster.tick()
        for offsets, membership in self._offsets:
            handle = membership.handle
            assert isinstance(handle, Handle)
            group = self._cluster.group(handle.group)
            group.check(handle.member_id, handle.instance, membership.generation)
            group.offsets.update(offsets)
        self._forget()

    def abort(self) -> None:
        """What was sent stays."""
        self._hook("transactor.abort")
        self._forget()

    def close(self) -> None:
        """Disconnect."""

    def _need_open(self, call: str) -> None:
        if not self._open:
            raise RuntimeError(f"{call} outside a transaction; call begin first")

    def _forget(self) -> None:
        self._open = False
        self._in_flight.cut(0)
        self._offsets.clear()
