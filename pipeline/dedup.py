"""`twinsieve dedup`: files through the sieve, kept rows out byte for byte.

Order of the end, which is a contract: outputs are on disk and renamed first, the state last. A run killed
in between is repeated against the earlier state and makes the same outputs again; the other order would lose
what was judged but never written.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from time import perf_counter
from typing import Any

import numpy as np

from pipeline.batches import Columns, make_batch
from pipeline.batches_fields import to_json
from pipeline.dedup_report import Example, Summary
from pipeline.files_clash import refuse_clashes
from pipeline.files_input import Chunk, Format, InputReader
from pipeline.files_read import Source
from pipeline.files_state import FileState, leaders_folder, load_state, save_state
from pipeline.files_write import Output, RowWriter
from pipeline.leaders import Leader, LeaderBook
from pipeline.settings import Settings
from pipeline.settings_stages import scheme_config, sieve_config
from stages.contract import NO_LEADER, NO_TIME, Batch, Flag, Kind, Verdicts, Window
from stages.scheme import Scheme
from stages.sieve import Sieve, SieveStats


@dataclass(frozen=True, slots=True)
class Job:
    """What to read and where to write; names are paths, `-` for stdin or stdout, None for no file."""

    inputs: list[str]
    format: Format
    output: str
    duplicates: str | None = None
    dead_letter: str | None = None
    stats: str | None = None
    state: str | None = None
    examples: int = 0


Progress = Callable[[int, int, float | None], None]
"""Told after every chunk: rows and dropped rows so far, and the share of input bytes taken or None."""


class Dedup:
    """One run over files.

    arrival_ms: clock of this run; stamps beyond it (plus `time.max_ahead`) are clamped to it
    raises: UsageError when files clash, FileError, StateError
    """

    def __init__(self, job: Job, settings: Settings, arrival_ms: int) -> None:
        refuse_clashes(
            job.inputs,
            {
                "-o": job.output,
                "--duplicates": job.duplicates,
                "--dead-letter": job.dead_letter,
                "--stats": job.stats,
                "--state": job.state,
            },
        )
        self._job = job
        self._settings = settings
        self._arrival_ms = arrival_ms
        self._scheme = Scheme(scheme_config(settings))
        config = sieve_config(settings, self._scheme.scheme_id)
        earlier = load_state(job.state, config) if job.state is not None else None
        self._state, self._sieve = earlier or (FileState(), Sieve(config))
        self._hamming = config.near.method == "hamming"
        self._window = max(config.exact.window.messages, config.near.window.messages)
        self._reader = InputReader(settings, job.format)
        self._header_written = False
        self.summary = Summary(examples_wanted=job.examples)

    def warm_up(self) -> None:
        """Nothing; kernels are compiled or loaded, so that the first rows are timed like all others."""
        config = self._sieve.config
        small = Window(min(config.near.window.messages, 64))
        tiny = replace(
            config, exact=replace(config.exact, window=small), near=replace(config.near, window=small)
        )
        texts = ["武汉加油，中国加油！" * 8, "武汉加油，中国加油！" * 8 + "。", "加油", "一个普通的句子" * 99]
        bodies, fingerprints = self._scheme.read(texts)
        none = np.zeros(len(texts), np.uint64)
        times = np.full(len(texts), NO_TIME, np.int64)
        positions = np.arange(len(texts), dtype=np.int64)
        Sieve(tiny).judge(Batch(positions, times, times, none, none, bodies, fingerprints))

    def sieve_stats(self) -> SieveStats:
        """How full the sieve is."""
        return self._sieve.stats()

    def run(self, progress: Progress | None = None) -> Summary:
        """What was done; all outputs are there when this returns, none of them when it raises."""
        job, summary = self._job, self.summary
        with ExitStack() as stack:

            def opened(name: str | None, mode: int = 0o666) -> Output | None:
                return stack.enter_context(Output(name, mode=mode)) if name is not None else None

            sources = [stack.enter_context(Source(name)) for name in job.inputs]
            output = stack.enter_context(Output(job.output))
            duplicates = opened(job.duplicates)
            dead_letter = opened(job.dead_letter)
            stats = opened(job.stats)
            book = self._book(stack)
            kept_rows = RowWriter(output)
            ended_bare = False
            for chunk, share in self._chunks(sources):
                self._write_header(kept_rows)
                verdicts = self._judge(chunk.columns)
                started = perf_counter()
                kept = self._write_kept(kept_rows, chunk, verdicts)
                ended_bare = not chunk.rows.terminated and bool(kept) and kept[-1] == len(chunk.rows.rows) - 1
                self._explain(chunk, verdicts, book, duplicates)
                self._write_dead(chunk, dead_letter)
                self._state.rows += len(chunk.rows.rows)
                summary.seconds["write"] += perf_counter() - started
                if progress is not None:
                    progress(summary.rows, summary.dropped, share)
            started = perf_counter()
            self._write_header(kept_rows)
            kept_rows.end(newline=not ended_bare)
            for one in (output, duplicates, dead_letter):
                if one is not None:
                    one.finish()
            summary.seconds["write"] += perf_counter() - started
            self._save(book)
            if stats is not None:
                stats.write(summary.as_json(self._sieve.stats()))
                stats.finish()
        return summary

    def _book(self, stack: ExitStack) -> LeaderBook | None:
        wanted = self._job.duplicates is not None or self._job.examples or self._state.leaders
        if not wanted:
            return None
        folder = leaders_folder(self._job.state) if self._job.state is not None else None
        book = LeaderBook(self._window, folder, self._state.leaders)
        stack.callback(book.close)
        return book

    def _save(self, book: LeaderBook | None) -> None:
        if self._job.state is None:
            return
        started = perf_counter()
        self._state.leaders = book.marks() if book is not None else []
        save_state(self._job.state, self._state, self._sieve)
        if book is not None:
            book.tidy()
        self.summary.seconds["state"] += perf_counter() - started

    def _chunks(self, sources: list[Source]) -> Iterator[tuple[Chunk, float | None]]:
        sizes = [source.size for source in sources]
        total = None if None in sizes else sum(size or 0 for size in sizes)
        done = 0
        for source in sources:
            chunks = self._reader.chunks(source)
            while True:
                started = perf_counter()
                chunk = next(chunks, None)
                self.summary.seconds["read"] += perf_counter() - started
                if chunk is None:
                    break
                yield chunk, (done + source.consumed) / total if total else None
            done += source.size or 0

    def _judge(self, columns: Columns) -> Verdicts:
        seconds = self.summary.seconds
        times = [perf_counter()]
        bodies = self._scheme.bodies(columns.texts)
        times.append(perf_counter())
        fingerprints = self._scheme.fingerprints(bodies, columns.keys)
        times.append(perf_counter())
        positions = np.array(columns.rows, dtype=np.int64) + (self._state.rows + 1)
        verdicts = self._sieve.judge(make_batch(columns, bodies, fingerprints, positions, self._arrival_ms))
        times.append(perf_counter())
        for step, start, end in zip(("text", "fingerprints", "judge"), times, times[1:], strict=False):
            seconds[step] += end - start
        self.summary.count(columns, verdicts)
        return verdicts

    def _write_header(self, writer: RowWriter) -> None:
        if self._reader.header is not None and not self._header_written:
            writer.write([self._reader.header])
            self._header_written = True

    def _write_kept(self, writer: RowWriter, chunk: Chunk, verdicts: Verdicts) -> list[int]:
        unique = np.array(chunk.columns.rows, dtype=np.int64)[verdicts.kinds == Kind.UNIQUE].tolist()
        rows = chunk.rows.rows
        writer.write([row for index in unique if (row := rows[index]) is not None])
        return list(unique)

    def _explain(
        self, chunk: Chunk, verdicts: Verdicts, book: LeaderBook | None, duplicates: Output | None
    ) -> None:
        """Write who was dropped for whom. Kept ones are entered first: a leader may be among them."""
        if book is None:
            return
        columns = chunk.columns
        first = self._state.rows + 1
        kept = np.flatnonzero(verdicts.kinds == Kind.UNIQUE)
        positions = np.array(columns.rows, dtype=np.int64) + first
        chosen = kept.tolist()
        book.add(positions[kept], [columns.ids[i] for i in chosen], [columns.texts[i] for i in chosen])
        dropped = np.flatnonzero(verdicts.kinds != Kind.UNIQUE)
        leaders = book.find(verdicts.leaders[dropped]) if len(dropped) else {}
        lines = []
        for row in dropped.tolist():
            leader_position = int(verdicts.leaders[row])
            leader = leaders.get(leader_position)
            entry = self._entry(int(positions[row]), row, columns, verdicts, leader_position, leader)
            if leader is not None:
                self.summary.examples.offer(Example(entry))
            if duplicates is not None:
                lines.append(to_json(entry))
        if duplicates is not None and lines:
            duplicates.write(b"\n".join(lines) + b"\n")

    def _entry(
        self,
        position: int,
        row: int,
        columns: Columns,
        verdicts: Verdicts,
        leader_position: int,
        leader: Leader | None,
    ) -> dict[str, Any]:
        exact = verdicts.kinds[row] == Kind.EXACT
        entry: dict[str, Any] = {
            "position": position,
            "id": columns.ids[row],
            "duplicate_of": None if leader_position == NO_LEADER else leader_position,
            "duplicate_of_id": None if leader is None else leader.id,
            "stage": "exact" if exact else "near",
        }
        if self._hamming and not exact:
            entry["distance"] = int(verdicts.distances[row])
        else:
            entry["similarity"] = 1.0 if exact else round(verdicts.similarity(row), 4)
        entry["text"] = columns.texts[row]
        entry["leader_text"] = None if leader is None else leader.text
        if verdicts.flags[row]:
            entry["flags"] = _flag_names(int(verdicts.flags[row]))
        return entry

    def _write_dead(self, chunk: Chunk, dead_letter: Output | None) -> None:
        if dead_letter is None:
            return
        for bad in chunk.columns.unreadable:
            raw, size = chunk.raw(bad.row)
            entry: dict[str, Any] = {
                "position": self._state.rows + 1 + bad.row,
                "source": chunk.source,
                "line": chunk.line_of(bad.row),
                "reason": bad.reason,
                "detail": bad.detail,
                "bytes": size,
            }
            try:
                entry["raw"] = raw.decode()
            except UnicodeDecodeError:
                entry["raw_base64"] = base64.b64encode(raw).decode()
            dead_letter.write(to_json(entry) + b"\n")


@cache
def _flag_names(flags: int) -> list[str]:
    return [flag.name.lower() for flag in Flag(flags) if flag.name]
