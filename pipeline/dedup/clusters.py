"""The output of --clusters: one line for each leader, with the rows that were dropped as its duplicates."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinsieve.pipeline.dedup.leaders import Leader
from twinsieve.pipeline.files.write import ByteSink
from twinsieve.pipeline.messages.spelling import to_json
from twinsieve.stages.contract import NO_LEADER

_BLOCK_BYTES = 1 << 20
_NO_ID = b"null"
_UNKNOWN = Leader(None, "")


class Clusters:
    """Collects which row was dropped as a duplicate of which leader.

    Memory: 44 bytes and the id for every dropped row, and the same for each leader once per chunk.
    """

    def __init__(self) -> None:
        self._leaders = array("q")
        self._positions = array("q")
        self._ends = array("q")
        self._ids = bytearray()
        self._sources = array("i")
        self._lines = array("q")
        self._elements = array("q")
        self._names: dict[str | None, int] = {}

    def add(
        self, leaders: NDArray[np.int64], places: Sequence[Mapping[str, Any]], messages: Mapping[int, Leader]
    ) -> None:
        """Add the dropped rows of a chunk.

        leaders: int64[n], position of each row's leader, or NO_LEADER
        places: position, id, source and line of each row
        messages: the leaders that the leader book holds, by position
        """
        for leader in np.unique(leaders).tolist():
            if leader != NO_LEADER:
                # An earlier chunk may have added the same leader. `_written` removes repeated entries,
                # because a check here would need a set of all leaders in memory.
                message = messages.get(leader, _UNKNOWN)
                names = (message.id, message.source, message.line, message.element)
                self._enter(leader, leader, *names)
        for place, leader in zip(places, leaders.tolist(), strict=True):
            if leader != NO_LEADER:
                names = (place["id"], place["source"], place["line"], place.get("element"))
                self._enter(leader, place["position"], *names)

    def _enter(
        self,
        leader: int,
        position: int,
        id_: object,
        source: str | None,
        line: int | None,
        element: int | None,
    ) -> None:
        self._leaders.append(leader)
        self._positions.append(position)
        self._ids += to_json(id_)
        self._ends.append(len(self._ids))
        self._sources.append(self._names.setdefault(source, len(self._names)))
        self._lines.append(line or 0)
        self._elements.append(-1 if element is None else element)

    def write(self, output: ByteSink, kept: Callable[[int], int | None] | None = None) -> None:
        """Write one line of JSON for each leader, sorted by the leaders' positions.

        kept: returns the position of the row written for a leader's cluster, None if no row of it is; without
            it lines do not contain the position
        raises: FileError
        """
        block = bytearray()
        for line in self._written(kept):
            block += line
            if len(block) > _BLOCK_BYTES:
                output.write(bytes(block))
                block.clear()
        output.write(bytes(block))

    def _written(self, kept: Callable[[int], int | None] | None) -> Iterator[bytes]:
        leaders, positions = (np.frombuffer(column, np.int64) for column in (self._leaders, self._positions))
        sources = [to_json(name) for name in self._names]
        order = np.lexsort((positions, leaders))
        starts = np.flatnonzero(np.diff(leaders[order], prepend=0))
        # Iterate over an array, not over a list, because there may be as many clusters as dropped rows.
        for start, end in pairwise(np.append(starts, len(order))):
            entries = order[start:end]
            rows, first = np.unique(positions[entries], return_index=True)
            leader = int(leaders[entries[0]])
            members = entries[first].tolist()
            ids = [self._id(entry) for entry in members]
            chosen = b"" if kept is None else b'"kept":%b,' % to_json(kept(leader))
            listed = b",".join(b"%d" % row for row in rows.tolist())
            has_ids = any(id_ != _NO_ID for id_ in ids)
            head = b'{"cluster":%d,' % leader + (b'"id":%b,' % ids[0] if has_ids else b"")
            tail = b',"ids":[%b]' % b",".join(ids) if has_ids else b""
            places = b',"sources":[%b],"lines":[%b]' % (
                b",".join([sources[self._sources[entry]] for entry in members]),
                b",".join([b"%d" % line if (line := self._lines[entry]) else b"null" for entry in members]),
            )
            elements = [self._elements[entry] for entry in members]
            if max(elements) >= 0:
                places += b',"elements":' + to_json([None if each < 0 else each for each in elements])
            yield head + chosen + b'"size":%d,"rows":[%b]' % (len(rows), listed) + tail + places + b"}\n"

    def _id(self, entry: int) -> bytes:
        start = self._ends[entry - 1] if entry else 0
        return bytes(self._ids[start : self._ends[entry]])
