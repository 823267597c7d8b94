"""Records of one input partition as the rows of a block: readable, unreadable or without a text."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason
from twinsieve.pipeline.broker.records import Header, Records
from twinsieve.pipeline.messages.reader import MessageReader, Reads, make_batch
from twinsieve.pipeline.messages.verdict_values import pick
from twinsieve.pipeline.registry.beside import AskedBeside
from twinsieve.pipeline.settings.proposal import ProfileProposal
from twinsieve.pipeline.wire.block import RowKind
from twinsieve.stages.contract import NO_TIME, Batch
from twinsieve.stages.rows.byte_column import ByteColumn


@dataclass(slots=True)
class RecordReader:
    """Reads texts out of records and makes their fingerprints.

    part: whether the text is in the value or in the key of a record
    stamped: whether a message without a time of its own takes the record's timestamp
    proposal: samples the texts; None if no profile is proposed
    proposal_cost: what it costs to follow the proposal
    has_text: is set when a message had a text
    keyless, bad_times: number of messages so far with an empty key, and with a time that could not be parsed;
        whoever counts them sets these back
    schemas: asks a registry for the schemas of the messages; None if they need none
    notices: receives a line for each field that no message has contained so far; a worker replaces this list
        by its own
    """

    messages: MessageReader
    scheme: Reads
    part: Literal["value", "key"]
    stamped: bool
    proposal: ProfileProposal | None = None
    proposal_cost: str = ""
    schemas: AskedBeside | None = None
    has_text: Event = field(default_factory=Event)
    keyless: int = 0
    bad_times: int = 0
    _salt: int = field(default_factory=lambda: int.from_bytes(os.urandom(8), "little"))
    _numbered: int = 0
    notices: list[str] = field(default_factory=list)

    def schemas_of(self, records: Records) -> list[int | str | None]:
        """The schema that must be known before each record is read; None where none is needed."""
        payloads = records.values if self.part == "value" else records.keys
        found = self.messages.schemas(payloads, records.headers)
        if self.part == "key":
            pairs = zip(found, records.values, strict=True)
            return [None if value is None else schema for schema, value in pairs]
        return found

    def read_all(
        self, parts: Sequence[tuple[Records, Mapping[int, DeadLetterReason]]]
    ) -> list[tuple[NDArray[np.uint8], Batch, dict[int, DeadLetterReason]]]:
        """What `read` returns for each of these, in less time: all are read together.

        parts: the arguments of `read`; the records may be of different partitions
        """
        refused: dict[int, DeadLetterReason] = {}
        lows, count = [], 0
        for records, refused_rows in parts:
            lows.append(count)
            refused |= {count + row: reason for row, reason in refused_rows.items()}
            count += len(records)
        kinds, batch, reasons = self._read([records for records, _ in parts], refused)
        readable_upto = np.concatenate(([0], np.cumsum(kinds == RowKind.READABLE)))
        found = []
        for low, high in zip(lows, [*lows[1:], count], strict=True):
            own = batch.slice(int(readable_upto[low]), int(readable_upto[high]))
            own_reasons = {row - low: reason for row, reason in reasons.items() if low <= row < high}
            found.append((kinds[low:high], own, own_reasons))
        return found

    def read(
        self, records: Records, refused: Mapping[int, DeadLetterReason]
    ) -> tuple[NDArray[np.uint8], Batch, dict[int, DeadLetterReason]]:
        """Read the texts of some records.

        refused: the records that the output topic does not accept, by row, with the reason. They become dead
            letters, and no message is compared with them
        returns: (uint8[n]: the `RowKind` of each record; a batch of the readable records; the reason for each
            dead letter, by row: for unreadable and for refused records)
        """
        return self._read([records], refused)

    def _read(
        self, parts: Sequence[Records], refused: Mapping[int, DeadLetterReason]
    ) -> tuple[NDArray[np.uint8], Batch, dict[int, DeadLetterReason]]:
        """What `read` returns, for the records of all parts, as if they were one."""
        is_null = np.concatenate([part.columns.value_sizes < 0 for part in parts])
        kinds = np.full(len(is_null), RowKind.READABLE, np.uint8)
        kinds[is_null] = RowKind.NO_TEXT
        reasons = {row: reason for row, reason in refused.items() if not is_null[row]}
        kinds[[*reasons]] = RowKind.REFUSED
        candidates = np.flatnonzero(kinds == RowKind.READABLE)
        rows = candidates.tolist()
        payloads = _payloads(parts, self.part)
        if len(rows) < len(payloads):
            payloads = payloads.only(candidates)
        headers: Sequence[Sequence[Header]] = ()
        if self.messages.reads_headers:
            headers = pick([each for part in parts for each in part.headers], rows)
        columns = self.messages.read(payloads, headers=headers)
        # Messages of several sources meet in a stream, and each needs one field of the text.
        told = [each for each in columns.unseen if not each.spare or each.meant is not None]
        self.notices += [each.line("messages") for each in told]
        for bad in columns.unreadable:
            row = int(candidates[bad.row])
            kinds[row] = RowKind.UNREADABLE
            reasons[row] = bad.reason
        for bad in columns.no_text:
            kinds[candidates[bad.row]] = RowKind.NO_TEXT
        if len(columns):
            self.has_text.set()
        proposed = self.proposal.look(columns.texts) if self.proposal is not None else None
        if proposed is not None:
            self.notices.append(f"{proposed}; {self.proposal_cost}")
        bodies, prints = self.scheme.read(columns.texts, columns.keys)
        if self.stamped and len(columns):
            stamps = np.concatenate([part.columns.times_ms for part in parts])
            stamps = stamps[candidates[np.array(columns.rows, np.int64)]]
            is_stamped = (columns.times_ms == NO_TIME) & (stamps >= 0)
            columns.times_ms = np.where(is_stamped, stamps, columns.times_ms)
        # Positions need the topic's number, which only the index knows, so the index fills them in.
        unnumbered = np.zeros(len(columns), np.int64)
        self.keyless += len(columns.keyless)
        self.bad_times += len(columns.bad_times)
        places = self._places(len(columns)) if columns.keyless else None
        return kinds, make_batch(columns, bodies, prints, unnumbered, NO_TIME, places), reasons

    def _places(self, count: int) -> NDArray[np.uint64]:
        """uint64[count, 2]: numbers that no other message has, in any process.

        Not its offset: a topic that is made again has the same offsets for other messages.
        """
        places = np.empty((count, 2), np.uint64)
        places[:, 0] = self._salt
        places[:, 1] = np.arange(self._numbered, self._numbered + count)
        self._numbered += count
        return places


def _payloads(parts: Sequence[Records], part: Literal["value", "key"]) -> ByteColumn:
    """The values of all records, or their keys, one behind the other."""
    first, *others = ((records.values if part == "value" else records.keys) for records in parts)
    return first.joined(*others)
