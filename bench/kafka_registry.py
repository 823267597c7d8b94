"""Throughput of values of a schema registry beside plain JSON, in turn: `python -m bench.kafka_registry`.

    python -m bench.kafka_registry [--pairs 3] [--messages 200000]

The same generated posts as plain JSON, and as Avro, JSON Schema and Protobuf by a registry of the tests. Each
run is one of `bench.kafka_throughput`. The machine's speed drifts, so quote median ratios.
"""

from __future__ import annotations

import argparse
from statistics import median

from bench.kafka_throughput import throughput
from bench.machine import machine_line
from tests.registry.own_registry import OwnRegistry
from tests.registry.posts import settings, writer

_LIMIT_S = 300.0
_ENCODINGS = ("avro", "json_schema", "protobuf")


def main() -> None:
    """Print machine, each run and the median ratios."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--messages", type=int, default=200_000)
    given = parser.parse_args()
    print(f"{machine_line()}\ninput: {given.messages} generated posts, 4 partitions", flush=True)
    ratios: dict[str, list[float]] = {encoding: [] for encoding in _ENCODINGS}
    with OwnRegistry() as registry:
        for pair in range(1, given.pairs + 1):
            plain = throughput(given.messages, None, _LIMIT_S)
            print(f"{pair}, json: {plain.said}", flush=True)
            for encoding in _ENCODINGS:
                run = throughput(
                    given.messages,
                    None,
                    _LIMIT_S,
                    settings(registry, encoding),
                    writer(registry, encoding),
                )
                ratios[encoding].append(run.rate / plain.rate)
                print(f"{pair}, {encoding}: {run.said}; {ratios[encoding][-1]:.2f} × json", flush=True)
    print("median: " + ", ".join(f"{encoding} {median(found):.2f} ×" for encoding, found in ratios.items()))


if __name__ == "__main__":
    main()
