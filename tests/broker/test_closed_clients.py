"""A process that lives for months makes new clients at every rebalance: closed ones leave nothing behind."""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.broker.cluster import Cluster
from tests.broker.worlds import KafkaWorld, assigned, fresh, make_topic, messages, read_all, until
from twinsieve.pipeline.broker.ports import Broker
from twinsieve.pipeline.broker.records import AbortableError, FatalError, Partition
from twinsieve.pipeline.kafka.broker import KafkaBroker
from twinsieve.pipeline.kafka.confluent.group_consumer import ConfluentGroupConsumer
from twinsieve.pipeline.kafka.deadline import within
from twinsieve.pipeline.settings.model import KafkaSettings

_ROUNDS = 8
_HANGS_S = 60.0
_CLOSES_UNREAD = """
import sys
from twinsieve.pipeline.commands.kafka.connect import connect
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.settings.model import KafkaSettings
from tests.broker.worlds import until

client, bootstrap, name, end = sys.argv[1:]
broker = connect(KafkaSettings(client=client, bootstrap=bootstrap))
admin = broker.admin()
admin.create_topic(NewTopic(name, 2))
consumer = broker.group_consumer(name, [name], "one")
if client == "confluent":
    # It joins by itself, and is given a share that nobody asks it for.
    until(lambda: "one" in [each.name for each in admin.members(name).values()])
getattr(consumer, end)()
broker.close()
print("closed")
"""


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


def test_clients_that_were_closed_leave_no_thread_and_no_file(client: str, bootstrap: str) -> None:
    world = KafkaWorld(client, bootstrap)
    broker, name = world.broker(), fresh("tx")
    log = Partition(make_topic(broker), 0)
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


@pytest.mark.parametrize("end", ["close", "leave"])
def test_a_consumer_closes_before_its_first_poll(client: str, end: str, bootstrap: str) -> None:
    """In a process of its own: hung under the interpreter's lock nothing in it could tell."""
    command = [sys.executable, "-c", _CLOSES_UNREAD, client, bootstrap, fresh("unread"), end]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_HANGS_S, check=False)
    assert (done.stdout, done.returncode) == ("closed\n", 0), done.stderr


@pytest.mark.parametrize("end", ["close", "leave"])
def test_confluent_gives_its_partitions_up_before_it_closes(
    end: str, bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A consumer that was asked to give them up while it closed hung, once in some fifty tries with three members."""
    called: list[tuple[str, bool]] = []

    def spy(name: str) -> None:
        callback = getattr(ConfluentGroupConsumer, name)

        def call(consumer: ConfluentGroupConsumer, client: object, partitions: list[object]) -> None:
            called.append((name, consumer.closed))
            callback(consumer, client, partitions)

        monkeypatch.setattr(ConfluentGroupConsumer, name, call)

    spy("_on_assign")
    spy("_on_revoke")
    world, group = KafkaWorld("confluent", bootstrap), fresh("g")
    topic = make_topic(world.broker(), 2)
    consumer = world.broker().group_consumer(group, [topic], "one")
    assigned(consumer, 2)
    other = world.broker()
    other.group_consumer(group, [topic], "two")
    until(lambda: len(other.admin().members(group)) == 2)
    # It learns that it has to give partitions up, and nobody polls.
    time.sleep(2 * KafkaSettings().heartbeat_ms / 1000)
    called.clear()
    getattr(consumer, end)()
    assert called[0] == ("_on_revoke", False)
    # It may be given partitions again before it closes. It gives them up while it closes, if it stays a member.
    assert ("_on_assign", True) not in called
    assert end == "close" or ("_on_revoke", True) not in called
    world.close()
