"""`FullDisk`: how many messages an index may still keep while its segments cannot be written.

Such segments stay in memory, so judging goes on. It pauses where one segment more would not fit, because a
process that is killed for its memory begins again at an older snapshot, and meets the same disk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from twinsieve.pipeline.broker.ports import Clock
from twinsieve.pipeline.index.state import Judge
from twinsieve.pipeline.saved.segment_writer import SegmentWriter


class Room(NamedTuple):
    """messages: most that are kept before one segment more begins; is_last: whether that one does not fit"""

    messages: int
    is_last: bool


class FullDisk:
    """What an index knows of a disk that does not take its segments.

    segments: writes them; None: nothing is saved, and segments stay in memory
    memory: as in `NearConfig`; spare_bytes: how many bytes more this process may take, None if unknown
    notices, log_lines: receive a line when a pause begins or ends
    """

    def __init__(
        self,
        sieve: Judge,
        segments: SegmentWriter | None,
        memory: int,
        spare_bytes: Callable[[], int | None],
        clock: Clock,
        notices: list[str],
        log_lines: list[str],
    ) -> None:
        self._sieve = sieve
        self._segments = segments
        self._memory = memory
        self._spare_bytes = spare_bytes
        self._clock = clock
        self._notices = notices
        self._log_lines = log_lines
        self.unwritten = 0
        """Sealed segments that lie in no file, since one could not be written; 0 while all is well."""
        self.paused_ms: int | None = None
        """Since when nothing is judged or followed because of that (ms since 1970); None: it goes on."""
        self.has_handed_over = False
        """Whether the index has left its group because of that. It does so once, until its disk has room."""

    @property
    def is_full(self) -> bool:
        """Whether segments could not be written, and more than the newest lie in no file yet."""
        return self.unwritten > 0

    def look(self) -> Room | None:
        """What may be kept now; None: any number. Begins to write a segment again if it is time."""
        if self._segments is None or not (self.is_full or self._segments.refuses):
            return None
        held = self._sieve.in_memory()
        is_full = self._segments.refuses or held.sealed > 1
        self.unwritten = held.sealed if is_full else 0
        if not self.is_full:
            self.has_handed_over = False
            self.go_on()
            return None
        spare = self._spare_bytes()
        passes = 0 < self._memory < held.bytes + held.next_bytes
        return Room(held.room, is_last=passes or (spare is not None and spare < held.next_bytes))

    def pause(self) -> bool:
        """Note that nothing is judged or followed now. returns: whether that is new"""
        if self.paused_ms is not None:
            return False
        self.paused_ms = self._clock.now_ms()
        self._notices.append(
            f"paused: {self.unwritten} segments of the near window could not be written, and one more in "
            "memory would pass state.memory or the limit of memory; messages wait in the input, and are lost "
            "if its retention deletes them before the disk has room: free space, or lengthen retention.ms"
        )
        return True

    def go_on(self) -> None:
        """Note that judging and following go on."""
        if self.paused_ms is not None:
            paused_s = (self._clock.now_ms() - self.paused_ms) / 1000
            self.paused_ms = None
            self._log_lines.append(f"goes on after a pause of {paused_s:.0f} s: there is room for a segment")

    @property
    def remark(self) -> str:
        """That nothing is judged, or that segments are in memory alone; empty if all is well."""
        if self.paused_ms is not None:
            return (
                f"paused: the disk does not take {self.unwritten} segments, and one more would pass "
                "state.memory or the limit of memory; free space before retention deletes what waits in the "
                "input"
            )
        return (
            f"the disk does not take {self.unwritten} segments, which are in memory alone"
            if self.is_full
            else ""
        )
