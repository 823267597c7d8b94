"""`twinsieve dedup`: files through the sieve, kept rows out byte for byte.

Order of the end, which is a contract: everything, the state too, is on disk beside its name; then the outputs
are renamed, the state last. A run that fails before the first name changes nothing. One killed between two
names is repeated against the earlier state and makes the same outputs again; the other order would lose what
was judged but never written. Runs on one state exclude each other.

Where the kept rows are a stream they are out before the end: see `saves.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from time import perf_counter
from types import TracebackType
from typing import Self

import numpy as np

from twinsieve.pipeline.dedup.entries import Clusters, dead_entry, dropped_entry
from twinsieve.pipeline.dedup.kept import KeptRows
from twinsieve.pipeline.dedup.leaders import LeaderBook
from twinsieve.pipeline.dedup.marked import Marker, marks_of, refuse_unmarked
from twinsieve.pipeline.dedup.repeats import KEPT_DIGESTS, content_digest, refuse_empty_replacement
from twinsieve.pipeline.dedup.report import Example, Summary
from twinsieve.pipeline.dedup.saves import SAVE_EVERY_S, Saves, Stop
from twinsieve.pipeline.dedup.second_pass import Keep, SecondPass, refuse_keep
from twinsieve.pipeline.dedup.state import (
    StateLock,
    leaders_folder,
    load_state,
    new_state,
    state_output,
    state_places,
    write_state,
)
from twinsieve.pipeline.dedup.windows import Reaches
from twinsieve.pipeline.files import FileError
from twinsieve.pipeline.files.format import TABLES, Dialect, Format
from twinsieve.pipeline.files.messages import Chunk, InputReader
from twinsieve.pipeline.files.source import Source, StoppedError, is_stream
from twinsieve.pipeline.files.unreadable import (
    FirstUnreadable,
    all_unreadable_line,
    first_unreadable,
    strict_line,
    unreadable_line,
)
from twinsieve.pipeline.files.write import (
    Output,
    inputs_of,
    outputs_of,
    place_all,
    refuse_clashes,
    settings_of,
)
from twinsieve.pipeline.messages.reader import MessageColumns, make_batch
from twinsieve.pipeline.messages.spelling import to_json
from twinsieve.pipeline.messages.unseen import STOPPING
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.settings.stage_config import scheme_of, sieve_config
from twinsieve.stages.contract import NO_TIME, Batch, Kind, Verdicts, Window
from twinsieve.stages.errors import SieveError, UsageError
from twinsieve.stages.judge.sieve import Sieve, SieveStats

_ENOUGH_ROWS = 1000
"""So many rows without a field say that there is none; fewer do when no more are to come."""


def _unheard(_warning: str) -> None:
    """Who hears warnings unless somebody asks for them."""


def _tell_unseen(chunk: Chunk, warn: Callable[[str], None], *, is_sample: bool) -> None:
    """Warn of fields that no row of the first chunk has.

    is_sample: rows that are still to come may have them
    raises: UsageError where rows would be lost
    """
    lines = [(one.setting in STOPPING, f"{chunk.source}: {one.line('rows')}") for one in chunk.columns.unseen]
    stopping = [line for stops, line in lines if stops]
    if stopping and not is_sample:
        raise UsageError("; ".join(stopping))
    for _, line in lines:
        warn(line)


@dataclass(frozen=True, slots=True)
class Job:
    """What to read and where to write; names are paths, `-` for stdin or stdout, None for no file.

    mark: all rows are written, with what the sieve says of each
    keep: which row of a cluster is written
    max_unreadable: share of the rows, 0 to 1, beyond which unreadable ones fail the run; None for no limit
    """

    inputs: list[str]
    format: Format
    output: str
    duplicates: str | None = None
    dead_letter: str | None = None
    clusters: str | None = None
    stats: str | None = None
    state: str | None = None
    settings_file: str | None = None
    examples: int = 0
    mark: bool = False
    keep: Keep = "first"
    max_unreadable: float | None = None
    dialect: Dialect = field(default_factory=Dialect)


Progress = Callable[[int, int, float | None], None]
"""Told after every chunk: rows and dropped rows so far, and the share of input bytes taken or None."""


class Dedup:
    """One run over files; a context that holds the state's lock.

    arrival_ms: clock of this run; stamps beyond it (plus `time.max_ahead`) are clamped to it
    raises: UsageError when files clash, FileError (also when another run uses the state), StateError
    """

    def __init__(self, job: Job, settings: Settings, arrival_ms: int) -> None:
        if job.mark:
            refuse_unmarked(job.format)
        others = {
            "--mark": job.mark,
            "--duplicates": job.duplicates is not None,
            "--examples": job.examples > 0,
        }
        refuse_keep(job.keep, job.inputs, others)
        outputs = {
            "-o": job.output,
            "--duplicates": job.duplicates,
            "--dead-letter": job.dead_letter,
            "--clusters": job.clusters,
            "--stats": job.stats,
        }
        refuse_clashes(
            inputs_of(job.inputs) + settings_of(job.settings_file, settings),
            outputs_of(outputs) + (state_places(job.state) if job.state is not None else []),
        )
        self._job = job
        self._settings = settings
        self._arrival_ms = arrival_ms
        self._digests: list[str | None] = []
        self._scheme = scheme_of(settings)
        config = sieve_config(settings, self._scheme.scheme_id)
        with ExitStack() as undo:
            earlier = None
            if job.state is not None:
                undo.enter_context(StateLock(job.state))
                earlier = load_state(job.state, new_state(settings), config)
            self._state, self._sieve = earlier or (new_state(settings), Sieve(config))
            self.repeated = self._know_inputs()
            self._held = undo.pop_all()
        self._hamming = config.near.method == "hamming"
        self._window = max(config.exact.window.messages, config.near.window.messages)
        names_leaders = job.duplicates is not None or job.clusters is not None or job.examples
        self._with_leaders = bool(names_leaders or self._state.leaders)
        self._clusters = Clusters() if job.clusters is not None else None
        self._reader = InputReader(
            settings, job.format, job.dialect, whole=True, ids_shown=self._with_leaders
        )
        self._inputs_done = 0
        self._streams = False
        self._saves: Saves | None = None
        self.stopped: StoppedError | None = None
        self._reaches = Reaches(config, self._sieve.stats())
        self.summary = Summary(examples_wanted=job.examples, windows=self._reaches.by_stage)
        self.first_unreadable: FirstUnreadable | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.close()

    def _know_inputs(self) -> list[str]:
        """Inputs that an earlier run has read. raises: UsageError where that would cost an output"""
        job = self._job
        if job.state is None:
            return []
        self._digests = [content_digest(name) for name in job.inputs]
        known = set(self._state.inputs)
        repeated = [name for name, one in zip(job.inputs, self._digests, strict=True) if one in known]
        for name in repeated:
            refuse_empty_replacement(name, job.state, {"-o": job.output, "--duplicates": job.duplicates})
        return repeated

    def warm_up(self) -> None:
        """Compile or load the kernels, so that the first rows are timed like all others."""
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

    def interrupted(self) -> str:
        """What is true of the outputs of a run that was broken off."""
        job = self._job
        if not self._streams:
            return "interrupted; no output was put in place"
        shown = "stdout" if job.output == "-" else job.output
        rows = f"interrupted; rows that came out on {shown} stay there"
        if self._saves is not None:
            return f"{rows}, those since the last save of {job.state} come out again"
        return f"{rows}, nothing else was put in place"

    def stopped_line(self, stopped: StoppedError) -> str:
        """What is true of a run that stopped in good order."""
        said = f"stopped before the end of the input; all rows that came out are in {self._job.state}"
        lost = (
            f"; {stopped.unfinished:,} bytes of a row without its end are lost" if stopped.unfinished else ""
        )
        return said + lost

    def sieve_stats(self) -> SieveStats:
        """How full the sieve is."""
        return self._sieve.stats()

    def run(
        self,
        progress: Progress | None = None,
        before_placing: Callable[[], None] = lambda: None,
        stop: Stop | None = None,
        save_every_s: float = SAVE_EVERY_S,
        warn: Callable[[str], None] = _unheard,
    ) -> Summary:
        """What was done; all outputs are there when this returns.

        stop: ends a run in good order before its input ends (`stopped` says so), where kept rows are a stream
            and there is a state; save_every_s: how often such a run saves
        before_placing: called when all is on disk and the outputs are about to get their names
        warn: told at once of what may be a mistake
        raises: UsageError when no row has a field of `scope` or `exact.fields`, as far as the first chunk
            shows; FileError, also when there are rows and none or too few can be read; no output is there
            then, unless renaming itself failed, which the error says
        """
        job, summary = self._job, self.summary
        with ExitStack() as stack:

            def opened(name: str | None, make: Callable[[str], Output] = Output) -> Output | None:
                return stack.enter_context(make(name)) if name is not None else None

            sizes = [self._reader.look(name) for name in job.inputs]
            second = None if job.keep == "first" else SecondPass(job.keep, job.inputs, self._state.rows + 1)
            output = stack.enter_context(Output(job.output))
            duplicates = opened(job.duplicates)
            dead_letter = opened(job.dead_letter)
            clusters = opened(job.clusters)
            stats = opened(job.stats)
            state = opened(job.state, state_output)
            book = self._book(stack)
            marker = self._marker()
            kept_rows = KeptRows(output, self._reader, marker)
            stack.callback(kept_rows.close)
            written = [one for one in (output, duplicates, dead_letter) if one is not None]
            self._streams = output.is_stream
            # A table has no rows before its end is written, a second pass none before all are judged: a
            # state must not be ahead of that.
            grows = output.is_stream and job.format not in TABLES and second is None
            if stop is not None and state is not None and grows:
                self._saves = Saves(
                    stop, lambda: self._save(written, book), lambda: self._state.rows, save_every_s
                )
                stop.taken = True
            for chunk, share in self._chunks(sizes, warn):
                self.first_unreadable = self.first_unreadable or first_unreadable(chunk)
                if self.first_unreadable is not None and job.max_unreadable == 0:
                    if self._saves is not None:
                        self._saves.save()
                    raise FileError(strict_line(self.first_unreadable))
                summary.blank += chunk.blank
                verdicts = self._judge(chunk.columns)
                started = perf_counter()
                if second is None:
                    kept_rows.write(*self._coming_out(chunk, verdicts, marker))
                else:
                    second.add(self._inputs_done, chunk, verdicts)
                self._explain(chunk, verdicts, book, duplicates)
                self._write_dead(chunk, dead_letter)
                self._state.rows += len(chunk.rows.rows)
                summary.seconds["write"] += perf_counter() - started
                if progress is not None:
                    progress(summary.rows, summary.dropped, share)
            if self.stopped is None:
                self._refuse_unreadable()
            started = perf_counter()
            if clusters is not None and self._clusters is not None:
                # Not among those that grow: a run that saves again and again writes it once.
                written.append(clusters)
                self._clusters.write(clusters, None if second is None else second.kept)
            if second is not None:
                second.write(self._reader, kept_rows)
            kept_rows.end()
            for one in written:
                one.seal()
            summary.seconds["write"] += perf_counter() - started
            if state is not None:
                self._write_state(state, book)
            if stats is not None:
                stats.write(summary.as_json(self._sieve.stats()))
                stats.seal()
            before_placing()
            place_all(written + [one for one in (stats, state) if one is not None])
            if book is not None:
                book.tidy()
        return summary

    def _refuse_unreadable(self) -> None:
        most, summary = self._job.max_unreadable, self.summary
        if self.first_unreadable is None:
            return
        if summary.unreadable.total() == summary.rows:
            raise FileError(all_unreadable_line(summary.unreadable, self.first_unreadable))
        if most is not None and summary.unreadable.total() > most * summary.rows:
            line = unreadable_line(summary.unreadable, summary.rows, self.first_unreadable, None)
            raise FileError(f"more rows than --max-unreadable {most:g} allows are {line}")

    def _marker(self) -> Marker | None:
        job = self._job
        if not job.mark:
            return None
        return Marker(self._reader, job.format, job.dialect, job.inputs[0])

    def _coming_out(self, chunk: Chunk, verdicts: Verdicts, marker: Marker | None) -> tuple[Chunk, list[int]]:
        """What is written of a chunk: the kept rows as they are, or all rows with their marks."""
        if marker is not None:
            return marker.marked(
                chunk, marks_of(chunk, verdicts, self._state.rows + 1, in_bits=self._hamming)
            )
        unique = np.array(chunk.columns.rows, dtype=np.int64)[verdicts.kinds == Kind.UNIQUE]
        return chunk, unique.tolist()

    def _book(self, stack: ExitStack) -> LeaderBook | None:
        if not self._with_leaders:
            return None
        folder = leaders_folder(self._job.state) if self._job.state is not None else None
        book = LeaderBook(self._window, folder, self._state.leaders)
        stack.callback(book.close)
        return book

    def _save(self, written: list[Output], book: LeaderBook | None) -> None:
        """Put everything that was judged so far on disk under its name, the state last."""
        for one in written:
            one.publish()
        if self._job.state is not None:
            with state_output(self._job.state) as state:
                self._write_state(state, book)
                state.place()
        if book is not None:
            book.tidy()

    def _write_state(self, state: Output, book: LeaderBook | None) -> None:
        started = perf_counter()
        self._state.leaders = book.marks() if book is not None else []
        ended = [one for one in self._digests[: self._inputs_done] if one is not None]
        inputs = dict.fromkeys([*self._state.inputs, *ended])
        self._state.inputs = list(inputs)[-KEPT_DIGESTS:]
        write_state(state, self._state, self._sieve)
        state.seal()
        self.summary.seconds["state"] += perf_counter() - started

    def _chunks(
        self, sizes: list[int | None], warn: Callable[[str], None]
    ) -> Iterator[tuple[Chunk, float | None]]:
        """Every chunk, with the share of input bytes taken or None; one input is open at a time."""
        total = None if None in sizes else sum(size or 0 for size in sizes)
        done = 0
        fields_told = False
        for number, (name, size) in enumerate(zip(self._job.inputs, sizes, strict=True), start=1):
            with ExitStack() as opened:
                source = self._open(name, opened)
                if source is None:
                    return
                chunks = self._reader.chunks(source)
                while True:
                    started = perf_counter()
                    chunk = self._next(chunks)
                    self.summary.seconds["read"] += perf_counter() - started
                    if self.stopped is not None:
                        return
                    if chunk is None:
                        break
                    if chunk.columns.unseen and not fields_told:
                        fields_told = True
                        is_sample = size is None
                        if size is not None and chunk.columns.unseen[0].count < _ENOUGH_ROWS:
                            following = list(islice(chunks, 1))
                            is_sample = bool(following) or number < len(sizes)
                            chunks = chain(following, chunks)
                        _tell_unseen(chunk, warn, is_sample=is_sample)
                    yield chunk, (done + source.consumed) / total if total else None
            done += size or 0
            self._inputs_done += 1

    def _open(self, name: str, opened: ExitStack) -> Source | None:
        """The input, or None when the run was stopped while a pipe had no writer."""
        saves = self._saves
        if saves is None:
            return opened.enter_context(Source(name))
        if not saves.stop.asked:
            saves.stop.taken = False
            try:
                return opened.enter_context(Source(name, saves.wait if is_stream(name) else None))
            except KeyboardInterrupt:
                saves.stop.ask()
            finally:
                saves.stop.taken = True
        self.stopped = StoppedError()
        return None

    def _next(self, chunks: Iterator[Chunk]) -> Chunk | None:
        """The next chunk; None at the end of the input, and when the run was stopped."""
        saves = self._saves
        if saves is None:
            return next(chunks, None)
        try:
            saves.save_if_due()
            if saves.stop.asked:
                raise StoppedError
            return next(chunks, None)
        except StoppedError as stopped:
            self.stopped = stopped
            return None
        except SieveError:
            # The rows before are out; without this they would come out again when the input is mended.
            saves.save()
            raise

    def _judge(self, columns: MessageColumns) -> Verdicts:
        seconds = self.summary.seconds
        times = [perf_counter()]
        bodies = self._scheme.bodies(columns.texts)
        times.append(perf_counter())
        fingerprints = self._scheme.fingerprints(bodies, columns.keys)
        times.append(perf_counter())
        positions = np.array(columns.rows, dtype=np.int64) + (self._state.rows + 1)
        batch = make_batch(columns, bodies, fingerprints, positions, self._arrival_ms)
        verdicts = self._sieve.judge(batch)
        self._reaches.count(batch, verdicts)
        times.append(perf_counter())
        for step, start, end in zip(("text", "fingerprints", "judge"), times, times[1:], strict=False):
            seconds[step] += end - start
        self.summary.count(columns, verdicts)
        return verdicts

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
        self.summary.explained += len(dropped)
        if self._clusters is not None:
            ids = [columns.ids[row] for row in dropped.tolist()]
            self._clusters.add(positions[dropped], verdicts.leaders[dropped], ids, leaders)
        lines = []
        for row in dropped.tolist():
            leader = leaders.get(int(verdicts.leaders[row]))
            entry = dropped_entry(columns, verdicts, row, int(positions[row]), leader, in_bits=self._hamming)
            if leader is not None:
                self.summary.examples.offer(Example(entry))
            elif entry["duplicate_of"] is not None:
                self.summary.leaders_unknown += 1
            if duplicates is not None:
                lines.append(to_json(entry))
        if duplicates is not None and lines:
            duplicates.write(b"\n".join(lines) + b"\n")

    def _write_dead(self, chunk: Chunk, dead_letter: Output | None) -> None:
        if dead_letter is None:
            return
        first = self._state.rows + 1
        for bad in chunk.columns.unreadable:
            dead_letter.write(to_json(dead_entry(chunk, bad, first + bad.row, self._reader.codec)) + b"\n")
