"""Implements `--keep last` and `--keep longest` with two passes over the inputs.

The first pass judges all rows and chooses one row of each cluster; the second pass reads the files again and
writes the chosen rows. The verdicts do not depend on --keep: rows are always compared with the first row of a
cluster. Because the files are read twice, memory holds only which rows are chosen, not their bytes.
"""

from __future__ import annotations

import os
from array import array
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from twinsieve.pipeline.dedup import Keep, Wanted
from twinsieve.pipeline.dedup.kept import KeptByInput, KeptRows
from twinsieve.pipeline.dedup.sinks import Judged
from twinsieve.pipeline.files import FileError
from twinsieve.pipeline.files.messages import InputReader
from twinsieve.pipeline.files.source import STDIN, InputSource, is_stream
from twinsieve.stages.contract import Kind
from twinsieve.stages.errors import UsageError, is_address, shown

_NONE = -1
_BLOCK_ROWS = 1 << 20


def refuse_keep(wanted: Wanted, inputs: list[str]) -> None:
    """Refuse --keep last or longest if a flag contradicts it, or if an input cannot be read twice.

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
            "(--clusters names the kept row)"
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
    reader: reads the inputs again; kept_rows: writes the chosen rows
    raises: FileError for an input that does not exist any more
    """

    def __init__(
        self,
        keep: Keep,
        inputs: list[str],
        first: int,
        reader: InputReader,
        kept_rows: KeptRows | KeptByInput,
    ) -> None:
        self._reader = reader
        self._kept_rows = kept_rows
        self._longest = keep == "longest"
        self._inputs = inputs
        self._first = first
        self._stamps = [_stamp(name) for name in inputs]
        self._counts = [0] * len(inputs)
        self._chosen = array("q")
        """For each row: if it is unique or has no text, the row that is written for it; else _NONE."""
        self._lengths = array("i")
        """For each row, only with `longest`: number of characters of the row that is written for it."""

    def take(self, judged: Judged) -> None:
        chunk, verdicts = judged.chunk, judged.verdicts
        start, count = len(self._chosen), len(chunk.rows.rows)
        self._counts[judged.input] += count
        rows = np.array(chunk.columns.rows, np.int64)
        texts = chunk.columns.texts
        is_unique = verdicts.kinds == Kind.UNIQUE
        unique = rows[is_unique]
        chosen = np.full(count, _NONE, np.int64)
        chosen[unique] = start + unique
        alone = judged.without_text()
        chosen[alone] = start + alone
        self._chosen.frombytes(chosen.tobytes())
        if self._longest:
            lengths = np.zeros(count, np.int32)
            lengths[unique] = [len(texts[index]) for index in np.flatnonzero(is_unique).tolist()]
            self._lengths.frombytes(lengths.tobytes())
        for index in np.flatnonzero(~is_unique).tolist():
            leader = int(verdicts.leaders[index]) - self._first
            # Below 0 the leader is from an earlier run, which has written it, or the verdict has no leader.
            if leader >= 0 and self._is_better(leader, len(texts[index])):
                self._chosen[leader] = start + int(rows[index])

    def _is_better(self, leader: int, length: int) -> bool:
        if not self._longest:
            return True
        if length <= self._lengths[leader]:
            return False
        self._lengths[leader] = length
        return True

    def kept(self, leader: int) -> int:
        """The position of the row that is written for the cluster of this leader."""
        row = leader - self._first
        return leader if row < 0 else self._first + self._chosen[row]

    def end_input(self) -> None:
        """Does nothing, because rows are written only after all inputs were judged."""

    def end(self) -> None:
        """Write the chosen rows in the order of the inputs; do not call `kept` afterwards.

        raises: FileError if an input has changed since the first pass
        """
        chosen = self.choose()
        start = 0
        for name, stamp, count in zip(self._inputs, self._stamps, self._counts, strict=True):
            row = start
            with InputSource(name) as source:
                for chunk in self._reader.rows_alone(source):
                    stop = row + len(chunk.rows.rows)
                    self._kept_rows.write(chunk, np.flatnonzero(chosen[row:stop]).tolist())
                    row = stop
            if row != start + count or _stamp(name) != stamp:
                raise FileError(
                    f"{name}: was changed while it was read, and --keep reads it twice; run again"
                )
            start = row
            self._kept_rows.end_input()
        self._kept_rows.end()

    def choose(self) -> NDArray[np.bool_]:
        """bool[rows]: which rows are written. Frees the memory of the first pass."""
        chosen, self._chosen, self._lengths = self._chosen, array("q"), array("i")
        mask = np.zeros(len(chosen), np.bool_)
        # Work in blocks: an index array of all rows would need 8 more bytes a row.
        for start in range(0, len(mask), _BLOCK_ROWS):
            rows = np.array(chosen[start : start + _BLOCK_ROWS], np.int64)
            mask[rows[rows != _NONE]] = True
        return mask


def _stamp(name: str) -> tuple[int, int]:
    """Size in bytes and modification time in ns, which show whether a file has changed. raises: FileError"""
    try:
        status = os.stat(name)
    except OSError as error:
        raise FileError(f"{name}: cannot be read: {error.strerror}") from error
    return status.st_size, status.st_mtime_ns
