"""Following the log: recorded decisions are applied to their blocks, nothing is judged.

A restore and a warm standby are the same: join every decision with its block by the log offset, in order.
Decisions come read-committed, so that only what counts is ever followed.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from pipeline.blocks import decode_block
from pipeline.blocks_frame import What
from pipeline.blocks_verdicts import Ruling, decode_ruling
from pipeline.index_state import IndexState
from pipeline.ports import FatalError, Partition, Reader
from stages.errors import StateError

_MOST_WAITING = 256
"""Blocks, or decisions, held while the other side is behind."""


@dataclass(slots=True)
class Progress:
    """How far a restore is: log offsets applied, the last one known, and decisions without a block or
    reverse."""

    at: int
    end: int
    holes: int


class Follower:
    """Keeps a state up with the recorded decisions."""

    def __init__(
        self, reader: Reader, state: IndexState, log: Partition, decisions: Partition, scheme: bytes
    ) -> None:
        self._reader = reader
        self._state = state
        self._log = log
        self._decisions = decisions
        self._scheme = scheme
        self._blocks: deque[tuple[int, bytes]] = deque()
        self._rulings: deque[Ruling] = deque()
        self._decisions_cut = False
        self._log_cut = False
        self.holes = 0
        self.since_ms: int | None = None
        """When the first block arrived at its worker that was followed since the start or the last `stop`."""

    def begin(self, decisions_from: int) -> None:
        """Follow from the state's offset on; `decisions_from` as in `Snapshot`. Later ends are clamped to
        what
        retention has left."""
        beginning = self._reader.beginning_offsets([self._log, self._decisions])
        self._blocks.clear()
        self._rulings.clear()
        self._reader.assign([self._log, self._decisions])
        self._reader.seek(self._log, max(self._state.at, beginning[self._log]))
        self._reader.seek(self._decisions, max(decisions_from, beginning[self._decisions]))
        self._decisions_cut = beginning[self._decisions] > decisions_from
        self._log_cut = beginning[self._log] > self._state.at

    def step(self, timeout_s: float, max_records: int) -> int:
        """Apply what has arrived; returns how many blocks that were."""
        full = {
            self._log: len(self._blocks) >= _MOST_WAITING,
            self._decisions: len(self._rulings) >= _MOST_WAITING,
        }
        self._reader.pause([partition for partition, is_full in full.items() if is_full])
        self._reader.resume([partition for partition, is_full in full.items() if not is_full])
        for records in self._reader.poll(timeout_s, max_records):
            for offset, value in zip(records.offsets, records.values, strict=True):
                if records.partition == self._log:
                    self._blocks.append((offset, value or b""))
                else:
                    where = f"{self._decisions}@{offset}"
                    self._rulings.append(decode_ruling(What.DECISION, value or b"", self._scheme, where))
        return self._join()

    def _join(self) -> int:
        applied = 0
        while self._rulings:
            ruling = self._rulings[0]
            if ruling.log_offset < self._state.at:
                self._rulings.popleft()
                continue
            while self._blocks and self._blocks[0][0] < ruling.log_offset:
                offset, _ = self._blocks.popleft()
                if offset >= self._state.at:
                    self._miss(self._decisions_cut, f"{self._decisions}: the decision on block {offset}")
            if self._blocks and self._blocks[0][0] == ruling.log_offset:
                offset, data = self._blocks.popleft()
                block = decode_block(data, self._scheme, f"{self._log}@{offset}")
                if self.since_ms is None:
                    self.since_ms = block.arrival_ms
                self._state.follow(block, ruling)
                self._decisions_cut = self._log_cut = False
                applied += 1
            elif self._blocks or self._reader.position(self._log) > ruling.log_offset:
                beginning = self._reader.beginning_offsets([self._log])[self._log]
                if ruling.log_offset < beginning and not self._log_cut:
                    raise FatalError(
                        f"{self._log}: retention has overtaken block {ruling.log_offset}; restoring"
                    )
                self._miss(ruling.log_offset < beginning, f"{self._log}: block {ruling.log_offset}")
                self._state.at = ruling.log_offset + 1
            else:
                break
            self._rulings.popleft()
        return applied

    def _miss(self, explained: bool, what: str) -> None:
        """Retention may have taken one side; whatever else is missing must not be passed over."""
        if not explained:
            raise StateError(
                f"{what} is missing, its neighbours are not; restore the topic or start a new app"
            )
        self.holes += 1

    def caught_up(self, decisions_end: int) -> bool:
        """Whether every decision below this offset of the decisions topic is applied."""
        return not self._rulings and self._reader.position(self._decisions) >= decisions_end

    def progress(self) -> Progress:
        """Where a restore stands."""
        return Progress(self._state.at, self._reader.end_offsets([self._log])[self._log], self.holes)

    def stop(self) -> None:
        """Read nothing more until the next `begin`."""
        self.since_ms = None
        self._reader.assign(())
