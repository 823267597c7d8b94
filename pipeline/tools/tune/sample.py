"""The messages that settings are tried on: the first rows of the inputs, read once."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from twinsieve.pipeline.files.input_reader import InputReader
from twinsieve.pipeline.files.source import InputSource
from twinsieve.pipeline.messages.fields import id_text
from twinsieve.pipeline.messages.reader import MessageColumns, make_batch
from twinsieve.pipeline.tools.evaluate.row_names import NamedTexts, fits_labels, row_name
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

    def ids(self) -> Iterator[tuple[int, str]]:
        """Position and name of each message, in order: its id, or `row:17` if it has none."""
        for before, columns in self.parts:
            for row, message_id in zip(columns.rows, columns.ids, strict=True):
                position = before + row + 1
                yield position, id_text(message_id) or row_name(position)

    def label_names(self, positions: Iterable[int]) -> dict[int, str]:
        """The name by which a file of labels calls the message at each position.

        This is its id. If it has none, if an earlier message has the same, or if the id does not fit in a
        line of such a file, this is its number: `row:17`.
        """
        wanted = set(positions)
        own = {position: name for position, name in self.ids() if position in wanted}
        shared, first = set(own.values()), dict[str, int]()
        for position, name in self.ids():
            if name in shared:
                first.setdefault(name, position)
        return {
            position: name if fits_labels(name) and first[name] == position else row_name(position)
            for position, name in own.items()
        }

    def text(self, position: int) -> str:
        """The text of the message at this position."""
        before, columns = self.parts[bisect_left(self.parts, position, key=lambda part: part[0]) - 1]
        return columns.texts[bisect_left(columns.rows, position - before - 1)]


def read_sample(
    names: Sequence[str], reader: InputReader, rows: int, named: NamedTexts | None = None
) -> Sample:
    """The first rows of the inputs, in the order in which `dedup` reads them.

    rows: greatest number of rows
    named: gets the texts that labels name; the inputs are read on until it has them all
    raises: FileError if an input cannot be read; UsageError if no row holds a message
    """
    parts: list[tuple[int, MessageColumns]] = []
    read = 0
    for name in names:
        with InputSource(name) as source:
            for chunk in reader.chunks(source):
                if read < rows:
                    parts.append((read, _first_rows(chunk.columns, rows - read)))
                if named is not None:
                    named.add(chunk.columns, read)
                read += len(chunk.rows)
                if read >= rows and (named is None or named.is_complete):
                    break
        if read >= rows and (named is None or named.is_complete):
            break
    sample = Sample(parts, min(read, rows))
    if not read:
        raise UsageError(f"{', '.join(map(shown, names))}: no rows; name an input that holds messages")
    if not len(sample):
        raise UsageError(f"none of {sample.rows:,} rows holds a text; name its field with --text-field")
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
        bad_times=[row for row in columns.bad_times if row < left],
        keyless=[row for row in columns.keyless if row < left],
    )
