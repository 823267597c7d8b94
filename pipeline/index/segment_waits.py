"""In which sealed segments the index waits for shards, how long, and where it goes on alone."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from twinsieve.pipeline.broker.ports import Clock
from twinsieve.stages.window.segments import SegmentId

ALONE_S = 60.0
"""How long the index looks up itself in a segment for which it has waited too long, before it tries again."""
_BEHIND_S = 1.0
"""While no block is older, the index keeps up, and waiting for a shard costs nothing."""
_HICCUP_S = 0.5
"""The index does not go alone before it has stood still for this time in all; otherwise each pause of a shard
that is well, or the first blocks of a backlog, would cost a minute."""
_SPARED_S = 0.25
"""What shards have spared the index counts up to this time in all, so that one that turns slow after hours is
not waited for much longer."""
_MUCH = 8
"""An index that goes alone may know the time of a look-up in the open segment only, and the file of that one
is on a slow disk. So it waits again if a look-up takes this many times the
expected time."""
_ROWS = 4_096
"""The usual time of a row's look-up is the mean of about this many rows, the last ones. Fewer would not do:
the first rows in a cold segment take ten times as long."""
_MOST_NAMES = 8
"""Names of shards that are remembered of a segment; as many as the largest `near.replicas`, about."""
_NEVER = -math.inf


@dataclass(slots=True)
class _Usual:
    """The usual time of a row's look-up, of about the last `_ROWS` rows."""

    rows: float = 0.0
    seconds: float = 0.0

    def add(self, rows: int, took_s: float) -> None:
        kept = max(0.0, 1.0 - rows / _ROWS)
        self.rows, self.seconds = kept * self.rows + rows, kept * self.seconds + took_s

    @property
    def row_s(self) -> float:
        """0 if nothing is known: then the index goes alone, and knows it soon."""
        return self.seconds / self.rows if self.rows else 0.0


@dataclass(slots=True)
class _Segment:
    """What is known of those who answer for a segment.

    said_s: when each shard last said something of it; shard: the last one of these
    next: offset of the first block that the last one has not read
    at_index_s: when somebody last was where the index was
    given_up: offset of the last block that was judged without it because the patience was over
    debt_s: for how long the index stood still, minus what its own look-ups would have taken, seconds; what it
        stood still while it kept up counts for nothing
    usual: of its own look-ups in this segment
    until_s: the index looks up itself until then; None: it waits
    most_row_s: if its own look-up turns out to take longer than this, the index waits again
    late: the shards that were there then
    """

    said_s: dict[str, float] = field(default_factory=dict)
    shard: str = ""
    next: int = 0
    at_index_s: float = _NEVER
    given_up: int = -1
    debt_s: float = 0.0
    usual: _Usual = field(default_factory=_Usual)
    until_s: float | None = None
    most_row_s: float = math.inf
    late: frozenset[str] = frozenset()


class SegmentWaits:
    """Decides for which segments a block waits. All times are of the index's own monotonic clock.

    Waiting is worth while as long as it takes less than looking up. So the index keeps an account for each
    segment: the time that it stood still for it, minus the time that it was spared. If blocks wait, and the
    account says that looking up would have been faster, it goes alone there for `ALONE_S`.

    patience_s: one wait for a segment, of however many blocks, takes this long at most
    """

    def __init__(self, patience_s: float, clock: Clock) -> None:
        self._patience_s = patience_s
        self._clock = clock
        self._of: dict[SegmentId, _Segment] = {}
        self._usual = _Usual()
        """Of look-ups in the open segment, for one that is not known."""
        self._passed: deque[tuple[float, int]] = deque()
        """When the index was at which block in the last seconds."""
        self._standing: dict[SegmentId, float] = {}
        """For which segments the first block waits, and since when."""
        self._stood_s = 0.0
        self._is_behind = False

    def begin(self, next_offset: int) -> None:
        """The index begins to judge with this block."""
        self._passed.clear()
        self.passed(next_offset)

    def passed(self, next_offset: int) -> None:
        """The index has judged the blocks before this one."""
        self._stand_no_more(self._standing)
        now_s, self._standing = self._clock.monotonic_s(), {}
        if not self._passed or now_s - self._passed[-1][0] >= self._patience_s / 16:
            self._passed.append((now_s, next_offset))

    @property
    def _horizon(self) -> int:
        """The block at which the index was some seconds ago. Who is behind that is not where the index is."""
        old_s = self._clock.monotonic_s() - self._patience_s / 4
        while len(self._passed) > 1 and self._passed[1][0] <= old_s:
            self._passed.popleft()
        return self._passed[0][1] if self._passed else 0

    def heard(self, segment: SegmentId, shard: str, next_offset: int) -> None:
        """A shard has said of a segment that it has read the blocks before this one."""
        each, now_s = self._of.setdefault(segment, _Segment()), self._clock.monotonic_s()
        recent = {name: at for name, at in each.said_s.items() if now_s - at < self._patience_s}
        if not each.said_s:
            self._begin_as_others(each, shard, now_s)
        if len(recent) < _MOST_NAMES:
            recent[shard] = now_s
        each.said_s, each.shard, each.next = recent, shard, next_offset
        if next_offset < self._horizon or next_offset <= each.given_up:
            return
        each.at_index_s = now_s
        if each.until_s is not None and shard not in each.late:
            # Another one has taken over.
            each.until_s = None

    def _begin_as_others(self, each: _Segment, shard: str, now_s: float) -> None:
        """Where it is alone in other segments because of this shard, the index is alone in a new one, too: a
        busy app seals one every few seconds."""
        for other in self._of.values():
            if shard in other.late and other.until_s is not None and other.until_s > now_s:
                each.until_s, each.late, each.most_row_s = other.until_s, other.late, other.most_row_s
                return

    def silence(self) -> None:
        """Nobody can say anything any more, so that nobody is there."""
        for each in self._of.values():
            each.at_index_s = _NEVER
            each.said_s.clear()

    def is_expected(self, segment: SegmentId) -> bool:
        """Whether somebody who answers for this segment is where the index is."""
        each = self._of.get(segment)
        return each is not None and self._clock.monotonic_s() - each.at_index_s < self._patience_s

    def is_answered(self, segment: SegmentId) -> bool:
        """Whether somebody answers for this segment in time."""
        return self.is_expected(segment) and self._of[segment].until_s is None

    def late(self, segments: Iterable[SegmentId]) -> dict[SegmentId, str]:
        """Those of these segments in which the index looks up itself though a shard says that it is there,
        and the name of that shard."""
        now_s, found = self._clock.monotonic_s(), {}
        for segment in segments:
            each = self._of.get(segment)
            is_there = each is not None and now_s - each.said_s.get(each.shard, _NEVER) < self._patience_s
            if each is not None and is_there and not self.is_answered(segment):
                found[segment] = each.shard
        return found

    def awaited(self, offset: int, segments: Iterable[SegmentId]) -> list[SegmentId]:
        """Those of these segments whose answer to a block is missing and worth waiting for."""
        return [segment for segment in segments if self._is_awaited(offset, segment)]

    def _is_awaited(self, offset: int, segment: SegmentId) -> bool:
        # Who has read the block and not answered it has passed it over, or the answer is lost.
        return self.is_expected(segment) and self._of[segment].next <= offset and not self._is_alone(segment)

    def _is_alone(self, segment: SegmentId) -> bool:
        each = self._of[segment]
        if each.until_s is None or self._clock.monotonic_s() >= each.until_s:
            return False
        return self._usual_s(segment) <= each.most_row_s

    def _usual_s(self, segment: SegmentId) -> float:
        """Usual time of a row's look-up in a segment by the index itself."""
        known = self._of[segment].usual
        return known.row_s if known.rows else self._usual.row_s

    def stand(self, offset: int, rows: int, behind_s: float, awaited: Sequence[SegmentId]) -> None:
        """Note for which segments the first block waits now, perhaps none, and give up those for which that
        takes too long. Call it before and after each wait.

        offset: of the first block; rows: how many it has; behind_s: its age
        """
        now_s = self._clock.monotonic_s()
        share_s = (now_s - self._stood_s) / len(self._standing) if self._standing else 0.0
        for segment, since_s in self._standing.items():
            each = self._of[segment]
            each.debt_s += share_s
            if now_s - since_s >= self._patience_s and each.next <= offset:
                each.given_up, each.at_index_s = offset, _NEVER
        self._is_behind = behind_s >= _BEHIND_S
        self._stand_no_more(self._standing.keys() - set(awaited))
        self._standing = {segment: self._standing.get(segment, now_s) for segment in awaited}
        self._stood_s = now_s
        for segment in self._standing:
            each = self._of[segment]
            least_s = max(rows * self._usual_s(segment), _HICCUP_S / len(self._standing))
            if self._is_behind and each.debt_s > least_s:
                each.until_s, each.late = now_s + ALONE_S, frozenset(each.said_s)
                each.most_row_s, each.debt_s = _MUCH * least_s / max(1, rows), 0.0

    def _stand_no_more(self, segments: Iterable[SegmentId]) -> None:
        """Nothing waits for these any more. What an index waited that keeps up has cost nothing."""
        if not self._is_behind:
            for segment in segments:
                self._of[segment].debt_s = min(0.0, self._of[segment].debt_s)

    def taken(self, segments: Collection[SegmentId], rows: int) -> None:
        """These segments' answers to this number of rows are used, so the index need not look them up."""
        now_s = self._clock.monotonic_s()
        for segment in segments:
            each = self._of.setdefault(segment, _Segment())
            spared_s = rows * self._usual_s(segment)
            each.debt_s = max(-_SPARED_S / len(segments), each.debt_s - spared_s)
            if each.until_s is not None and now_s >= each.until_s:
                each.until_s = None

    def looked_up(self, segment: SegmentId | None, rows: int, took_s: float) -> None:
        """The index has looked rows up itself. segment: None for the open one"""
        usual = self._usual if segment is None else self._of.setdefault(segment, _Segment()).usual
        usual.add(rows, took_s)

    def keep(self, segments: Iterable[SegmentId]) -> None:
        """Forget other segments than these, of which nobody speaks any more: the window has passed them."""
        kept, old_s = set(segments), self._clock.monotonic_s() - self._patience_s
        self._of = {
            segment: each
            for segment, each in self._of.items()
            if segment in kept or max(each.said_s.values(), default=_NEVER) > old_s
        }
        self._standing = {segment: at for segment, at in self._standing.items() if segment in self._of}
