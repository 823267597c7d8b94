"""Where judged chunks go: each sink takes every chunk and writes what is its own.

Kept rows have a sink in `kept.py`, or in `second_pass.py`; dropped rows and dead letters have theirs here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from twinsieve.pipeline.dedup.clusters import Clusters
from twinsieve.pipeline.dedup.leaders import Leader, LeaderBook
from twinsieve.pipeline.dedup.report import Summary
from twinsieve.pipeline.files.messages import RowChunk
from twinsieve.pipeline.files.rows import shown_bytes
from twinsieve.pipeline.files.write import ByteSink, Output
from twinsieve.pipeline.messages.decode import Unreadable
from twinsieve.pipeline.messages.reader import MessageColumns
from twinsieve.pipeline.messages.spelling import to_json
from twinsieve.stages.contract import NO_LEADER, Flag, Kind, Verdicts


@dataclass(frozen=True, slots=True)
class Judged:
    """A chunk and the verdicts of its readable rows.

    input: number of the chunk's input, from 0; first: position of the chunk's first row
    """

    input: int
    chunk: RowChunk
    verdicts: Verdicts
    first: int

    def positions(self) -> NDArray[np.int64]:
        """int64[n]: positions of the readable rows."""
        return np.array(self.chunk.columns.rows, np.int64) + self.first


class Sink(Protocol):
    """Takes the judged chunks of a run in order."""

    def take(self, judged: Judged) -> None:
        """Write the rows that belong here. raises: FileError"""

    def end(self) -> None:
        """Write what is left after the last chunk. raises: FileError"""


class DroppedRows:
    """Writes who was dropped for whom: lines of the duplicates, examples, clusters.

    book: kept rows are entered before leaders are looked up: a leader may be in the same chunk
    summary: counts what is written, and takes the examples
    files: outputs by flag
    in_bits: likeness is a distance (hamming)
    kept: the position of the row that comes out for a leader; None: clusters do not name one
    """

    def __init__(
        self,
        book: LeaderBook,
        summary: Summary,
        files: Mapping[str, Output],
        *,
        in_bits: bool,
        kept: Callable[[int], int] | None,
    ) -> None:
        self._book = book
        self._summary = summary
        self._duplicates = files.get("--duplicates")
        self._has_entries = self._duplicates is not None or summary.examples.wanted > 0
        self._output = files.get("--clusters")
        self._clusters = Clusters()
        self._in_bits = in_bits
        self._kept = kept

    def take(self, judged: Judged) -> None:
        columns, verdicts, positions = judged.chunk.columns, judged.verdicts, judged.positions()
        is_kept = verdicts.kinds == Kind.UNIQUE
        kept, dropped = np.flatnonzero(is_kept), np.flatnonzero(~is_kept)
        ids = [columns.ids[row] for row in kept.tolist()]
        self._book.add(positions[kept], ids, [columns.texts[row] for row in kept.tolist()])
        if not len(dropped):
            return
        leaders = self._book.find(verdicts.leaders[dropped])
        if self._output is not None:
            ids = [columns.ids[row] for row in dropped.tolist()]
            self._clusters.add(positions[dropped], verdicts.leaders[dropped], ids, leaders)
        if self._has_entries:
            self._write(judged, positions, dropped.tolist(), leaders)

    def _write(
        self, judged: Judged, positions: NDArray[np.int64], dropped: list[int], leaders: dict[int, Leader]
    ) -> None:
        columns, verdicts, summary = judged.chunk.columns, judged.verdicts, self._summary
        summary.explained += len(dropped)
        lines = []
        for row in dropped:
            leader = leaders.get(int(verdicts.leaders[row]))
            position = int(positions[row])
            entry = dropped_entry(columns, verdicts, row, position, leader, in_bits=self._in_bits)
            if leader is not None:
                summary.examples.offer(entry)
            elif entry["duplicate_of"] is not None:
                summary.leaders_unknown += 1
            if self._duplicates is not None:
                lines.append(to_json(entry) + b"\n")
        if self._duplicates is not None:
            self._duplicates.write(b"".join(lines))

    def end(self) -> None:
        if self._output is not None:
            self._clusters.write(self._output, self._kept)


class DeadLetters:
    """Writes the rows that could not be read; codec: that decodes them."""

    def __init__(self, output: ByteSink, codec: str) -> None:
        self._output = output
        self._codec = codec

    def take(self, judged: Judged) -> None:
        for bad in judged.chunk.columns.unreadable:
            entry = dead_entry(judged.chunk, bad, judged.first + bad.row, self._codec)
            self._output.write(to_json(entry) + b"\n")

    def end(self) -> None:
        """Every row is out already."""


def dropped_entry(
    columns: MessageColumns,
    verdicts: Verdicts,
    row: int,
    position: int,
    leader: Leader | None,
    *,
    in_bits: bool,
) -> dict[str, Any]:
    """Who was dropped for whom, and how alike the two are.

    row: of `columns` and `verdicts`; leader: None where the book does not hold it any more
    in_bits: likeness is a distance (hamming)
    """
    exact = verdicts.kinds[row] == Kind.EXACT
    duplicate_of = int(verdicts.leaders[row])
    entry: dict[str, Any] = {
        "position": position,
        "id": columns.ids[row],
        "duplicate_of": None if duplicate_of == NO_LEADER else duplicate_of,
        "duplicate_of_id": None if leader is None else leader.id,
        "stage": "exact" if exact else "near",
    }
    similarity = similarity_of(verdicts, row, in_bits=in_bits)
    if similarity is None:
        entry["distance"] = int(verdicts.distances[row])
    else:
        entry["similarity"] = similarity
    entry["text"] = columns.texts[row]
    entry["leader_text"] = None if leader is None else leader.text
    if verdicts.flags[row]:
        entry["flags"] = _flag_names(int(verdicts.flags[row]))
    return entry


def dead_entry(chunk: RowChunk, bad: Unreadable, position: int, codec: str) -> dict[str, Any]:
    """What could not be read, where it stands and why; its bytes as text in `codec`, or else as base64."""
    raw, size = chunk.raw(bad.row)
    entry: dict[str, Any] = {
        "position": position,
        "source": chunk.source,
        "line": chunk.line_of(bad.row),
        "reason": bad.reason,
        "detail": bad.detail,
        "bytes": size,
    }
    return entry | shown_bytes("raw", raw, codec)


def similarity_of(verdicts: Verdicts, row: int, *, in_bits: bool) -> float | None:
    """How alike a dropped row and its leader are, 0 to 1; None where a distance says that."""
    if verdicts.kinds[row] == Kind.EXACT:
        return 1.0
    return None if in_bits else round(verdicts.similarity(row), 4)


@cache
def _flag_names(flags: int) -> list[str]:
    return [flag.name.lower() for flag in Flag(flags) if flag.name]
