"""Copies of a cluster's disks, and clusters that are restored from them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from copy import deepcopy

from tests.memory.broker import MemoryCluster
from tests.memory.log import PartitionLog


class Backup:
    """What all brokers have on their disks, copied while they are down for a moment."""

    def __init__(self, cluster: MemoryCluster) -> None:
        cluster.deliver()
        self._saved = deepcopy((cluster.topics, cluster.groups, cluster.slots))
        _elect(log for topic in cluster.topics.values() for log in topic.logs)

    def restore(
        self,
        cluster: MemoryCluster,
        topics: Collection[str] | None = None,
        groups: Collection[str] | None = None,
    ) -> None:
        """Put back these topics and the offsets of these groups; all of them, and the transactional ids, where
        neither is given.

        A producer that ran at both moments is refused: its sequence numbers are ahead.
        """
        saved, saved_groups, slots = deepcopy(self._saved)
        cluster.in_flight.clear()
        if topics is None and groups is None:
            cluster.topics, cluster.groups, cluster.slots = saved, saved_groups, slots
            for slot in slots.values():
                slot.epoch += 1
                slot.timed_out = True
            _elect(log for topic in saved.values() for log in topic.logs)
            return
        for name in topics or ():
            epochs = [log.epoch for log in cluster.topics[name].logs]
            cluster.topics[name] = saved[name]
            for log, epoch in zip(saved[name].logs, epochs, strict=True):
                log.epoch = epoch
            # Who elects leaders has not been restored.
            _elect(saved[name].logs)
        for name in groups or ():
            cluster.groups[name].offsets = saved_groups[name].offsets


def _elect(logs: Iterable[PartitionLog]) -> None:
    for log in logs:
        log.elect()
