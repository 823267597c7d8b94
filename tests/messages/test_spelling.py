"""Keys, scopes and ids count and come out as the row spells them: no number is rounded, no row lost for NaN."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.calling import SMALL, Run, setting
from twinsieve.pipeline.messages.reader import MessageReader
from twinsieve.pipeline.messages.spelling import written_at
from twinsieve.pipeline.settings.model import Settings

_APART = [
    ("18446744073709551616", "18446744073709551617"),
    ("-9223372036854775809", "-9223372036854775810"),
    ("9" * 400, "9" * 399 + "8"),
    ("1.5", "1.50"),
    ("1e3", "1000"),
    ("1e3", "1E3"),
    ("-0", "0"),
    ("-0.0", "0.0"),
    ("1e400", "1e401"),
    ("0.1", "0.10000000000000000001"),
    ("1", '"1"'),
    ("1.50", '"1.50"'),
    ("[1.5]", "[1.50]"),
    ("[1, 2]", "[2, 1]"),
    ('{"a": 1}', '{"a": 1.0}'),
    ('{"a": 18446744073709551616}', '{"a": 18446744073709551617}'),
    ("NaN", "Infinity"),
    ("NaN", '"NaN"'),
    ("-Infinity", "Infinity"),
    ("true", "1"),
    ('"a"', '"A"'),
]
_SAME = [
    ("18446744073709551616", "18446744073709551616"),
    ("1.50", "1.50"),
    ("NaN", "NaN"),
    ('"a"', r'"\u0061"'),
    ('"/"', r'"\/"'),
    ('"武"', r'"\u6b66"'),
    (r'"\ud83d\ude00"', '"😀"'),
    (r'"\ud800"', r'"\uD800"'),
    ("[1.5,2]", "[ 1.5 , 2 ]"),
    ('{"a": 1, "b": "c"}', r'{"b":"\u0063","a":1}'),
    ('{"a": 1.0, "a": 2.0}', '{"a": 2.0}'),
]


def _rows(values: Sequence[str]) -> list[str]:
    return [f'{{"text":"the very same text for all of us","key":{value}}}' for value in values]


def _read(values: Sequence[str], tree: dict[str, Any]) -> Any:
    columns = MessageReader(Settings.model_validate(tree)).read([row.encode() for row in _rows(values)])
    assert columns.unreadable == []
    return columns


@pytest.mark.parametrize(
    ("left", "right", "same"), [(*p, False) for p in _APART] + [(*p, True) for p in _SAME]
)
def test_keys_scopes_and_ids_are_equal_where_the_spelling_is(left: str, right: str, same: bool) -> None:
    for values in ([left, right], [right, left]):
        keys = _read(values, {"exact": {"fields": ["key"]}}).keys
        scopes = _read(values, {"scope": ["key"]}).scopes
        ids = _read(values, {"input": {"id_field": "key"}}).id_hashes
        assert (keys[0] == keys[1], scopes[0] == scopes[1]) == (same, same)
        # A number and the same digits as text are one id.
        assert (ids[0] == ids[1]) == (same or left == right.strip('"'))


_NUMBER = st.from_regex(r"-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?", fullmatch=True)
_PLACE = st.sampled_from(["%s", "[%s]", "[[], {}, %s]", '{"k": %s}', '{"k": [0, %s]}'])


@given(st.lists(_NUMBER, min_size=1, max_size=4), _PLACE, st.sampled_from(["", " "]), st.booleans())
def test_numbers_are_one_key_when_they_are_one_text(
    numbers: list[str], place: str, space: str, lone: bool
) -> None:
    """The twin compares the texts; `lone`: a surrogate beside them, which only Python's reader takes."""
    other = r'"\ud800"' if lone else '"x"'
    rows = [
        f'{{{space}"n": {other}, "key"{space}:{space}{place % number}{space}, "text":"a"}}'
        for number in numbers
    ]
    reader = MessageReader(Settings.model_validate({"exact": {"fields": ["key"]}, "scope": ["key"]}))
    columns = reader.read([row.encode() for row in rows])
    assert columns.keys is not None
    for at, one in enumerate(numbers):
        for beside, another in enumerate(numbers):
            assert (columns.keys[at] == columns.keys[beside]) == (one == another)
            assert (columns.scopes[at] == columns.scopes[beside]) == (one == another)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=12,
)


@given(_JSON, st.booleans(), st.sampled_from([None, 1]))
def test_the_bytes_of_any_value_are_found(document: Any, ascii_only: bool, indent: int | None) -> None:
    row = json.dumps(document, ensure_ascii=ascii_only, indent=indent).encode("utf-8", "surrogatepass")

    def look(value: Any, path: tuple[str | int, ...]) -> None:
        assert json.loads(written_at(row, path).decode("utf-8", "surrogatepass")) == value
        for name, inner in (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        ):
            look(inner, (*path, name))

    look(document, ())


@pytest.mark.parametrize("name", ["exact.fields", "scope"])
def test_integers_of_any_size_are_other_keys_on_files(tmp_path: Path, run: Run, name: str) -> None:
    source = tmp_path / "in.jsonl"
    rows = _rows([str(2**64), str(2**64 + 1), "1.50", "1.5", str(2**64 + 1)])
    source.write_text("\n".join(rows) + "\n")
    small = SMALL if name == "scope" else SMALL[2:4]
    ran = run("dedup", "-q", source, *setting(f"{name}=[key]", "input.id_field=none"), *small)
    assert (ran.code, ran.out.splitlines()) == (0, rows[:4])


_IDS = [
    "12345678901234567890123",
    "18446744073709551616",
    "1.50",
    "1e3",
    "-0",
    "0.10000000000000000001",
    r'"\u0061\/b"',
    r'"\u6b66"',
    r'"\ud800"',
    '"plain"',
    '"武"',
    "7",
    "NaN",
    '{"b": 1.0,  "a": [ ]}',
    "null",
]


@pytest.mark.parametrize("leader", _IDS)
def test_ids_come_out_byte_for_byte(tmp_path: Path, run: Run, leader: str) -> None:
    """Within a run and, the second time, of a leader that an earlier run kept."""
    state = ("--state", tmp_path / "state")
    for number, ids in enumerate(([leader, *_IDS], _IDS)):
        source, dropped = tmp_path / f"in{number}.jsonl", tmp_path / f"dropped{number}.jsonl"
        source.write_text("".join(f'{{"text":"one text for all of these rows","id":{one}}}\n' for one in ids))
        ran = run("dedup", "-q", source, "-o", tmp_path / "out", "--duplicates", dropped, *state, *SMALL)
        assert (ran.code, ran.err) == (0, "")
        lines = dropped.read_bytes().splitlines()
        assert [written_at(line, ("id",)).decode() for line in lines] == _IDS
        assert {written_at(line, ("duplicate_of_id",)).decode() for line in lines} == {leader}


def test_explain_finds_an_id_as_it_is_spelled(tmp_path: Path, run: Run) -> None:
    source = tmp_path / "in.jsonl"
    ids = ["1.50", "1.5", str(2**64), str(2**64 + 1)]
    source.write_text(
        "".join(f'{{"text":"text {at} is this one","id":{one}}}\n' for at, one in enumerate(ids))
    )
    ran = run("explain", "--input", source, "--id", "1.50", "--id", str(2**64 + 1))
    assert "text 0 is" in ran.out.replace("\n", " ")
    assert "text 3 is" in ran.out.replace("\n", " ")
    assert run("explain", "--input", source, "--id", "1.500", "--id", "1.5").code == 2


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("field", ["score", "id", "created_at", "tenant", "key", "text"])
def test_what_pythons_writer_makes_of_no_number_is_read(
    tmp_path: Path, run: Run, constant: str, field: str
) -> None:
    source, dead = tmp_path / "in.jsonl", tmp_path / "dead.jsonl"
    row = {"text": '"a text like any other"', "tenant": "1", "key": "1", "id": "1", "created_at": "5"}
    rows = [
        "{" + ", ".join(f'"{name}": {one}' for name, one in each.items()) + "}"
        for each in (row | {field: constant}, row | {"text": '"and one that is quite different"', "key": "2"})
    ]
    source.write_text("\n".join(rows) + "\n")
    said = setting("scope=[tenant]", "exact.fields=[key]", "near.method=text")
    ran = run("dedup", "-q", source, "-o", "-", "--dead-letter", dead, *said, *SMALL)
    assert ran.code == 0
    if field == "text":
        assert ran.out.splitlines() == rows[1:]
        assert orjson.loads(dead.read_bytes())["reason"] == "not_text"
    else:
        assert ran.out.splitlines() == rows
        assert (ran.err != "") == ((field, constant) == ("key", "NaN")), "NaN is no key"
