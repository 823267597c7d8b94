"""`--keep last` and `longest`: the first pass judges and chooses, the second one writes what was chosen.

Verdicts are those of any run: rows are compared with the first row of a cluster, whichever row comes out. The
files are read twice, byte for byte, so that memory holds only which rows come out.
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
    """Refuse to write another row of each cluster than the first where that cannot be done.

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
    """Chooses rows while the inputs are judged, and writes them while the inputs are read again.

    It takes 9 bytes a row in the first pass, 13 for `longest`, and one byte a row in the second.

    first: position of the first row of this run
    reader, kept_rows: read the inputs again, and write the chosen rows
    raises: FileError for an input that is gone
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
        """By row: of one that is unique, or has no text, the row that comes out for it, else none."""
        self._lengths = array("i")
        """Of `longest`, by row: characters of the row that comes out for it."""

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
            # A leader of an earlier run was written by that run; a verdict without a leader names none.
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
        """The position of the row that comes out for a leader, by the leader's position."""
        row = leader - self._first
        return leader if row < 0 else self._first + self._chosen[row]

    def end_input(self) -> None:
        """Nothing is written before all inputs were judged."""

    def end(self) -> None:
        """Write the chosen rows in the order of the inputs; do not call `kept` afterwards.

        raises: FileError when an input was changed meanwhile
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
        """bool[rows]: which rows come out; all else that is held is given back."""
        chosen, self._chosen, self._lengths = self._chosen, array("q"), array("i")
        mask = np.zeros(len(chosen), np.bool_)
        # In blocks: the indexes of all would take 8 bytes a row more.
        for start in range(0, len(mask), _BLOCK_ROWS):
            rows = np.array(chosen[start : start + _BLOCK_ROWS], np.int64)
            mask[rows[rows != _NONE]] = True
        return mask


def _stamp(name: str) -> tuple[int, int]:
    """Size and time of change. raises: FileError"""
    try:
        status = os.stat(name)
    except OSError as error:
        raise FileError(f"{name}: cannot be read: {error.strerror}") from error
    return status.st_size, status.st_mtime_ns
