"""Sends polled messages to the fingerprint log as blocks; the originals wait in the worker's sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason
from twinsieve.pipeline.basics.program import program_version
from twinsieve.pipeline.broker.ports import Clock, Hook, IdempotentProducer, TransactionalProducer
from twinsieve.pipeline.broker.records import AbortableError, Messages, Records, row_spans
from twinsieve.pipeline.wire.block import Block, BlockFlag, RowKind, encode_block, split_block
from twinsieve.pipeline.wire.positions import beyond_positions
from twinsieve.pipeline.worker.config import MAX_ASKED_BYTES, WorkerConfig, WorkerStep
from twinsieve.pipeline.worker.emit import unsendable, without_foreign
from twinsieve.pipeline.worker.openings import Opening
from twinsieve.pipeline.worker.record_reader import RecordReader
from twinsieve.pipeline.worker.session import ROW_BYTES, PendingBlock, Session
from twinsieve.pipeline.worker.suspects import Suspects
from twinsieve.stages.errors import StateError

READING_FACTOR = 60
"""Reading a text needs at most this many times the size of its message as extra memory, because NFKC turns
the three bytes of U+FDFA into 18 characters."""


class Asked(NamedTuple):
    """Records to ask about. max_rows, max_bytes: limits for the originals of one block; a single row may be
    larger"""

    session: Session
    records: Records
    max_rows: int
    max_bytes: int


class _Part(NamedTuple):
    """Records of one session that are read together with others.

    size: at least their `bytes_held`; refused: rows that the output does not accept, with the reason
    foreign: by row, number of removed headers that look like ours
    """

    session: Session
    records: Records
    size: int
    refused: Mapping[int, DeadLetterReason] = MappingProxyType({})
    foreign: Mapping[int, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Asks:
    """Makes blocks for sessions and appends them to the fingerprint log.

    transactor: the producer for the output topic; its `unsendable` finds the rows that the output refuses
    raises: StateError from each method that appends, if the index cannot record an offset
    """

    appender: IdempotentProducer
    transactor: TransactionalProducer
    clock: Clock
    config: WorkerConfig
    reader: RecordReader
    hook: Hook
    suspects: Suspects

    def start(self, session: Session, opening: Opening) -> None:
        """Send the start block of a session, with which the index learns of the session."""
        flags = BlockFlag.START
        flags |= BlockFlag.FRESH if opening.mark.fresh else BlockFlag.NONE
        flags |= BlockFlag.CERTIFIED if not opening.mark.fresh else BlockFlag.NONE
        flags |= BlockFlag.RESET if opening.mark.reset else BlockFlag.NONE
        flags |= BlockFlag.FIRST if opening.is_first and opening.mark.fresh else BlockFlag.NONE
        block = replace(
            self._block(session),
            flags=flags,
            emitted_from=opening.emitted_from,
            emitted_to=opening.emitted_to,
            beginning=opening.beginning,
            stable_end=opening.stable_end,
            # The index does not use the version; it helps people who read the log.
            program=f"{program_version()} {self.config.settings}".rstrip(),
        )
        self._append(session, block)

    def ask(self, polled: Sequence[Asked]) -> None:
        """Send these records, the next ones of their sessions, to the log as blocks.

        At most MAX_ASKED_BYTES are read together, because reading takes up to READING_FACTOR times their
        memory; a single row may be larger.

        raises: AbortableError if some of these records were sent before, or if the log refuses a block
        """
        together: list[_Part] = []
        held = 0
        for session, records, max_rows, max_bytes in polled:
            if records.offset(0) < session.covered:
                raise AbortableError(
                    f"{records.partition}: received offset {records.offset(0)} again, although offsets "
                    f"below {session.covered} were already sent to the index; starting again"
                )
            for part, size in slices(records, max_rows, min(MAX_ASKED_BYTES, max_bytes)):
                if together and held + size > MAX_ASKED_BYTES:
                    self._ask(together)
                    together, held = [], 0
                together.append(_Part(session, part, size))
                held += size
        if together:
            self._ask(together)

    def _ask(self, parts: Sequence[_Part]) -> None:
        known = []
        for part in parts:
            records, foreign = without_foreign(part.records)
            refused = self._refused(part.session, records) | self._found(records)
            known.append(part._replace(records=records, refused=refused, foreign=foreign))
        read = self.reader.read_all([(part.records, part.refused) for part in known])
        self.hook(WorkerStep.FINGERPRINTED)
        messages = Messages()
        for part, (kinds, batch, reasons) in zip(known, read, strict=True):
            session, records = part.session, part.records
            whole = replace(
                self._block(session),
                end=records.next_offset,
                offsets=records.columns.offsets,
                kinds=kinds,
                batch=batch,
            )
            blocks, low = [], 0
            for block in split_block(whole, self.config.block_bytes):
                blocks.append((block, _pending(block, part, reasons, low)))
                low += len(block)
            self._add(messages, session, blocks)
        # All together: an index that reads one of them alone judges it in a transaction of its own.
        self.appender.append(self.config.log, messages)
        self.hook(WorkerStep.APPENDED)

    def _refused(self, session: Session, records: Records) -> dict[int, DeadLetterReason]:
        """Rows that the output topic would refuse, with the reason.

        A row is refused for its timestamp only if an acknowledgement has shown the broker's clock since the
        row was read. Otherwise the process may have an old value of that clock, because a process on a paused
        machine does not notice the pause.

        raises: AbortableError if no acknowledgement arrives in time
        """
        refused = unsendable(self.config.emit, records, self.transactor)
        if DeadLetterReason.BAD_TIMESTAMP not in refused.values():
            return refused
        self.report(session, session.covered)
        if self.appender.confirm(self.config.answer_s):
            raise AbortableError(
                f"{self.config.log}: the broker's clock is unknown, because no write was acknowledged in time"
            )
        return unsendable(self.config.emit, records, self.transactor)

    def _found(self, records: Records) -> dict[int, DeadLetterReason]:
        """Rows that the output topic has refused, although nothing known of it says so."""
        found, output = self.suspects.of(records.partition), self.config.emit.output
        if not found:
            return {}
        rows = enumerate(records.offsets)
        return {row: DeadLetterReason.REFUSED for row, offset in rows if output in found.get(offset, {})}

    def report(self, session: Session, end: int) -> None:
        """Send a block without rows that ends at offset `end`; it tells the index how far the session has
        emitted."""
        block = replace(self._block(session), end=end)
        self._append(session, block)

    def _block(self, session: Session) -> Block:
        return Block(
            topic_id=session.mark.topic_id,
            number=session.partition.number,
            reply=session.reply.number,
            session=session.number,
            flags=BlockFlag.NONE,
            first=session.covered,
            end=session.covered,
            emitted_from=session.mark.first,
            emitted_to=session.emitted,
            arrival_ms=self.clock.now_ms(),
            topic=session.partition.topic,
        )

    def _append(self, session: Session, block: Block) -> None:
        """Append a block without rows to the log."""
        messages = Messages()
        self._add(messages, session, [(block, _pending(block, _without_rows(session)))])
        self.appender.append(self.config.log, messages)

    def _add(
        self, messages: Messages, session: Session, blocks: Sequence[tuple[Block, PendingBlock]]
    ) -> None:
        """Add the blocks to the messages for the log, and to those that the session has sent."""
        end = blocks[-1][0].end
        beyond = beyond_positions(session.partition.number, end)
        if beyond is not None:
            raise StateError(
                f"{session.partition}@{end - 1}: {beyond}; take the topic out of input.topics, or copy it "
                "to a new one that begins at offset 0"
            )
        for block, _ in blocks:
            messages.add(None, encode_block(block, self.config.scheme))
        starts = BlockFlag.START in blocks[0][0].flags
        session.ask([pending for _, pending in blocks], self.clock.monotonic_s(), starts=starts)


def _without_rows(session: Session) -> _Part:
    return _Part(session, Records.none(session.partition), 0)


def _pending(
    block: Block, part: _Part, unreadable: Mapping[int, DeadLetterReason] = MappingProxyType({}), low: int = 0
) -> PendingBlock:
    """The entry for `Session.pending`: the block's input messages, unchanged, and what to do with those that
    cannot be judged or sent. The block begins at row `low` of the part's records."""
    originals = part.records.slice(low, low + len(block))
    reasons, unsendable = (
        {row - low: reason for row, reason in by_row.items() if 0 <= row - low < len(block)}
        for by_row in (unreadable, part.refused)
    )
    strange = sum(count for row, count in part.foreign.items() if 0 <= row - low < len(block))
    no_text = np.flatnonzero(block.kinds == RowKind.NO_TEXT).tolist()
    memory_bytes = part.size if originals is part.records else bytes_held(originals)
    return PendingBlock(
        block.first, block.end, originals, reasons, memory_bytes, unsendable, strange, no_text
    )


def bytes_held(records: Records) -> int:
    """Bytes of memory that records take: keys, values and headers, their columns and answers."""
    return int(_row_bytes(records).sum())


def _row_bytes(records: Records) -> NDArray[np.int64]:
    """int64[n]: the share of each message in `bytes_held`."""
    return records.columns.content_sizes + ROW_BYTES


def slices(records: Records, max_rows: int, max_bytes: int) -> list[tuple[Records, int]]:
    """The records in parts of at most `max_rows` rows and `max_bytes` of memory, in order; a part with a
    single row may be larger. With each part its bytes of memory, as `bytes_held` counts them.

    >>> from twinsieve.pipeline.broker.records import Partition
    >>> values = [b"a", b"b" * 900, b"c"]
    >>> records = Records.of(Partition("posts", 0), [4, 5, 9], values=values)
    >>> [part.offsets for part, _ in slices(records, 5_000, 1_000)]
    [[4], [5], [9]]
    """
    row_bytes = _row_bytes(records)
    return [
        (records.slice(span.start, span.stop), int(row_bytes[span].sum()))
        for span in row_spans(row_bytes, max_bytes, max_rows)
    ]
