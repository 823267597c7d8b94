"""Blocks of bytes as rows: lines, or CSV records with quoted newlines; none is held beyond its limit."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from twinsieve.pipeline.files_read import StoppedError

_T = TypeVar("_T")

SHOWN_BYTES = 256
"""How much of a row that is too large goes to the dead letter."""


@dataclass(slots=True)
class Rows:
    """Consecutive rows of one input.

    rows: bytes of each without its newline; a carriage return before it is still there. None: too large
    first: number of the first row in its input, from 1 (a CSV header has none)
    line: line that the first row begins in, from 1
    lines_of: lines each row spans, None where every row is one line
    heads: of rows that are too large, their first bytes and their size
    terminated: False when the last row had no newline
    """

    rows: list[bytes | None]
    first: int
    line: int
    lines_of: list[int] | None = None
    heads: dict[int, tuple[bytes, int]] = field(default_factory=dict)
    terminated: bool = True


def shown_bytes(name: str, raw: bytes, codec: str) -> dict[str, str]:
    r"""The bytes of a row as a member of that name: as text of that encoding, or else as base64.

    >>> shown_bytes("row", b"a", "utf-8"), shown_bytes("row", b"\xff", "utf-8")
    ({'row': 'a'}, {'row_base64': '/w=='})
    """
    try:
        return {name: raw.decode(codec)}
    except UnicodeError:
        return {f"{name}_base64": base64.b64encode(raw).decode()}


def split_lines(blocks: Iterator[bytes], max_bytes: int) -> Iterator[Rows]:
    """Every line of the input, in batches of what came in one block."""
    number = 1
    rest = b""
    head, dropped = b"", 0
    for block in _noting(blocks, lambda: len(rest) + dropped):  # noqa: B023 (as they are then)
        parts = block.split(b"\n")
        if len(parts) == 1:
            if dropped or len(rest) + len(block) > max_bytes:
                head = (head + rest + block)[:SHOWN_BYTES]
                dropped += len(rest) + len(block)
                rest = b""
            else:
                rest += block
            continue
        rows: list[bytes | None] = []
        heads: dict[int, tuple[bytes, int]] = {}
        if dropped:
            heads[0] = ((head + parts[0])[:SHOWN_BYTES], dropped + len(parts[0]))
            head, dropped = b"", 0
            rows.append(None)
        else:
            rows.append(rest + parts[0])
        rows += parts[1:-1]
        rest = parts[-1]
        _take_out(rows, heads, max_bytes)
        yield Rows(rows, number, number, heads=heads)
        number += len(rows)
    if dropped:
        yield Rows([None], number, number, heads={0: (head, dropped)}, terminated=False)
    elif rest:
        last: list[bytes | None] = [rest]
        heads = {}
        _take_out(last, heads, max_bytes)
        yield Rows(last, number, number, heads=heads, terminated=False)


def _noting(items: Iterator[_T], unfinished: Callable[[], int]) -> Iterator[_T]:
    """The items; a stop among them is told how many bytes of a row were held."""
    try:
        yield from items
    except StoppedError as stopped:
        stopped.unfinished += unfinished()
        raise


def _take_out(rows: list[bytes | None], heads: dict[int, tuple[bytes, int]], max_bytes: int) -> None:
    if max(map(len, filter(None, rows)), default=0) <= max_bytes:
        return
    for index, row in enumerate(rows):
        if row is not None and len(row) > max_bytes:
            heads[index] = (row[:SHOWN_BYTES], len(row))
            rows[index] = None


def join_records(batches: Iterator[Rows], max_bytes: int, delimiter: bytes = b",") -> Iterator[Rows]:
    """CSV records of these lines: a line with an open quote goes on in the next one.

    A quote opens where a field begins, and nowhere else: `5" pipe` is a field like others. A record that
    outgrows the limit is given up there, and the next line begins a new one, so that a lost quote costs one.
    """
    number = 1
    open_lines: list[bytes] = []
    open_bytes = 0
    quoted = False
    start = 1
    for batch in _noting(batches, lambda: open_bytes):  # noqa: B023 (as it is then)
        rows: list[bytes | None] = []
        lines_of: list[int] = []
        heads: dict[int, tuple[bytes, int]] = {}
        for line, too_large in _with_heads(batch):
            open_lines.append(line)
            open_bytes += too_large or len(line) + 1
            if quoted or b'"' in line:
                quoted = _ends_quoted(line, quoted, delimiter)
            if quoted and not too_large and open_bytes <= max_bytes:
                continue
            record = open_lines[0] if len(open_lines) == 1 else b"\n".join(open_lines)
            if too_large or open_bytes > max_bytes + 1:
                heads[len(rows)] = (record[:SHOWN_BYTES], open_bytes - 1)
                rows.append(None)
            else:
                rows.append(record)
            lines_of.append(len(open_lines))
            open_lines, open_bytes, quoted = [], 0, False
        if rows:
            yield Rows(rows, number, start, lines_of, heads, batch.terminated or bool(open_lines))
            number += len(rows)
            start += sum(lines_of)
        ended = not batch.terminated
    if open_lines:
        yield Rows([b"\n".join(open_lines)], number, start, [len(open_lines)], terminated=not ended)


def _ends_quoted(line: bytes, quoted: bool, delimiter: bytes) -> bool:
    """Whether the line ends inside a quoted field; quoted: whether it began in one."""
    at = 0
    while True:
        if quoted:
            at = line.find(b'"', at)
            if at < 0:
                return True
            at += 1
            if line.startswith(b'"', at):
                at += 1
                continue
            quoted = False
        elif line.startswith(b'"', at):
            quoted = True
            at += 1
            continue
        at = line.find(delimiter, at) + 1
        if not at:
            return False


def _with_heads(batch: Rows) -> Iterator[tuple[bytes, int]]:
    """Each line with 0, or the head of one that is too large with its size and a newline."""
    for index, line in enumerate(batch.rows):
        if line is None:
            head, size = batch.heads[index]
            yield head, size + 1
        else:
            yield line, 0
