"""A topic's max.message.bytes is on batches: a producer's batches are no larger than any of its topics takes.

Many small messages at once would be refused together, though each of them passes alone.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from random import Random

import pytest

from tests.broker.services import Service, wait_for
from tests.broker.stranger import limit_topics
from tests.broker.worlds import MemoryWorld, World, fresh, make_topic, messages, read_all, until
from twinsieve.pipeline.broker.ports import IdempotentProducer, TransactionalProducer
from twinsieve.pipeline.broker.records import AbortableError, Messages, Partition

_LIMIT = 10_000
_MANY = 3_000
_RANDOM = Random(1)


def rows(count: int) -> Messages:
    """Messages far below the limit, which together are far above it; no compression makes them smaller."""
    return messages(b64encode(_RANDOM.randbytes(75)) for _ in range(count))


@pytest.fixture
def lowers(world: World, request: pytest.FixtureRequest) -> Callable[[str, int], None]:
    """Sets what a topic takes."""
    if isinstance(world, MemoryWorld):
        return lambda topic, limit: world.cluster.topics[topic].settings.update(
            {"max.message.bytes": str(limit)}
        )
    bootstrap = request.getfixturevalue("bootstrap")
    return lambda topic, limit: limit_topics(bootstrap, [topic], limit)


def transact(transactor: TransactionalProducer, at: Partition) -> bool:
    """Write many messages in one transaction; whether that was not refused."""
    transactor.begin()
    try:
        transactor.send(*at, rows(_MANY))
        transactor.commit()
    except AbortableError:
        transactor.abort()
        return False
    return True


def append(appender: IdempotentProducer, at: Partition) -> None:
    appender.append(at, rows(_MANY))
    until(lambda: appender.confirm(1.0) == 0)


def test_a_transaction_of_many_messages_suits_the_smallest_of_its_topics(world: World) -> None:
    broker = world.broker()
    topics = [make_topic(broker), make_topic(broker, max_message_bytes=str(_LIMIT))]
    assert transact(broker.transactor(fresh("tx"), topics), Partition(topics[1], 0))
    assert len(read_all(broker, Partition(topics[1], 0))) == _MANY


def test_a_topic_that_takes_less_later_on_refuses_one_transaction(
    world: World, lowers: Callable[[str, int], None]
) -> None:
    broker = world.broker()
    topic = make_topic(broker)
    transactor = broker.transactor(fresh("tx"), [topic])
    lowers(topic, _LIMIT)
    assert [transact(transactor, Partition(topic, 0)) for _ in range(2)] == [False, True]
    assert len(read_all(broker, Partition(topic, 0))) == _MANY


def test_batches_shrink_where_nobody_knows_what_a_topic_takes(world: World) -> None:
    broker = world.broker()
    topic = make_topic(broker, max_message_bytes=str(_LIMIT))
    transactor = broker.transactor(fresh("tx"))
    assert any(transact(transactor, Partition(topic, 0)) for _ in range(8))
    assert len(read_all(broker, Partition(topic, 0))) == _MANY


def test_appended_messages_suit_their_topic(world: World, lowers: Callable[[str, int], None]) -> None:
    broker = world.broker()
    topic = make_topic(broker, max_message_bytes=str(2 * _LIMIT))
    at = Partition(topic, 0)
    appender = broker.appender([topic])
    append(appender, at)
    lowers(topic, _LIMIT)
    with pytest.raises(AbortableError):
        append(appender, at)
    before = len(read_all(broker, at))
    append(appender, at)
    assert len(read_all(broker, at)) == before + _MANY
    appender.close()


@pytest.mark.needs("broker")
@pytest.mark.parametrize("limit", [pytest.param(50_000, marks=pytest.mark.minutes), _LIMIT])
def test_a_backlog_comes_out_whatever_the_outputs_take(
    service: Service, bootstrap: str, limit: int, caplog: pytest.LogCaptureFixture
) -> None:
    output = service.settings.output
    outputs = [topic for topic in (output.topic, output.duplicates, output.dead_letter) if topic is not None]
    limit_topics(bootstrap, outputs, limit)
    service.post(*[b64encode(_RANDOM.randbytes(90)).decode() for _ in range(_MANY)])
    service.start()
    wait_for(lambda: service.count("out") >= _MANY, service)
    # What the outputs take is lowered under the running service.
    limit_topics(bootstrap, outputs, limit // 5)
    refused = [said for said in caplog.messages if "toolarge" in said.lower().replace(" ", "")]
    assert not refused, "no transaction was refused for its size"
    service.post(*[b64encode(_RANDOM.randbytes(90)).decode() for _ in range(_MANY)])
    wait_for(lambda: service.count("out") >= 2 * _MANY, service)
    assert service.count("out") == 2 * _MANY
