"""Where a message's milliseconds go: `python -m bench.kafka_stations --rate 1000`.

The run of `bench.kafka_latency`, with programs that note when each block passes a station (`bench.stamped`).
A row of the table is the way from the station before it, of all messages that count.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from bench.kafka_latency import PROCESSES, latency
from bench.machine import machine_line
from tests.broker.deployment import Watcher
from tests.broker.load import Load, Place

STATIONS = (
    "polled: batched by its writer, acknowledged, fetched by the worker",
    "asked: fingerprints, handed to the log's producer",
    "in the log: sent and stamped by the broker (whole ms)",
    "read by the index",
    "the index begins with it",
    "judged",
    "decided: transaction of decision and answer",
    "answered: fetched by the worker",
    "the worker's transaction begins",
    "committed",
    "seen by a read-committed consumer",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=1_000.0, help="messages a second")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--skip", type=float, default=15.0, help="seconds that do not count")
    parser.add_argument("--processes", default="both", choices=PROCESSES)
    options = parser.parse_args()
    print(machine_line())
    ways: list[np.ndarray] = []
    calls: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        stamps = Path(folder) / "stamps"

        def shown(load: Load, watcher: Watcher) -> None:
            events = [orjson.loads(line) for line in stamps.read_bytes().splitlines()]
            passed = stations(load, watcher, events)
            ways.append(np.array([*passed.values()]))
            first_s = min(load.sent_s.values())
            for _, ended_s, name, began_s in (event for event in events if event[0] == "call"):
                if began_s >= first_s:
                    calls.setdefault(name, []).append(ended_s - began_s)

        program = [sys.executable, "-m", "bench.stamped", str(stamps)]
        findings = latency(
            options.rate, options.seconds, options.skip, "5m", options.processes, program, shown
        )
    print(f"{options.rate:g} messages/s, roles {options.processes}: {findings}")
    print(f"{len(ways[0])} messages with all stations; ms from the station before: median, p99")
    for name, way in zip(STATIONS, np.diff(ways[0], axis=1).T * 1000, strict=True):
        print(f"  {np.median(way):8.1f} {np.percentile(way, 99):8.1f}  {name}")
    whole = (ways[0][:, -1] - ways[0][:, 0]) * 1000
    print(f"  {np.median(whole):8.1f} {np.percentile(whole, 99):8.1f}  the whole way")
    print("calls of transactional producers, index and workers: how many, ms median, p99")
    for name, took_s in calls.items():
        took_ms = np.array(took_s) * 1000
        print(f"  {len(took_ms):6} {np.median(took_ms):8.1f} {np.percentile(took_ms, 99):8.1f}  {name}")


def stations(load: Load, watcher: Watcher, events: Iterable[list[Any]]) -> dict[Place, list[float]]:
    """For each message when it was sent and passed each of `STATIONS`, in seconds of the monotonic clock;
    those that lack one are left out."""
    by_kind: dict[str, list[list[Any]]] = {}
    for kind, *event in events:
        by_kind.setdefault(kind, []).append(event)
    wall_s = time.time() - time.monotonic()
    polled = _by_offset((number, first, end, at) for at, number, first, end in by_kind["polled"])
    asked = _by_offset((number, first, end, at) for at, number, first, end in by_kind["asked"])
    answered = _by_offset(
        (number, first, end, (at, block)) for at, number, first, end, block in by_kind["answered"]
    )
    logged, read, begun, judged, decided = ({} for _ in range(5))
    for at, first, stamps_ms in by_kind["read"]:
        for offset, stamp_ms in enumerate(stamps_ms, first):
            read[offset], logged[offset] = at, stamp_ms / 1000 - wall_s
    for _, began_s, offsets in by_kind["begun"]:
        begun.update(dict.fromkeys(offsets, began_s))
    for at, began_s, offsets in by_kind["decided"]:
        judged.update(dict.fromkeys(offsets, began_s))
        decided.update(dict.fromkeys(offsets, at))
    committed: dict[Place, tuple[float, float]] = {}
    before: dict[int, int] = {}
    for at, began_s, offsets in sorted(by_kind["committed"]):
        for number, end in ((int(number), end) for number, end in offsets.items()):
            # A transaction commits all that was not committed before it.
            for offset in range(before.get(number, end), end):
                committed[number, offset] = began_s, at
            before[number] = end
    passed = {}
    for place, sent_s in load.sent_s.items():
        if not (place in polled and place in asked and place in answered and place in committed):
            continue
        answered_s, block = answered[place]
        if block in decided and block in read and place in watcher.seen:
            index = logged[block], read[block], begun[block], judged[block], decided[block]
            worker = answered_s, *committed[place], watcher.seen[place][0].at_s
            passed[place] = [sent_s, polled[place], asked[place], *index, *worker]
    return passed


def _by_offset(ranges: Iterable[tuple[int, int, int, Any]]) -> dict[Place, Any]:
    """What each range of offsets says, by message; the last range wins."""
    return {(number, offset): told for number, first, end, told in ranges for offset in range(first, end)}


if __name__ == "__main__":
    main()
