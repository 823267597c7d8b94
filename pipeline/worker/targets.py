"""Which messages cannot be written now, because the partition they belong to has no leader."""

from __future__ import annotations

from collections.abc import Mapping

from twinsieve.pipeline.broker.key_partitions import partition_of
from twinsieve.pipeline.broker.ports import Messages
from twinsieve.pipeline.worker.emit import Emission


class Targets:
    """Partitions of the output topics.

    counts: partitions of each topic; dead: the numbers of those without a leader, of topics that have any
    """

    def __init__(self, counts: Mapping[str, int], dead: Mapping[str, frozenset[int]]) -> None:
        self._counts = counts
        self._dead = dead

    def reachable(self, emission: Emission) -> Emission | None:
        """The same emission, its keyless messages sent past dead partitions; None if one that has its
        partition by number or key would have to go to a dead one."""
        if not self._dead:
            return emission
        placed = Emission(kinds=emission.kinds, dead=emission.dead)
        for (topic, number), messages in emission.outgoing.items():
            dead = self._dead.get(topic)
            if not dead or not len(messages):
                placed.to(topic, number).extend(messages)
            elif number is None:
                if not self._by_key(placed, topic, messages, dead):
                    return None
            elif number in dead:
                return None
            else:
                placed.to(topic, number).extend(messages)
        return placed

    def _by_key(self, placed: Emission, topic: str, messages: Messages, dead: frozenset[int]) -> bool:
        """Whether all of these have somewhere to go."""
        count = self._counts[topic]
        live = [number for number in range(count) if number not in dead]
        columns = zip(messages.keys, messages.values, messages.headers, messages.timestamps_ms, strict=True)
        for row, (key, value, headers, stamp) in enumerate(columns):
            if key is not None:
                if partition_of(key, count) in dead:
                    return False
                placed.to(topic, None).add(key, value, headers, stamp)
            elif not live:
                return False
            else:
                placed.to(topic, live[row % len(live)]).add(key, value, headers, stamp)
        return True
