"""One record of each kind with fixed content; `python -m tests.golden.make` writes the files anew.

Do that only together with a new format version.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.twins import batch_of
from twinsieve.pipeline.wire.block import Block, BlockFlag, RowKind, encode_block
from twinsieve.pipeline.wire.frame import scheme_hash
from twinsieve.pipeline.wire.ruling import Result, Ruling, Source, encode_ruling
from twinsieve.pipeline.wire.segment_answers import AnswersRecord, BlockAnswer, SegmentPart, encode_answers
from twinsieve.stages.contract import (
    DETAIL_LENGTH,
    NO_TIME,
    Bodies,
    Fingerprints,
    Flag,
    Kind,
    Verdicts,
)
from twinsieve.stages.differ.rules import Rule
from twinsieve.stages.near.answers import Answer
from twinsieve.stages.near.verify import ALIKE, ESTIMATED, REASON_SHIFT
from twinsieve.stages.window.segments import SegmentId

FOLDER = Path(__file__).parent
SCHEME = scheme_hash("golden")


def golden_block() -> Block:
    """Four rows: two readable (one long enough for a sketch), one unreadable, one tombstone."""
    texts = ["武汉加油👍", "ab"]
    chars = np.array([ord(char) for text in texts for char in text], np.uint32)
    bodies = Bodies(
        chars,
        np.array([0, 5, 7], np.int64),
        np.zeros(7, np.uint8),
        np.array([5, 600], np.int32),
        np.array([5, 7], np.int32),
        np.array([True, False]),
        np.zeros(2, np.uint32),
    )
    prints = Fingerprints(
        np.array([[1, 2], [3, 2**64 - 1]], np.uint64),
        np.array([[5, 6], [7, 8]], np.uint64),
        np.array([False, True]),
        np.arange(8, dtype=np.uint8).reshape(2, 2, 2),
        np.array([[9, 10, 11], [12, 13, 2**32 - 1]], np.uint32),
        np.arange(64, dtype=np.uint8).reshape(2, 32),
        np.array([14, 15], np.uint32),
        np.arange(64, dtype=np.uint8).reshape(1, 64),
        np.array([-1, 0], np.int32),
        np.array([[18, 2**64 - 1], [19, 0]], np.uint64),
        np.array([0, (3 << 56) | 18], np.uint64),
    )
    times = np.array([1_581_465_600_000, NO_TIME], np.int64)
    batch = batch_of(bodies, prints, times=times, ids=[16, 0], scopes=[0, 17])
    batch.positions[:] = 0  # they are not sent
    kinds = np.array([RowKind.READABLE, RowKind.UNREADABLE, RowKind.NO_TEXT, RowKind.READABLE], np.uint8)
    return Block(
        bytes(range(16)),
        number=3,
        reply=1,
        session=2**63 + 5,
        flags=BlockFlag.START | BlockFlag.CERTIFIED,
        first=100,
        end=120,
        emitted_from=40,
        emitted_to=100,
        beginning=7,
        stable_end=500,
        arrival_ms=1_600_000_000_000,
        topic="微博",
        program="1.0",
        offsets=np.array([100, 101, 110, 119], np.int64),
        kinds=kinds,
        batch=batch,
    )


def golden_ruling() -> Ruling:
    """A unique kept apart from another one, a near, an exact at the filter's word, and a replayed row."""
    verdicts = Verdicts.blank(4)
    verdicts.kinds[:] = [Kind.UNIQUE, Kind.NEAR, Kind.EXACT, Kind.REPLAYED]
    verdicts.flags[:] = [0, Flag.ESTIMATED, Flag.UNCONFIRMED, 0]
    verdicts.leaders[1] = (1 << 56) | (3 << 40) | 50456
    verdicts.matched[1], verdicts.compared[1] = 180, 200
    verdicts.reasons[0], verdicts.apart_from[0] = Rule.NUMBER, (1 << 56) | (3 << 40) | 7
    verdicts.details = np.zeros((1, 2, DETAIL_LENGTH), np.uint32)
    verdicts.details[0, :, 0], verdicts.detail_rows[0] = [ord("9"), ord("万")], 0
    sources = np.array([Source.NEW, Source.NEW, Source.STORED, Source.REPLAYED], np.uint8)
    return Ruling(
        17, 2**63 + 5, Result.JUDGED, 100, 120, sources, verdicts, {1: "微博"},
        arrival_ms=1_600_000_000_000, log_id=bytes(range(16, 32)), checksum=2**32 - 7,
        given_up=(bytes(range(32, 48)),),
    )  # fmt: skip


def golden_answers() -> AnswersRecord:
    """Three segments: one with three blocks, of which one has a match, an entry kept apart, a copy and a row left
    out, one has nothing, and one is declined; one with a block that it has a match for; one that is answered for."""
    answer = Answer(
        np.array([0, 0, 2], np.int32),
        np.array([1_009, 1_002, 1_000], np.int64),
        np.array([(1 << 56) | (3 << 40) | 9, (3 << 40) | 2, 0], np.int64),
        np.array([1_600_000_000_000, 1_599_999_999_000, NO_TIME], np.int64),
        np.array([180, 190, 200], np.int32),
        np.array([200, 200, 200], np.int32),
        np.array([ALIKE, ALIKE | ESTIMATED, ALIKE | Rule.NUMBER << REASON_SHIFT], np.uint8),
        np.array([1], np.int32),
        np.array([1_005], np.int64),
        np.array([(3 << 40) | 5], np.int64),
        np.array([1_600_000_000_000], np.int64),
        np.array([True]),
        np.array([1, 3], np.int32),
    )
    nothing = Answer._make(column[:0] for column in answer)
    segment = SegmentId(1_000, 1_010, 10, bytes(range(48, 64)))
    blocks = [
        BlockAnswer(17, 2**32 - 7, 4, answer),
        BlockAnswer(18, 5, 3, nothing),
        BlockAnswer(21, 6, 900, None),
    ]
    later = SegmentId(5_000_000_000, 5_000_000_010, 12, bytes(range(64, 80)))
    found = answer._replace(kept=answer.kept + 4_999_999_000, copy_kept=answer.copy_kept + 4_999_999_000)
    parts = [
        SegmentPart(segment, blocks, 22),
        SegmentPart(later, [BlockAnswer(18, 5, 4, found)], 20),
        SegmentPart(segment._replace(digest=bytes(range(80, 96))), [], 17),
    ]
    return AnswersRecord(bytes(range(16, 32)), bytes(range(32, 48)), "host-1", parts)


def records() -> dict[str, bytes]:
    """File name → content."""
    decision, answer = encode_ruling(golden_ruling(), SCHEME)
    return {
        "block.bin": encode_block(golden_block(), SCHEME),
        "decision.bin": decision,
        "answer.bin": answer,
        "answers.bin": encode_answers(SCHEME, golden_answers(), 1 << 20)[0],
    }


if __name__ == "__main__":
    for name, content in records().items():
        (FOLDER / name).write_bytes(content)
