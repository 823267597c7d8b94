"""Milliseconds of a worker's transaction with and without the record of its offsets, in turn on one broker:

    python -m bench.kafka_transactions [--client confluent]

Each transaction has the messages and offsets of a worker of four partitions; with the record it commits the
offsets in a second group too (`broker/mark.py`). The two kinds alternate, so a busy machine slows both alike.
"""

from __future__ import annotations

import argparse
import time
from statistics import median

from bench.machine import machine_line
from tests.broker.cluster import Cluster
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.mark import Mark
from twinsieve.pipeline.broker.records import Messages
from twinsieve.pipeline.commands.kafka.connect import connect
from twinsieve.pipeline.settings.model import KafkaSettings

_PARTITIONS = 4
_WARM_UP = 20


def times_ms(client: str, brokers: int, transactions: int, rows: int) -> tuple[list[float], list[float]]:
    """Of each transaction without the record, and of each with it."""
    found: tuple[list[float], list[float]] = [], []
    with Cluster(brokers).start() as cluster:
        broker = connect(KafkaSettings(bootstrap=cluster.bootstrap, client=client))
        admin = broker.admin()
        for name in ("in", "out"):
            admin.create_topic(NewTopic(name, _PARTITIONS))
        consumer = broker.group_consumer("app.workers", ["in"], "a-worker")
        while len((polled := consumer.poll(0.1, 1)).assignment) < _PARTITIONS:
            pass
        transactor = broker.transactor("app.worker.a", ["out"])
        for number in range(transactions + _WARM_UP):
            membership = consumer.poll(0, 1).membership
            mark = Mark(bytes(16), 0, number).committed()
            offsets = dict.fromkeys(polled.assignment, mark)
            for place, record in enumerate(("", "app.workers.emitted")):
                began_s = time.perf_counter()
                transactor.begin()
                for partition in range(_PARTITIONS):
                    messages = Messages()
                    for _ in range(rows // _PARTITIONS):
                        messages.add(None, b"x" * 300)
                    transactor.send("out", partition, messages)
                transactor.send_offsets(offsets, membership, record)
                transactor.commit()
                if number >= _WARM_UP:
                    found[place].append((time.perf_counter() - began_s) * 1000)
        assert admin.group_offsets("app.workers.emitted").keys() == polled.assignment
        transactor.close()
        consumer.close()
        broker.close()
    return found


def main() -> None:
    """Print machine, medians and the difference."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--client", default="kafka-python", choices=["kafka-python", "confluent"])
    parser.add_argument("--brokers", type=int, default=1)
    parser.add_argument("--transactions", type=int, default=200, help="of each kind")
    options = parser.parse_args()
    print(machine_line())
    for rows in (100, 2_000, 20_000):
        count = max(20, options.transactions * 100 // (rows + 100)) if rows > 100 else options.transactions
        without, with_record = times_ms(options.client, options.brokers, count, rows)
        more = median(b - a for a, b in zip(without, with_record, strict=True))
        print(
            f"{options.client}, {options.brokers} brokers, {rows:,} messages a transaction: median "
            f"{median(without):.1f} ms without, {median(with_record):.1f} ms with the record; "
            f"{more:+.1f} ms in the median pair"
        )


if __name__ == "__main__":
    main()
