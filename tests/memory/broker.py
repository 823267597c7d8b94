"""An embedded broker in memory: what a Kafka cluster does, on an injected clock, with fault hooks.

It ships with the program: tests, examples and the model test of the protocol run on it. One `MemoryCluster`
holds topics, groups and transactions; every process connects to it by its own `MemoryBroker`, so that one of
them can be killed without notice, and its clock may differ from the cluster's (`LocalClock`). A hook is called at every step with its name (`transactor.commit.before`);
what it raises is what the process meets there, and a process stalls for as long as it takes. What goes wrong
with the cluster itself is said to `MemoryCluster.faults`.

>>> cluster = MemoryCluster(ManualClock())
>>> cluster.create(NewTopic("posts", 1))
>>> broker = MemoryBroker(cluster)
>>> transactor = broker.transactor("one")
>>> transactor.begin()
>>> messages = Messages()
>>> messages.add(b"k", b"v")
>>> transactor.send("posts", 0, messages)
>>> cluster.values("posts")
[]
>>> transactor.commit()
>>> cluster.values("posts")
[b'v']
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from tests.memory.clients import MemoryAdmin, MemoryReader, MemoryTransactionalProducer
from tests.memory.clocks import Clocks, LocalClock
from tests.memory.cluster import CrashError, ManualClock, MemoryCluster
from tests.memory.consumer import MemoryConsumer
from tests.memory.lock import one_at_a_time
from tests.memory.producer import MemoryIdempotentProducer
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.clocks import BrokerClock
from twinsieve.pipeline.broker.ports import Clock, Hook, no_hook
from twinsieve.pipeline.broker.records import BrokerError, Messages

__all__ = [
    "CrashError",
    "Hook",
    "LocalClock",
    "ManualClock",
    "MemoryBroker",
    "MemoryCluster",
    "Messages",
    "NewTopic",
]


@one_at_a_time
class MemoryBroker:
    """One process's connection to a cluster. A process that dies just stops calling."""

    def __init__(self, cluster: MemoryCluster, hook: Hook = no_hook, local: Clock | None = None) -> None:
        """local: the clock of the process; None: as right as the cluster's"""
        self._cluster = cluster
        self._clocks = Clocks(local or cluster.clock)
        self._hook = hook
        self._appenders: list[MemoryIdempotentProducer] = []

    def group_consumer(self, group: str, topics: Sequence[str], member: str | None = None) -> MemoryConsumer:
        """As `Broker.group_consumer`."""
        self._hook("broker.group_consumer")
        for topic in topics:
            if topic not in self._cluster.topics:
                raise BrokerError(f"topic {topic} does not exist; create it first", retryable=False)
        return MemoryConsumer(self._cluster, self._hook, self._clocks, group, tuple(topics), member)

    def reader(self) -> MemoryReader:
        """As `Broker.reader`."""
        self._hook("broker.reader")
        return MemoryReader(self._cluster, self._hook, self._clocks)

    def appender(self, topics: Collection[str] = ()) -> MemoryIdempotentProducer:
        """As `Broker.appender`."""
        self._hook("broker.appender")
        made = MemoryIdempotentProducer(self._cluster, self._hook, self._clocks, topics)
        self._appenders.append(made)
        return made

    def transactor(self, transactional_id: str, topics: Collection[str] = ()) -> MemoryTransactionalProducer:
        """As `Broker.transactor`."""
        self._hook("broker.transactor")
        return MemoryTransactionalProducer(self._cluster, self._hook, self._clocks, transactional_id, topics)

    def admin(self) -> MemoryAdmin:
        """As `Broker.admin`."""
        return MemoryAdmin(self._cluster, self._hook)

    @property
    def clock(self) -> BrokerClock:
        """As `Broker.clock`."""
        return self._clocks.broker

    def die(self, keep: Callable[[int], int]) -> None:
        """The process ends without notice; `keep(n)`: how many of n messages on their way arrive."""
        for appender in self._appenders:
            appender.lose(keep)

    def close(self) -> None:
        """Nothing to give up."""
