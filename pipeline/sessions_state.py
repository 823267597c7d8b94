"""The ledger to bytes and back, for snapshots."""

from __future__ import annotations

import struct
from typing import cast

import numpy as np
import orjson
from numpy.typing import NDArray

from twinsieve.pipeline.blocks_frame import Columns, pack_columns
from twinsieve.pipeline.blocks_verdicts import take_verdicts, verdict_columns
from twinsieve.pipeline.sessions import Book, KnownTopic, Ledger
from twinsieve.pipeline.sessions_ranges import Ranges
from twinsieve.stages.errors import StateError

_SIZE = struct.Struct("<I")


def ledger_to_bytes(ledger: Ledger) -> bytes:
    """Everything that a ledger knows."""
    books = []
    columns: list[NDArray[np.generic]] = []
    for (number, partition), book in ledger.books.items():
        counts = []
        for offsets, verdicts, tags in book.open.chunks:
            counts.append(len(offsets))
            columns.extend([offsets, *verdict_columns(verdicts), tags])
        books.append(
            {
                "topic": number,
                "partition": partition,
                "session": book.session,
                "covered": book.covered,
                "began": book.began,
                "judged": list(book.judged),
                "open": counts,
            }
        )
    head = orjson.dumps(
        {
            "topics": [(known.topic_id.hex(), known.name) for known in ledger.topics],
            "books": books,
            "sessions_started": ledger.sessions_started,
            "given_up": ledger.given_up,
        }
    )
    return _SIZE.pack(len(head)) + head + pack_columns(columns, compress=True)


def ledger_from_bytes(data: bytes, where: str, *, tagged: bool = True) -> Ledger:
    """The ledger of some bytes.

    tagged: False for those of version 1, without tags of open verdicts
    raises: StateError naming `where`
    """
    ledger = Ledger()
    try:
        (size,) = _SIZE.unpack_from(data)
        head = orjson.loads(data[_SIZE.size : _SIZE.size + size])
        ledger.topics = [KnownTopic(bytes.fromhex(known), name) for known, name in head["topics"]]
        ledger.sessions_started = head["sessions_started"]
        ledger.given_up = head["given_up"]
        columns = Columns(memoryview(data), _SIZE.size + size, where)
        for each in head["books"]:
            book = Book(each["session"], each["covered"], each.get("began", -1), Ranges(each["judged"]))
            for count in each["open"]:
                offsets = cast("NDArray[np.int64]", columns.take("<i8", count))
                verdicts = take_verdicts(columns, count)
                tags = columns.take("<u8", count) if tagged else np.zeros(count, np.uint64)
                book.open.add(offsets, verdicts, cast("NDArray[np.uint64]", tags))
            ledger.books[(each["topic"], each["partition"])] = book
        columns.finish()
    except (struct.error, ValueError, KeyError, TypeError) as error:
        raise StateError(
            f"{where}: the book of sessions is damaged ({error}); delete this snapshot, an older one "
            "or the log will do"
        ) from error
    return ledger
