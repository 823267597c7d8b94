"""A message whose exact key is empty is no exact copy of any other one, whatever the format."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from tests.calling import SMALL, Run, setting
from tests.row_files import read_lines, write_rows
from twinsieve.pipeline.broker.records import Partition, Records
from twinsieve.pipeline.messages.keyless import is_empty
from twinsieve.pipeline.messages.reader import MessageReader, make_batch
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.settings.stage_config import judging_scheme_of, sieve_config
from twinsieve.pipeline.worker.record_reader import RecordReader
from twinsieve.stages.contract import NO_TIME, Kind
from twinsieve.stages.judge.batch_sieve import BatchSieve

_TEXTS = [
    "Die Fähre nach Norderney fällt heute wegen Nebel aus.",
    "Auf dem Markt gibt es die ersten Erdbeeren aus der Gegend.",
    "Im Stadtpark wird am Samstag ein alter Brunnen wieder eröffnet.",
    "Reposting this for everyone who missed it",
    "Another repost with a word or two of my own",
]
_KEYS = ["", "", "", "77120", "77120"]
_EXACT = SMALL[2:4]


def _posts(keys: Sequence[Any] = _KEYS) -> list[dict[str, Any]]:
    return [
        {"id": number, "text": text, "of": key}
        for number, (text, key) in enumerate(zip(_TEXTS, keys, strict=True))
    ]


def _settings(near: str = "none", fields: Sequence[str] = ("of",)) -> Settings:
    window = {"window": {"messages": 2000}}
    return Settings.model_validate(
        {"exact": {"fields": list(fields), **window}, "near": {"method": near, **window}}
    )


@pytest.mark.parametrize("name", ["in.csv", "in.tsv", "in.jsonl", "in.json", "in.parquet", "in.arrow"])
@pytest.mark.parametrize("empty", ["", None, " ", "\u3000"])
@pytest.mark.parametrize("method", ["bloom", "trie"])
def test_rows_without_a_key_all_come_out(
    tmp_path: Path, run: Run, name: str, empty: str | None, method: str
) -> None:
    source, stats = tmp_path / name, tmp_path / "stats"
    posts = _posts([key or empty for key in _KEYS])
    if name.endswith((".csv", ".tsv")):
        between = "\t" if name.endswith(".tsv") else ","
        rows = [["id", "text", "of"], *([str(value or "") for value in post.values()] for post in posts)]
        source.write_text("".join(between.join(row) + "\n" for row in rows), "utf-8")
    elif name.endswith(".json"):
        source.write_text(json.dumps(posts), "utf-8")
    elif name.endswith(".arrow"):
        table = pa.Table.from_pylist(posts)
        with pa.ipc.new_file(source, table.schema) as writer:
            writer.write_table(table)
    else:
        write_rows(source, posts)
    dropped = tmp_path / "dropped"
    files = ("-o", tmp_path / f"out{source.suffix}", "--duplicates", dropped, "--stats", stats)
    ran = run("dedup", "-q", source, *files, *setting("exact.fields=[of]", f"exact.method={method}"), *_EXACT)
    assert ran.code == 0, ran.err
    assert [(one["position"], one["duplicate_of"]) for one in read_lines(dropped)] == [(5, 4)]
    assert "3 of 5 rows have an empty key" in ran.err
    assert f"{source}:" in ran.err
    told = json.loads(stats.read_text())
    assert (told["keyless"], told["unique"], told["exact"], told["unreadable"]) == (3, 4, 1, {})


_UNSEEN = ["", "\u200b", "\ufeff", "\0", "\u2060\u200d \t", "\x7f\x85", "\xad", "\u3164", "\u2800", "\ufe0f"]
_LISTS: list[list[str]] = [[], [""], [" ", "\u200b"]]


@pytest.mark.parametrize(
    ("name", "nothing", "something"),
    [
        ("in.csv", _UNSEEN, ["0", "\u200ba", "👍", "。"]),
        ("in.parquet", _UNSEEN, ["0", "\u200ba", "👍", "。"]),
        ("in.parquet", _LISTS, [["0"], ["", "a"]]),
        ("in.jsonl", _UNSEEN, ["0", "\u200ba", "👍", "。"]),
        ("in.jsonl", [*_LISTS, {}, [[None], []], {"a": {"b": [" "]}}], [0, False, [0], [[[False]]], {"": 0}]),
    ],
)
def test_a_key_that_shows_nothing_is_no_key(
    tmp_path: Path, run: Run, name: str, nothing: list[Any], something: list[Any]
) -> None:
    keys = [*nothing, *something] * 2
    source = write_rows(tmp_path / name, [{"text": f"row {at}", "of": key} for at, key in enumerate(keys)])
    stats, dropped = tmp_path / "stats", tmp_path / "dropped"
    files = ("-o", tmp_path / f"out{source.suffix}", "--duplicates", dropped, "--stats", stats)
    ran = run("dedup", "-q", source, *files, *setting("exact.fields=[of]"), *_EXACT)
    assert (ran.code, json.loads(stats.read_text())["keyless"]) == (0, 2 * len(nothing))
    repeated = range(len(keys) - len(something) + 1, len(keys) + 1)
    assert [one["position"] for one in read_lines(dropped)] == [*repeated]


@pytest.mark.parametrize("value", [math.nan, None])
def test_a_null_or_nan_of_a_table_is_no_key(tmp_path: Path, run: Run, value: float | None) -> None:
    table = pa.table({"text": _TEXTS, "of": pa.array([value, value, 0.0, 7.5, 7.5], pa.float64())})
    parquet.write_table(table, tmp_path / "in.parquet")
    files = ("-o", tmp_path / "out.parquet", "--duplicates", tmp_path / "dropped")
    assert (
        run("dedup", "-q", tmp_path / "in.parquet", *files, *setting("exact.fields=[of]"), *_EXACT).code == 0
    )
    assert [one["position"] for one in read_lines(tmp_path / "dropped")] == [5]


def test_rows_of_json_without_the_field_and_with_nan_have_no_key(tmp_path: Path, run: Run) -> None:
    source = tmp_path / "in.jsonl"
    keys = ["", ', "of": NaN', ', "of": NaN', ', "of": 0', ', "of": 0', "", ', "of": [ ]', ', "of": []']
    source.write_text("".join(f'{{"id": {row}, "text": "t"{key}}}\n' for row, key in enumerate(keys)))
    ran = run("dedup", "-q", source, "--duplicates", tmp_path / "d", *setting("exact.fields=[of]"), *_EXACT)
    assert ran.code == 0
    assert [one["position"] for one in read_lines(tmp_path / "d")] == [5], "0 is a value, an empty list none"
    assert "6 of 8 rows have an empty key" in ran.err
    assert f"{source}:1" in ran.err


def test_one_empty_field_of_several_is_enough(tmp_path: Path, run: Run) -> None:
    rows = [("a", ""), ("a", ""), ("", "x"), ("", "x"), ("a", "x"), ("a", "x")]
    posts = ({"text": f"post {row}", "who": who, "link": link} for row, (who, link) in enumerate(rows))
    source = write_rows(tmp_path / "in.csv", posts)
    files = ("-o", tmp_path / "out.csv", "--duplicates", tmp_path / "dropped")
    ran = run("dedup", "-q", source, *files, *setting("exact.fields=[who,link]"), *_EXACT)
    assert ran.code == 0
    assert [one["position"] for one in read_lines(tmp_path / "dropped")] == [6]


def test_the_near_stage_still_compares_rows_without_a_key(tmp_path: Path, run: Run) -> None:
    rows = [
        {"text": _TEXTS[0], "of": ""},
        {"text": _TEXTS[1], "of": ""},
        {"text": _TEXTS[0] + "!", "of": None},
    ]
    source = write_rows(tmp_path / "in.jsonl", rows)
    files = ("-o", tmp_path / "out.jsonl", "--duplicates", tmp_path / "dropped")
    assert (
        run("dedup", "-q", source, *files, *setting("exact.fields=[of]", "near.method=text"), *SMALL).code
        == 0
    )
    assert [(one["position"], one["stage"]) for one in read_lines(tmp_path / "dropped")] == [(3, "near")]


def test_rows_without_a_key_come_out_in_later_runs_on_a_state(tmp_path: Path, run: Run) -> None:
    kept = []
    for number in range(3):
        source = tmp_path / f"in{number}.csv"
        source.write_text(f"text,of\nday {number},\nday {number} again,\nday {number} keyed,k\n")
        out = tmp_path / "out.csv"
        words = ("-o", out, "--state", tmp_path / "state", *setting("exact.fields=[of]"), *_EXACT)
        assert run("dedup", "-q", source, *words).code == 0
        kept.append(len(out.read_text().splitlines()) - 1)
    assert kept == [3, 2, 2]


def test_explain_takes_two_empty_keys_as_different(tmp_path: Path, run: Run) -> None:
    source = write_rows(tmp_path / "in.jsonl", _posts())
    ran = run("explain", "--input", source, "--id", "0", "--id", "1", *setting("exact.fields=[of]"))
    assert (ran.code, "verdict  unique" in ran.out) == (0, True)


def test_on_kafka_messages_without_a_key_are_unique_and_counted() -> None:
    """Offsets repeat in other partitions, and in a topic that is made again."""
    settings = _settings()
    scheme = judging_scheme_of(settings)
    sieve = BatchSieve(sieve_config(settings, scheme.scheme_id))
    kinds: list[int] = []
    for _again in range(2):
        reader = RecordReader(MessageReader(settings, passes_null=True), scheme, part="value", stamped=True)
        parts = [(_records(Partition("in", number)), {}) for number in range(2)]
        for _, batch, reasons in reader.read_all(parts):
            assert not reasons
            batch.positions[:] = range(100 + len(kinds), 100 + len(kinds) + len(batch))
            kinds += sieve.judge(batch).kinds.tolist()
        assert reader.keyless == 6
    unique, exact = Kind.UNIQUE, Kind.EXACT
    assert kinds == [unique, unique, unique, unique, exact] + [unique, unique, unique, exact, exact] * 3


def _records(partition: Partition) -> Records:
    values: list[bytes | None] = [json.dumps(post).encode() for post in _posts()]
    count = len(values)
    return Records.of(
        partition, list(range(count)), [0] * count, [None] * count, values, [()] * count, [0] * count
    )


_VALUES = st.sampled_from(["", " ", "a", "b", None, 0, 1.5, "0"])


@given(st.lists(st.tuples(_VALUES, _VALUES), max_size=30), st.integers(1, 7))
def test_verdicts_are_those_of_a_dictionary_for_any_batch(keys: list[tuple[Any, Any]], size: int) -> None:
    settings = _settings(fields=("k", "l"))
    scheme = judging_scheme_of(settings)
    sieve, reader = BatchSieve(sieve_config(settings, scheme.scheme_id)), MessageReader(settings)
    found: list[int] = []
    messages = [json.dumps({"text": "t", "k": first, "l": second}).encode() for first, second in keys]
    for low in range(0, len(messages), size):
        columns = reader.read(messages[low : low + size])
        positions = low + 1 + np.array(columns.rows, np.int64)
        batch = make_batch(columns, *scheme.read(columns.texts, columns.keys), positions, NO_TIME)
        found += sieve.judge(batch).kinds.tolist()
    seen: set[Any] = set()
    for key, kind in zip(keys, found, strict=True):
        typed = tuple((type(value), value) for value in key)
        is_copy = typed in seen and not any(map(is_empty, key))
        assert (kind == Kind.EXACT) == is_copy
        seen.add(typed)
