"""Writes the kept rows, in the format of the inputs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress

from twinsieve.pipeline.dedup.leaders import Leader
from twinsieve.pipeline.dedup.sinks import Judged, flag_names
from twinsieve.pipeline.files import FileError
from twinsieve.pipeline.files.format import RowChunk, Writer
from twinsieve.pipeline.files.input_reader import InputReader
from twinsieve.pipeline.files.marks import RowMark
from twinsieve.pipeline.files.write import Output
from twinsieve.pipeline.messages.verdict_values import differing_words, likeness_of
from twinsieve.stages.contract import NO_LEADER, Kind
from twinsieve.stages.differ.rules import Rule


def marks_of(judged: Judged) -> list[RowMark | None]:
    """The mark (verdict) that is to be added to each row of the chunk; None for a blank row."""
    chunk, verdicts = judged.chunk, judged.verdicts
    source, lines = chunk.source, chunk.lines().tolist()
    marks: list[RowMark | None] = [None] * len(chunk.rows)
    for bad in chunk.columns.unreadable:
        marks[bad.row] = RowMark("unreadable", reason=str(bad.reason), source=source, line=lines[bad.row])
    for bad in chunk.columns.no_text:
        marks[bad.row] = RowMark("no_text", source=source, line=lines[bad.row])
    kinds, leaders, flags = verdicts.kinds.tolist(), verdicts.leaders.tolist(), verdicts.flags.tolist()
    reasons, apart = verdicts.reasons.tolist(), verdicts.apart_from.tolist()
    for index, row in enumerate(chunk.columns.rows):
        mark = RowMark(
            _VERDICTS[kinds[index]],
            flags=flag_names(flags[index]) if flags[index] else (),
            source=source,
            line=lines[row],
        )
        if kinds[index] != Kind.UNIQUE:
            number = None if leaders[index] == NO_LEADER else leaders[index]
            leader = judged.leaders.get(leaders[index], _UNKNOWN)
            mark = mark._replace(
                leader=number,
                leader_id=leader.id,
                leader_source=leader.source,
                leader_line=leader.line,
                cluster=number,
            )
            mark = _with_likeness(mark, *likeness_of(verdicts, index))
        else:
            mark = mark._replace(cluster=judged.first + row)
            if reasons[index]:
                earlier, later = differing_words(verdicts, index) or (None, None)
                mark = mark._replace(
                    reason=Rule(reasons[index]).words,
                    apart_from=apart[index],
                    apart_from_id=judged.leaders.get(apart[index], _UNKNOWN).id,
                    says=later,
                    apart_from_says=earlier,
                )
        marks[row] = mark
    return marks


def _with_likeness(mark: RowMark, name: str, likeness: float) -> RowMark:
    return RowMark(**(mark._asdict() | {name: likeness}))


_VERDICTS = {Kind.UNIQUE: "unique", Kind.EXACT: "exact", Kind.NEAR: "near"}
_UNKNOWN = Leader(None, "")


class KeptRows:
    """A sink that writes the kept rows of chunks to one output.

    The writer comes from the reader of the inputs when the first row is written, or at the end: only then the
    reader knows what the first input is like.

    mark: write all rows, with marks; `reader` expects that
    """

    def __init__(self, output: Output, reader: InputReader, *, mark: bool) -> None:
        self._output = output
        self._mark = mark
        self._reader = reader
        self.finished: list[Output] = []
        """Always empty; `KeptByInput` lists its own outputs here, but this output belongs to the caller."""
        self._opened: Writer | None = None

    def take(self, judged: Judged) -> None:
        if self._mark:
            self._writer().write_marked(judged.chunk, marks_of(judged))
        else:
            self.write(judged.chunk, judged.kept().tolist())

    def write(self, chunk: RowChunk, kept: list[int]) -> None:
        """Append the rows of a chunk with these indices (ascending)."""
        self._writer().write(chunk, kept)

    def end_input(self) -> None:
        """Does nothing: the rows of the next input are written to the same output."""

    def end(self) -> None:
        """Write the end of the output; without any rows also its beginning."""
        self._writer().end()

    def close(self) -> None:
        """Stop writing, without the end of the output."""
        if self._opened is not None:
            self._opened.close()

    def _writer(self) -> Writer:
        if self._opened is None:
            self._opened = self._reader.writer(self._output)
        return self._opened


class KeptByInput:
    """A sink that writes the kept rows of each input to its own output, in the format of that input.

    outputs: name of the output of each input
    reader: must treat the inputs as independent (`apart`)
    mark: as in `KeptRows`
    finished: outputs of finished inputs: their content is on disk, but they do not have their names yet
    raises: FileError if an output or its folder cannot be made
    """

    def __init__(self, outputs: Sequence[str], reader: InputReader, *, mark: bool) -> None:
        self._outputs = outputs
        self._reader = reader
        self._mark = mark
        self._open: tuple[Output, KeptRows] | None = None
        self.finished: list[Output] = []
        self._new_folders: list[str] = []
        try:
            for folder in dict.fromkeys(map(os.path.dirname, outputs)):
                self._make(folder)
        except FileError:
            self.close()
            raise
        for name in outputs:
            if os.path.isdir(name):
                self.close()
                raise FileError(f"{name}: cannot be written: is a directory")

    def _make(self, folder: str) -> None:
        missing = []
        while folder and not os.path.isdir(folder):
            missing.append(folder)
            folder = os.path.dirname(folder)
        for name in reversed(missing):
            try:
                os.mkdir(name)
            except OSError as error:
                raise FileError(f"{name}: the folder cannot be made: {error.strerror}") from error
            self._new_folders.append(name)

    def _current(self) -> KeptRows:
        if self._open is None:
            output = Output(self._outputs[len(self.finished)])
            self._open = output, KeptRows(output, self._reader, mark=self._mark)
        return self._open[1]

    def take(self, judged: Judged) -> None:
        self._current().take(judged)

    def write(self, chunk: RowChunk, kept: list[int]) -> None:
        """Append the rows of a chunk of the current input, with these indices (ascending)."""
        self._current().write(chunk, kept)

    def end_input(self) -> None:
        """Finish the output of the current input; later rows belong to the next input."""
        self._current().end()
        assert self._open is not None, "it was opened just now"
        output, rows = self._open
        rows.close()
        output.sync()
        # Close the descriptor, because thousands of outputs would otherwise keep thousands of them open.
        output.rest()
        self.finished.append(output)
        self._open = None

    def end(self) -> None:
        """Does nothing, because `end_input` has finished every output."""

    def close(self) -> None:
        """Delete outputs that do not have their names yet, and the empty folders that were made for them."""
        if self._open is not None:
            self._open[1].close()
            self.finished.append(self._open[0])
            self._open = None
        for output in self.finished:
            output.discard()
        for folder in reversed(self._new_folders):
            with suppress(OSError):
                os.rmdir(folder)
