"""Lines of the clusters: each leader with the rows that were dropped for it."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from twinsieve.pipeline.dedup.leaders import Leader
from twinsieve.pipeline.files.write import ByteSink
from twinsieve.pipeline.messages.spelling import to_json
from twinsieve.stages.contract import NO_LEADER

_BLOCK_BYTES = 1 << 20
_NO_ID = b"null"


class Clusters:
    """Collects who was dropped for whom.

    Held are 24 bytes and the id for every dropped row, and as much for its leader once a chunk of the input.
    """

    def __init__(self) -> None:
        self._leaders = array("q")
        self._positions = array("q")
        self._ends = array("q")
        self._ids = bytearray()

    def add(
        self,
        positions: NDArray[np.int64],
        leaders: NDArray[np.int64],
        ids: Sequence[object],
        known: Mapping[int, Leader],
    ) -> None:
        """Take the dropped rows of a chunk.

        positions, leaders: int64[n] of the rows, NO_LEADER where none is named
        ids: of the rows, None for none; known: what is known of the leaders, by position
        """
        for leader in np.unique(leaders).tolist():
            if leader != NO_LEADER:
                # The same entry of an earlier chunk may be there: to know would take a set of all leaders.
                self._enter(leader, leader, known[leader].id if leader in known else None)
        for position, leader, one in zip(positions.tolist(), leaders.tolist(), ids, strict=True):
            if leader != NO_LEADER:
                self._enter(leader, position, one)

    def _enter(self, leader: int, position: int, one: object) -> None:
        self._leaders.append(leader)
        self._positions.append(position)
        self._ids += to_json(one)
        self._ends.append(len(self._ids))

    def write(self, output: ByteSink, kept: Callable[[int], int] | None = None) -> None:
        """Write one line of JSON for each leader, in the order of leaders.

        kept: the position of the row that came out for a leader; None: lines do not name it
        raises: FileError
        """
        block = bytearray()
        for line in self._lines(kept):
            block += line
            if len(block) > _BLOCK_BYTES:
                output.write(bytes(block))
                block.clear()
        output.write(bytes(block))

    def _lines(self, kept: Callable[[int], int] | None) -> Iterator[bytes]:
        leaders, positions = (np.frombuffer(column, np.int64) for column in (self._leaders, self._positions))
        order = np.lexsort((positions, leaders))
        starts = np.flatnonzero(np.diff(leaders[order], prepend=0))
        # An array, not a list: there may be as many clusters as dropped rows.
        for start, end in pairwise(np.append(starts, len(order))):
            entries = order[start:end]
            rows, first = np.unique(positions[entries], return_index=True)
            leader = int(leaders[entries[0]])
            ids = [self._id(entry) for entry in entries[first].tolist()]
            chosen = b"" if kept is None else b'"kept":%d,' % kept(leader)
            listed = b",".join(b"%d" % row for row in rows.tolist())
            known = any(one != _NO_ID for one in ids)
            head = b'{"cluster":%d,' % leader + (b'"id":%b,' % ids[0] if known else b"")
            tail = b',"ids":[%b]' % b",".join(ids) if known else b""
            yield head + chosen + b'"size":%d,"rows":[%b]' % (len(rows), listed) + tail + b"}\n"

    def _id(self, entry: int) -> bytes:
        start = self._ends[entry - 1] if entry else 0
        return bytes(self._ids[start : self._ends[entry]])
