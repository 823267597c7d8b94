"""A process that lives for months makes new clients at every rebalance: closed ones leave nothing behind."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from pipeline.kafka.clients import Clients
from pipeline.kafka.deadline import within
from pipeline.ports import AbortableError, Broker, FatalError, Partition
from tests.broker.cluster import Cluster
from tests.broker.worlds import KafkaWorld, fresh, make_topic, messages, read_all, until

_ROUNDS = 8
_HANGS_S = 60.0


def threads() -> int:
    """Of this process as the system counts them: librdkafka's are unknown to Python."""
    return len(list(Path("/proc/self/task").iterdir()))


def files() -> int:
    """File descriptors in use."""
    return len(list(Path("/proc/self/fd").iterdir()))


def transact(broker: Broker, name: str, log: Partition, *, leave_open: bool) -> None:
    transactor = broker.transactor(name)
    transactor.begin()
    transactor.send(log.topic, log.number, messages([b"open" if leave_open else b"whole"]))
    if not leave_open:
        transactor.commit()
    transactor.close()


def read_and_ask(broker: Broker, log: Partition) -> None:
    for client in (broker.reader(), broker.appender(), broker.admin()):
        client.close()


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_clients_that_were_closed_leave_no_thread_and_no_file(
    client: str, delivery: str, bootstrap: str
) -> None:
    world = KafkaWorld(client, bootstrap, delivery=delivery)
    broker, name = world.broker(), fresh("tx")
    log = Partition(make_topic(broker), 0)
    assert isinstance(broker, Clients)

    def rounds(count: int) -> None:
        for number in range(count):
            transact(broker, name, log, leave_open=number % 2 == 1)
            read_and_ask(broker, log)

    rounds(2)
    gc.collect()
    had_threads, had_files = threads(), files()
    rounds(_ROUNDS)
    gc.collect()
    # One client of any kind is at least two threads and three files.
    until(lambda: threads() < had_threads + _ROUNDS)
    until(lambda: files() < had_files + _ROUNDS)
    assert len(broker._made) < _ROUNDS, "those of the last round at most are remembered"
    if delivery == "exactly-once":
        assert set(read_all(broker, log).values) == {b"whole"}
    world.close()


def test_a_closed_transactor_says_so(client: str, bootstrap: str) -> None:
    world = KafkaWorld(client, bootstrap)
    transactor = world.broker().transactor(fresh("tx"))
    transactor.close()
    transactor.close()
    with pytest.raises((AbortableError, FatalError)):
        transactor.begin()
    world.close()


def test_a_transactor_closes_while_its_broker_is_away(client: str, mortal_broker: Cluster) -> None:
    world = KafkaWorld(client, mortal_broker.bootstrap)
    broker = world.broker()
    log = Partition(make_topic(broker), 0)
    transactor = broker.transactor(fresh("tx"))
    transactor.begin()
    transactor.send(log.topic, 0, messages([b"never"]))
    mortal_broker.nodes[0].freeze()
    try:
        within(_HANGS_S, transactor.close)
    finally:
        mortal_broker.nodes[0].thaw()
    world.close()
