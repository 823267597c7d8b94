"""The index's ledger of sessions: which offsets were judged, which verdicts are open, and which session holds
each input partition.

A verdict is *open* while its message is not known to be emitted, and *closed* afterwards. For every block of
the log the ledger answers: is the block to be judged, and where does each row's verdict come from?
The rules, in the order in which they are applied to a block:

1. A start block is refused, and nothing changes, in these cases:
   - The group has no offset for the partition, although messages of it were judged before, or although an
     earlier session had still to judge messages that this session would skip.
   - The session skips the existing messages because the group has no offset for any partition of the topic,
     although messages of that topic were judged.
   - It begins after open verdicts that it does not report as emitted, that retention has not deleted, and
     that no `twinsieve reset` leaves out.
   - A deleted topic of the same name was judged (unless the committed offset was set for this very topic).
   - The input partition ends before the last judged offset.
   Any block is refused that positions cannot record: an offset is too large, or there is one topic too many.
2. Any other block must begin where the last block of its session ended, and its session must be the last one
   that started in the partition. Otherwise the block is superseded, and nothing changes.
3. The verdicts of offsets that the block reports as emitted are closed: they are no longer needed. The report
   is true whichever worker sends it, because it names offsets that a committed transaction has emitted.
4. A row that was not judged yet is new. A judged row with an open verdict gets this stored verdict again. A
   judged row with a closed verdict is replayed.
5. A judged message that will never be emitted is *passed over*: it counts as never judged, and if it was
   kept, it is no longer a leader. `GivenUp` names every cause; only `Ledger._pass_over` does this.
   A session that begins after open verdicts passes them over. It also passes over all open verdicts of other
   topics of the same name, in all partitions: the topic was deleted and created again, and it is unknown
   which of its messages were emitted. The sessions of those topics end. All this happens with the session's
   second block, not with the first: a worker that was frozen may still begin a session after others have
   taken its partitions, but it never sends a second block.
   A block that asks for a range again passes over two sorts of open verdicts in that range: those of offsets
   for which the block has no row, because compaction deleted the message; and those of unique messages that
   the output refuses now. If the index itself finds that a topic is gone or that no worker reads it, the
   ruling on the next block names the topic (`Ruling.given_up`).
6. If a recorded ruling contradicts an open verdict, the ruling counts: the index that made it did not have
   that verdict, because retention had deleted the record of it.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from twinsieve.pipeline.basics.printable import printable
from twinsieve.pipeline.index.ranges import OpenRows, OpenVerdicts, Ranges
from twinsieve.pipeline.wire.block import Block, BlockFlag, RowKind
from twinsieve.pipeline.wire.column_bytes import decode_columns, encode_columns
from twinsieve.pipeline.wire.positions import (
    MAX_OFFSETS,
    MAX_PARTITIONS,
    MAX_TOPICS,
    beyond_positions,
    pack_positions,
    topic_numbers,
)
from twinsieve.pipeline.wire.ruling import Result, Ruling, Source
from twinsieve.stages.contract import Flag, Kind, Verdicts
from twinsieve.stages.differ.rules import Rule
from twinsieve.stages.errors import StateError

_ALL = 1 << 62
_NO_ID = bytes(16)
"""Stands for the id of a topic of which only the number is known."""


class GivenUp(StrEnum):
    """Why a judged message was passed over before it was emitted."""

    RETENTION = "retention"
    """retention deleted it: the first offset of its partition is higher"""
    RESET = "reset"
    """somebody moved the committed offset to a place after it"""
    RECREATED = "recreated"
    """its topic was deleted and created again: it is unknown whether the message was emitted"""
    GONE = "gone"
    """its topic was deleted, or no worker reads it any more"""
    COMPACTED = "compacted"
    """compaction deleted it"""
    REFUSED = "refused"
    """the output accepted it when it was judged, and refuses it now: it becomes a dead letter"""


@dataclass(slots=True)
class Book:
    """What the ledger knows of one input partition.

    session: number of the session that holds it; covered: end of the offsets that the session has sent
    began: offset at which the session began; -1 after its second block
    beginning: first offset of the partition when the session began
    judged: judged offsets; open: verdicts whose messages are not known to be emitted
    """

    session: int = 0
    covered: int = 0
    began: int = -1
    beginning: int = 0
    judged: Ranges = field(default_factory=Ranges)
    open: OpenVerdicts = field(default_factory=OpenVerdicts)


Waiting = tuple[tuple[int, int, int], ...]
"""For each partition of one topic that has open verdicts: its number, its session, and the end of the offsets
that the session has sent."""


class NumberedTopic(NamedTuple):
    """An input topic. Topics are numbered in the order in which they first appear in the log."""

    topic_id: bytes
    name: str


class ClosedRows(NamedTuple):
    """Verdicts of one input partition that were open, and were removed because their messages will never be
    emitted.

    number: topic number
    """

    number: int
    partition: int
    rows: OpenRows
    why: GivenUp


class PassedOver(NamedTuple):
    """Kept messages that are no longer leaders, because they were never emitted. tags: as in `OpenRows`"""

    positions: NDArray[np.int64]
    tags: NDArray[np.uint64]


def _skips(block: Block, book: Book) -> bool:
    """Whether a session that begins without a committed offset skips messages that were judged, or that the
    last session had still to judge."""
    return bool(book.judged) or block.first > max(book.covered, block.beginning)


def _leaves_out(block: Block, book: Book) -> bool:
    """Whether a session begins after open verdicts, other than of messages that it reports as emitted or that
    retention has deleted."""
    before_report = block.beginning, min(block.first, block.emitted_from)
    after_report = max(block.beginning, block.emitted_to), block.first
    return any(book.open.reach(first, end) for first, end in (before_report, after_report))


class Ledger:
    """The ledger of all input partitions of one app.

    topics: in the order of their numbers; books: by topic number and partition
    sessions_started, given_up: counts since this object was made. They include blocks that other indexes
        judged
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
        """The result for a block by rules 1 and 2. Does not change the ledger."""
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
        if book is not None and not block.flags & BlockFlag.RESET and _leaves_out(block, book):
            return Result.LEFT_OUT
        if book is not None and book.judged:
            if block.stable_end < book.judged.end:
                return Result.SHORTENED
        elif not block.flags & BlockFlag.CERTIFIED and self._judged_under_another_id(block, number):
            return Result.RECREATED
        return Result.JUDGED

    def _judged(self, number: int | None) -> bool:
        """Whether any message of that topic was judged, in any partition."""
        return any(place == number and book.judged for (place, _), book in self.books.items())

    def _judged_under_another_id(self, block: Block, number: int | None) -> bool:
        if number is not None:
            return False
        judged = {place for (place, _), book in self.books.items() if book.judged}
        return any(self.topics[place].name == block.topic for place in judged)

    def enter(self, block: Block) -> list[PassedOver]:
        """Apply rules 3 and 5 to a block that `check` has accepted.

        From a start block on, its session holds the partition. Verdicts of offsets that the block reports as
        emitted are closed.
        returns: kept messages that are passed over
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
        """By topic number, the partitions with open verdicts. If an entry is the same at two calls, no
        session of the topic has moved in between."""
        topics: dict[int, Waiting] = {}
        for (number, partition), book in self.books.items():
            if book.open:
                topics[number] = (*topics.get(number, ()), (partition, book.session, book.covered))
        return topics

    def give_up(self, topic_ids: Collection[bytes]) -> list[PassedOver]:
        """Give up topics of which no more messages will be emitted. A session that begins later in such a
        topic counts as new.

        returns: kept messages that are passed over
        """
        numbers = {place for place, topic in enumerate(self.topics) if topic.topic_id in topic_ids}
        return self._pass_over(self._end(numbers, GivenUp.GONE)) if numbers else []

    def _namesakes(self, number: int) -> set[int]:
        """Numbers of other topics with this topic's name. They were deleted, because only one topic of a name
        exists."""
        name = self.topics[number].name
        return {other for other, topic in enumerate(self.topics) if topic.name == name and other != number}

    def _end(self, numbers: Collection[int], why: GivenUp) -> Iterator[ClosedRows]:
        """Remove all open verdicts of these topics, and end their sessions; yields the removed verdicts."""
        for (number, partition), book in self.books.items():
            if number in numbers:
                # End the session, because a worker that was frozen would continue it.
                book.session = 0
                yield ClosedRows(number, partition, book.open.drop(0, _ALL), why)

    def _pass_over(self, dropped: Iterable[ClosedRows]) -> list[PassedOver]:
        """Note that the messages of these removed verdicts count as never judged; returns the kept ones."""
        passed = []
        for number, partition, rows, why in dropped:
            if not len(rows):
                continue
            self.books[number, partition].judged.remove(rows.offsets)
            self.given_up[why] += len(rows)
            passed.append(_passed_over(number, partition, rows))
        return [part for part in passed if len(part.positions)]

    def give_way(self, block: Block, ruling: Ruling) -> list[PassedOver]:
        """Apply rule 6: drop the open verdicts that the recorded ruling on this entered block contradicts.

        The index that made the ruling did not have them, because retention had deleted their record. The
        later verdict is the one that was sent to a worker.
        returns: kept messages whose first verdict was dropped, except for messages that are emitted
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
        """Rule 4, for a block that was entered: the `Source` of each row (uint8[n]), and the verdict of each
        row; verdicts of new rows are blank."""
        book = self.book(block)
        judged = book.judged.contain(block.offsets)
        is_open, verdicts = book.open.find(block.offsets)
        sources = np.where(judged, np.where(is_open, Source.STORED, Source.REPLAYED), Source.NEW)
        return sources.astype(np.uint8), verdicts

    def has_new(self, block: Block) -> bool:
        """Whether a block, entered or not, has a readable row that was not judged yet."""
        book = self._known_book(block)
        readable = block.offsets[block.kinds == RowKind.READABLE]
        return bool(len(readable)) and (book is None or not book.judged.contain(readable).all())

    def cover(self, block: Block) -> None:
        """Count the range of an entered block as judged, and as sent by its session."""
        book = self.book(block)
        book.judged.add(block.first, block.end)
        book.covered = block.end

    def open(self, block: Block, sources: NDArray[np.uint8], verdicts: Verdicts) -> None:
        """Record the verdicts on a covered block: new ones become open.

        Stored verdicts that are not open here become open too: retention deleted the block in which they were
        judged before this ledger followed it, and their messages are not known to be emitted.
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

    def joins(self, block: Block, spans: Mapping[tuple[bytes, int], tuple[int, int]]) -> bool:
        """Whether a block may be entered while the verdicts on blocks that were covered are not opened yet,
        with the same outcome as afterwards.

        spans: first offset and end of these blocks, by topic id and partition. The block must not report a
            verdict of them as emitted, nor ask for it again. The second block of a session passes over what
            earlier sessions asked for: in its own partition only the start block can be among these blocks,
            for it reports everything before it as emitted
        """
        book = self._known_book(block)
        if book is None or (book.began >= 0 and self._namesakes(self.number_of(block))):
            return False
        span = spans.get((block.topic_id, block.number))
        return span is None or (block.emitted_to <= span[0] and span[1] <= block.first)

    def _known_book(self, block: Block) -> Book | None:
        """The book of a block, None if no block of its partition was entered."""
        number = self.topic_number(block.topic_id)
        return None if number is None else self.books.get((number, block.number))

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

        That index may know topics whose blocks are deleted.

        names: names of topics by number; the block's own topic comes first
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
        """For topics that the index of this block numbered differently: its number → the number here.

        If an index restores after retention has deleted all blocks of a topic, it gives that topic's number
        to another topic, while the index that follows its decisions may still know the first topic. Call this
        after `enter`.

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
            # Of several topics with this name, take the one that was created last.
            numbers[number] = same[-1]
        return numbers


def _passed_over(number: int, partition: int, dropped: OpenRows) -> PassedOver:
    """The kept messages among dropped verdicts: unique ones that have a text and were not too late to become
    leaders."""
    verdicts = dropped.verdicts
    is_late = verdicts.flags & int(Flag.LATE) != 0
    kept = dropped.take((verdicts.kinds == Kind.UNIQUE) & (dropped.tags != 0) & ~is_late)
    return PassedOver(pack_positions(number, partition, kept.offsets), kept.tags)


_SIZE = struct.Struct("<I")


def ledger_to_bytes(ledger: Ledger) -> bytes:
    """All of a ledger as bytes."""
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
    """The ledger that `ledger_to_bytes` wrote. raises: StateError naming `where` if the bytes are damaged"""
    ledger = Ledger()
    try:
        (size,) = _SIZE.unpack_from(data)
        head = orjson.loads(data[_SIZE.size : _SIZE.size + size])
        ledger.topics = [NumberedTopic(bytes.fromhex(topic_id), name) for topic_id, name in head["topics"]]
        if len(ledger.topics) > MAX_TOPICS or not all(map(_is_topic, ledger.topics)):
            raise ValueError("its topics are none")
        position = _SIZE.size + size
        for entry in head["books"]:
            key, book = _book(entry, len(ledger.topics))
            for _ in range(entry["open"]):
                rows, position = decode_columns(OpenRows, memoryview(data), position, where)
                _check_open(rows, len(ledger.topics))
                book.open.add(rows)
            _check_apart(book.open)
            ledger.books[key] = book
        if position != len(data):
            raise ValueError(f"{len(data) - position} bytes too many")
    except Exception as error:
        # What somebody else wrote may raise anything.
        said = error if isinstance(error, ValueError | StateError) else type(error).__name__
        raise StateError(
            f"{where}: the ledger of sessions is damaged ({printable(str(said))}); delete this snapshot: an "
            "older snapshot or the log replaces it"
        ) from error
    return ledger


_TOPIC = re.compile(r"[A-Za-z0-9._-]{0,249}")
"""Names that Kafka has for topics, and none, for a topic of which only the number is known."""


def _is_topic(topic: NumberedTopic) -> bool:
    return len(topic.topic_id) == len(_NO_ID) and _TOPIC.fullmatch(topic.name) is not None


def _book(entry: dict[str, Any], topics: int) -> tuple[tuple[int, int], Book]:
    """(topic number and partition, book without open verdicts) of an entry.

    topics: how many there are
    raises: ValueError for numbers that no book has; KeyError, TypeError for other types
    """
    key, judged = (entry["topic"], entry["partition"]), entry["judged"]
    book = Book(entry["session"], entry["covered"], entry.get("began", -1), entry.get("beginning", 0))
    places = [book.covered, book.began + 1, book.beginning, *(place for pair in judged for place in pair)]
    if {type(number) for number in (*key, *places, book.session, entry["open"])} != {int}:
        raise ValueError(f"book {key} has other types")
    if not (0 <= key[0] < topics and 0 <= key[1] < MAX_PARTITIONS and 0 <= book.session < 1 << 64):
        raise ValueError(f"book {key} of session {book.session} is of no partition")
    if not all(0 <= place <= MAX_OFFSETS for place in places) or not all(low < high for low, high in judged):
        raise ValueError(f"book {key} has offsets that none has")
    book.judged = Ranges(judged)
    return key, book


def _check_open(rows: OpenRows, topics: int) -> None:
    """Check a chunk of verdicts of a book. topics: how many there are. raises: ValueError"""
    offsets, verdicts = rows.offsets, rows.verdicts
    ascend = len(offsets) and offsets[0] >= 0 and (offsets[1:] > offsets[:-1]).all()
    if (
        not ascend
        or offsets[-1] >= MAX_OFFSETS
        or not (np.isin(verdicts.kinds, list(Kind)).all() and np.isin(verdicts.reasons, list(Rule)).all())
    ):
        raise ValueError("open verdicts are not in order, or are none")
    if any(
        number >= topics for number in topic_numbers(np.concatenate((verdicts.leaders, verdicts.apart_from)))
    ):
        raise ValueError("an open verdict names a topic that is not there")


def _check_apart(verdicts: OpenVerdicts) -> None:
    """Check that no offset is in two chunks. One chunk may lie inside another: its messages were passed over,
    and judged again. raises: ValueError"""
    if verdicts:
        offsets = np.sort(np.concatenate([chunk.offsets for chunk in verdicts.chunks]))
        if (offsets[1:] == offsets[:-1]).any():
            raise ValueError("a message has two open verdicts")
