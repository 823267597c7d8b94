"""Labels find the rows that they name, by id or by number, in an input of any kind."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.calling import Run
from tests.row_files import read_lines, write_rows
from twinsieve.pipeline.files.format import format_named
from twinsieve.pipeline.messages.reader import MessageColumns
from twinsieve.pipeline.tools.evaluate.evaluate import read_named_texts
from twinsieve.pipeline.tools.evaluate.row_names import NamedTexts, fits_labels, row_name
from twinsieve.stages.contract import NO_TIME

NAMES = st.sampled_from(["a", "b", "7", "row:1", "row:2", "row:3", "row:7", "row:x", ""])


def columns(ids: list[str | int | None], first_text: int) -> MessageColumns:
    count = len(ids)
    return MessageColumns(
        rows=list(range(0, 2 * count, 2)),
        texts=[f"text {first_text + row}" for row in range(count)],
        ids=list(ids),
        id_hashes=np.zeros(count, np.uint64),
        times_ms=np.full(count, NO_TIME, np.int64),
        scopes=np.zeros(count, np.uint64),
        keys=None,
    )


@given(st.lists(st.lists(st.one_of(NAMES, st.just(7), st.none()), max_size=4), max_size=3), st.sets(NAMES))
def test_a_name_by_number_is_that_row_and_an_id_is_the_first_row_that_has_it(
    chunks: list[list[str | int | None]], wanted: set[str]
) -> None:
    named = NamedTexts(wanted)
    rows: dict[int, tuple[str, str]] = {}
    before = texts = 0
    for ids in chunks:
        part = columns(ids, texts)
        named.add(part, before)
        for row, message_id, text in zip(part.rows, ids, part.texts, strict=True):
            rows[before + row + 1] = (str(message_id or ""), text)
        before += 2 * len(ids)
        texts += len(ids)
    expected = {}
    for name in wanted:
        number = name.removeprefix("row:")
        if name.startswith("row:") and number.isdigit():
            found = [text for position, (_, text) in rows.items() if position == int(number)]
        else:
            found = [text for _, (own, text) in rows.items() if own == name and name]
        if found:
            expected[name] = found[0]
    assert named.texts == expected
    assert named.is_complete == (len(expected) == len(wanted))


def test_ids_that_break_a_line_of_labels_do_not_fit() -> None:
    unfit = ["", "a\tb", "a\nb", "a\rb", "\u202ea", "a\u2028b", "\x00", "row:17", "\ud800", "x" * 201]
    assert [fits_labels(name) for name in unfit] == [True] + [False] * 9
    assert all(fits_labels(name) for name in ["p-1", "帖子 5", '"quoted"', "row:17b", "Row:17", "x" * 200])


@pytest.mark.parametrize("name", ["posts.jsonl", "posts.csv", "posts.parquet"])
def test_rows_without_ids_are_named_by_their_number(tmp_path: Path, name: str) -> None:
    source = write_rows(tmp_path / name, [{"text": f"text {number}"} for number in range(1, 6)])
    format_ = format_named(source.suffix.removeprefix("."))()
    found = read_named_texts(source, ["row:1", "row:5", "row:6", "row:0", "3"], format_=format_)
    assert found == {row_name(1): "text 1", row_name(5): "text 5"}


def test_numbers_are_the_positions_of_dedup(run: Run, tmp_path: Path) -> None:
    posts = tmp_path / "posts.jsonl"
    posts.write_text('{"text": "one and the same text"}\n\n \nno json\n{"text": "one and the same text"}\n')
    dropped = tmp_path / "dropped.jsonl"
    words = ("-o", tmp_path / "kept.jsonl", "--duplicates", dropped, "--max-unreadable", "0.5")
    assert run("dedup", posts, *words, "-q").code == 0
    (row,) = read_lines(dropped)
    found = read_named_texts(posts, [f"row:{number}" for number in range(9)])
    assert list(found) == [row_name(row["duplicate_of"]), row_name(row["position"])] == ["row:1", "row:5"]


def test_evaluate_takes_labels_of_rows_without_ids(run: Run, tmp_path: Path) -> None:
    texts = ["a plain sentence of some length", "another thing", "a plain sentence of some lengths", "no"]
    posts = write_rows(tmp_path / "posts.jsonl", [{"text": text} for text in texts])
    labels = tmp_path / "labels.tsv"
    labels.write_text("later_id\tearlier_id\tlabel\nrow:3\trow:1\tsame\nrow:4\trow:2\tdifferent\n")
    ran = run("evaluate", posts, "--judged", labels)
    assert (ran.code, ran.err) == (0, "")
    assert "│ all │                         1/0/0 │ 1.000" in ran.out
    labels.write_text("later_id\tearlier_id\tlabel\nrow:5\trow:1\tsame\n")
    assert (
        "a labelled pair names row 'row:5', which is not in the input"
        in run("evaluate", posts, "--judged", labels).err
    )
