"""Memory of one message's headers while kafka-python decodes them, in bytes and in sizes of the message.

python -m bench.header_memory
"""

from __future__ import annotations

import gc
import tracemalloc
from functools import partial

from kafka import TopicPartition
from kafka.record import MemoryRecords, MemoryRecordsBuilder

from twinsieve.pipeline.kafka.kafka_python.patches import _PartitionRecords

COUNT = 100_000
SHAPES: tuple[tuple[str, bytes | None], ...] = (
    ("", None),
    ("", b""),
    ("a", None),
    ("a", b"b"),
    ("ab", b"cd"),
)

_decoder = partial(_PartitionRecords, 64 << 20)


def message(name: str, value: bytes | None) -> bytes:
    """A record batch with one message of many equal headers."""
    builder = MemoryRecordsBuilder(2, 0, 1 << 30)
    builder.append(timestamp=1, key=None, value=b"", headers=[(name, value)] * COUNT)
    builder.close()
    return bytes(builder.buffer())


def main() -> None:
    """Print a line for each shape of header."""
    for name, value in SHAPES:
        batch = message(name, value)
        gc.collect()
        tracemalloc.start()
        rows = _decoder(0, TopicPartition("posts", 0), MemoryRecords(batch)).take()
        held, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        each = held / len(rows[0].headers)
        print(
            f"name {name!r:4} value {value!r:5}: {len(batch) / COUNT:.0f} bytes, {each:.0f} held, "
            f"{held / len(batch):.1f} times (peak {peak / len(batch):.1f})"
        )


if __name__ == "__main__":
    main()
