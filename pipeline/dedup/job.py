"""Runs `twinsieve dedup`: judges the rows of files, and writes the kept rows with their exact bytes.

A run must end in this order: First it puts all outputs, the new files of the state and its manifest on disk;
outputs and manifest have no final names yet. Then it renames the outputs, and the manifest last. If a run
fails before the first renaming, nothing has changed. If it is killed between two renamings, the next run
starts from the earlier state and makes the same outputs again. If the manifest were renamed first, a kill
after that would lose rows: the state would contain them, but no output. A lock prevents two runs on one state
at the same time.

If the kept rows go to a stream, they are written before the end: see `saves.py`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from twinsieve.pipeline.dedup import Wanted
from twinsieve.pipeline.dedup.inputs import (
    Inputs,
    Prepared,
    content_digest,
    least_rows,
    own_thread,
    refuse_empty_replacement,
)
from twinsieve.pipeline.dedup.jumps import Jumps
from twinsieve.pipeline.dedup.kept import KeptByInput, KeptRows
from twinsieve.pipeline.dedup.leaders import LeaderBook
from twinsieve.pipeline.dedup.progress import first_progress
from twinsieve.pipeline.dedup.report import Examples, Reaches, Summary
from twinsieve.pipeline.dedup.saves import SAVE_EVERY_S, Saves, Stop
from twinsieve.pipeline.dedup.second_pass import SecondPass, refuse_keep
from twinsieve.pipeline.dedup.sinks import DeadLetters, DroppedRows, Judged, KeptApart, Sink, entered
from twinsieve.pipeline.files import FileError
from twinsieve.pipeline.files.format import Format, RowChunk
from twinsieve.pipeline.files.input_reader import InputReader
from twinsieve.pipeline.files.rows import FIRST_ROWS
from twinsieve.pipeline.files.source import StoppedError
from twinsieve.pipeline.files.unreadable_rows import (
    ALLOWED_SHARE,
    TextField,
    all_unreadable_line,
    first_unreadable,
    first_without_text,
    no_text_line,
    strict_line,
    too_many_line,
)
from twinsieve.pipeline.files.write import FileUse, Output, place_all, refuse_clashes
from twinsieve.pipeline.messages.reader import load_kernels, make_batch
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.settings.proposal import proposal_for
from twinsieve.pipeline.settings.show import deciding_settings, near_in_force
from twinsieve.pipeline.settings.stage_config import judging_scheme_of, sieve_config
from twinsieve.stages.contract import Batch, SieveStats, Window
from twinsieve.stages.errors import UsageError, shown
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.near_window import segment_count

if TYPE_CHECKING:
    from twinsieve.pipeline.dedup.saved_run import RunState


class Job(NamedTuple):
    """What a run reads and writes.

    inputs: paths or addresses, `-` for stdin; format: theirs; wanted: the requested outputs
    settings_file: name of the settings file, which is read
    max_unreadable: share of unreadable rows, 0 to 1, above which the run fails; None: ALLOWED_SHARE, which
        applies only if the unreadable rows are written nowhere
    outputs: if `-o` is a folder, the output of each input; else empty
    """

    inputs: list[str]
    format: Format
    wanted: Wanted
    settings_file: str | None = None
    max_unreadable: float | None = None
    outputs: Sequence[str] = ()


OnProgress = Callable[[int, int, float | None], None]
"""Called after every chunk with the number of rows so far, the number of dropped rows so far, and the share
of input bytes read so far (None if unknown)."""


_WRITTEN_AT_THE_END = ("--clusters", "--stats")
_TELLING_ROWS = 10_000
"""Rows that were pushed out of the index are counted from this many kept rows on: that reads all of it."""


class _Outputs(NamedTuple):
    """The opened outputs of a run.

    sinks: receive the judged chunks; the first one is the sink of kept rows
    kept: writes the kept rows; it is the first sink, or a `SecondPass` is the first sink and uses it
    files: outputs by flag, in the order in which they get their names
    state: output of the state's manifest, None without a state; book: the leader book, None if not needed
    may_save_between_chunks: True if kept rows are visible at once, so the state may be saved during the run
    """

    sinks: list[Sink]
    kept: KeptRows | KeptByInput
    files: dict[str, Output]
    state: Output | None
    book: LeaderBook | None
    may_save_between_chunks: bool


class Dedup:
    """One run over files. It is a context manager that holds the lock of the state.

    arrival_ms: time of this run, ms since 1970; later times of messages are limited to this time plus
        `time.max_ahead`
    repeated: names of inputs that an earlier run on the state has read
    summary: the counts of the run
    raises: UsageError if an output is also an input or another output; FileError, also if another run uses
        the state; StateError
    """

    def __init__(self, job: Job, settings: Settings, arrival_ms: int) -> None:
        wanted = job.wanted
        if wanted.mark and job.format.no_marks is not None:
            raise UsageError(f"--mark: {job.format.no_marks}")
        refuse_keep(wanted, job.inputs)
        places = []
        if wanted.state is not None:
            # Only now, because most runs have no state, and a start should not wait for what writes one.
            from twinsieve.pipeline.dedup.saved_run import run_state, state_place

            places = [state_place(wanted.state)]
        refuse_clashes(
            job.inputs,
            self._named_outputs(job),
            settings=settings,
            config=job.settings_file,
            state=[*places, *(FileUse("-o", name) for name in job.outputs)],
        )
        self._job = job
        self._arrival_ms = arrival_ms
        self._scratch = settings.state.scratch
        self._scheme = judging_scheme_of(settings)
        config = sieve_config(settings, self._scheme.scheme_id)
        if not settings.near.threads:
            # The other processors read, decode and make fingerprints meanwhile.
            config = replace(config, near=replace(config.near, threads=max(1, config.near.threads // 2)))
        if wanted.shows_apart:
            config = replace(config, near=replace(config.near, details=True))
        with ExitStack() as undo:
            self._saved: RunState | None = None
            self._state = first_progress(settings)
            if wanted.state is not None:
                self._saved = undo.enter_context(run_state(wanted.state, self._state, config))
                self._state, self._sieve = self._saved.progress, self._saved.sieve
            else:
                self._sieve = BatchSieve(config)
            digested = job.inputs if wanted.state is not None else []
            self._digests = [content_digest(name) for name in digested]
            self.repeated = self._repeated()
            self._keeps_book = wanted.shows_leaders or bool(self._state.leaders)
            self._reader = InputReader(
                settings,
                job.format,
                whole=True,
                marks=wanted.mark,
                ids_shown=self._keeps_book,
                apart=bool(job.outputs),
            )
            self._jumps = Jumps(config, self._sieve.stats(), self._state.waiting)
            self._reaches = Reaches(config, self._sieve.stats())
            self.summary = Summary(
                examples=Examples(wanted.examples),
                windows=self._reaches.by_stage,
                near=near_in_force(settings.near),
                inputs=[shown(name) for name in job.inputs],
                settings=deciding_settings(settings),
            )
            self._inputs = Inputs(job.inputs, self._reader, self._scheme, self.summary.seconds)
            self._streams = False
            self._proposal = proposal_for(settings)
            self._text_field = TextField(is_expected=settings.input.expect_text)
            self._fails_without_text = settings.input.null_text == "fail"
            self._began = 0.0
            self._least_rows = least_rows(job.inputs)
            self._expecting = self._take_memory(undo)
            self._resources = undo.pop_all()

    def _take_memory(self, threads: ExitStack) -> Future[None] | None:
        """Begin to take memory for the rows of the inputs, on another thread, while kernels are loaded."""
        thread = own_thread(threads)
        return None if thread is None else thread.submit(self._sieve.expect, self._least_rows)

    def _seal_segments(self, stack: ExitStack, warn: Callable[[str], None]) -> None:
        """Let the sealed segments of a large near window lie in files: of the state, or without a name."""
        if self._saved is not None:
            self._saved.seal_segments(warn)
            return
        if segment_count(self._sieve.config) == 1:
            return
        from twinsieve.pipeline.saved.segment_files import ScratchSegments

        scratch = ScratchSegments(self._scheme.scheme_id, self._scratch, warn)
        stack.callback(scratch.close)
        self._sieve.seal_into(scratch.write)

    @staticmethod
    def _named_outputs(job: Job) -> dict[str, str]:
        """Name of every output that is a single file, by flag."""
        return {flag: name for flag, name in job.wanted.outputs().items() if flag != "-o" or not job.outputs}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._resources.close()

    def _repeated(self) -> list[str]:
        """Names of inputs that an earlier run has read. raises: UsageError if an output would be replaced"""
        wanted, earlier = self._job.wanted, set(self._state.inputs)
        repeated = [
            name for name, digest in zip(self._job.inputs, self._digests, strict=False) if digest in earlier
        ]
        if wanted.state is not None:
            output_of = dict(zip(self._job.inputs, self._job.outputs, strict=False))
            for name in repeated:
                outputs = {"-o": output_of.get(name, wanted.output), "--duplicates": wanted.duplicates}
                refuse_empty_replacement(name, wanted.state, outputs)
        return repeated

    def warm_up(self) -> None:
        """Compile or load the kernels, so that this time does not count for the first rows.

        For few rows only those that all runs need, and none if the rows are there: loading them takes less
        time than a first judgement.
        """
        few = self._least_rows <= FIRST_ROWS
        if few and all(map(os.path.isfile, self._job.inputs)):
            return
        config = self._sieve.config
        small = Window(min(config.near.window.messages, 64))
        tiny = replace(
            config, exact=replace(config.exact, window=small), near=replace(config.near, window=small)
        )
        texts = ["武汉加油，中国加油！" * 8, "武汉加油，中国加油！" * 8 + "。", "加油", "一个普通的句子" * 99]
        bodies, fingerprints = self._scheme.read(texts, None if config.key_is_text else texts)
        batch = replace(Batch.blank(len(texts)), bodies=bodies, fingerprints=fingerprints)
        sieve = BatchSieve(tiny)
        sieve.judge(batch)
        if few:
            return
        # Now they are compared with messages that were kept before.
        sieve.judge(batch)
        load_kernels()

    def interrupted(self) -> str:
        """One line that says what an interrupted run has written."""
        wanted = self._job.wanted
        if not self._streams:
            return "interrupted; no output was put in place"
        shown = "stdout" if wanted.output == "-" else wanted.output
        rows = f"interrupted; rows that came out on {shown} stay there"
        if self._inputs.saves is not None:
            return f"{rows}, those since the last save of {wanted.state} come out again"
        return f"{rows}, nothing else was put in place"

    @property
    def stopped(self) -> StoppedError | None:
        """The stop request that ended the run, with its state saved, before the end of the input; or None."""
        return self._inputs.stopped

    def stopped_line(self, stopped: StoppedError) -> str:
        """One line about a run that saved its state and stopped on request."""
        stopped_early = (
            f"stopped before the end of the input; all rows that came out are in {self._job.wanted.state}"
        )
        lost = (
            f"; {stopped.unfinished:,} bytes of a row without its end are lost" if stopped.unfinished else ""
        )
        return stopped_early + lost

    @property
    def choices(self) -> list[str]:
        """Lines about how the inputs were read, where they themselves showed it (`Reader.choices`)."""
        return self._reader.choices()

    @property
    def reach_ms(self) -> int | None:
        """How far ahead a row may be and move the windows alone (`Jumps.reach_ms`)."""
        return self._jumps.reach_ms

    def sieve_stats(self) -> SieveStats:
        """How full the sieve is."""
        return self._sieve.stats()

    def run(
        self,
        progress: OnProgress | None = None,
        before_placing: Callable[[], None] = lambda: None,
        stop: Stop | None = None,
        save_every_s: float = SAVE_EVERY_S,
        warn: Callable[[str], None] = lambda _line: None,
    ) -> Summary:
        """The counts of the run; all outputs are complete and have their names when this returns.

        progress: called after every chunk
        before_placing: called when everything is on disk, before the outputs get their names
        stop: ends the run before the end of its input, with its state saved (see `stopped`); only possible if
            kept rows go to a stream and there is a state
        save_every_s: how often such a run saves its state
        warn: called immediately with a line about a possible mistake
        raises: UsageError if, judging by the first chunk, no row has a field of `scope` or `exact.fields`;
            FileError, also if too few rows can be read. After an error no output has its name, unless
            renaming failed; then the error lists the renamed outputs
        """
        self._began = perf_counter()
        sizes = [self._reader.size_of(name) for name in self._job.inputs]
        self._warn_of_order(warn)
        if self._sieve.other_rules:
            warn(
                f"{self._job.wanted.state}: earlier rows were judged by other rules (near settings, lists of "
                f"words or program version); from row {self._state.rows + 1} on, those of this run hold"
            )
        with ExitStack() as stack:
            self._seal_segments(stack, warn)
            outputs = self._open_outputs(stack)
            if stop is not None and outputs.may_save_between_chunks:
                self._inputs.saves = Saves(
                    stop, lambda: self._save(outputs), lambda: self._state.rows, save_every_s
                )
                stop.taken = True
            for prepared, share in stack.enter_context(closing(self._inputs.chunks(sizes, warn))):
                self._refuse_rows(prepared.chunk)
                if prepared.chunk.doubt is not None:
                    warn(f"{prepared.chunk.source}: {prepared.chunk.doubt}")
                judged = self._judge(prepared)
                self._write(judged, outputs)
                if progress is not None:
                    progress(self.summary.rows, self.summary.dropped, share)
            if self.stopped is None:
                self._refuse_all_rows()
            self._finish(outputs, before_placing)
        return self.summary

    def _warn_of_order(self, warn: Callable[[str], None]) -> None:
        others = list(self._reader.other_order)
        if others:
            also = f" and {len(others) - 1:,} more inputs" if len(others) > 1 else ""
            warn(
                f"{others[0]}{also}: columns in another order than in the first input; "
                "rows come out in its order"
            )

    def _open_outputs(self, stack: ExitStack) -> _Outputs:
        """Open all outputs and make their sinks; `stack` deletes the outputs that do not get their names."""
        job, wanted, reader = self._job, self._job.wanted, self._reader
        named = self._named_outputs(job)
        files = {flag: stack.enter_context(Output(name)) for flag, name in named.items()}
        state = stack.enter_context(self._saved.output()) if self._saved is not None else None
        kept_rows: KeptRows | KeptByInput
        if job.outputs:
            kept_rows = KeptByInput(job.outputs, reader, mark=wanted.mark)
        else:
            kept_rows = KeptRows(files["-o"], reader, mark=wanted.mark)
        stack.callback(kept_rows.close)
        second = None
        if wanted.keep != "first":
            second = SecondPass(
                wanted.keep, job.inputs, self._state.rows + 1, reader, kept_rows, self.summary
            )
        sinks: list[Sink] = [second or kept_rows]
        self._inputs.ended = (second or kept_rows).end_input
        book = None
        if self._keeps_book:
            exact, near = self._sieve.config.exact.window, self._sieve.config.near.window
            folder = Path(self._saved.folder.path) if self._saved is not None else None
            book = LeaderBook(max(exact.messages, near.messages), folder, self._state.leaders)
            stack.callback(book.close)
            kept = None if second is None else second.kept
            sinks.append(DroppedRows(self.summary, files, kept=kept))
        if "--kept-apart" in files:
            sinks.append(KeptApart(self.summary, files["--kept-apart"], self._scheme, self._sieve.config))
        if "--dead-letter" in files:
            sinks.append(DeadLetters(files["--dead-letter"], reader.codec))
        self._streams = not job.outputs and files["-o"].is_stream
        # A state must not contain rows that are not visible in the output yet. The rows of a second pass are
        # visible only after all rows are judged.
        may_save = state is not None and self._streams and job.format.streams and second is None
        return _Outputs(sinks, kept_rows, files, state, book, may_save)

    def _refuse_rows(self, chunk: RowChunk) -> None:
        """Note the first unreadable row of the run. raises: FileError for a row that fails the run"""
        summary = self.summary
        self._fail_with(self._text_field.missed(self._inputs.done))
        self._text_field.look(chunk)
        summary.first_unreadable = summary.first_unreadable or first_unreadable(chunk)
        if summary.first_unreadable is not None and self._job.max_unreadable == 0:
            self._fail_with(strict_line(summary.first_unreadable))
        if self._fails_without_text and (first := first_without_text(chunk)) is not None:
            self._fail_with(no_text_line(first))

    def _refuse_all_rows(self) -> None:
        """Fail at the end of a run in which too few rows could be read. raises: FileError"""
        limit, wanted, summary = self._job.max_unreadable, self._job.wanted, self.summary
        first, unreadable = summary.first_unreadable, summary.unreadable
        if limit is None and wanted.dead_letter is None and not wanted.mark:
            limit = ALLOWED_SHARE
        if first is not None and unreadable.total() == summary.rows:
            self._fail_with(all_unreadable_line(unreadable, first))
        self._fail_with(self._text_field.missed(None))
        if first is not None and limit is not None:
            self._fail_with(too_many_line(unreadable, summary.rows, first, limit))

    def _fail_with(self, line: str | None) -> None:
        """Fail with this error text, unless it is None. raises: FileError

        The state is saved first if rows were already written to a stream.
        """
        if line is None:
            return
        if self._inputs.saves is not None:
            self._inputs.saves.save()
        raise FileError(line)

    def _judge(self, prepared: Prepared) -> Judged:
        chunk, summary = prepared.chunk, self.summary
        columns = chunk.columns
        if self._proposal is not None:
            self._proposal.look(columns.texts)
        if self._expecting is not None:
            self._expecting.result()
        started = perf_counter()
        first = self._state.rows + 1
        positions = np.array(columns.rows, dtype=np.int64) + first
        batch = make_batch(columns, prepared.bodies, prepared.fingerprints, positions, self._arrival_ms)
        batch, jumps = self._jumps.over(batch)
        verdicts = self._sieve.judge(batch)
        self._reaches.count(batch.stream_ms, verdicts)
        summary.seconds["judge"] += perf_counter() - started
        summary.count(chunk, verdicts)
        summary.count_jumps(chunk, batch, jumps)
        return Judged(self._inputs.done, chunk, verdicts, first)

    def _write(self, judged: Judged, outputs: _Outputs) -> None:
        started = perf_counter()
        if outputs.book is not None:
            judged = entered(judged, outputs.book, apart=self._job.wanted.shows_apart)
        for sink in outputs.sinks:
            sink.take(judged)
        self._state.rows += len(judged.chunk.rows)
        self.summary.seconds["write"] += perf_counter() - started

    def _save(self, outputs: _Outputs) -> None:
        """Put the outputs of all rows judged so far on disk, with their names, and then the state."""
        for flag, output in outputs.files.items():
            if flag not in _WRITTEN_AT_THE_END:
                output.publish()
        if self._saved is not None:
            with self._saved.output() as state:
                self._write_state(self._saved, state, outputs.book)
                state.place()
            self._saved.written()
        if outputs.book is not None:
            outputs.book.tidy()

    def _finish(self, outputs: _Outputs, before_placing: Callable[[], None]) -> None:
        """End all sinks and put everything on disk; then give all outputs their names, the state last."""
        summary = self.summary
        if self._proposal is not None:
            summary.proposal = self._proposal.end() or ""
        started = perf_counter()
        stats = outputs.files.get("--stats")
        with ThreadPoolExecutor(1) as thread:
            counting = thread.submit(self._pushed_out)
            # In reverse order, so that clusters are written before the second pass: clusters need the chosen
            # rows, and the second pass frees them when it writes.
            for sink in reversed(outputs.sinks):
                sink.end()
            for output in outputs.files.values():
                if output is not stats:
                    output.sync()
            summary.seconds["write"] += perf_counter() - started
            summary.pushed_out = counting.result()
        if self._saved is not None and outputs.state is not None:
            self._write_state(self._saved, outputs.state, outputs.book)
        summary.ran_s = perf_counter() - self._began - summary.seconds["wait"]
        if stats is not None:
            stats.write(summary.as_json(self._sieve.stats()))
            stats.sync()
        before_placing()
        place_all([*outputs.kept.finished, *outputs.files.values(), *filter(None, [outputs.state])])
        if self._saved is not None:
            self._saved.written()
        if outputs.book is not None:
            outputs.book.tidy()

    def _pushed_out(self) -> int:
        """Number of kept rows that the index hardly finds any more, as far as it tells something."""
        if self._sieve.stats().held < _TELLING_ROWS:
            return 0
        return self._sieve.pushed_out(self._sieve.config.layout.bands)

    def _write_state(self, saved: RunState, output: Output, book: LeaderBook | None) -> None:
        started = perf_counter()
        self._state.leaders = book.marks() if book is not None else []
        self._state.waiting = self._jumps.waiting
        self._state.remember(self._digests[: self._inputs.done])
        saved.write(output)
        self.summary.seconds["state"] += perf_counter() - started
