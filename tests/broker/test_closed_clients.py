"""A process that lives for months makes new clients at every rebalance: closed ones leave nothing behind."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from tests.broker.cluster import Cluster
from tests.broker.worlds import Connect, assigned, fresh, make_topic, messages, read_all, until
from twinsieve.pipeline.broker.ports import Broker
from twinsieve.pipeline.broker.records import AbortableError, FatalError, Partition
from twinsieve.pipeline.kafka.broker import KafkaBroker
from twinsieve.pipeline.kafka.deadline import within

_ROUNDS = 8
_HANGS_S = 60.0


def threads() -> int:
    """Of this process, as the system counts them."""
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


def test_clients_that_were_closed_leave_no_thread_and_no_file(broker: Broker) -> None:
    name, log = fresh("tx"), Partition(make_topic(broker), 0)
    assert isinstance(broker, KafkaBroker)

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
    assert len(broker._clients) < _ROUNDS, "those of the last round at most are remembered"
    assert set(read_all(broker, log).values) == {b"whole"}


def test_a_closed_transactor_says_so(broker: Broker) -> None:
    transactor = broker.transactor(fresh("tx"))
    transactor.close()
    transactor.close()
    with pytest.raises((AbortableError, FatalError)):
        transactor.begin()


def test_a_transactor_closes_while_its_broker_is_away(mortal_broker: Cluster, connect: Connect) -> None:
    broker = connect(mortal_broker.bootstrap)
    log = Partition(make_topic(broker), 0)
    transactor = broker.transactor(fresh("tx"))
    transactor.begin()
    transactor.send(log.topic, 0, messages([b"never"]))
    mortal_broker.nodes[0].freeze()
    try:
        within(_HANGS_S, transactor.close)
    finally:
        mortal_broker.nodes[0].thaw()


@pytest.mark.parametrize("end", ["close", "leave"])
def test_a_consumer_closes_before_its_first_poll(end: str, broker: Broker) -> None:
    consumer = broker.group_consumer(fresh("unread"), [make_topic(broker, 2)], "one")
    within(_HANGS_S, getattr(consumer, end))


@pytest.mark.parametrize("end", ["close", "leave"])
def test_a_consumer_closes_that_has_to_give_its_partitions_up(end: str, broker: Broker) -> None:
    """It learns that another member joins, and nobody polls."""
    group, topic = fresh("g"), make_topic(broker, 2)
    consumer = broker.group_consumer(group, [topic], "one")
    assigned(consumer, 2)
    joining = broker.group_consumer(group, [topic], "two")
    until(lambda: joining.poll(0.1, 1) and len(broker.admin().members(group)) == 2)
    within(_HANGS_S, getattr(consumer, end))
    if end == "leave":
        assigned(joining, 2)
