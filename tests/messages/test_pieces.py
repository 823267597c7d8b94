"""A text in pieces is one text; a list of texts is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.calling import SMALL, Run
from tests.row_files import read_lines, write_rows
from twinsieve.pipeline.messages.fields import text_of

_TEXT = "The mill by the river grinds again, see mill.example for the hours"
_PIECES: list[Any] = [
    "The mill by the river ",
    {"type": "bold", "text": "grinds"},
    " again, see ",
    {"type": "link", "text": "mill.example"},
    " for the hours",
]


@pytest.mark.parametrize("ending", [".jsonl", ".json", ".parquet"])
@pytest.mark.parametrize("count", [1, 40])
def test_a_text_in_pieces_is_a_copy_of_the_whole_text(
    tmp_path: Path, run: Run, ending: str, count: int
) -> None:
    rows: list[dict[str, Any]] = [{"id": n, "text": f"Only row number {n}"} for n in range(count)]
    rows += [{"id": 90, "text": _TEXT}, {"id": 91, "text": _PIECES}]
    pieces = [piece if isinstance(piece, dict) else {"type": "plain", "text": piece} for piece in _PIECES]
    if ending == ".parquet":
        rows = [{"id": 91, "text": pieces}]
    elif ending == ".json":
        (tmp_path / "in.json").write_text(json.dumps(rows, indent=1))
    else:
        rows.append({"id": 92, "text": pieces})
    source = tmp_path / "in.json" if ending == ".json" else write_rows(tmp_path / f"in{ending}", rows)
    ran = run("dedup", "-q", source, "-o", tmp_path / f"out{ending}", "--duplicates", tmp_path / "d", *SMALL)
    assert (ran.code, ran.err) == (0, "")
    if ending != ".parquet":
        dropped = read_lines(tmp_path / "d")
        assert [(one["duplicate_of_id"], one["text"]) for one in dropped] == [(90, _TEXT)] * len(dropped)
        assert len(dropped) == len(rows) - count - 1


@pytest.mark.parametrize(
    "value",
    [
        [],
        ["a", "b"],
        [{"text": "a"}, {"text": "b"}],
        [{"text": "a"}, {"type": "bold", "text": "b"}],
        ["a", {"text": 5}],
        ["a", {"type": "bold"}],
        ["a", 5],
        ["a", None, {"text": "b"}],
        [["a", {"text": "b"}]],
        {"text": "a"},
    ],
)
def test_what_is_no_text_in_pieces_stays_as_it_is(tmp_path: Path, run: Run, value: Any) -> None:
    assert text_of(value) == value
    source = write_rows(tmp_path / "in.jsonl", [{"text": value}, {"text": "another"}])
    dead = tmp_path / "dead"
    assert (
        run("dedup", "-q", source, "-o", tmp_path / "o", "--dead-letter", dead, "--format", "jsonl").code == 0
    )
    assert [one["reason"] for one in read_lines(dead)] == ["not_text"]


@given(st.lists(st.tuples(st.text(max_size=4), st.booleans()), min_size=1, max_size=6))
def test_pieces_are_joined_in_their_order(pieces: list[tuple[str, bool]]) -> None:
    value = [{"type": "x", "text": text} if is_object else text for text, is_object in pieces]
    joined = "".join(text for text, _ in pieces)
    assert text_of(value) == (joined if any(is_object for _, is_object in pieces) else value)
