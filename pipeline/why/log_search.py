"""Finds what the index ruled on one input message, without reading the whole log.

The log holds the blocks of all input partitions in one order, and the blocks of one partition mostly ask for
ever higher offsets. So a search by halves finds the first block that reaches beyond a message. Only `reset`
and a session that begins again go back; their blocks give the message the verdict that it has already, or
report it as emitted, and the search continues before them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Literal, NamedTuple

import numpy as np

from twinsieve.pipeline.broker.admin import Admin
from twinsieve.pipeline.broker.excerpts import Excerpts, Row
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.wire.block import Block, Outline, RowKind, decode_block, outline_of
from twinsieve.pipeline.wire.frame import What, checksum_of, scheme_in
from twinsieve.pipeline.wire.ruling import Result, Ruling, Source, block_of, decode_ruling, result_of
from twinsieve.stages.contract import Verdicts
from twinsieve.stages.errors import StateError

_NEAR = 64
"""A search by halves stops at this number of records, and reads them."""
_HINTED = 512
"""So many blocks from the message's timestamp on are read first. Most messages are judged soon after they
were written."""
_AFTER = 200
"""So many blocks behind the verdict are read to find out whether the message came out."""
_CLOCKS_MS = 10_000
"""The clocks of a cluster's brokers are assumed to differ by at most this."""


class Wanted(NamedTuple):
    """A message to find. topic_id: of the topic that has it now"""

    topic_id: bytes
    partition: Partition
    offset: int


@dataclass(frozen=True, slots=True)
class Judged:
    """The ruling that counts for a message.

    log_offset, decision_offset: of the block and of the decision
    asked_ms, decided_ms: when the broker wrote them, ms since 1970
    kind: what the worker read
    verdicts: one row, with the topic names of its positions in `topics`; own_number: number of the message's
        own topic in these positions
    scheme: the fingerprint scheme of the app at that time
    emitted: whether a later block reports that the message came out
    """

    log_offset: int
    decision_offset: int
    asked_ms: int
    decided_ms: int
    kind: RowKind
    verdicts: Verdicts
    topics: dict[int, str]
    own_number: int
    scheme: bytes
    emitted: bool


@dataclass(frozen=True, slots=True)
class Asked:
    """A block that asks for the message, and has no decision yet. waiting: number of blocks before it that
    have none either, with itself"""

    log_offset: int
    asked_ms: int
    waiting: int


class Unfound(Enum):
    """Why there is no ruling on a message."""

    NEVER_ASKED = auto()
    """no block that the log still has asks for it, and none reports that it came out"""
    BLOCK_GONE = auto()
    """it came out, but the log has no longer the block that asked for it"""
    NO_MESSAGE = auto()
    """a block asks for its offset, and there was no message"""
    DECISION_GONE = auto()
    """a block asks for it, and retention took the decision"""


class _EarlierError(Exception):
    """The message came out, or was judged, before this log offset."""

    def __init__(self, log_offset: int) -> None:
        super().__init__()
        self.log_offset = log_offset


@dataclass(frozen=True, slots=True)
class LogSearch:
    """Searches the log and the decisions of one app.

    judged_to: the log offset that the index has committed; None if no index ever did
    raises: from each method TooFarError of `excerpts`; StateError for a damaged record; BrokerError
    """

    excerpts: Excerpts
    admin: Admin
    log: Partition
    decisions: Partition
    judged_to: int | None

    def find(
        self, wanted: Wanted, hint_ms: int | None, *, came_out: bool = False
    ) -> Judged | Asked | Unfound:
        """The ruling that counts for a message: the one by which it came out, or will.

        hint_ms: the message's timestamp, if it has one; a wrong one costs time only
        came_out: the committed offset says that the message came out. Then a search by halves that resets
            have misled is followed by one that reads all of the log
        """
        found = self._by_halves(wanted, hint_ms)
        if found is Unfound.NEVER_ASKED and came_out:
            found = self._scan(wanted, *self.excerpts.bounds(self.log), thorough=True)
        return found

    def _by_halves(self, wanted: Wanted, hint_ms: int | None) -> Judged | Asked | Unfound:
        begin, end = self.excerpts.bounds(self.log)
        try:
            if hint_ms is not None:
                start = self._hinted(wanted, hint_ms)
                if start is not None:
                    return self._scan(wanted, start, end)
            return self._scan(wanted, *self._bisect(wanted, begin, end))
        except _EarlierError as earlier:
            return self._before(wanted, begin, earlier.log_offset)

    def _hinted(self, wanted: Wanted, hint_ms: int) -> int | None:
        """Log offset of a block that asks for the message, if there is one soon after its timestamp."""
        begin, end = self.excerpts.bounds(self.log)
        low = max(begin, min(end, self.admin.offsets_at({self.log: max(0, hint_ms)})[self.log]))
        for row, outline in self._own(wanted, low, min(end, low + _HINTED)):
            if outline.end > wanted.offset:
                return row.offset if outline.first <= wanted.offset else None
        return None

    def _before(self, wanted: Wanted, begin: int, high: int) -> Judged | Asked | Unfound:
        """The result of `find` for a message that came out before the log offset `high`."""
        while True:
            reached = self._gallop(wanted, begin, high)
            if reached is None:
                return Unfound.BLOCK_GONE
            try:
                found = self._scan(wanted, *self._bisect(wanted, begin, reached))
            except _EarlierError as earlier:
                high = min(earlier.log_offset, high - 1)
                continue
            if isinstance(found, Judged):
                return replace(found, emitted=True)
            return Unfound.BLOCK_GONE if found is Unfound.NEVER_ASKED else found

    def _bisect(self, wanted: Wanted, low: int, high: int) -> tuple[int, int]:
        """Log offsets [low, high) in which the first block is that reaches beyond the message, if there is
        one. Of the given range, blocks from the first that does on are taken to do so too."""
        reached = 0
        while high - low > _NEAR:
            middle = (low + high) // 2
            own = next(self._own(wanted, middle, high), None)
            if own is not None and own[1].end <= wanted.offset:
                low = own[0].offset + 1
            else:
                reached = own[0].offset + 1 if own is not None else reached
                high = middle
        return low, max(high, reached)

    def _gallop(self, wanted: Wanted, begin: int, high: int) -> int | None:
        """Log offset behind the last block before `high` that reaches beyond the message; None if there is
        none."""
        step, end = _NEAR, high
        while end > begin:
            start = max(begin, high - step)
            reached = None
            for row, outline in self._own(wanted, start, end):
                if outline.end > wanted.offset:
                    reached = row.offset + 1
            if reached is not None:
                return reached
            end, step = start, 2 * step
        return None

    def _own(self, wanted: Wanted, first: int, end: int) -> Iterator[tuple[Row, Outline]]:
        """The blocks of the message's partition in [first, end) of the log."""
        for row in self.excerpts.rows(self.log, first, end):
            outline = _outline(wanted, row)
            if outline is not None:
                yield row, outline

    def _scan(
        self, wanted: Wanted, first: int, until: int, *, thorough: bool = False
    ) -> Judged | Asked | Unfound:
        """The ruling that counts, if the first block that asks for the message is in [first, until) of the
        log; where it came out is looked for behind `until` too.

        thorough: read on where a judged block begins behind the message
        raises: _EarlierError if the message was judged before `first`
        """
        found: Judged | Unfound = Unfound.NEVER_ASKED
        _, end = self.excerpts.bounds(self.log)
        for row in self.excerpts.rows(self.log, first, end):
            if row.offset >= until:
                break
            outline = _outline(wanted, row)
            if outline is None:
                continue
            is_out = outline.emitted_from <= wanted.offset < outline.emitted_to
            covers = outline.first <= wanted.offset < outline.end
            ruled = self._ruled(wanted, row) if covers and not is_out else None
            if is_out or ruled is Source.REPLAYED:
                if isinstance(found, Judged):
                    return replace(found, emitted=True)
                if found is not Unfound.NEVER_ASKED:
                    return found
                if not thorough:
                    raise _EarlierError(row.offset)
                return Unfound.BLOCK_GONE
            is_behind = outline.first > wanted.offset and found is Unfound.NEVER_ASKED
            if is_behind and not thorough and self._counts(row):
                break
            if isinstance(ruled, Asked) or ruled is Unfound.NO_MESSAGE:
                return found if isinstance(found, Judged) else ruled
            if isinstance(ruled, Judged) or (ruled is not None and not isinstance(found, Judged)):
                found, until = ruled, min(end, row.offset + _AFTER)
        return found

    def _ruled(self, wanted: Wanted, row: Row) -> Judged | Asked | Unfound | Literal[Source.REPLAYED] | None:
        """What became of the message in a block that asks for its offset; None if the block was not judged,
        Source.REPLAYED if the message had come out before."""
        data, where = row.value or b"", f"{self.log}@{row.offset}"
        block = decode_block(data, scheme_in(data), where)
        place = int(np.searchsorted(block.offsets, wanted.offset))
        if place == len(block) or block.offsets[place] != wanted.offset:
            return Unfound.NO_MESSAGE
        decision = self._decision(row)
        if not isinstance(decision, Row):
            return decision
        ruling = self._ruling(decision, block, data)
        if ruling.result is not Result.JUDGED:
            return None
        if ruling.sources[place] == Source.REPLAYED:
            return Source.REPLAYED
        return Judged(
            row.offset, decision.offset, row.time_ms, decision.time_ms, RowKind(block.kinds[place]),
            ruling.verdicts.take(np.array([place])), ruling.topics, next(iter(ruling.topics)),
            scheme_in(data), emitted=False,
        )  # fmt: skip

    def _counts(self, block: Row) -> bool:
        """Whether a block was judged, or may be; blocks of a session that is over are not."""
        decision = self._decision(block)
        return not isinstance(decision, Row) or result_of(decision.value or b"") is Result.JUDGED

    def _ruling(self, decision: Row, block: Block, data: bytes) -> Ruling:
        where = f"{self.decisions}@{decision.offset}"
        value = decision.value or b""
        ruling = decode_ruling(What.DECISION, value, scheme_in(value), where)
        is_judged = ruling.result is Result.JUDGED
        made_for = (ruling.session, ruling.first, ruling.end, ruling.checksum)
        asked = (block.session, block.first, block.end, checksum_of(data))
        if made_for != asked or (is_judged and len(ruling) != len(block)):
            raise StateError(
                f"{where}: was not made for block {ruling.log_offset} of {self.log}: the topic lost blocks, "
                "and new blocks got their offsets"
            )
        return ruling

    def _decision(self, block: Row) -> Row | Asked | Unfound:
        """The decision on a block. Decisions stand in the order of the blocks, a little later each."""
        begin, end = self.excerpts.bounds(self.decisions)
        since_ms = max(0, block.time_ms - _CLOCKS_MS)
        low, high = begin, end
        near = max(begin, min(end, self.admin.offsets_at({self.decisions: since_ms})[self.decisions]))
        for row in self.excerpts.rows(self.decisions, near, min(end, near + _NEAR)):
            of = block_of(row.value or b"")
            if of == block.offset:
                return row
            if of > block.offset:
                high = row.offset
                break
            low = row.offset + 1
        while high - low > _NEAR:
            middle = (low + high) // 2
            middle_row = self.excerpts.first(self.decisions, middle, high)
            of = block_of(middle_row.value or b"") if middle_row is not None else block.offset + 1
            if middle_row is not None and of == block.offset:
                return middle_row
            if middle_row is not None and of < block.offset:
                low = middle_row.offset + 1
            else:
                high = middle
        for row in self.excerpts.rows(self.decisions, low, high):
            if block_of(row.value or b"") == block.offset:
                return row
        if self.judged_to is not None and block.offset < self.judged_to:
            return Unfound.DECISION_GONE
        return Asked(block.offset, block.time_ms, block.offset + 1 - (self.judged_to or 0))


def _outline(wanted: Wanted, row: Row) -> Outline | None:
    """The outline of a block of the message's partition; None for other blocks."""
    outline = outline_of(row.value or b"")
    if outline is None or (outline.topic_id, outline.number) != (wanted.topic_id, wanted.partition.number):
        return None
    return outline
