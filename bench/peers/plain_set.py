"""A plain consumer with a set: `python -m bench.peers.plain_set BOOTSTRAP GROUP INPUT OUTPUT`.

It drops exact repeats alone, forgets everything when it ends, and a kill repeats messages. Runs until it is
terminated.
"""

from __future__ import annotations

import sys

import orjson
from confluent_kafka import Consumer, Producer

_BATCH = 10_000


def main() -> None:
    """Copy messages whose text did not come before."""
    bootstrap, group, source, output = sys.argv[1:]
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    producer = Producer({"bootstrap.servers": bootstrap, "queue.buffering.max.messages": 1_000_000})
    consumer.subscribe([source])
    seen: set[str] = set()
    while True:
        messages = [message for message in consumer.consume(_BATCH, 0.1) if not message.error()]
        for message in messages:
            value = message.value()
            text = orjson.loads(value)["text"]
            if text not in seen:
                seen.add(text)
                producer.produce(output, value, partition=message.partition())
        if messages:
            producer.flush()
            consumer.commit(asynchronous=False)


if __name__ == "__main__":
    main()
