"""A plain consumer with a set: `python -m bench.peers.plain_set BOOTSTRAP GROUP INPUT OUTPUT`.

It drops exact repeats alone, forgets everything when it ends, and a kill repeats messages. Runs until it is
terminated.
"""

from __future__ import annotations

import sys

import orjson

from tests.broker.stranger import consumer, producer

_BATCH = 10_000


def main() -> None:
    """Copy messages whose text did not come before."""
    bootstrap, group, source, output = sys.argv[1:]
    reader = consumer(bootstrap, group, auto_offset_reset="earliest", enable_auto_commit=False)
    writer = producer(bootstrap, queue_buffering_max_messages=1_000_000)
    reader.subscribe([source])
    seen: set[str] = set()
    while True:
        messages = [message for message in reader.consume(_BATCH, 0.1) if not message.error()]
        for message in messages:
            value = message.value()
            text = orjson.loads(value)["text"]
            if text not in seen:
                seen.add(text)
                writer.produce(output, value, partition=message.partition())
        if messages:
            writer.flush()
            reader.commit(asynchronous=False)


if __name__ == "__main__":
    main()
