"""The sinks: each receives every judged chunk, and writes its own part of it to an output.

The sinks of kept rows are in `kept.py` and `second_pass.py`; the sinks of dropped rows, of dead letters and
of --kept-apart are here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from twinsieve.pipeline.dedup.clusters import Clusters
from twinsieve.pipeline.dedup.leaders import Leader, LeaderBook
from twinsieve.pipeline.dedup.report import Summary
from twinsieve.pipeline.files.format import RowChunk
from twinsieve.pipeline.files.rows import shown_bytes
from twinsieve.pipeline.files.write import ByteSink, Output
from twinsieve.pipeline.messages.decode import Unreadable
from twinsieve.pipeline.messages.spelling import to_json
from twinsieve.pipeline.messages.verdict_values import differing_words, likeness_of, similarity_at
from twinsieve.stages.contract import (
    NO_LEADER,
    NO_TIME,
    OFF,
    Batch,
    Differences,
    Flag,
    Kind,
    SieveConfig,
    Verdicts,
    Window,
)
from twinsieve.stages.differ.rules import Rule
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.scheme import Scheme
from twinsieve.stages.near.signatures import shared_parts


@dataclass(frozen=True, slots=True)
class Judged:
    """A chunk with the verdicts of its readable rows.

    input: number of the chunk's input, from 0; first: position of the chunk's first row
    leaders: the kept messages that the verdicts name, by position, from the leader book
    """

    input: int
    chunk: RowChunk
    verdicts: Verdicts
    first: int
    leaders: Mapping[int, Leader] = field(default_factory=dict)

    def positions(self) -> NDArray[np.int64]:
        """int64[n]: positions of the readable rows."""
        return np.array(self.chunk.columns.rows, np.int64) + self.first

    def without_text(self) -> NDArray[np.int64]:
        """int64[m]: indices of the rows that are kept without a text, ascending; they have no verdicts."""
        return np.array([bad.row for bad in self.chunk.columns.no_text], np.int64)

    def kept(self) -> NDArray[np.int64]:
        """int64[m]: indices of the kept rows in the chunk, ascending."""
        unique = np.array(self.chunk.columns.rows, np.int64)[self.verdicts.kinds == Kind.UNIQUE]
        return np.sort(np.concatenate((unique, self.without_text())))

    def places(self) -> list[dict[str, Any]]:
        """For each readable row the fields that name it in outputs: position, id, source and line.

        A row that has a time also has time_ms, in ms since 1970; an item of a list its index as element.
        """
        columns, source = self.chunk.columns, self.chunk.source
        lines = self.chunk.lines()[columns.rows]
        places: list[dict[str, Any]] = [
            {"position": position, "id": id_, "source": source, "line": line}
            for position, id_, line in zip(
                self.positions().tolist(), columns.ids, lines.tolist(), strict=True
            )
        ]
        elements = self.chunk.rows.elements()
        if elements is not None:
            for place, row in zip(places, columns.rows, strict=True):
                place["element"] = elements[row]
        for row in np.flatnonzero(columns.times_ms != NO_TIME).tolist():
            places[row]["time_ms"] = int(columns.times_ms[row])
        return places


def entered(judged: Judged, book: LeaderBook, *, apart: bool) -> Judged:
    """The chunk with the leaders that its verdicts name; adds the kept rows of the chunk to the leader book.

    The kept rows are added first, because a leader may be in the same chunk.
    apart: also look up the leaders that are similar to kept rows
    raises: FileError, StateError
    """
    chunk, verdicts, positions = judged.chunk, judged.verdicts, judged.positions()
    columns, lines = chunk.columns, chunk.lines()
    is_kept = verdicts.kinds == Kind.UNIQUE
    kept = np.flatnonzero(is_kept).tolist()
    elements = chunk.rows.elements()
    messages = [
        Leader(
            columns.ids[row],
            columns.texts[row],
            chunk.source,
            int(lines[columns.rows[row]]),
            None if elements is None else elements[columns.rows[row]],
        )
        for row in kept
    ]
    book.add(positions[kept], messages)
    named = verdicts.leaders[~is_kept]
    if apart:
        named = np.concatenate((named, verdicts.apart_from[verdicts.reasons != 0]))
    return replace(judged, leaders=book.find(named) if len(named) else {})


class Sink(Protocol):
    """Receives the judged chunks of a run in order."""

    def take(self, judged: Judged) -> None:
        """Write the rows of this chunk that belong to this output. raises: FileError"""

    def end(self) -> None:
        """Write everything that remains after the last chunk. raises: FileError"""


class DroppedRows:
    """Writes dropped rows with their leaders: the outputs of --duplicates and --clusters, and the examples.

    summary: receives the counts and the examples
    files: outputs by flag
    kept: as in `Clusters.write`
    """

    def __init__(
        self,
        summary: Summary,
        files: Mapping[str, Output],
        *,
        kept: Callable[[int], int | None] | None,
    ) -> None:
        self._summary = summary
        self._duplicates = files.get("--duplicates")
        self._has_entries = self._duplicates is not None or summary.examples.wanted > 0
        self._output = files.get("--clusters")
        self._clusters = Clusters()
        self._kept = kept

    def take(self, judged: Judged) -> None:
        dropped = np.flatnonzero(judged.verdicts.kinds != Kind.UNIQUE)
        if not len(dropped):
            return
        if self._output is not None:
            places = judged.places()
            self._clusters.add(
                judged.verdicts.leaders[dropped], [places[row] for row in dropped.tolist()], judged.leaders
            )
        if self._has_entries:
            self._write(judged, dropped.tolist())

    def _write(self, judged: Judged, dropped: list[int]) -> None:
        summary = self._summary
        summary.explained += len(dropped)
        places = judged.places()
        lines = []
        for row in dropped:
            leader = judged.leaders.get(int(judged.verdicts.leaders[row]))
            entry = dropped_entry(judged, row, places[row], leader)
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
    """Writes the rows that could not be read to the output of --dead-letter.

    codec: name of the encoding of the rows
    """

    def __init__(self, output: ByteSink, codec: str) -> None:
        self._output = output
        self._codec = codec

    def take(self, judged: Judged) -> None:
        for bad in judged.chunk.columns.unreadable:
            entry = dead_entry(judged.chunk, bad, judged.first + bad.row, self._codec)
            self._output.write(to_json(entry) + b"\n")

    def end(self) -> None:
        """Does nothing, because `take` has written every row."""


class KeptApart:
    """Writes the rows that were kept although an earlier kept row is similar, with the reason (--kept-apart).

    summary: receives the examples
    scheme: makes bodies and fingerprints; config: configuration of the sieve of the run
    """

    def __init__(self, summary: Summary, output: ByteSink, scheme: Scheme, config: SieveConfig) -> None:
        self._examples = summary.examples
        self._output = output
        self._scheme = scheme
        self._config = config

    def take(self, judged: Judged) -> None:
        columns, verdicts = judged.chunk.columns, judged.verdicts
        apart = np.flatnonzero(verdicts.reasons).tolist()
        if not apart:
            return
        others = [judged.leaders.get(int(verdicts.apart_from[row])) for row in apart]
        pairs = [(other.text, columns.texts[row]) for row, other in zip(apart, others, strict=True) if other]
        likeness = iter(self._likeness(pairs))
        places = judged.places()
        lines = []
        for row, other in zip(apart, others, strict=True):
            earlier, later = differing_words(verdicts, row) or (None, None)
            entry = places[row] | {
                "apart_from": int(verdicts.apart_from[row]),
                "apart_from_id": None if other is None else other.id,
                "apart_from_source": None if other is None else other.source,
                "apart_from_line": None if other is None else other.line,
                **({"apart_from_element": other.element} if other and other.element is not None else {}),
                "reason": Rule(int(verdicts.reasons[row])).words,
                "says": later,
                "apart_from_says": earlier,
                **({} if other is None else next(likeness)),
                "text": columns.texts[row],
                "apart_from_text": None if other is None else other.text,
            }
            lines.append(to_json(entry) + b"\n")
            if other is not None:
                self._examples.offer_apart(entry)
        self._output.write(b"".join(lines))

    def _likeness(self, pairs: list[tuple[str, str]]) -> list[dict[str, Any]]:
        """Similarity or distance of each pair of texts; the verdicts of kept rows do not contain it."""
        if not pairs:
            return []
        bodies, fingerprints = self._scheme.read([text for pair in pairs for text in pair])
        if self._config.near.method == "hamming":
            lanes = max(1, len(self._config.near.distances_by_field))
            prints = fingerprints.simhashes[:, :lanes]
            bits = np.bitwise_count(prints[::2] ^ prints[1::2]).sum(axis=1)
            return [{"distance": int(each)} for each in bits]
        if self._config.near.method == "signatures":
            parts = fingerprints.part_hashes
            return [{"shared": shared_parts(parts, row, row + 1)} for row in range(0, len(bodies), 2)]
        window = Window(len(bodies))
        near = replace(
            self._config.near,
            similarity=1,
            window=window,
            differences=Differences(OFF),
            candidates="scan",
            same_id="drop",
            threads=1,
        )
        exact = replace(self._config.exact, method="none", window=window)
        batch = replace(Batch.blank(len(bodies)), bodies=bodies, fingerprints=fingerprints)
        batch.scopes[:] = np.arange(len(bodies)) // 2 + 1
        verdicts = BatchSieve(replace(self._config, exact=exact, near=near, scoped=True)).judge(batch)
        return [{"similarity": similarity_at(verdicts, row)} for row in range(1, len(bodies), 2)]

    def end(self) -> None:
        """Does nothing, because `take` has written every pair."""


def dropped_entry(
    judged: Judged, row: int, place: Mapping[str, Any], leader: Leader | None
) -> dict[str, Any]:
    """The JSON entry of a dropped row: its place, its leader, and how similar the two are.

    row: index among the readable rows; place: what `Judged.places` says of the row
    leader: None if the leader book does not hold it any more
    """
    verdicts = judged.verdicts
    exact = verdicts.kinds[row] == Kind.EXACT
    duplicate_of = int(verdicts.leaders[row])
    entry: dict[str, Any] = {
        **place,
        "duplicate_of": None if duplicate_of == NO_LEADER else duplicate_of,
        "duplicate_of_id": None if leader is None else leader.id,
        "leader_source": None if leader is None else leader.source,
        "leader_line": None if leader is None else leader.line,
        **({"leader_element": leader.element} if leader and leader.element is not None else {}),
        "stage": "exact" if exact else "near",
    }
    name, likeness = likeness_of(verdicts, row)
    entry[name] = likeness
    entry["text"] = judged.chunk.columns.texts[row]
    entry["leader_text"] = None if leader is None else leader.text
    if verdicts.flags[row]:
        entry["flags"] = flag_names(int(verdicts.flags[row]))
    return entry


def dead_entry(chunk: RowChunk, bad: Unreadable, position: int, codec: str) -> dict[str, Any]:
    """The JSON entry of an unreadable row: its place, the reason, and its bytes.

    codec: name of the encoding; bytes that cannot be decoded are written as base64
    """
    raw, size = chunk.rows.raw(bad.row)
    elements = chunk.rows.elements()
    entry: dict[str, Any] = {
        "position": position,
        "source": chunk.source,
        "line": chunk.line_of(bad.row),
        **({} if elements is None else {"element": elements[bad.row]}),
        "reason": bad.reason,
        "detail": bad.detail,
        "bytes": size,
    }
    return entry | shown_bytes("raw", raw, codec)


@cache
def flag_names(flags: int) -> list[str]:
    """Names of the flags that are set in a verdict."""
    return [flag.name.lower() for flag in Flag(flags) if flag.name]
