"""What shards have answered (`<app>.answers`), as the index that judges reads it, and what it waits for.

An answer is a cache entry: whatever is missing, late or does not fit, the index looks up itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import StrEnum

from twinsieve.pipeline.broker.ports import Clock, Reader
from twinsieve.pipeline.broker.records import (
    NO_TOPIC_ID,
    AbortableError,
    BrokerError,
    Partition,
    UnreadableError,
)
from twinsieve.pipeline.index.config import AnswersConfig
from twinsieve.pipeline.index.segment_waits import SegmentWaits
from twinsieve.pipeline.wire.frame import ForeignSchemeError, ForeignVersionError
from twinsieve.pipeline.wire.segment_answers import BlockAnswer, decode_answers
from twinsieve.stages.errors import StateError
from twinsieve.stages.near.answers import Answer
from twinsieve.stages.window.segments import SegmentId

_LAST_RECORDS = 4_096
"""An index that begins to judge reads this many records of each partition that are there already: shards
answer at most 64 blocks ahead of it."""
MOST_BYTES = 256 << 20
"""While answers that wait for their blocks take more, no others are read."""
_AT_ONCE = 1_024
_AGAIN_S = 1.0
"""Time until the broker is asked again where the topic begins and ends."""
Answers = Mapping[SegmentId, Answer]

_NOTICED = 3
"""How many records that cannot be used are named in the log, in all."""


class Unused(StrEnum):
    """Why an answer, or a whole record of answers, is not used. The metric counts each reason."""

    OTHER_LOG = "other_log"
    """of a topic that was deleted and created again"""
    OTHER_QUESTION = "other_question"
    """of a shard with other settings or rules"""
    OTHER_VERSION = "other_version"
    """of a program with another format or scheme"""
    DAMAGED = "damaged"
    LATE = "late"
    """for a block that is judged"""
    OTHER_BLOCK = "other_block"
    """for another block with the same offset"""
    UNFIT = "unfit"
    """of a segment that is not in the window, or names messages that it cannot have"""
    DIFFERS = "differs"
    """not what another shard says of the same: a fault"""


class SegmentAnswers:
    """Reads the answers of shards for blocks from some log offset on.

    reader: makes a reader; after an error of one, a new one is made
    log_id: topic id of the log; question: what this index asks, and how (`asked_of`)
    waits: how long to wait for which segment
    notices: receives a line for each of the first records that cannot be used
    unused: how many records or blocks of answers were not used; the caller adds them to its counters
    """

    def __init__(
        self,
        reader: Callable[[], Reader],
        config: AnswersConfig,
        scheme: bytes,
        log_id: bytes,
        question: bytes,
        clock: Clock,
        notices: list[str],
    ) -> None:
        self._make_reader = reader
        self._reader: Reader | None = None
        self._topic_id = NO_TOPIC_ID
        self._config = config
        self._scheme = scheme
        self._log_id = log_id
        self._question = question
        self._clock = clock
        self._notices = notices
        self._noticed = 0
        self._next_offset = 0
        self._found: dict[int, dict[SegmentId, BlockAnswer]] = {}
        self._bytes = 0
        self.waits = SegmentWaits(config.patience_s, clock)
        self._partitions: list[Partition] = []
        self._is_full = False
        self._again_s = 0.0
        self._begun_s = 0.0
        self.unused: Counter[Unused] = Counter()

    def begin(self, next_offset: int) -> None:
        """Begin with the blocks from this log offset on."""
        self.end()
        self._next_offset = next_offset
        self._begun_s = self._clock.monotonic_s()
        self.waits.begin(next_offset)

    def read(self, numbers: Collection[int], topic_id: bytes = NO_TOPIC_ID) -> None:
        """Read these partitions of the topic, which have leaders, from now on; new ones from their last
        records. If the broker does not say where these are, it is asked again later: nothing is owed.

        topic_id: if it is another one than before, the topic was made again; without partitions, nobody can
            answer
        """
        if topic_id != self._topic_id:
            self._topic_id = topic_id
            self._partitions = []
            self.close()
        if not numbers:
            self.waits.silence()
        wanted = [Partition(self._config.topic, number) for number in sorted(numbers)]
        now_s = self._clock.monotonic_s()
        if wanted == self._partitions or now_s < self._again_s:
            return
        new = [partition for partition in wanted if partition not in self._partitions]
        try:
            self._reader = reader = self._reader or self._make_reader()
            begins = reader.beginning_offsets(new) if new else {}
            ends = reader.end_offsets(new) if new else {}
            reader.assign(wanted)
            for partition in new:
                reader.seek(partition, max(begins[partition], ends[partition] - _LAST_RECORDS))
        except AbortableError:
            self._again_s = now_s + _AGAIN_S
            return
        except BrokerError:
            self._lose_reader()
            return
        self._partitions = wanted

    def _lose_reader(self) -> None:
        """Close the reader. The next one is made later: the broker may refuse each."""
        self._again_s = self._clock.monotonic_s() + _AGAIN_S
        self._partitions = []
        self.close()

    def end(self) -> None:
        """Read nothing, and forget what was answered."""
        self._read_nothing()
        self._found.clear()
        self._bytes, self._is_full = 0, False

    def _read_nothing(self) -> None:
        if self._reader is not None:
            self._reader.assign(())
        self._partitions = []

    def poll(self, timeout_s: float) -> None:
        """Take the answers that have arrived; wait up to `timeout_s` for the first."""
        reader = self._reader
        if reader is None or not self._partitions:
            return
        self._stay_within_bounds(reader)
        if self._is_full:
            return
        try:
            polled = reader.poll(timeout_s, _AT_ONCE)
        except UnreadableError as error:
            self._refuse(Unused.DAMAGED, str(error))
            reader.seek(error.partition, error.behind)
            return
        except AbortableError:
            # Retention deleted what was to be read next, or the topic lost its end.
            self._read_nothing()
            return
        except BrokerError:
            # Not allowed any more, or the client is broken.
            self._lose_reader()
            return
        for records in polled:
            for offset, value in zip(records.offsets, records.values, strict=True):
                self._take(f"{records.partition}@{offset}", value or b"")

    def _stay_within_bounds(self, reader: Reader) -> None:
        is_full = self._bytes > MOST_BYTES
        if is_full != self._is_full:
            (reader.pause if is_full else reader.resume)(self._partitions)
            self._is_full = is_full

    def _take(self, where: str, value: bytes) -> None:
        try:
            record = decode_answers(self._scheme, value, where)
        except (ForeignVersionError, ForeignSchemeError) as error:
            self._refuse(Unused.OTHER_VERSION, str(error))
            return
        except StateError as error:
            self._refuse(Unused.DAMAGED, str(error))
            return
        if record.log_id != self._log_id:
            self._refuse(
                Unused.OTHER_LOG, f"{where}: answers blocks of another log than {self._log_id.hex()}"
            )
            return
        if record.question != self._question:
            self._refuse(
                Unused.OTHER_QUESTION,
                f"{where}: shard {record.shard} has other settings or rules than this index; give all "
                "processes the same settings and version",
            )
            return
        for part in record.parts:
            self.waits.heard(part.segment, record.shard, part.read_to)
            for block in part.blocks:
                self._note(where, record.shard, part.segment, block)

    def _note(self, where: str, shard: str, segment: SegmentId, block: BlockAnswer) -> None:
        if block.offset < self._next_offset:
            self.unused[Unused.LATE] += 1
            return
        found = self._found.setdefault(block.offset, {})
        before = found.get(segment)
        if before is None:
            found[segment] = block
            self._bytes += block.bytes_used
        elif before.checksum == block.checksum and not before.agrees(block):
            self._refuse(
                Unused.DIFFERS,
                f"{where}: shard {shard} answers block {block.offset} otherwise than another shard; "
                "the first answer counts; report this as a fault of twinsieve",
            )

    def _refuse(self, reason: Unused, why: str) -> None:
        self.unused[reason] += 1
        if self._noticed < _NOTICED:
            self._noticed += 1
            self._notices.append(f"{why}; not used, the index looks up itself")

    @property
    def is_settled(self) -> bool:
        """Whether it has read answers for `near.patience`. Each shard that answers has written by then."""
        return self._clock.monotonic_s() - self._begun_s >= self._config.patience_s

    def awaited(self, offset: int, segments: Iterable[SegmentId]) -> list[SegmentId]:
        """Those of these segments for whose answer to a block it is worth while to wait.

        offset: of the block, which has rows to judge
        """
        found = self._found.get(offset, {})
        return self.waits.awaited(offset, (segment for segment in segments if segment not in found))

    def of(self, offset: int, checksum: int, rows: int, fitting: Callable[[Answers], Answers]) -> Answers:
        """What was answered for a block. rows: its readable messages; fitting: `BatchSieve.fitting`"""
        found = self._found.get(offset, {})
        same = {segment: block for segment, block in found.items() if block[1:3] == (checksum, rows)}
        given = {segment: block.answer for segment, block in same.items() if block.answer is not None}
        fit = fitting(given)
        unused = {Unused.OTHER_BLOCK: len(found) - len(same), Unused.UNFIT: len(given) - len(fit)}
        self.unused += Counter(unused)
        self.waits.taken(fit, rows)
        return fit

    def pass_over(self, next_offset: int) -> None:
        """Forget answers for the blocks before this log offset, which are judged."""
        self._next_offset = next_offset
        for offset in [offset for offset in self._found if offset < next_offset]:
            self._bytes -= sum(block.bytes_used for block in self._found.pop(offset).values())
        self.waits.passed(next_offset)

    def close(self) -> None:
        """Close the connection."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None
