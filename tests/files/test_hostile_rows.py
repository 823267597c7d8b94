"""Rows made to be slow: what it takes to cut and read one grows as the row does, and little is held beside it."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator

import orjson
import pytest

from tests.call_count import calls_made
from twinsieve.pipeline.files.formats.json_documents import holds_lines, one_line, split_documents
from twinsieve.pipeline.messages.spelling import written_at

_BLOCK = 1 << 20
_ROW_BYTES = 4 << 20
_READ_BYTES = 5 << 18
"""More than a block, so that a row is cut out of several."""

_HOSTILE = {
    "escaped quotes": lambda size: b'{"a": 1.50, "t": "' + rb"\"" * (size // 2) + b'"}',
    "escaped backslashes": lambda size: b'{"a": 1.50, "t": "' + rb"\\" * (size // 2) + b'"}',
    "escaped letters": lambda size: b'{"a": 1.50, "t": "' + rb"\u4e2d" * (size // 6) + b'"}',
    "a long text": lambda size: b'{"a": 1.50, "t": "' + b"x" * size + b'"}',
    "empty texts": lambda size: b'{"a": 1.50, "t": [' + b'"",' * (size // 3) + b"0]}",
    "brackets in a text": lambda size: b'{"a": 1.50, "t": "' + b"[{" * (size // 2) + b'"}',
    "brackets": lambda size: b'{"a": 1.50, "t": [' + b"[[]]," * (size // 5) + b"0]}",
    "blanks": lambda size: b'{"a": 1.50,\n "t":' + b" " * size + b"0}",
    "line breaks": lambda size: b'{"a": 1.50,\n "t":' + b"\r\n" * (size // 2) + b"0}",
    "lines": lambda size: b'{"a": 1.50,\n "t": [' + b"1 ,\n" * (size // 4) + b"0]}",
    "digits": lambda size: b'{"a": 1.50,\n "t": ' + b"1" * 9 + b"." + b"1" * size + b"}",
}
"""Documents of about that many bytes."""
_KINDS = pytest.mark.parametrize("make", _HOSTILE.values(), ids=list(_HOSTILE))
_Make = Callable[[int], bytes]


def _blocks(content: bytes, size: int = _BLOCK) -> Iterator[bytes]:
    return (content[at : at + size] for at in range(0, len(content), size))


def _read(document: bytes, block: int = _BLOCK) -> None:
    """The row is cut out of an array, its lines are joined, and the spelling of a member is found."""
    content = b"[\n" + document + b",\n 7]"
    cut = [row for rows in split_documents(_blocks(content, block), len(content), "f") for row in rows.rows]
    assert cut == [document, b"7"]
    line = one_line(document)
    assert b"\n" not in line
    assert written_at(line, ("a",)) == b"1.50"
    assert holds_lines(document) == (b"\n" not in document)


@_KINDS
def test_a_row_of_twice_the_size_takes_twice_the_calls_at_most(make: _Make) -> None:
    small, large = make(1 << 13), make(1 << 14)
    once, twice = calls_made(lambda: _read(small)), calls_made(lambda: _read(large))
    assert twice <= 2 * once


@_KINDS
def test_a_row_longer_than_a_block_is_read(make: _Make) -> None:
    _read(make(_READ_BYTES))


@_KINDS
def test_little_is_held_beside_a_row(make: _Make) -> None:
    document = make(1 << 18)
    tracemalloc.start()
    _read(document)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # The array, the row cut out of it, its line, and a copy of that without escapes; pieces of the line.
    assert peak < 6 * len(document) + (6 << 20)


@_KINDS
@pytest.mark.parametrize("block", [1, 2, 3, 7])
def test_a_hostile_row_is_the_same_however_its_blocks_fall(make: _Make, block: int) -> None:
    document = make(200)
    _read(document, block)
    assert orjson.loads(one_line(document)) == orjson.loads(document)


def test_a_text_without_an_end_is_given_up_with_its_file() -> None:
    """Each block is looked at once, not once for each text that may begin in it."""
    content = b'[{"t": "' + rb"\"" * _BLOCK
    with pytest.raises(Exception, match="the document that begins in line 1 has no end"):
        list(split_documents(_blocks(content), _ROW_BYTES, "f"))
