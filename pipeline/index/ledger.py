"""The index's book of sessions: which offsets were judged, what is open, which session holds a partition.

For every block of the log the ledger answers: is it to be judged, and where does each row's verdict come
from?
The rules (design, section 4), in the order in which they are applied to a block:

1. A start block is refused when the group has no offset for a partition that was judged before, or on which
   a session began that this one would not go on from, or for any partition of a topic that was judged when it
   would begin behind messages; when the
   topic is another one of the same name (unless its offset was set for this very topic), or when the input
   ends before what was judged. Nothing changes then.
   Any block is refused that positions cannot record: too large an offset, one topic too many.
2. Any other block must join its session's last one without gap, and its session must be the last that started
   there; else it is superseded, and nothing changes.
3. What the block reports as emitted is closed: its verdicts are no longer needed. The report is true whoever
   makes it, for it names offsets that a committed transaction has emitted.
4. A row not judged yet is new; judged and open: its stored verdict again; judged and closed: replayed.
5. What was judged, and never comes out, is passed over: it counts as never judged, and what was kept of it
   leads nobody any more. `GivenUp` names every cause, `Ledger._pass_over` alone does it.
   A session that begins behind open verdicts passes them over, and all those of other topics of the same
   name, whatever the partition: the topic was deleted and created again, and nobody knows any more which of
   them came out. The sessions of those topics are over. The session's second block says so, not the first:
   a worker that was frozen may still begin a session after others have taken its partitions, but never goes
   on. A block that asks for a range again passes over what is open there and no row of it, for compaction
   took that, and what was unique and is refused by the output now. What the index finds out by itself, that a
   topic is gone or nobody reads it, stands in the ruling on the next block (`Ruling.given_up`).
6. Where a recorded ruling contradicts an open verdict, the ruling counts: whoever made it had lost the record
   of that verdict to retention.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from twinsieve.pipeline.index.ranges import OpenRows, OpenVerdicts, Ranges
from twinsieve.pipeline.wire.block import Block, BlockFlag, RowKind
from twinsieve.pipeline.wire.columns import decode_columns, encode_columns
from twinsieve.pipeline.wire.positions import MAX_TOPICS, beyond_positions, pack_positions
from twinsieve.pipeline.wire.ruling import Result, Ruling, Source
from twinsieve.stages.contract import Flag, Kind, Verdicts
from twinsieve.stages.errors import StateError

_ALL = 1 << 62
_NO_ID = bytes(16)
"""In place of the id of a topic that is known by its number alone."""


class GivenUp(StrEnum):
    """Why a judged message was passed over before it came out."""

    RETENTION = "retention"
    """its partition begins behind it: it is lost"""
    RESET = "reset"
    """somebody moved the offset behind it"""
    RECREATED = "recreated"
    """its topic was deleted and created again: it is unknown whether it came out"""
    GONE = "gone"
    """its topic was deleted, or no worker reads it any more"""
    COMPACTED = "compacted"
    """compaction took it"""
    REFUSED = "refused"
    """the output took it when it was judged, and does not any more: it is a dead letter"""


@dataclass(slots=True)
class Book:
    """One input partition: its session, the end of what that session has covered, judged and open offsets.

    began: where the session began, until it has gone on; then -1
    beginning: where the partition began then
    """

    session: int = 0
    covered: int = 0
    began: int = -1
    beginning: int = 0
    judged: Ranges = field(default_factory=Ranges)
    open: OpenVerdicts = field(default_factory=OpenVerdicts)


Waiting = tuple[tuple[int, int, int], ...]
"""Partitions of one topic that have open verdicts: number, session, end of what that session has covered."""


class NumberedTopic(NamedTuple):
    """An input topic in the order of first appearance; its place is its topic number."""

    topic_id: bytes
    name: str


class ClosedRows(NamedTuple):
    """What was open in one input partition, and never comes out."""

    number: int
    partition: int
    rows: OpenRows
    why: GivenUp


class PassedOver(NamedTuple):
    """Kept messages that are no longer leaders, as they never came out; tags: as in `OpenRows`."""

    positions: NDArray[np.int64]
    tags: NDArray[np.uint64]


def _skips(block: Block, book: Book) -> bool:
    """Whether a session that begins without an offset leaves out what the last one was to judge."""
    return bool(book.judged) or block.first > max(book.covered, block.beginning)


class Ledger:
    """All input partitions of one app.

    sessions_started, given_up: counted since this object was made, for every index
    """

    def __init__(self) -> None:
        self.topics: list[NumberedTopic] = []
        self.books: dict[tuple[int, int], Book] = {}
        self.sessions_started = 0
        self.given_up: Counter[GivenUp] = Counter()

    def topic_number(self, topic_id: bytes) -> int | None:
        """Number of a topic, None if it never appeared."""
        return next((place for place, topic in enumerate(self.topics) if topic.topic_id == topic_id), None)

    def check(self, block: Block) -> Result:
        """Rules 1 and 2; nothing changes."""
        number = self.topic_number(block.topic_id)
        is_one_too_many = number is None and len(self.topics) >= MAX_TOPICS
        if is_one_too_many or beyond_positions(block.number, block.end) is not None:
            return Result.BEYOND
        book = self.books.get((number, block.number)) if number is not None else None
        if not block.flags & BlockFlag.START:
            joins = book is not None and book.session == block.session and book.covered == block.first
            return Result.JUDGED if joins else Result.SUPERSEDED
        skips = book is not None and bool(block.flags & BlockFlag.FRESH) and _skips(block, book)
        if skips or (block.flags & BlockFlag.FIRST and self._judged(number)):
            return Result.OFFSETS_MISSING
        if book is not None and book.judged:
            if block.stable_end < book.judged.end:
                return Result.SHORTENED
        elif not block.flags & BlockFlag.CERTIFIED and self._judged_under_another_id(block, number):
            return Result.RECREATED
        return Result.JUDGED

    def _judged(self, number: int | None) -> bool:
        """Whether anything of that topic was judged, in whatever partition."""
        return any(place == number and book.judged for (place, _), book in self.books.items())

    def _judged_under_another_id(self, block: Block, number: int | None) -> bool:
        if number is not None:
            return False
        judged = {place for (place, _), book in self.books.items() if book.judged}
        return any(self.topics[place].name == block.topic for place in judged)

    def enter(self, block: Block) -> list[PassedOver]:
        """Rules 3 and 5, for a block that `check` lets pass.

        Its session takes hold, what it reports is closed.
        returns: what is passed over
        """
        number = self.topic_number(block.topic_id)
        if number is None:
            number = len(self.topics)
            self.topics.append(NumberedTopic(block.topic_id, block.topic))
        book = self.books.setdefault((number, block.number), Book())
        if block.flags & BlockFlag.START:
            self.sessions_started += 1
            book.session = block.session
            book.covered = book.began = block.first
            book.beginning = block.beginning
        book.judged.add(block.emitted_from, block.emitted_to)
        book.open.drop(block.emitted_from, block.emitted_to)
        if block.flags & BlockFlag.START:
            return []
        key, rows = (number, block.number), book.open
        dropped = []
        if book.began >= 0:
            dropped.append(ClosedRows(*key, rows.drop(0, min(book.beginning, book.began)), GivenUp.RETENTION))
            dropped.append(ClosedRows(*key, rows.drop(0, book.began), GivenUp.RESET))
            dropped += self._end(self._namesakes(number), GivenUp.RECREATED)
            book.began = -1
        dropped.append(
            ClosedRows(*key, rows.take_absent(block.first, block.end, block.offsets), GivenUp.COMPACTED)
        )
        refused = block.offsets[block.kinds == RowKind.REFUSED]
        if len(refused):
            _, verdicts = rows.find(refused)
            dropped.append(
                ClosedRows(*key, rows.take(refused[verdicts.kinds == Kind.UNIQUE]), GivenUp.REFUSED)
            )
        return self._pass_over(dropped)

    def waiting(self) -> dict[int, Waiting]:
        """Topics, by number, with open verdicts; an entry that stays the same waits for a session."""
        topics: dict[int, Waiting] = {}
        for (number, partition), book in self.books.items():
            if book.open:
                topics[number] = (*topics.get(number, ()), (partition, book.session, book.covered))
        return topics

    def give_up(self, topic_ids: Collection[bytes]) -> list[PassedOver]:
        """Nothing will come out of these topics. A session that begins there later counts as new.

        returns: what is passed over
        """
        numbers = {place for place, topic in enumerate(self.topics) if topic.topic_id in topic_ids}
        return self._pass_over(self._end(numbers, GivenUp.GONE)) if numbers else []

    def _namesakes(self, number: int) -> set[int]:
        """Other topics of this one's name, which were deleted: only one of them exists."""
        name = self.topics[number].name
        return {other for other, topic in enumerate(self.topics) if topic.name == name and other != number}

    def _end(self, numbers: Collection[int], why: GivenUp) -> Iterator[ClosedRows]:
        """What is open in these topics, in whatever partition; their sessions are over."""
        for (number, partition), book in self.books.items():
            if number in numbers:
                # A worker that was frozen would continue it.
                book.session = 0
                yield ClosedRows(number, partition, book.open.drop(0, _ALL), why)

    def _pass_over(self, dropped: Iterable[ClosedRows]) -> list[PassedOver]:
        """Remove open verdicts: their messages count as never judged."""
        passed = []
        for number, partition, rows, why in dropped:
            if not len(rows):
                continue
            self.books[number, partition].judged.remove(rows.offsets)
            self.given_up[why] += len(rows)
            passed.append(_passed_over(number, partition, rows))
        return [part for part in passed if len(part.positions)]

    def give_way(self, block: Block, ruling: Ruling) -> list[PassedOver]:
        """Drop the open verdicts that the recorded ruling on this entered block contradicts.

        The index that made the ruling did not have them, as retention had deleted their record: the later
        verdict is the one that was answered.
        returns: kept messages whose first verdict was dropped, unless they are out
        """
        book = self.book(block)
        is_open, stored = book.open.find(block.offsets)
        recorded = ruling.verdicts
        differs = (stored.kinds != recorded.kinds) | (stored.leaders != recorded.leaders)
        wrong = is_open & (differs | (ruling.sources == Source.NEW))
        is_out = ruling.sources == Source.REPLAYED
        book.open.take(block.offsets[wrong & is_out])
        dropped = book.open.take(block.offsets[wrong & ~is_out])
        passed = _passed_over(self.number_of(block), block.number, dropped)
        return [passed] if len(passed.positions) else []

    def sources(self, block: Block) -> tuple[NDArray[np.uint8], Verdicts]:
        """Rule 4, for a block that was entered: sources of its rows, and verdicts (those of new rows
        blank)."""
        book = self.book(block)
        judged = book.judged.contain(block.offsets)
        is_open, verdicts = book.open.find(block.offsets)
        sources = np.where(judged, np.where(is_open, Source.STORED, Source.REPLAYED), Source.NEW)
        return sources.astype(np.uint8), verdicts

    def record(self, block: Block, sources: NDArray[np.uint8], verdicts: Verdicts) -> None:
        """The block is judged: its range is covered, its new verdicts are open.

        So are stored ones that are not open here: retention took the block they were judged in before this
        ledger followed it, and nothing says that their messages came out.
        """
        book = self.book(block)
        opened = sources == Source.NEW
        stored = sources == Source.STORED
        if stored.any():
            is_open, _ = book.open.find(block.offsets)
            opened |= stored & ~is_open
        tags = np.zeros(len(block), np.uint64)
        batch = block.batch
        tags[block.kinds == RowKind.READABLE] = batch.fingerprints.digests[:, 0] ^ batch.scopes
        rows = OpenRows(block.offsets, verdicts, tags)
        book.open.add(rows if opened.all() else rows.take(opened))
        book.judged.add(block.first, block.end)
        book.covered = block.end

    def book(self, block: Block) -> Book:
        """The book of a block that was entered."""
        return self.books[(self.number_of(block), block.number)]

    def number_of(self, block: Block) -> int:
        """Topic number of a block that was entered."""
        number = self.topic_number(block.topic_id)
        assert number is not None, "the block was not entered"
        return number

    def take_numbers(self, block: Block, names: Mapping[int, str]) -> None:
        """Adopt the topic numbers of the index that judged this block.

        It may know topics whose blocks are deleted.

        names: of topics by number, first the block's own
        """
        while len(self.topics) <= max(names):
            self.topics.append(NumberedTopic(_NO_ID, ""))
        for number, name in names.items():
            if not self.topics[number].name:
                self.topics[number] = NumberedTopic(self.topics[number].topic_id, name)
        own = next(iter(names))
        if self.topic_number(block.topic_id) is None and self.topics[own].topic_id == _NO_ID:
            self.topics[own] = NumberedTopic(block.topic_id, self.topics[own].name)

    def own_numbers(self, block: Block, names: Mapping[int, str]) -> dict[int, int]:
        """Topics that the index of this block numbered differently: its number → the number here.

        An index that restored when retention had taken all blocks of a topic gives that topic's number to
        another one; the index that follows it may have known the topic all along. Call it when the block was
        entered.

        names: as for `take_numbers`
        """
        own, *others = names
        numbers = {own: self.number_of(block)}
        for number in others:
            if self.topics[number].name == names[number]:
                continue
            same = [place for place, topic in enumerate(self.topics) if topic.name == names[number]]
            if not same:
                same = [len(self.topics)]
                self.topics.append(NumberedTopic(_NO_ID, names[number]))
            # Of topics of one name, the one made last.
            numbers[number] = same[-1]
        return numbers


def _passed_over(number: int, partition: int, dropped: OpenRows) -> PassedOver:
    """The kept messages among verdicts that count no more: unique, of a text, and not too late to lead."""
    verdicts = dropped.verdicts
    is_late = verdicts.flags & int(Flag.LATE) != 0
    kept = dropped.take((verdicts.kinds == Kind.UNIQUE) & (dropped.tags != 0) & ~is_late)
    return PassedOver(pack_positions(number, partition, kept.offsets), kept.tags)


_SIZE = struct.Struct("<I")


def ledger_to_bytes(ledger: Ledger) -> bytes:
    """Everything that a ledger knows."""
    books = []
    chunks: list[bytes] = []
    for (number, partition), book in ledger.books.items():
        chunks += map(encode_columns, book.open.chunks)
        books.append(
            {
                "topic": number,
                "partition": partition,
                "session": book.session,
                "covered": book.covered,
                "began": book.began,
                "beginning": book.beginning,
                "judged": list(book.judged),
                "open": len(book.open.chunks),
            }
        )
    head = orjson.dumps(
        {
            "topics": [(topic.topic_id.hex(), topic.name) for topic in ledger.topics],
            "books": books,
        }
    )
    return b"".join((_SIZE.pack(len(head)), head, *chunks))


def ledger_from_bytes(data: bytes, where: str) -> Ledger:
    """The ledger of some bytes. raises: StateError naming `where`"""
    ledger = Ledger()
    try:
        (size,) = _SIZE.unpack_from(data)
        head = orjson.loads(data[_SIZE.size : _SIZE.size + size])
        ledger.topics = [NumberedTopic(bytes.fromhex(topic_id), name) for topic_id, name in head["topics"]]
        position = _SIZE.size + size
        for entry in head["books"]:
            began, beginning = entry.get("began", -1), entry.get("beginning", 0)
            book = Book(entry["session"], entry["covered"], began, beginning, Ranges(entry["judged"]))
            for _ in range(entry["open"]):
                rows, position = decode_columns(OpenRows, memoryview(data), position, where)
                book.open.add(rows)
            ledger.books[(entry["topic"], entry["partition"])] = book
        if position != len(data):
            raise ValueError(f"{len(data) - position} bytes too many")
    except (struct.error, ValueError, KeyError, TypeError) as error:
        raise StateError(
            f"{where}: the book of sessions is damaged ({error}); delete this snapshot, an older one "
            "or the log will do"
        ) from error
    return ledger
