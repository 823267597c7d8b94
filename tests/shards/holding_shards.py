"""An app in memory whose near window has sealed segments in a folder, and shards that answer for them."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pytest

from tests.generated_posts import generate
from tests.memory.broker import ManualClock, MemoryBroker, MemoryCluster, NewTopic
from tests.property.streams import Rows, batch_of
from tests.saved.test_journal import Life
from tests.stored import storage_at
from tests.twins import AtOnce
from twinsieve.pipeline.broker.ports import Hook, no_hook
from twinsieve.pipeline.broker.records import Committed, Messages, Partition
from twinsieve.pipeline.index.ledger import Ledger, ledger_to_bytes
from twinsieve.pipeline.index.snapshot_store import Snapshot, SnapshotStore
from twinsieve.pipeline.saved.manifest import StateFile
from twinsieve.pipeline.shards.config import ShardConfig
from twinsieve.pipeline.shards.holdings import HeldSnapshots, Holdings
from twinsieve.pipeline.shards.shard import Shard
from twinsieve.pipeline.wire.block import Block, BlockFlag, encode_block
from twinsieve.pipeline.wire.chain import UNKNOWN
from twinsieve.pipeline.wire.segment_answers import AnswersRecord, SegmentPart, decode_answers
from twinsieve.stages.contract import Batch, ExactConfig, NearConfig, SieveConfig, Window
from twinsieve.stages.judge.near_window import NearWindow
from twinsieve.stages.judge.segment_reader import SegmentReader
from twinsieve.stages.near.answers import Answer
from twinsieve.stages.window.segments import SegmentId

CONFIG = SieveConfig(
    ExactConfig(window=Window(2_000)), NearConfig(window=Window(400), segment=60, details=True)
)
SCHEME = bytes(range(16))
LOG, ANSWERS, INDEX, GROUP = Partition("app.fingerprints", 0), "app.answers", "app.index", "app.shards-1"
NO_RECORD = b"no record"
ROWS = 25
"""Rows of each block."""


@cache
def posts() -> Batch:
    """Generated posts, whose times go on; some are near duplicates of earlier ones."""
    rows: Rows = [(post["text"], number // 40, 0, 0) for number, post in enumerate(generate(1_500, seed=11))]
    return batch_of(rows)


@cache
def reader() -> SegmentReader:
    """Compiled once."""
    return SegmentReader(CONFIG)


class App:
    """The topics, snapshots and index of an app; its shards are made by `shard`."""

    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock()
        self.cluster = MemoryCluster(self.clock)
        self.cluster.create(NewTopic(LOG.topic, 1))
        self.cluster.create(NewTopic(ANSWERS, 3))
        self.life = Life(storage_at(str(folder)), CONFIG)
        self.log_id = self.cluster.topics[LOG.topic].topic_id
        self.asked = 0
        """Blocks in the log."""

    @classmethod
    def judged(cls, folder: Path) -> App:
        """One with some segments in a snapshot; the index has judged all blocks."""
        app = cls(folder)
        app.judge(20)
        app.save()
        assert len(app.sealed()) >= 4
        return app

    def ask(self, blocks: int, *, rows: int = ROWS) -> None:
        """Append blocks with the next posts."""
        messages = Messages()
        for _ in range(blocks):
            messages.add(None, encode_block(self.block(self.asked, rows), SCHEME))
            self.asked += 1
        self.cluster.write(LOG, messages)

    def rows_of(self, number: int, rows: int = ROWS) -> Batch:
        """The rows of a block."""
        at = number * ROWS % (len(posts()) - ROWS)
        return posts().slice(at, at + rows)

    def block(self, number: int, rows: int = ROWS) -> Block:
        batch = self.rows_of(number, rows)
        offsets = np.arange(len(batch)) + number * ROWS
        return Block(
            bytes(16), 0, 0, 1, BlockFlag.NONE, number * ROWS, (number + 1) * ROWS, 0, 0, topic="posts",
            offsets=offsets, kinds=np.zeros(len(batch), np.uint8), batch=batch,
        )  # fmt: skip

    def judge(self, blocks: int) -> None:
        """The index appends and judges this many blocks, and commits."""
        for _ in range(blocks):
            self.life.sieve.judge(self.rows_of(self.asked))
            self.life.journal.segments.scratch._writer.submit(int).result()
            self.life.journal.segments.thread.submit(int).result()
            self.ask(1)
        self.commit(self.asked)

    def commit(self, offset: int) -> None:
        self.cluster.group(INDEX).offsets[LOG] = Committed(offset)

    def save(self, **changed: Any) -> list[StateFile]:
        """Write a snapshot; returns its files."""
        files = self.life.save()
        fields = {"log_id": self.log_id, "scheme": SCHEME, "files": tuple(files)} | changed
        made = Snapshot(
            next_offset=self.asked,
            decisions_from=0,
            decisions_id=bytes(16),
            link=UNKNOWN,
            ledger=ledger_to_bytes(Ledger()),
            sieve=lambda stream: stream.write(b"sieve"),
            **fields,
        )
        self.snapshots().write(made)
        return files

    def snapshots(self) -> SnapshotStore:
        return SnapshotStore(self.life.storage, 2)

    def holdings(self, log_id: bytes, memory: int = 1 << 30, background: Any = None) -> Holdings:
        held = HeldSnapshots(self.snapshots(), log_id, SCHEME, "", None, reader().add)
        return Holdings(held, background or AtOnce(), self.clock, memory, 60.0)

    def config(self, name: str, group: str = GROUP, replicas: int = 1) -> ShardConfig:
        return ShardConfig(
            scheme=SCHEME,
            log=LOG,
            answers=ANSWERS,
            group=group,
            member=f"{name}-shard",
            index=INDEX,
            replicas=replicas,
            patience_s=14.0,
            grace_s=60.0,
            check_s=5.0,
            snapshot_every_s=30.0,
        )

    def shard(
        self,
        name: str = "a",
        *,
        group: str = GROUP,
        replicas: int = 1,
        memory: int = 1 << 30,
        background: Any = None,
        hook: Hook = no_hook,
        holdings: Holdings | None = None,
    ) -> Shard:
        """A shard of this name, as a process makes it. hook: called after its own steps"""
        made = partial(self.holdings, memory=memory, background=background)
        return Shard(
            MemoryBroker(self.cluster),
            self.clock,
            self.config(name, group, replicas),
            reader(),
            (lambda _: holdings) if holdings is not None else made,
            hook,
        )

    def turn(self, *shards: Shard, seconds: float = 3.0) -> None:
        """Let these shards run for a while."""
        until_s = self.clock.monotonic_s() + seconds
        while self.clock.monotonic_s() < until_s:
            for shard in shards:
                shard.step(0.05)
            self.clock.sleep(0.05)

    def said(self) -> list[AnswersRecord]:
        """All records of answers, in no order between segments."""
        logs = self.cluster.topics[ANSWERS].logs
        values = [entry.value or b"" for log in logs for _, entry in log.visible()]
        values = [value for value in values if value != NO_RECORD]
        return [decode_answers(SCHEME, value, "answers") for value in values]

    def parts(self) -> list[SegmentPart]:
        """What was said of segments."""
        return [part for record in self.said() for part in record.parts]

    def answers(self, shard: str | None = None) -> dict[SegmentId, dict[int, Answer]]:
        """By segment and block, what was answered last."""
        found: dict[SegmentId, dict[int, Answer]] = {}
        for record in self.said():
            if shard in (None, record.shard.removesuffix("-shard")):
                for segment, blocks, _ in record.parts:
                    answers = {one.offset: one.answer for one in blocks if one.answer is not None}
                    found.setdefault(segment, {}).update(answers)
        return found

    def sealed(self) -> list[SegmentId]:
        """The segments that the newest snapshot names."""
        named = {(file.first, file.end) for file in self.snapshots().newest(self.log_id)[2]}
        every = self.life.sieve.near.segments.sealed
        return [segment.id for segment in every if segment.id[:2] in named]

    def expected(self, segment: SegmentId, block: int) -> Answer:
        """What a reader of the index's own segment finds."""
        (own,) = [each for each in self.life.sieve.near.segments.sealed if each.id == segment]
        return reader().answer(self.rows_of(block), own)


def same(one: Answer, other: Answer) -> bool:
    """Whether two answers are equal in every column."""
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def count_taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """From now on, how many rows sieves took from answers, and how many of them they looked up all the same."""
    counts, lock, take = [0, 0], Lock(), NearWindow._take

    def counted(self: NearWindow, low: int, high: int, *rest: Any) -> tuple[int, int]:
        place, left = take(self, low, high, *rest)
        with lock:
            counts[0] += high - low
            counts[1] += left
        return place, left

    monkeypatch.setattr(NearWindow, "_take", counted)
    return counts
