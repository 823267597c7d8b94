"""The program with stamps: `python -m bench.stamped FILE COMMAND …` is `twinsieve COMMAND …` that notes in a
file when each block passed a station (`bench.kafka_stations`).

One JSON array a line: what happened, when (seconds of the system's monotonic clock, the same in all
processes), and what it is about.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, NamedTuple, TextIO

import orjson

from twinsieve.__main__ import main
from twinsieve.pipeline.index.held_blocks import HeldBlocks
from twinsieve.pipeline.index.index import Index
from twinsieve.pipeline.kafka.transactions import KafkaTransactionalProducer
from twinsieve.pipeline.worker.session import Session
from twinsieve.pipeline.worker.worker import Worker


class Call(NamedTuple):
    """A call that has returned. args: with the object itself"""

    args: tuple[Any, ...]
    result: Any
    began_s: float


def stamp(out: TextIO) -> None:
    """Make the roles of this process write their stamps there."""

    def after(owner: type, name: str, told: Callable[[Call], Iterable[list[Any]]]) -> None:
        """Write what `told` says of each call of a method."""
        method = getattr(owner, name)

        @wraps(method)
        def noted(*args: Any, **named: Any) -> Any:
            began_s = time.monotonic()
            result = method(*args, **named)
            ended_s = time.monotonic()
            for what, *about in told(Call(args, result, began_s)):
                out.write(orjson.dumps([what, ended_s, *about]).decode() + "\n")
            return result

        setattr(owner, name, noted)

    after(Worker, "_poll", _polled)
    after(Session, "ask", _asked)
    after(Session, "answer", _answered)
    after(Worker, "_transact", _committed)
    after(HeldBlocks, "add", _read)
    after(Index, "_judge", _begun)
    after(Index, "_commit", _decided)
    for name in ("begin", "send_offsets", "commit"):
        after(KafkaTransactionalProducer, name, lambda call, name=name: [["call", name, call.began_s]])


def _polled(call: Call) -> Iterable[list[Any]]:
    for records in call.result.records:
        yield ["polled", records.partition.number, records.offset(0), records.next_offset]


def _asked(call: Call) -> Iterable[list[Any]]:
    session, blocks = call.args[:2]
    for block in blocks:
        if len(block.records):
            yield ["asked", session.partition.number, block.first, block.end]


def _answered(call: Call) -> Iterable[list[Any]]:
    session, ruling = call.args[:2]
    yield ["answered", session.partition.number, ruling.first, ruling.end, ruling.log_offset]


def _committed(call: Call) -> Iterable[list[Any]]:
    offsets = {str(part.number): each.offset for part, each in call.args[2].items()}
    yield ["committed", call.began_s, offsets]


def _read(call: Call) -> Iterable[list[Any]]:
    for records in call.args[1]:
        yield ["read", records.offset(0), records.timestamps_ms]


def _begun(call: Call) -> Iterable[list[Any]]:
    yield ["begun", call.began_s, [block.offset for block in call.args[1]]]


def _decided(call: Call) -> Iterable[list[Any]]:
    yield ["decided", call.began_s, [ruling.log_offset for ruling, _ in call.args[1]]]


if __name__ == "__main__":
    place = sys.argv.pop(1)
    with open(place, "a", buffering=1) as stamps:
        stamp(stamps)
        code = main()
    sys.exit(code)
