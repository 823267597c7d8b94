"""Members that are found where they lie are those of the decoded documents, whatever a stranger writes."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.accuracy.data_sets import ALPHABETS, POOLED, WEIBO
from twinsieve.pipeline.messages.decode import decode_json, decode_rows
from twinsieve.pipeline.messages.documents import Decoded, Scanned
from twinsieve.pipeline.messages.paths import path_of
from twinsieve.stages.rows.lines import Lines
from twinsieve.stages.rows.members import find_members

_NAMES = ["text", "id", "user", "é", "a"]
_PATHS = [path_of(name) for name in ("text", "id", "user.name", "user[0]", "é", "a")]

_TEXT = st.text(max_size=6) | st.sampled_from(["\0", "\ud800", '𐍈é"\\/\b\f\n\r\t', "字" * 9])
_SCALAR = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-9, 9)
    | st.floats(allow_nan=True, allow_infinity=True)
    | _TEXT
)
_VALUE = st.recursive(
    _SCALAR,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT | st.just("name"), inner, max_size=3),
    max_leaves=5,
)
_OBJECT = st.dictionaries(st.sampled_from(_NAMES) | _TEXT, _VALUE, max_size=5)
_SEPARATORS = st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", "\r\n: ")])


def _written(document: Any, separators: tuple[str, str], ascii_only: bool) -> bytes:
    written = json.dumps(document, separators=separators, ensure_ascii=ascii_only)
    return written.encode("utf-8", "surrogatepass")


_GOOD = st.builds(_written, _OBJECT | _VALUE, _SEPARATORS, st.booleans())


@st.composite
def _damaged(draw: st.DrawFn) -> bytes:
    row = bytearray(draw(_GOOD))
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(row)))
        put = draw(st.sampled_from([*b'"\\{}[],:ue019-. \t\n\x00\x80\xc3\xed\xf4', None]))
        row[place : place + draw(st.integers(0, 2))] = b"" if put is None else bytes([put])
    return bytes(row)


_INSIDE = st.binary(max_size=4).map(lambda inside: b'{"a":"' + inside + b'"}')


def _decode(rows: Sequence[bytes | None]) -> list[Any]:
    return decode_rows(rows, decode_json, {})


def _alike(left: Any, right: Any) -> bool:
    """Equal, and of the same types; NaN equals itself."""
    return type(left) is type(right) and repr(left) == repr(right)


def _assert_same(rows: list[bytes | None]) -> None:
    """The values of scanned rows are those of decoded ones, also where the rows are the lines of a file."""
    decoded = Decoded(_decode(rows))
    lines = [row for row in rows if row is not None and b"\n" not in row]
    given: list[Sequence[bytes | None]] = [rows]
    if len(lines) == len(rows):
        given.append(Lines.of(b"".join(line + b"\n" for line in lines)))
    for each in given:
        scanned = Scanned(each, _NAMES, lambda wanted, each=each: _decode([each[row] for row in wanted]))
        for path in _PATHS:
            for row, found, plain in zip(rows, scanned.values(path), decoded.values(path), strict=True):
                assert found is plain or _alike(found, plain), (row, path)
        assert all(_alike(scanned[row], decoded[row]) for row in range(len(rows)))


@given(st.lists(st.none() | _GOOD | _damaged() | _INSIDE | st.binary(max_size=9), max_size=6))
@example([b'{"text":"a"}', b'{"text":1,"text":"b"}', b'{"text":"a","text":null}', b'{"te\\u0078t":"c"}'])
@example(
    [b'{"text":"\\ud83d\\ude00 \\u00e9"}', b'{"text":"\\ud83d"}', b'{"text":"\\ude00"}', b'{"a":"\\u0000"}']
)
@example([b'{"a":01}', b'{"a":1.}', b'{"a":-}', b'{"a":-0}', b'{"a":1e400}', b'{"a":12345678901234567890}'])
@example([b'{"a":[1,]}', b'{"a":{"b":1,}}', b'{"a":1,}', b'{,"a":1}', b'{"a" 1}', b'{"a":1}}', b'{"a":[}'])
@example([b"[" * 99 + b"]" * 99, b'{"a":' * 99 + b"1" + b"}" * 99, b'{"text":"\xed\xa0\x80"}', b'{"a":"\t"}'])
@example(
    [b'{"a":"\xe0\x80\x80"}', b'{"a":"\xf0\x80\x80\x80"}', b'{"a":"\xf4\x90\x80\x80"}', b'{"a":"\xc1\x80"}']
)
@example([b'{"a":"\xe4' + two + b'\x80"}' for two in (b"a", b"\xc0", b"\x80\x80", b"\xe4\x80")])
@example([b'{"a":"\xe4\x80' + last + b'"}' for last in (b"", b"a", b"\xc0", b"\xff")])
def test_values_are_those_of_decoded_documents(rows: list[bytes | None]) -> None:
    _assert_same(rows)


@given(_damaged() | st.binary(max_size=12))
def test_a_row_that_is_found_good_is_one_that_a_parser_accepts(row: bytes) -> None:
    found = find_members(row, np.array([len(row)]), ["text"])
    if not found.left[0]:
        assert isinstance(orjson.loads(row), dict)


def test_usual_rows_are_not_left_to_the_parser() -> None:
    """Else the scan would be right and serve nothing."""
    rows = [
        '{"id": 7, "text": "好\\n", "user": {"name": "x", "tags": [], "ok": [true, false, null, -1.5]}}',
        '{"text":"\\u597d \\ud83d\\ude00","created_at":"2020-02-12"}',
        ' {"a":{}} ',
    ]
    content = [row.encode() for row in rows]
    sizes = np.fromiter(map(len, content), np.int64)
    assert not find_members(b"".join(content), sizes, ["text"]).left.any()


_TIMES = st.sampled_from(
    ["2024-02-29T08:00:00+08:00", "2024-02-29", "1709164800", "soon", "", "2024-02-29\n"]
)


@pytest.mark.parametrize("name", [each.name for each in (WEIBO, *POOLED, *ALPHABETS)])
def test_real_rows_are_read_as_the_parser_reads_them(data_dir: Path, name: str) -> None:
    rows = gzip.decompress((data_dir / f"{name}_dev.jsonl.gz").read_bytes()).split(b"\n")
    _assert_same([row for row in rows if row])
