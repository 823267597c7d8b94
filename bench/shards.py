"""Sealed segments that others look rows up in: what their answers cost, and what they save whoever judges.

    python -m bench.shards [--kept 400000] [--segments 8] [--messages 20000]

Generated posts fill a near window of this many kept messages, cut into this many sealed segments and an open
one. Then each of the next messages is judged twice, by two sieves with the same window: one looks it up in
all segments, the other one is given the answers of the sealed ones, which a `SegmentReader` makes as a shard
does. Printed are, as medians over batches: the time of a message in each sieve, that of an answer a message
and segment, what an answer holds, and how many rows the sieve had to look up although they were answered.
The verdicts of both must be equal. In these figures everything is in memory.

Last, for some messages: the candidates in each sealed segment, that is texts that are read and compared; and
each segment is written to a file of which no page is in memory, and they are looked up in it: pages read from
the disk, a message and segment, as the first of them after a start would.

Beside times, candidates and pages stands what a model predicts, and at the end two plans of `lint` for
windows that no machine here can hold. The model of `lint` knows no candidates, only the pages that they
read; their number is carried on from segments of 100,000 generated posts.
"""

from __future__ import annotations

import argparse
import mmap
import os
import resource
from collections.abc import Sequence
from concurrent.futures import Future
from statistics import mean, median
from time import process_time
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from bench.large_window import posted
from bench.machine import machine_line
from twinsieve.pipeline.saved.mapped_file import map_arrays
from twinsieve.pipeline.saved.segment_files import scratch_file, write_segment
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.settings.segment_bytes import Texts
from twinsieve.pipeline.sizing.cover import Asked
from twinsieve.pipeline.sizing.estimate import judging_us, look_ups, open_us, sealed_us
from twinsieve.pipeline.sizing.shards import (
    ANSWER_US,
    CANDIDATE_PAGES,
    LOOK_UP_US,
    TAKE_US,
    plan_lines,
    plan_shards,
)
from twinsieve.pipeline.wire.segment_answers import AnswersRecord, BlockAnswer, SegmentPart, encode_answers
from twinsieve.stages.contract import (
    NO_TIME,
    BandLayout,
    Batch,
    ExactConfig,
    NearConfig,
    SieveConfig,
    Verdicts,
    Window,
)
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.near_rules import NO_WINDOW, NearRules
from twinsieve.stages.judge.segment_reader import SegmentReader
from twinsieve.stages.kernel import ZERO
from twinsieve.stages.near.answers import Answer
from twinsieve.stages.near.look_up import look_up
from twinsieve.stages.near.matches import NO_MATCH, new_copies, new_matches
from twinsieve.stages.near.propose import Begin
from twinsieve.stages.window.chunk import rows, whole_batch
from twinsieve.stages.window.segments import Arrays, SealedSegment, Segment, SegmentId

_SEED = 11
_SOME = 200
"""Messages whose candidates are counted."""
_CANDIDATES, _GROWTH = 0.46, 0.83
"""Candidates in a segment of 100,000, and the power of its size with which they grow."""
_DAY_MS, _GIB = 86_400_000, 1 << 30
_PLANS = (
    (Asked(5_000.0, 7 * _DAY_MS, 96 * _GIB, 0.4), 8, 1),
    (Asked(50_000.0, _DAY_MS, 64 * _GIB, 0.4), 40, 2),
)
"""Windows that are planned, with the number of machines and `near.threads`."""
_COLD_ROWS = 25
"""Messages that are looked up in a file of which nothing is in memory."""


class _Measured:
    """Sums and times of the batches that are measured."""

    def __init__(self) -> None:
        self.alone_us: list[float] = []
        self.answered_us: list[float] = []
        self.answer_us: list[float] = []
        self.entries = self.copies = self.unanswered = self.bytes = self.asked = 0

    def note(self, answers: dict[SegmentId, Answer], rows: int) -> None:
        for segment, answer in answers.items():
            block = BlockAnswer(0, 0, rows, answer)
            record = AnswersRecord(bytes(16), bytes(16), "shard", [SegmentPart(segment, [block], 1)])
            self.bytes += sum(map(len, encode_answers(bytes(16), record, 1 << 20)))
            self.entries += len(answer.rows)
            self.copies += len(answer.copy_rows)
            self.unanswered += len(answer.unanswered)
            self.asked += rows


def _same(one: Verdicts, other: Verdicts) -> bool:
    columns = ("kinds", "flags", "leaders", "matched", "compared", "reasons", "apart_from")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in columns)


def _measure(
    batch: Batch, alone: BatchSieve, answered: BatchSieve, reader: SegmentReader, found: _Measured
) -> None:
    """Judge a batch in both sieves. Segments of `answered` are read where they are: a shard has a copy."""
    rows = len(batch)
    answers = {}
    begun = process_time()
    segments = answered.near.segments.sealed
    for segment in segments:
        answers[segment.id] = reader.answer(batch, segment)
    found.answer_us.append(1e6 * (process_time() - begun) / rows / len(segments))
    found.note(answers, rows)
    begun = process_time()
    with_answers = answered.judge(batch, answers=answers)
    found.answered_us.append(1e6 * (process_time() - begun) / rows)
    begun = process_time()
    without = alone.judge(batch)
    found.alone_us.append(1e6 * (process_time() - begun) / rows)
    if not _same(with_answers, without):
        raise SystemExit("verdicts differ: this is a fault")


def sealed_by(sieve: BatchSieve) -> list[SealedSegment]:
    """The sealed segments of a sieve, and later each that it seals from now on. They stay in memory."""
    sealed: list[SealedSegment] = []

    def keep(segment: SealedSegment) -> Future[Arrays]:
        sealed.append(segment)
        return Future()

    sieve.near.segments.seal_into(keep)
    return sealed


def _candidates(batch: Batch, config: SieveConfig, segments: Sequence[Segment]) -> float:
    """Kept texts that are compared with a message, a message and segment."""
    rules = NearRules(config)
    scratch, whole, counts = rules.scratch(), whole_batch(batch, config.layout, config.scoped), []
    for segment in segments:
        room = segment.ring.kept - segment.first
        matches = new_matches(1, room)
        index = rules.index(segment, Begin(segment.first, NO_TIME), NO_WINDOW)
        for row in range(len(batch)):
            matches.heads[0], scratch.found.counts[0] = NO_MATCH, 0
            look_up(ZERO, 1, rows(whole, row, row + 1), index, scratch, matches, new_copies(0), ZERO, room)
            counts.append(int(scratch.found.counts[0]))
    return mean(counts)


def _cold_reads(batch: Batch, sieve: BatchSieve, reader: SegmentReader) -> float:
    """Pages read from a disk, a message and sealed segment of the sieve."""
    sealed = sealed_by(sieve)
    # Not in the folder of the system, which may be in memory.
    with scratch_file(os.curdir) as file:
        return mean(_read_pages(batch, segment, reader, file) for segment in sealed)


def _read_pages(batch: Batch, sealed: SealedSegment, reader: SegmentReader, file: BinaryIO) -> float:
    file.seek(0)
    file.truncate()
    write_segment(file, "", sealed)
    file.flush()
    os.fsync(file.fileno())
    arrays = map_arrays(file.fileno(), "segment", "", None).arrays
    segment = reader.add(sealed._replace(arrays=arrays))
    reader.answer(batch.slice(0, 0), segment)
    _mapping_of(arrays["buckets"]).madvise(mmap.MADV_DONTNEED)
    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_majflt
    reader.answer(batch, segment)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_majflt - before) / len(batch)


def _mapping_of(array: NDArray[np.generic]) -> mmap.mmap:
    owner: object = array
    while not isinstance(owner, mmap.mmap):
        owner = owner.obj if isinstance(owner, memoryview) else getattr(owner, "base", None)
        if owner is None:
            raise SystemExit("not mapped from a file")
    return owner


def main() -> None:
    """Print machine and figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kept", type=int, default=400_000)
    parser.add_argument("--segments", type=int, default=8)
    parser.add_argument("--messages", type=int, default=20_000)
    options = parser.parse_args()
    near = NearConfig(window=Window(options.kept), segment=options.kept // options.segments)
    config = SieveConfig(ExactConfig("bloom", window=Window(10 * options.kept)), near)
    alone, answered, reader = BatchSieve(config), BatchSieve(config), SegmentReader(config)
    found, left = _Measured(), options.messages
    for each in posted(10 * options.kept, BandLayout(), _SEED):
        if answered.stats().held < options.kept:
            alone.judge(each.batch)
            answered.judge(each.batch)
            continue
        _measure(each.batch, alone, answered, reader, found)
        left -= len(each.batch)
        if left <= 0:
            break
    candidates = _candidates(each.batch.slice(0, _SOME), config, answered.near.segments.sealed)
    cold = _cold_reads(each.batch.slice(0, _COLD_ROWS), answered, reader)
    texts, sealed = Texts(), len(answered.sealed_ids())

    def beside(measured: float, predicted: float) -> str:
        return f"{measured:.2f} (predicted {predicted:.2f}: {predicted / measured:.2f} ×)"

    alone_us = beside(median(found.alone_us), judging_us(config, texts) + sealed * LOOK_UP_US)
    answered_us = beside(median(found.answered_us), open_us(config, texts) + sealed * TAKE_US)
    answer_us = beside(median(found.answer_us), sealed_us(config, texts) + LOOK_UP_US + ANSWER_US)
    pages = beside(cold, look_ups(config) + CANDIDATE_PAGES)
    compared = beside(candidates, _CANDIDATES * (near.segment / 100_000) ** _GROWTH)
    print(machine_line())
    print(
        f"{options.kept:,} kept in {sealed} sealed segments; "
        f"{options.messages - left:,} messages\n"
        f"judged, all segments looked up here: {alone_us} µs a message\n"
        f"judged with answers: {answered_us} µs a message\n"
        f"an answer: {answer_us} µs a message and segment\n"
        f"it holds, a message and segment: {found.entries / found.asked:.3f} entries, "
        f"{found.copies / found.asked:.4f} copies, {found.bytes / found.asked:.1f} bytes on the wire; "
        f"left to whoever judges: {found.unanswered / found.asked:.2e}\n"
        f"looked up although answered: {answered.near.left_rows:,} of {answered.near.answered_rows:,}\n"
        f"candidates: {compared} a message and segment\n"
        f"pages read from a file of which nothing is in memory: {pages} a message and segment\n"
        "verdicts equal"
    )
    for asked, machines, threads in _PLANS:
        settings = Settings.model_validate({"near": {"threads": threads}})
        days = asked.cover_ms / _DAY_MS
        print(f"\n{days:g} days at {asked.rate:,.0f} messages/s, {machines} machines:")
        print(*plan_lines(plan_shards(settings, asked, machines)), sep="\n")


if __name__ == "__main__":
    main()
