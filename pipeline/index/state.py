"""State of the index: sieve, ledger, and the log offset that both belong to."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from twinsieve.pipeline.index.ledger import Ledger, PassedOver
from twinsieve.pipeline.index.snapshot_store import NUMBERING_SIZE
from twinsieve.pipeline.wire.block import Block, RowKind
from twinsieve.pipeline.wire.chain import UNKNOWN
from twinsieve.pipeline.wire.positions import pack_positions, renumber, topic_numbers
from twinsieve.pipeline.wire.ruling import Result, Ruling, Source
from twinsieve.stages.contract import Batch, Kind, SieveStats, Verdicts
from twinsieve.stages.judge.frozen import Frozen
from twinsieve.stages.judge.kept_messages import KeptMessages
from twinsieve.stages.near.answers import NO_ANSWERS, Answer, chosen_of, joined
from twinsieve.stages.window.segments import InMemory, IntoFile, SegmentId

_Rows = TypeVar("_Rows", Batch, Verdicts)
_Item = TypeVar("_Item")

_LINKS = 1 << 16
"""Number of decisions whose links a state remembers: some snapshots lie among them."""


def numbering_of(*origin: object) -> bytes:
    """The numbering of a sieve with this origin. origin: numbers, bytes and texts"""
    return hashlib.blake2b(repr(origin).encode(), digest_size=NUMBERING_SIZE).digest()


class Judge(Protocol):
    """The methods of a sieve that the index uses; `stages.judge.batch_sieve.BatchSieve` has them."""

    def judge(self, batch: Batch, *, answers: Mapping[SegmentId, Answer] = NO_ANSWERS) -> Verdicts:
        """Verdicts of readable messages in log order; the sieve's state changes accordingly.

        answers: for these rows, of sealed segments in which they need not be looked up any more
        """

    def sealed_ids(self) -> list[SegmentId]:
        """The sealed segments of the near window, oldest first."""

    def fitting(self, answers: Mapping[SegmentId, Answer]) -> Mapping[SegmentId, Answer]:
        """Those of these answers that can be of sealed segments of this sieve."""

    def hold(self, answered: Collection[SegmentId]) -> Callable[[], None] | None:
        """Give up memory of sealed segments that somebody answers for; returns what takes another one into
        memory, for any thread."""

    def in_memory(self) -> InMemory:
        """The part of the near window that is in memory because it is in no file."""

    def take_answered(self) -> tuple[int, int]:
        """Rows times segments that were answered, and how many of them were looked up all the same, since the
        last call."""

    def time_look_ups(self, now_s: Callable[[], float]) -> None:
        """From now on, take the time of look-ups by this clock."""

    def take_look_ups(self) -> list[tuple[SegmentId | None, int, float]]:
        """In which segments rows were looked up since the last call, how many, and for how many seconds; None
        is the open segment."""

    @property
    def question(self) -> bytes:
        """What this sieve asks of a segment; answers to another question do not fit."""

    def apply(self, batch: Batch, verdicts: Verdicts) -> None:
        """Change the state as recorded verdicts require, without judging."""

    def forget(self, positions: NDArray[np.int64], tags: NDArray[np.uint64]) -> None:
        """Let the kept messages at these positions lead no later message. tags: as in `OpenRows`"""

    def stats(self) -> SieveStats:
        """How full the windows are, and how far back they reach."""

    def pushed_out(self, bands: int) -> int:
        """Number of messages of the near window that are rarely found. bands: how many this call reads"""

    def positions(self) -> tuple[int, int]:
        """Smallest and greatest position of the messages that may be leaders; (0, -1) without one."""

    def freeze(self, have: Collection[str] = (), /) -> Frozen:
        """The state as it is now, without the messages that were handed to `on_kept`. have: names of parts
        that were written"""

    def seal_into(self, write: IntoFile | None) -> None:
        """From now on, write sealed segments of the near window to files and use these."""

    on_kept: Callable[[int, KeptMessages], None] | None
    """Called with the messages that were kept, and the number of the first one."""

    judged_by: str
    """The rules by which the last messages were judged; whoever calls `apply` sets it."""

    @property
    def rules(self) -> str:
        """The rules of this sieve."""


class Asked(NamedTuple):
    """A block of the log to rule on.

    arrival_ms: arrival time of its messages, which bounds their own times
    given_up: sorted ids of topics of which no message will come out any more; if the block is judged, they
        are given up
    answers: what sealed segments have for its readable rows, as far as that is known
    """

    block: Block
    log_offset: int
    arrival_ms: int
    given_up: tuple[bytes, ...] = ()
    answers: Mapping[SegmentId, Answer] = NO_ANSWERS


class _Entered(NamedTuple):
    """An accepted block whose range is covered, and whose new rows are not judged yet.

    sources, verdicts: as `Ledger.sources` gives them
    """

    asked: Asked
    sources: NDArray[np.uint8]
    verdicts: Verdicts

    @property
    def block(self) -> Block:
        return self.asked.block

    @property
    def readable(self) -> NDArray[np.bool_]:
        """bool[n]: the rows to judge."""
        wanted: NDArray[np.bool_] = (self.sources == Source.NEW) & (self.block.kinds == RowKind.READABLE)
        return wanted


class _Together(list[_Item]):
    """Blocks that were entered and whose verdicts are not opened yet, in the order of the log.

    spans: first offset and end of these blocks, by topic id and partition
    """

    def __init__(self) -> None:
        super().__init__()
        self.spans: dict[tuple[bytes, int], tuple[int, int]] = {}

    def enter(self, block: Block, item: _Item) -> None:
        key = block.topic_id, block.number
        first, _ = self.spans.get(key, (block.first, 0))
        self.spans[key] = first, block.end
        self.append(item)

    def clear(self) -> None:
        super().clear()
        self.spans.clear()


def _joined(parts: Sequence[_Rows]) -> _Rows:
    return parts[0] if len(parts) == 1 else parts[0].concat(parts)


@dataclass(slots=True)
class IndexState:
    """The state from which an index answers the blocks of the log, in order. Two states that processed the
    same log and decisions are equal.

    next_offset: log offset of the next block
    link: the link after the last decision (`pipeline/wire/chain.py`), which says whose history the state is
    numbering: a digest of the log, of what the sieve holds, and of the gaps that the state has passed over.
        States of one history with the same numbering give a kept message the same number
    links: the links after the last decisions, the newest at the end
    """

    sieve: Judge
    ledger: Ledger = field(default_factory=Ledger)
    next_offset: int = 0
    link: bytes = UNKNOWN
    numbering: bytes = bytes(NUMBERING_SIZE)
    links: deque[bytes] = field(default_factory=lambda: deque(maxlen=_LINKS), init=False)

    def __post_init__(self) -> None:
        self.links.append(self.link)

    def reach(self, link: bytes, rules: str) -> None:
        """Note the last decision. link: the link after it; rules: those by which its block was judged"""
        self.link = link
        self.links.append(link)
        self.sieve.judged_by = rules

    def miss(self, first: int, end: int) -> None:
        """Note a gap: the blocks from `first` to `end` (exclusive), or the decisions on them, are deleted."""
        self.numbering = numbering_of(self.numbering, first, end)

    def asks(self, block: Block) -> bool:
        """Whether ruling on this block, the next of the log, looks anything up: it is not superseded or
        refused, and has a readable row that was not judged yet."""
        return self.ledger.check(block) is Result.JUDGED and self.ledger.has_new(block)

    def rule(self, asked: Sequence[Asked]) -> list[Ruling]:
        """The rulings on blocks of the log, in its order; the state then belongs to the next log offset.

        The rulings are those of the blocks one by one. But new messages are judged together if no block needs
        the verdicts on an earlier one, because a call of the sieve costs as much as some hundred rows.
        """
        rulings: list[Ruling] = []
        entered = _Together[_Entered]()
        for each in asked:
            block = each.block
            # Rows that are judged together have answers of the same segments.
            is_other = bool(entered) and entered[-1].asked.answers.keys() != each.answers.keys()
            if each.given_up or is_other or not self.ledger.joins(block, entered.spans):
                rulings += self._judge(entered)
            self.next_offset = each.log_offset + 1
            result = self.ledger.check(block)
            if result is not Result.JUDGED:
                rulings += self._judge(entered)
                rulings.append(Ruling(each.log_offset, block.session, result, block.first, block.end))
                continue
            passed = self.ledger.give_up(each.given_up) + self.ledger.enter(block)
            if passed:
                # Messages of earlier blocks may be dropped for one of these.
                rulings += self._judge(entered)
                self._forget(passed)
            entered.enter(block, _Entered(each, *self.ledger.sources(block)))
            self.ledger.cover(block)
        return rulings + self._judge(entered)

    def _judge(self, entered: list[_Entered]) -> list[Ruling]:
        """Judge the new messages of these blocks together, and empty the list; returns the rulings."""
        batches: list[Batch] = []
        answers: dict[SegmentId, list[tuple[Answer, int]]] = {}
        for each in entered:
            block = each.block
            new = each.sources == Source.NEW
            dead = (block.kinds == RowKind.UNREADABLE) | (block.kinds == RowKind.REFUSED)
            each.verdicts.kinds[new] = np.where(dead[new], Kind.UNREADABLE, Kind.UNIQUE)
            if each.readable.any():
                batches.append(self._batch(block, each.readable, each.asked.arrival_ms))
                wanted = each.readable[block.kinds == RowKind.READABLE]
                for segment, answer in each.asked.answers.items():
                    chosen = (chosen_of(answer, wanted), len(batches[-1]))
                    answers.setdefault(segment, []).append(chosen)
        found = {segment: joined(parts) for segment, parts in answers.items()}
        judged = self.sieve.judge(_joined(batches), answers=found) if batches else None
        rulings, low = [], 0
        for each in entered:
            readable = each.readable
            count = int(np.count_nonzero(readable))
            if judged is not None and count:
                each.verdicts.put(readable, judged.slice(low, low + count))
                low += count
            self.ledger.open(each.block, each.sources, each.verdicts)
            rulings.append(self._ruling(each))
        entered.clear()
        return rulings

    def _ruling(self, each: _Entered) -> Ruling:
        block, verdicts = each.block, each.verdicts
        named = np.concatenate((verdicts.leaders, verdicts.apart_from))
        numbers = [self.ledger.number_of(block), *topic_numbers(named)]
        return Ruling(
            each.asked.log_offset,
            block.session,
            Result.JUDGED,
            block.first,
            block.end,
            each.sources,
            verdicts,
            {number: self.ledger.topics[number].name for number in numbers},
            each.asked.arrival_ms,
            given_up=each.asked.given_up,
        )

    def refuse(self, log_offset: int, session: int, first: int, end: int) -> Ruling:
        """The ruling that refuses a block of another fingerprint scheme or format: the process that wrote it
        has other settings, or is of another version."""
        self.next_offset = log_offset + 1
        return Ruling(log_offset, session, Result.FOREIGN, first, end)

    def pass_over(self, log_offset: int) -> None:
        """Skip the blocks before `log_offset`, which cannot be followed; never move back."""
        self.next_offset = max(self.next_offset, log_offset)

    def follow(self, recorded: Sequence[tuple[Block, Ruling]]) -> None:
        """Change the state as the recorded rulings on these blocks, in the order of the log, require, without
        judging. Verdicts of several blocks are applied together where the outcome is the same.

        recorded: the rulings are changed in place: their positions get the topic numbers of this state
        """
        entered = _Together[tuple[Block, Ruling]]()
        for block, ruling in recorded:
            if ruling.given_up or not self.ledger.joins(block, entered.spans):
                self._apply(entered)
            self.next_offset = ruling.next_offset
            if ruling.result is not Result.JUDGED:
                continue
            self.ledger.take_numbers(block, ruling.topics)
            passed = self.ledger.give_up(ruling.given_up) + self.ledger.enter(block)
            numbers = self.ledger.own_numbers(block, ruling.topics)
            renumber(ruling.verdicts.leaders, numbers)
            renumber(ruling.verdicts.apart_from, numbers)
            passed += self.ledger.give_way(block, ruling)
            if passed:
                self._apply(entered)
                self._forget(passed)
            entered.enter(block, (block, ruling))
            self.ledger.cover(block)
        self._apply(entered)

    def _apply(self, entered: list[tuple[Block, Ruling]]) -> None:
        """Apply the recorded verdicts on these entered blocks together, and empty the list."""
        batches, verdicts = [], []
        for block, ruling in entered:
            readable = (ruling.sources == Source.NEW) & (block.kinds == RowKind.READABLE)
            if readable.any():
                batches.append(self._batch(block, readable, ruling.arrival_ms))
                verdicts.append(ruling.verdicts.take(readable))
        if batches:
            self.sieve.apply(_joined(batches), _joined(verdicts))
        for block, ruling in entered:
            self.ledger.open(block, ruling.sources, ruling.verdicts)
        entered.clear()

    def _forget(self, kept: list[PassedOver]) -> None:
        for positions, tags in kept:
            self.sieve.forget(positions, tags)

    def _batch(self, block: Block, wanted: NDArray[np.bool_], arrival_ms: int) -> Batch:
        """The wanted rows of a block, with their positions and arrival times. wanted: bool[n]; such rows are
        readable"""
        is_readable = block.kinds == RowKind.READABLE
        batch = block.batch
        if not wanted[is_readable].all():
            batch = batch.take(wanted[is_readable])
        batch.positions = pack_positions(self.ledger.number_of(block), block.number, block.offsets[wanted])
        batch.arrivals_ms = np.full(len(batch), arrival_ms, np.int64)
        return batch
