"""The messages that settings are tried on: the first rows of the inputs, read once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from twinsieve.pipeline.files.messages import InputReader
from twinsieve.pipeline.files.source import InputSource
from twinsieve.pipeline.messages.reader import MessageColumns, make_batch
from twinsieve.stages.contract import Batch
from twinsieve.stages.errors import UsageError, shown
from twinsieve.stages.judge.scheme import Scheme


@dataclass(frozen=True, slots=True)
class Sample:
    """The first rows of the inputs, without those that cannot be read.

    parts: (number of the row before the first one, messages), in order
    rows: number of rows that were read, with those that cannot be read
    """

    parts: list[tuple[int, MessageColumns]]
    rows: int

    def __len__(self) -> int:
        return sum(len(columns) for _, columns in self.parts)

    def batches(self, scheme: Scheme, arrivals_ms: int) -> list[Batch]:
        """The messages with fingerprints, ready to be judged; positions are row numbers from 1.

        arrivals_ms: time at which the messages arrive, ms since 1970
        """
        return [
            make_batch(
                columns,
                *scheme.read(columns.texts, columns.keys),
                np.array(columns.rows, np.int64) + (before + 1),
                arrivals_ms,
            )
            for before, columns in self.parts
        ]


def read_sample(names: Sequence[str], reader: InputReader, rows: int) -> Sample:
    """The first rows of the inputs, in the order in which `dedup` reads them.

    rows: greatest number of rows
    raises: FileError if an input cannot be read; UsageError if no row holds a message
    """
    parts: list[tuple[int, MessageColumns]] = []
    read = 0
    for name in names:
        if read >= rows:
            break
        with InputSource(name) as source:
            for chunk in reader.chunks(source):
                count = min(len(chunk.rows.rows), rows - read)
                parts.append((read, _first_rows(chunk.columns, count)))
                read += count
                if read >= rows:
                    break
    sample = Sample(parts, read)
    if not read:
        raise UsageError(f"{', '.join(map(shown, names))}: no rows; name an input that holds messages")
    if not len(sample):
        raise UsageError(f"none of {read:,} rows holds a text; name its field with --text-field")
    return sample


def _first_rows(columns: MessageColumns, count: int) -> MessageColumns:
    """The messages that stand in the first `count` rows."""
    left = int(np.searchsorted(columns.rows, count))
    if left == len(columns):
        return columns
    return replace(
        columns,
        rows=columns.rows[:left],
        texts=columns.texts[:left],
        ids=columns.ids[:left],
        id_hashes=columns.id_hashes[:left],
        times_ms=columns.times_ms[:left],
        scopes=columns.scopes[:left],
        keys=None if columns.keys is None else columns.keys[:left],
    )
