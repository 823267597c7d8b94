"""Topics get more partitions while clients use them: the clients find the new ones by themselves, soon."""

from __future__ import annotations

from tests.broker.growth import Growth
from tests.broker.services import Service
from tests.broker.worlds import World, fresh, make_topic, messages, read_all, transact, until
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.records import Partition


def test_producers_write_to_a_partition_that_is_younger_than_they(world: World) -> None:
    broker = world.broker()
    topic = make_topic(broker)
    transactor, appender = broker.transactor(fresh("tx")), broker.appender([topic])
    transact(transactor, Partition(topic, 0), [b"a"])
    appender.append(Partition(topic, 0), messages([b"b"]))
    assert appender.confirm(30.0) == 0
    world.grow(topic, 3)
    transactor.begin()
    transactor.send(topic, 0, messages([b"c"]))
    transactor.send(topic, 1, messages([b"d", b"e"]))
    transactor.commit()
    appender.append(Partition(topic, 2), messages([b"f"]))
    assert appender.confirm(30.0) == 0
    got = [read_all(world.broker(), Partition(topic, number)).values for number in range(3)]
    assert got == [[b"a", b"b", b"c"], [b"d", b"e"], [b"f"]]


def test_a_service_under_load_goes_on_in_new_partitions_of_all_its_topics(service: Service) -> None:
    settings = service.settings
    source, outputs = settings.input.topics[0], settings.output
    topics = (outputs.topic, outputs.duplicates, outputs.dead_letter)
    growth = Growth(settings.kafka.bootstrap, source, topics, 1)
    try:
        service.start()
        until(lambda: growth.come_out()[0])
        growth.grow(Names(settings.app).verdicts, 6)
        for topic in (source, *topics):
            growth.grow(topic, 6)
        # Answers for the last two come in partitions of the verdicts topic that are new, too.
        until(lambda: all(growth.come_out()[number] for number in range(6)))
        growth.stop_load()
        until(lambda: growth.is_all_out)
    finally:
        growth.stop()
    assert (growth.extra, growth.disorder, service.error) == (0, 0, None)
