"""Keeps values exactly as their JSON row has them, because decoding rounds numbers and loses the spelling.

orjson decodes every message; only if a used field holds a float, a list, an object or a zero, its bytes are
looked up in the row. msgspec's `Raw` would give the bytes of every field, and takes 1.53 µs a post where
orjson takes 1.47 (4.3 against 2.1 if texts are escaped to ASCII).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import orjson

from twinsieve.pipeline.messages.paths import Path

_TOKEN = re.compile(rb'"[^"]*"|[\[\]{},:]|[^\s\[\]{},:"]+')
"""One token of JSON; the JSON must have no escapes."""
_OPEN, _CLOSE, _COMMA, _COLON = b"[{", b"]}", ord(","), ord(":")
_ROUNDED = frozenset({float, list, dict})
_NEEDLESS_ESCAPE = re.compile(rb"\\(?:u00[2-7]|/)")
_PLAIN = re.compile(r"[ !#-\[\]-~]*")


@dataclass(frozen=True, slots=True)
class Written:
    """A value as written in its row.

    json: the bytes of the value in the row

    >>> str(Written(b"1.50")), str(Written(b'"\\\\u0061"'))
    ('1.50', 'a')
    """

    json: bytes

    def __str__(self) -> str:
        content = same_value(self)
        return str(decoded(content)) if content.startswith(b'"') else content.decode()


def spelled(values: list[object], path: Path, rows: Sequence[bytes | None]) -> list[object]:
    """The values; a value that does not keep the spelling of its row is replaced by a `Written`.

    Strings stay as they are; see `spelled_strings`.
    values: decoded values of one field; path: the field's path; rows: the JSON row of each value
    """
    if _ROUNDED.isdisjoint(map(type, values)) and 0 not in values:
        return values
    return [
        Written(written_at(row or b"", path)) if _is_rounded(value, row or b"") else value
        for value, row in zip(values, rows, strict=True)
    ]


def spelled_strings(values: list[object], path: Path, rows: Sequence[bytes | None]) -> list[object]:
    """The values; a string that its row spells with needless escapes is replaced by a `Written`."""
    spellings: list[object] = []
    for value, row in zip(values, rows, strict=True):
        if type(value) is str and row and b"\\" in row and _may_be_escaped(value, row):
            content = written_at(row, path)
            spellings.append(value if content == to_json(value) else Written(content))
        else:
            spellings.append(value)
    return spellings


def written_at(row: bytes, path: Path) -> bytes:
    """The bytes of the value at a path of the row. If a member's name occurs twice, the last one counts.

    row: valid JSON
    raises: ValueError if the row has no such value

    >>> written_at(b'{"a": {"b.c": [1, 1.50 ]}}', ("a", "b.c", 1))
    b'1.50'
    """
    plain = without_escapes(row)
    first = _TOKEN.search(plain)
    start, end = (first.start() if first else 0), len(row.rstrip())
    for part in path:
        place = None
        for name, begin, stop in _members(row, plain, start):
            if name == part:
                place = begin, stop
        if place is None:
            raise ValueError(f"there is no {part!r}")
        start, end = place
    return row[start:end]


def without_escapes(content: bytes) -> bytes:
    r"""The content with `__` in place of every escaped backslash and every escaped quote.

    Its length stays the same, and every quote in the result begins or ends a string.
    content: JSON that does not begin inside an escape

    >>> without_escapes(rb'["a\\", "\"b\n"]')
    b'["a__", "__b\\n"]'
    """
    return content.replace(rb"\\", b"__").replace(rb"\"", b"__")


def same_value(written: Written) -> bytes:
    """Bytes that are the same for equal values.

    Strings are equal if their characters are, numbers if their spelling is, objects in any order of members.

    >>> same_value(Written(b'{"b": [1.50, "\\\\u0061"], "a": 1e3}'))
    b'{"a":1e3,"b":[1.50,"a"]}'
    """
    if written.json[:1] not in (b"{", b"[", b'"'):
        return written.json
    spelt = orjson.Fragment
    value = json.loads(written.json, parse_int=spelt, parse_float=spelt, parse_constant=spelt)
    return to_json(value, sort_keys=True)


def to_json(value: object, *, sort_keys: bool = False) -> bytes:
    """The value as JSON in one line. Lone surrogates, which UTF-8 cannot encode, are written as escapes."""
    try:
        sorting = orjson.OPT_SORT_KEYS if sort_keys else 0
        return orjson.dumps(value, _fragment, orjson.OPT_PASSTHROUGH_DATACLASS | sorting)
    except TypeError:
        pass
    if isinstance(value, dict):
        items = sorted(value.items()) if sort_keys else value.items()
        members = [to_json(name) + b":" + to_json(inner, sort_keys=sort_keys) for name, inner in items]
        return b"{" + b",".join(members) + b"}"
    if isinstance(value, (list, tuple)):
        return b"[" + b",".join([to_json(inner, sort_keys=sort_keys) for inner in value]) + b"]"
    return json.dumps(value).encode()


def decoded(content: bytes) -> object:
    """The value of valid JSON, which may contain lone surrogates."""
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        return json.loads(content)


def _fragment(value: object) -> orjson.Fragment:
    if isinstance(value, Written):
        return orjson.Fragment(value.json)
    raise TypeError


def _is_rounded(value: object, row: bytes) -> bool:
    # JSON's -0 is decoded as 0. Every other integer that is decoded as an integer has only one spelling.
    return type(value) in _ROUNDED or (type(value) is int and value == 0 and b"-0" in row)


def _may_be_escaped(value: str, row: bytes) -> bool:
    return not _PLAIN.fullmatch(value) or bool(_NEEDLESS_ESCAPE.search(row))


def _members(row: bytes, plain: bytes, start: int) -> Iterator[tuple[str | int, int, int]]:
    """(name or index, start, end) of every member of the object or list that begins at `start`.

    row: the JSON row; plain: the same row without escapes; start, end: byte positions of the value in the row
    """
    depth, index, begin, end = 0, 0, -1, -1
    name: object = None
    for token in _TOKEN.finditer(plain, start):
        char = row[token.start()]
        if depth == 1 and char == _COLON:
            name, begin = decoded(row[begin:end]), -1
        elif depth == 1 and (char == _COMMA or char in _CLOSE):
            if begin >= 0:
                yield (str(name) if name is not None else index), begin, end
            if char != _COMMA:
                return
            begin, index = -1, index + 1
        else:
            if char in _OPEN:
                depth += 1
            elif char in _CLOSE:
                depth -= 1
            if begin < 0 and token.start() > start:
                begin = token.start()
            end = token.end()
