"""Three brokers with replication 3, and whole processes on them: no broker is missed when it dies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.broker.cluster import Cluster
from tests.broker.deployment import Deployment, Watcher, in_thread, judge, poll_until
from tests.broker.groups import described
from tests.broker.load import PARTITIONS, Load
from tests.broker.shard_counts import ShardCounts
from tests.broker.stranger import admin
from tests.broker.worlds import DEADLINE_S, fresh, until

_RATE = 200.0
_SEGMENT = 1_000
"""Messages of a segment of the near window: shards have something to answer after some seconds."""


class Roles:
    """Which node leads what, by the brokers' own word; nodes are counted from 0."""

    def __init__(self, bootstrap: str, app: str, more: Sequence[str] = ()) -> None:
        self._admin = admin(bootstrap)
        self._app = app
        self.topics = [f"{app}.{kind}" for kind in ("in", "out", "dup", "dead")]
        self.topics += [f"{app}.{kind}" for kind in ("fingerprints", "decisions", "verdicts", *more)]

    def coordinator(self) -> int:
        """Of the workers' group."""
        return int(described(self._admin, f"{self._app}.workers").coordinator.id) - 1

    def leader(self, kind: str) -> int:
        """Of the first partition of a topic."""
        return int(self._partitions(f"{self._app}.{kind}")[0].leader) - 1

    def replicated(self) -> bool:
        """All replicas of all partitions are in sync, those of the brokers' own topics too."""
        own = ["__consumer_offsets", "__transaction_state"]
        return all(
            len(part.isrs) == len(part.replicas) == 3
            for topic in [*self.topics, *own]
            for part in self._partitions(topic).values()
        )

    def _partitions(self, topic: str) -> dict[int, Any]:
        """Leader and replicas of each partition by its number."""
        found: dict[int, Any] = self._admin.list_topics(topic, timeout=30).topics[topic].partitions
        return found


@pytest.mark.minutes
@pytest.mark.parametrize("shards", [(), ("s1", "s2")], ids=["alone", "shards"])
def test_processes_go_on_when_leaders_and_coordinators_die(
    three_brokers: Cluster, shards: tuple[str, ...]
) -> None:
    # How long a client waits for the answer to a request that died with its broker.
    times = {"request_timeout": "10s", "transaction_timeout": "6s"}
    deployment = Deployment(
        three_brokers.bootstrap, fresh("three"), snapshot_every="2s", segment=_SEGMENT, **times
    )
    if shards:
        deployment.set("near", answers="shards")
    counts = ShardCounts()
    deployment.create_topics(replication=3)
    load = Load(three_brokers.bootstrap, f"{deployment.app}.in", int(600 * _RATE), _RATE)
    watcher = Watcher(three_brokers.bootstrap, deployment.outputs)
    roles = Roles(three_brokers.bootstrap, deployment.app, ["answers"] if shards else [])

    def comes_out(messages: float) -> bool:
        """So many of those that were sent from now on."""
        wanted = len(load.sent_s) + messages
        return poll_until(lambda: len(watcher.seen) >= wanted, DEADLINE_S)

    def answers_go_on() -> bool:
        before = counts.answered
        return poll_until(lambda: counts.answered > before, DEADLINE_S)

    try:
        for member in ("a", "b"):
            deployment.start(member, listen=counts.address())
        for member in shards:
            deployment.start(member, "shard")
        watching, loading, counting = in_thread(watcher.run), in_thread(load.run), in_thread(counts.run)
        assert comes_out(_RATE), "nothing comes out"
        until(roles.replicated)
        victims = [roles.coordinator, lambda: roles.leader("fingerprints"), lambda: roles.leader("in")]
        if shards:
            victims.append(lambda: roles.leader("answers"))
        for victim in victims:
            node = victim()
            three_brokers.nodes[node].kill()
            assert comes_out(_RATE), "it stands still without one of three brokers"
            assert not shards or answers_go_on(), "no shard answers without one of three brokers"
            three_brokers.nodes[node].start()
            three_brokers.nodes[node].wait_ready()
            until(roles.replicated)
        load.stop.set()
        loading.join(DEADLINE_S)
        poll_until(lambda: load.sent_s.keys() <= watcher.seen.keys(), DEADLINE_S)
        watcher.stop.set()
        watching.join(10.0)
        counts.stop.set()
        counting.join(10.0)
        found = judge(load, watcher, deployment.outputs[0])
        assert load.failed == 0
        assert found.good, found
        assert found.messages >= 4 * _RATE
        assert {place[0] for place in load.sent_s} == set(range(PARTITIONS))
        assert {process.poll() for process in deployment.processes.values()} == {None}
    finally:
        counts.stop.set()
        watcher.stop.set()
        load.stop.set()
        deployment.close()
