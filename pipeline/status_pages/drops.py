"""The latest dropped messages beside their leaders, for the status pages (`http.texts`).

The worker hands over what it has emitted and waits for nothing: texts are read out of messages only when a
page asks. One drop a second is taken in the long run, so that a page and the look-up of leaders can follow,
and a fast stream is no slower for it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from twinsieve.pipeline.basics.printable import beginning
from twinsieve.pipeline.broker.input_position import InputPosition
from twinsieve.pipeline.broker.ports import Clock
from twinsieve.pipeline.broker.records import Partition, Records
from twinsieve.pipeline.broker.redriven import held_by
from twinsieve.pipeline.messages.columns import likeness_of
from twinsieve.pipeline.messages.reader import MessageReader
from twinsieve.pipeline.sizing.process_memory import MOST_DROPS, WAITING_BYTES
from twinsieve.pipeline.wire.positions import unpack_position
from twinsieve.pipeline.wire.ruling import Ruling
from twinsieve.stages.contract import NO_LEADER, Kind

MAX_TEXT = 1_000
"""The most characters of a text that are kept."""
A_SECOND = 1.0
"""Drops that are taken a second, in the long run."""
_AT_ONCE = 100
"""Drops that are taken at once after a quiet time."""
_MAX_MESSAGE_BYTES = 256 << 10

ReadText = Callable[[bytes | None], tuple[str, str]]
"""Returns the text of a message, and why there is none; one of the two is empty."""

NOT_READ = "not read yet"
_UNNAMED = "not known: only the Bloom filter remembers it, which names no message"
_CREATED_AGAIN = "not in the topic any more: the topic was created again"


@dataclass(slots=True)
class Drop:
    """A dropped message. Only `Drops` changes it.

    number: counts the drops from 1; changed: grows with each change of any drop
    time_ms: when it was emitted, ms since 1970
    position: where the message is; stage: `exact` or `near`
    measure, likeness: as `likeness_of` gives them
    leader: where its leader is; None if that is not known
    text, leader_text: the texts, cut; why, why_leader: why there is none
    html, json: forms of this drop that a page has made; None after a change
    """

    number: int
    changed: int
    time_ms: int
    position: InputPosition
    stage: str
    measure: str
    likeness: float
    leader: InputPosition | None
    text: str = ""
    why: str = ""
    leader_text: str = ""
    why_leader: str = ""
    html: str | None = None
    json: str | None = None


class Drops:
    """The latest drops of a process.

    part: which part of a record is the message
    read: reads the text of a message; called by one thread at a time
    """

    def __init__(self, clock: Clock, part: str, read: ReadText) -> None:
        self._clock = clock
        self._part = part
        self._read = read
        self._lock = threading.Lock()
        self._reading = threading.Lock()
        self._drops: deque[Drop] = deque()
        self._messages: dict[int, bytes | None] = {}
        """By number the messages whose text was not read yet."""
        self._waiting_bytes = 0
        self._allowance, self._allowed_s = float(_AT_ONCE), clock.monotonic_s()
        self._count = self._changes = 0
        self.passed = 0
        """Number of dropped messages of this process, those that were not taken included."""

    def take(self, records: Records, ruling: Ruling) -> None:
        """Take the newest drops of a block that was emitted. A role calls this, so it does little."""
        kinds = ruling.verdicts.kinds
        rows = np.flatnonzero((kinds == Kind.EXACT) | (kinds == Kind.NEAR))
        if not len(rows):
            return
        now_s = self._clock.monotonic_s()
        with self._lock:
            self.passed += len(rows)
            grown = self._allowance + A_SECOND * (now_s - self._allowed_s)
            self._allowance, self._allowed_s = min(float(_AT_ONCE), grown), now_s
            taken = rows[max(0, len(rows) - int(self._allowance)) :]
            self._allowance -= len(taken)
            for row in taken.tolist():
                self._add(records, ruling, row)

    def _add(self, records: Records, ruling: Ruling, row: int) -> None:
        message = records.values[row] if self._part == "value" else records.keys[row]
        self._count += 1
        self._changes += 1
        leader, why_leader = _leader(int(ruling.verdicts.leaders[row]), ruling.topics)
        drop = Drop(
            self._count,
            self._changes,
            self._clock.now_ms(),
            InputPosition(records.partition, records.offsets[row]),
            Kind(int(ruling.verdicts.kinds[row])).name.lower(),
            *likeness_of(ruling.verdicts, row),
            leader,
            why_leader=why_leader,
        )
        self._drops.append(drop)
        if message is not None and len(message) > _MAX_MESSAGE_BYTES:
            drop.why = f"a message of {len(message):,} bytes, too large for this page"
        else:
            self._messages[drop.number] = message
            self._waiting_bytes += len(message or b"")
        while len(self._drops) > MOST_DROPS or self._waiting_bytes > WAITING_BYTES:
            self._pop(self._drops.popleft().number)

    def _pop(self, number: int) -> bytes | None:
        message = self._messages.pop(number, None)
        self._waiting_bytes -= len(message or b"")
        return message

    def newer(self, after: int) -> list[Drop]:
        """Drops whose `changed` is above `after`, newest first, with their texts."""
        with self._reading:
            with self._lock:
                drops = [drop for drop in reversed(self._drops) if drop.changed > after]
                unread = [drop for drop in drops if drop.number in self._messages]
                messages = [self._pop(drop.number) for drop in unread]
            for drop, message in zip(unread, messages, strict=True):
                text, drop.why = self._read(message)
                drop.text = beginning(text, MAX_TEXT)
        return drops

    @property
    def last(self) -> int:
        """The greatest `changed` of all drops; 0 if there was none."""
        return self._changes

    def without_leader(self) -> list[InputPosition]:
        """Leaders whose texts are wanted, each once; those of the newest drops first."""
        with self._lock:
            wanted = [drop.leader for drop in reversed(self._drops) if drop.why_leader == NOT_READ]
        return list(dict.fromkeys(leader for leader in wanted if leader is not None))

    def set_leader(self, leader: InputPosition, text: str, why: str) -> None:
        """Set the text of a leader, or why there is none, in all its drops."""
        text = beginning(text, MAX_TEXT)
        with self._lock:
            for drop in self._drops:
                if drop.leader == leader and drop.why_leader == NOT_READ:
                    self._changes += 1
                    drop.leader_text, drop.why_leader = text, why
                    drop.html = drop.json = None
                    drop.changed = self._changes


def _leader(packed: int, topics: dict[int, str]) -> tuple[InputPosition | None, str]:
    """Where a leader is, and why its text is not there."""
    if packed == NO_LEADER:
        return None, _UNNAMED
    position = unpack_position(packed)
    name = topics.get(position.topic_number)
    if name is None:
        return None, _CREATED_AGAIN
    place = InputPosition(Partition(held_by(name), position.partition), position.offset)
    # A topic that was created again has the name of the old one, and other messages at its offsets.
    own = next(iter(topics))
    is_old = topics[own] == name and position.topic_number != own
    return place, _CREATED_AGAIN if is_old else NOT_READ


def text_reader(reader: MessageReader) -> ReadText:
    """A function that reads the text of one message; used by one thread at a time."""

    def read(message: bytes | None) -> tuple[str, str]:
        columns = reader.read([message])
        if columns.texts:
            return columns.texts[0], ""
        problems = columns.unreadable or columns.no_text
        return "", f"the message cannot be read: {problems[0].detail}"

    return read
