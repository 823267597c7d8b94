"""Implements `--keep last`, `--keep longest` and `--keep none` with two passes over the inputs.

The first pass judges all rows and chooses one row of each cluster, or with `none` only rows that are alone;
the second pass reads the files again and writes the chosen rows. The verdicts do not depend on --keep: rows
are always compared with the first row of a cluster. Because the files are read twice, memory holds only which
rows are chosen, not their bytes.
"""

from __future__ import annotations

import os
from typing import get_args

import numpy as np

from twinsieve.pipeline.dedup import Keep, Wanted
from twinsieve.pipeline.dedup.chosen import Chosen
from twinsieve.pipeline.dedup.kept import KeptByInput, KeptRows
from twinsieve.pipeline.dedup.report import Summary
from twinsieve.pipeline.dedup.sinks import Judged
from twinsieve.pipeline.files import FileError
from twinsieve.pipeline.files.input_reader import InputReader
from twinsieve.pipeline.files.source import STDIN, InputSource, is_stream
from twinsieve.stages.errors import UsageError, is_address, shown


def refuse_keep(wanted: Wanted, inputs: list[str]) -> None:
    """Refuse any --keep but first if a flag contradicts it, or if an input cannot be read twice.

    raises: UsageError
    """
    keep = wanted.keep
    assert keep in get_args(Keep)
    if keep == "first":
        return
    flags = {
        "--mark": wanted.mark,
        "--duplicates": wanted.duplicates is not None,
        "--examples": wanted.examples,
    }
    for flag in [flag for flag, given in flags.items() if given]:
        raise UsageError(
            f"--keep {keep}: {flag} names the first row of a cluster; leave one of the two out "
            "(--clusters names all its rows, and the kept one)"
        )
    for name in inputs:
        if is_address(name):
            raise UsageError(f"--keep {keep}: reads its inputs twice; fetch {shown(name)} first")
        if is_stream(name):
            stream = "stdin" if name == STDIN else name
            raise UsageError(
                f"--keep {keep}: reads its inputs twice, {stream} only once; save it as a file first"
            )


class SecondPass:
    """A sink that chooses rows while the inputs are judged, and at the end reads them again and writes them.

    Memory: 9 bytes a row in the first pass (13 for `longest`), and one byte a row in the second.

    inputs: names of the inputs; first: position of the first row of this run
    reader: reads the inputs again; kept_rows: writes the chosen rows; summary: receives a count
    raises: FileError for an input that does not exist any more
    """

    def __init__(
        self,
        keep: Keep,
        inputs: list[str],
        first: int,
        reader: InputReader,
        kept_rows: KeptRows | KeptByInput,
        summary: Summary,
    ) -> None:
        self._reader = reader
        self._summary = summary
        self._kept_rows = kept_rows
        self._inputs = inputs
        self._stamps = [_stamp(name) for name in inputs]
        self._counts = [0] * len(inputs)
        self._chosen = Chosen(keep, first)

    def take(self, judged: Judged) -> None:
        count = len(judged.chunk.rows)
        self._counts[judged.input] += count
        columns, verdicts = judged.chunk.columns, judged.verdicts
        rows = np.array(columns.rows, np.int64)
        self._chosen.take(count, rows, verdicts.kinds, verdicts.leaders, columns.texts, judged.without_text())

    def kept(self, leader: int) -> int | None:
        """The position of the row that is written for the cluster of this leader; None if none of it is."""
        return self._chosen.of(leader)

    def end_input(self) -> None:
        """Does nothing, because rows are written only after all inputs were judged."""

    def end(self) -> None:
        """Write the chosen rows in the order of the inputs; do not call `kept` afterwards.

        raises: FileError if an input has changed since the first pass
        """
        self._summary.left_out = self._chosen.left_out
        chosen = self._chosen.mask()
        start = 0
        for name, stamp, count in zip(self._inputs, self._stamps, self._counts, strict=True):
            row = start
            with InputSource(name) as source:
                for chunk in self._reader.rows_alone(source):
                    stop = row + len(chunk.rows)
                    self._kept_rows.write(chunk, np.flatnonzero(chosen[row:stop]).tolist())
                    row = stop
            if row != start + count or _stamp(name) != stamp:
                raise FileError(
                    f"{name}: was changed while it was read, and --keep reads it twice; run again"
                )
            start = row
            self._kept_rows.end_input()
        self._kept_rows.end()


def _stamp(name: str) -> tuple[int, int]:
    """Size in bytes and modification time in ns, which show whether a file has changed. raises: FileError"""
    try:
        status = os.stat(name)
    except OSError as error:
        raise FileError(f"{name}: cannot be read: {error.strerror}") from error
    return status.st_size, status.st_mtime_ns
