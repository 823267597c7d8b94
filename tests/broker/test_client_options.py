"""The client takes what `kafka.options` allows, and works with it."""

from __future__ import annotations

import pytest

from tests.broker.worlds import Connect, assigned, fresh, make_topic, read_all, transact, write
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.settings.client_options import ALLOWED, options_faults
from twinsieve.pipeline.settings.model import KafkaSettings

pytestmark = pytest.mark.needs("broker")


def test_it_works_with_all_options(bootstrap: str, connect: Connect) -> None:
    options = {
        name: str(values[-1] if isinstance(values, range) else values[0]) for name, values in ALLOWED.items()
    }
    assert list(options_faults(KafkaSettings(options=options))) == []
    broker = connect(bootstrap, options=options)
    log = Partition(make_topic(broker), 0)
    transact(broker.transactor(fresh("tx"), [log.topic]), log, [b"transacted"])
    write(broker, log, [b"appended"])
    assert read_all(broker, log).values == [b"transacted", b"appended"]
    assigned(broker.group_consumer(fresh("group"), [log.topic]), 1)
