"""Somebody else uses the consumer group of the workers, as people do with a console consumer and with tools."""

from __future__ import annotations

import random

from tests.driver import GROUP, World
from twinsieve.pipeline.broker.records import Committed, Partition


class Stranger:
    """An ordinary consumer that joined the workers' group: it reads its share and commits what it has read."""

    def __init__(self, world: World, draw: random.Random) -> None:
        self._world = world
        self._random = draw
        self._group = world.cluster.group(GROUP)
        topics = tuple(world.topic_ids)
        self._id = self._group.join(topics, None, world.clock.monotonic_s()).member_id
        self._left = draw.randint(1, 60)

    def act(self) -> bool:
        """Send a heartbeat and perhaps commit; returns False once it has left."""
        cluster = self._world.cluster
        member = self._group.members.get(self._id)
        self._left -= 1
        if member is None or self._left < 0:
            self.leave()
            return False
        member.seen_s = cluster.clock.monotonic_s()
        if self._random.random() < 0.4:
            for at in sorted(self._group.assignment(self._id, cluster.partition_counts())):
                self._commit(at)
        return True

    def _commit(self, at: Partition) -> None:
        held, log = self._group.offsets.get(at), self._world.cluster.log(at)
        begin = held.offset if held is not None else log.beginning
        offset = self._random.choice([begin, log.beginning, log.end, self._random.randint(0, log.end)])
        self._group.offsets[at] = Committed(offset)

    def leave(self) -> None:
        """Go, and leave the offsets."""
        self._group.leave(self._id)


def use_tool(world: World, draw: random.Random, at: Partition) -> None:
    """`kafka-consumer-groups` moves or deletes the offset of a partition while the group is empty."""
    offsets, end = world.cluster.group(GROUP).offsets, world.cluster.log(at).end
    if draw.random() < 0.3:
        offsets.pop(at, None)
    else:
        offsets[at] = Committed(draw.choice([0, draw.randint(0, end), end, end + 50]))
