"""Blocks that the index has polled and not judged yet, in the order of the log. They wait for answers of
shards as long as `near.patience` allows."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile

from twinsieve.pipeline.broker.ports import GroupConsumer
from twinsieve.pipeline.broker.records import Partition, Records
from twinsieve.pipeline.index.answers_topic import AnswersTopic
from twinsieve.pipeline.index.segment_answers import SegmentAnswers
from twinsieve.pipeline.wire.block import Block, decode_block
from twinsieve.pipeline.wire.frame import ForeignSchemeError, ForeignVersionError
from twinsieve.stages.window.segments import SegmentId

_ANSWER_S = 0.05
"""Timeout of a poll for answers while a block waits for them."""


@dataclass(slots=True)
class ReadBlock:
    """A block as it was read from the log.

    stamp_ms: timestamp of its record; stamped_by_broker: whether the broker has set that, by its own clock
    block: decoded, or why that cannot be; None: not decoded yet (`HeldBlocks.decoded`)
    """

    offset: int
    data: bytes
    stamp_ms: int
    stamped_by_broker: bool
    block: Block | ForeignSchemeError | ForeignVersionError | None = None


class HeldBlocks:
    """The blocks of one index.

    log, scheme: the partition of the blocks, and the hash of the fingerprint scheme
    topic: says which partitions of the answers can be read; answers: what shards answer; both or none: then
        no block waits
    """

    def __init__(
        self, log: Partition, scheme: bytes, topic: AnswersTopic | None, answers: SegmentAnswers | None
    ) -> None:
        self._log = log
        self._scheme = scheme
        self._topic = topic
        self._answers = answers
        self._blocks: deque[ReadBlock] = deque()
        self._bytes = 0
        self._is_paused = False

    def __len__(self) -> int:
        return len(self._blocks)

    @property
    def since_ms(self) -> int | None:
        """Timestamp of the oldest block; None if there is none."""
        return self._blocks[0].stamp_ms if self._blocks else None

    def room(self, consumer: GroupConsumer, most: int, most_bytes: int) -> int:
        """How many more blocks to poll. Without room the consumer is kept from reading the log: a client that
        resumes asks the broker again, so it is not paused for each block that waits."""
        is_full = bool(self._blocks) and self._bytes >= most_bytes
        room = 0 if is_full else most - len(self._blocks)
        is_paused = room <= 0
        if is_paused != self._is_paused:
            (consumer.pause if is_paused else consumer.resume)([self._log])
            self._is_paused = is_paused
        return max(1, room)

    def add(self, polled: Iterable[Records]) -> None:
        """Append polled blocks."""
        added = [
            ReadBlock(offset, value or b"", stamp, records.stamped_by_broker)
            for records in polled
            for offset, value, stamp in zip(
                records.offsets, records.values, records.timestamps_ms, strict=True
            )
        ]
        self._blocks += added
        self._bytes += sum(len(read.data) for read in added)

    def decoded(self, read: ReadBlock) -> Block | ForeignSchemeError | ForeignVersionError:
        """A block, decoded once, or why that cannot be. raises: StateError for a damaged one"""
        if read.block is None:
            try:
                read.block = decode_block(read.data, self._scheme, f"{self._log}@{read.offset}")
            except (ForeignSchemeError, ForeignVersionError) as error:
                read.block = error
        return read.block

    def answered(
        self, timeout_s: float, behind_s: float, sealed: Sequence[SegmentId], asks: Callable[[Block], bool]
    ) -> list[ReadBlock]:
        """Those of the blocks, from the first on, that need not wait for answers of shards.

        timeout_s: how long to wait at most for the answers that the first block needs; behind_s: its age
        sealed: the segments that answers are about
        asks: whether the next block to judge has rows to look up (`IndexState.asks`)
        raises: StateError for a damaged block
        """
        answers, topic = self._answers, self._topic
        if answers is None or topic is None:
            return list(self._blocks)
        topic.look()
        answers.read(topic.numbers, topic.topic_id)
        answers.poll(0.0)
        if self._blocks and self._stands(answers, behind_s, sealed):
            if not self._asks(self._blocks[0], asks):
                return [self._blocks[0]]
            answers.poll(min(timeout_s, _ANSWER_S))
            self._stands(answers, behind_s, sealed)
        return list(takewhile(lambda read: not self._awaited(answers, read, sealed), self._blocks))

    def _awaited(
        self, answers: SegmentAnswers, read: ReadBlock, sealed: Sequence[SegmentId]
    ) -> list[SegmentId]:
        """Whose answers a block waits for. One without rows, or that cannot be decoded, waits for none."""
        has_rows = self._asks(read, lambda block: bool(len(block.batch)))
        return answers.awaited(read.offset, sealed) if has_rows else []

    def _stands(self, answers: SegmentAnswers, behind_s: float, sealed: Sequence[SegmentId]) -> bool:
        """Whether the first block waits, which counts as waiting for its segments."""
        first = self._blocks[0]
        awaited = self._awaited(answers, first, sealed)
        rows = len(first.block.batch) if isinstance(first.block, Block) else 0
        answers.waits.stand(first.offset, rows, behind_s, awaited)
        return bool(awaited)

    def _asks(self, read: ReadBlock, asks: Callable[[Block], bool]) -> bool:
        block = self.decoded(read)
        return isinstance(block, Block) and asks(block)

    def drop(self, count: int) -> None:
        """Remove this many blocks from the front: they are judged."""
        for _ in range(count):
            self._bytes -= len(self._blocks.popleft().data)

    def clear(self) -> None:
        """Remove all blocks, because they are read again; the caller resumes the consumer then."""
        self._blocks.clear()
        self._bytes, self._is_paused = 0, False
