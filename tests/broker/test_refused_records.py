"""If a topic refuses a single record, the transaction fails with `RefusedRecordError`."""

from __future__ import annotations

import pytest

from tests.broker.worlds import World, fresh, make_topic, read_all
from twinsieve.pipeline.broker.ports import TransactionalProducer
from twinsieve.pipeline.broker.records import Messages, Partition, RefusedRecordError


def transact(transactor: TransactionalProducer, sent: list[tuple[str, int | None, Messages]]) -> None:
    transactor.begin()
    for topic, number, rows in sent:
        transactor.send(topic, number, rows)
    transactor.commit()


@pytest.mark.parametrize("number", [0, None])
@pytest.mark.parametrize("count", [1, 5_000])
def test_a_refused_record_is_told_from_a_broker_that_fails(
    world: World, number: int | None, count: int
) -> None:
    broker = world.broker()
    topic = make_topic(broker, cleanup_policy="compact")
    other = make_topic(broker)
    transactor = broker.transactor(fresh("tx"), [topic, other])
    rows = Messages()
    for place in range(count):
        rows.add(b"k%d" % place, b"v" * 200)
    rows.keys[count // 2] = None
    fine = Messages([b"k"], [b"fine"], [()], [-1])
    for _ in range(2):
        with pytest.raises(RefusedRecordError) as refused:
            transact(transactor, [(other, 0, fine), (topic, number, rows)])
        transactor.abort()
        assert "\n" not in str(refused.value)
    transact(transactor, [(topic, 0, fine)])
    assert read_all(broker, Partition(topic, 0)).values == [b"fine"]
    assert read_all(broker, Partition(other, 0)).values == []
