"""The public sieve judges as `twinsieve dedup` and as the plain loop; calls, chunks, files change nothing."""

from __future__ import annotations

import json
import logging
import os
import pickle
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.api.windows import default_window
from tests.examples import examples
from tests.generated_posts import generate
from tests.property.streams import ROWS, Rows, batch_of, told_by_oracle
from twinsieve import ConfigError, FileError, Sieve, StateError, UsageError
from twinsieve.api import saved_sieve
from twinsieve.api import sieve as sieve_module
from twinsieve.pipeline.commands.cli import main
from twinsieve.pipeline.files.write import Output
from twinsieve.pipeline.messages.fields import to_json
from twinsieve.pipeline.saved.state_folder import StateFolder
from twinsieve.pipeline.settings.model import Settings
from twinsieve.stages.contract import NO_LEADER, OFF, SieveConfig, Window
from twinsieve.stages.differ.rules import Rule
from twinsieve.stages.formats import SIEVE
from twinsieve.stages.judge.batch_sieve import BatchSieve

_SMALL = {
    "near.window.messages": 500,
    "exact.window.messages": 700,
    "near.window.age": "1m",
    "exact.window.age": "2m",
}


@pytest.fixture(scope="module")
def posts() -> list[dict[str, Any]]:
    return list(generate(3_000, seed=7, rate=20.0))


def _columns(posts: list[dict[str, Any]]) -> dict[str, list[Any]]:
    names = {"texts": "text", "ids": "id", "times": "created_at"}
    return {name: [post[key] for post in posts] for name, key in names.items()}


@pytest.mark.parametrize(
    "more", [{"profile": "plain"}, {"scope": "day", "exact.method": "trie"}, {"near.method": "hamming"}]
)
def test_verdicts_are_those_of_the_command(
    tmp_path: Path, posts: list[dict[str, Any]], more: dict[str, str]
) -> None:
    """On generated posts of all languages: stage, leader, its id and the similarity of every dropped row."""
    for number, post in enumerate(posts):
        post["day"] = number % 2
    (tmp_path / "in.jsonl").write_bytes(b"".join(to_json(post) + b"\n" for post in posts))
    flags = [word for key, value in (_SMALL | more).items() for word in ("--set", f"{key}={value}")]
    out, dropped = tmp_path / "out.jsonl", tmp_path / "dropped.jsonl"
    assert (
        main(
            ["dedup", "-q", str(tmp_path / "in.jsonl"), "-o", str(out), "--duplicates", str(dropped), *flags]
        )
        == 0
    )
    expected = [orjson.loads(line) for line in dropped.read_bytes().splitlines()]
    assert len(expected) > 280
    scopes = [post["day"] for post in posts] if "scope" in more else None
    sieve = Sieve(settings=_SMALL | {key: value for key, value in more.items() if key != "scope"})
    verdicts = sieve.judge(**_columns(posts), scopes=scopes)
    found = [one for one in verdicts if not one.kept]
    assert [
        {
            "position": one.position + 1,
            "duplicate_of": None if one.leader is None else one.leader + 1,
            "duplicate_of_id": one.leader_id,
            "stage": one.stage,
            "likeness": one.distance if one.distance is not None else one.similarity,
        }
        for one in found
    ] == [
        {key: one[key] for key in ("position", "duplicate_of", "duplicate_of_id", "stage")}
        | {"likeness": one.get("distance", one.get("similarity"))}
        for one in expected
    ]


@pytest.mark.parametrize("method", ["bloom", "trie"])
@pytest.mark.parametrize("near", ["none", "text"])
def test_raw_texts_are_keys_as_for_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, near: str
) -> None:
    """Empty texts, NUL, lone surrogates and missing texts among them, in several slices."""
    monkeypatch.setattr(sieve_module, "_SLICE", 16)
    odd = ["", "\0", "\0\0", "\ud83d", "😀", "\udfff", None, "a", "A", " a", "a\0"]
    words = [f"the ferry number {number} is late today" for number in range(20)]
    texts = (odd + words) * 2 + [text.upper() for text in words] + [None, "", *words]
    rows = [{"n": number, "text": text} for number, text in enumerate(texts)]
    (tmp_path / "in.jsonl").write_bytes(b"".join(to_json(row) + b"\n" for row in rows))
    chosen = {"exact.fields": ["text"], "exact.method": method, "near.method": near}
    flags = [
        "--set",
        "exact.fields=[text]",
        "--set",
        f"exact.method={method}",
        "--set",
        f"near.method={near}",
    ]
    for flag, name in (("-o", "out"), ("--duplicates", "dropped"), ("--dead-letter", "dead")):
        flags += [flag, str(tmp_path / name)]
    assert main(["dedup", "-q", str(tmp_path / "in.jsonl"), *flags]) == 0
    # orjson refuses lone surrogates.
    expected = [json.loads(line) for line in (tmp_path / "dropped").read_bytes().splitlines()]
    assert len(expected) >= 47
    kept = [json.loads(line)["text"] for line in (tmp_path / "out").read_bytes().splitlines()]
    for empty in ("", "\0", "\0\0"):
        assert kept.count(empty) == texts.count(empty), "an empty key is none"
    verdicts = Sieve(settings=chosen).judge(texts)
    assert [(one.position + 1, one.stage, one.leader + 1) for one in verdicts if one.leader is not None] == [
        (one["position"], one["stage"], one["duplicate_of"]) for one in expected
    ]
    assert verdicts.kept.sum() == len(texts) - len(expected)


@pytest.mark.parametrize("near", ["none", "text"])
def test_empty_texts_as_keys_never_meet_not_even_when_asked_for(near: str) -> None:
    sieve = Sieve(settings={"exact.fields": ["text"], "near.method": near})
    assert sieve.judge(["", "", " ", "a"]).kept.tolist() == [True] * 4
    assert sieve.query(["", " ", "a", ""]).kept.tolist() == [True, True, False, True]
    assert sieve.judge(["", "a"]).kept.tolist() == [True, False]
    assert sieve.explain("", "").report.verdict == "unique"


def test_a_saved_sieve_of_raw_texts_goes_on(tmp_path: Path) -> None:
    sieve = Sieve(settings={"exact.fields": ["text"]})
    assert sieve.judge(["A text", "a text", "A text"]).kept.tolist() == [True, True, False]
    sieve.save(tmp_path / "s")
    loaded = Sieve.load(tmp_path / "s")
    assert loaded.judge(["a text", "a  text"], ids=["x", "y"]).leader.tolist() == [1, -1]


def test_a_sieve_that_a_version_with_other_rules_saved_goes_on_and_that_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sieve = Sieve()
    sieve.judge(["The ferry leaves at nine from the old harbour"])
    sieve.save(tmp_path / "s")
    Sieve.load(tmp_path / "s")
    assert not caplog.records
    monkeypatch.setattr(Rule.NUMBER, "version", 99)
    loaded = Sieve.load(tmp_path / "s")
    (record,) = caplog.records
    assert "other rules" in record.message
    assert loaded.judge(["The ferry leaves at nine from the old harbour"]).kept.tolist() == [False]


@settings(max_examples=examples(40))
@given(ROWS, st.integers(1, 40), st.booleans())
def test_verdicts_are_those_of_the_plain_loop(rows: Rows, window: int, pass_same_id: bool) -> None:
    sieve = Sieve(
        settings={
            "near": {"candidates": "scan", "window": {"messages": window, "age": "30s"}, "same_id": "pass" if pass_same_id else "drop"},
            "exact": {"method": "trie", "window": {"messages": window, "age": "30s"}},
        }
    )  # fmt: skip
    batch = batch_of(rows, scoped=True)
    arrivals = np.full(len(batch), 1_000_000, np.int64)
    batch = replace(batch, positions=np.arange(len(batch), dtype=np.int64), arrivals_ms=arrivals)
    config: SieveConfig = sieve._engine.config
    assert config.near.window == Window(window, 30_000)
    expected = told_by_oracle(config, batch)
    verdicts = sieve.judge(
        [text for text, *_ in rows],
        ids=[number or None for _, _, number, _ in rows],
        times=[second for _, second, _, _ in rows],
        scopes=[scope or None for *_, scope in rows],
        time_unit="s",
    )
    assert verdicts.kind.tolist() == [kind for kind, *_ in expected]
    assert verdicts.flags.tolist() == [flags for _, flags, *_ in expected]
    assert verdicts.leader.tolist() == [-1 if one[2] == NO_LEADER else one[2] for one in expected]


@settings(max_examples=examples(12))
@given(st.data())
def test_calls_chunks_and_files_change_nothing(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    texts = [*(post["text"] for post in generate(120, seed=data.draw(st.integers(0, 5)))), None]
    ids = [number if number % 3 else None for number in range(len(texts))]
    exact = data.draw(st.sampled_from(["bloom", "trie"]))
    whole = list(Sieve(window=30, exact_window=50, exact=exact).judge(texts, ids=ids))
    cut = sorted(data.draw(st.lists(st.integers(0, len(texts)), max_size=4)))
    sieve = Sieve(window=30, exact_window=50, exact=exact)
    name = tmp_path_factory.mktemp("saved")
    parts = []
    for low, high in zip([0, *cut], [*cut, len(texts)], strict=True):
        parts += list(sieve.judge(texts[low:high], ids=ids[low:high]))
        for _ in range(data.draw(st.integers(0, 2))):
            sieve.save(name / data.draw(st.sampled_from("ab")))
        if sieve._last is not None and sieve._rows == high and data.draw(st.booleans()):
            sieve.save(name / "a")
            sieve = Sieve.load(name / "a")
    assert parts == whole
    chunk = data.draw(st.integers(1, 150))
    numbered = list(enumerate(texts))
    kept = Sieve(window=30, exact_window=50, exact=exact).dedup(
        numbered, text=lambda item: item[1], chunk=chunk
    )
    assert [number for number, _ in kept] == [one.position for one in whole if one.kept]


def test_slices_of_a_long_column_change_nothing(
    posts: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = _columns(posts)
    whole = Sieve(window=100).judge(**columns).columns()
    monkeypatch.setattr(sieve_module, "_SLICE", 700)
    sliced = Sieve(window=100).judge(**columns).columns()
    for name, column in whole.items():
        np.testing.assert_array_equal(sliced[name], column, name)


def test_a_missing_text_is_kept_and_met_by_nobody() -> None:
    verdicts = Sieve(window=9).judge([None, None, "", ""])
    assert [(one.kept, one.stage, one.leader) for one in verdicts] == [
        (True, "no_text", None),
        (True, "no_text", None),
        (True, "unique", None),
        (False, "exact", 2),
    ]


def test_no_texts_have_no_verdicts() -> None:
    verdicts = Sieve(window=9).judge([])
    assert (len(verdicts), list(verdicts), verdicts.stage.tolist()) == (0, [], [])
    assert list(Sieve(window=9).dedup([])) == []
    assert Sieve(window=9).judge([None]).kept.tolist() == [True]


def test_an_id_is_forgotten_with_its_text_and_the_memory_of_ids_is_bounded() -> None:
    sieve = Sieve(window=10, exact_window=1_000, exact="bloom")
    texts = [f"{chr(0x4E00 + 7 * n)}{chr(0x5E00 + 11 * n)}" for n in range(500)]
    sieve.judge(texts, ids=range(500))
    assert len(sieve._ids) <= 20
    late = sieve.judge([texts[499], texts[0]])
    assert (late[0].leader, late[0].leader_id) == (499, 499)
    assert (late[1].kept, late[1].leader, late[1].leader_id, late[1].unconfirmed) == (False, None, None, True)


def test_ages_count_by_the_times_that_are_given() -> None:
    texts = ["one and the same words"] * 3
    times = ["2020-01-01T00:00:00Z", "2020-01-01T00:59:00Z", "2020-01-01T01:01:00Z"]
    assert Sieve(window=9, max_age="1h").judge(texts, times=times).kept.tolist() == [True, False, True]
    assert Sieve(window=9).judge(texts, times=times).kept.tolist() == [True, False, False]


def test_a_time_far_in_the_future_does_not_empty_the_windows() -> None:
    texts = ["one and the same words", "quite another message", "one and the same words"]
    now = datetime.now(UTC)
    times = [now, "9000-01-01", now]
    assert Sieve(window=9, max_age="1d").judge(texts, times=times).kept.tolist() == [True, True, False]


def test_edits_of_one_id_pass_where_the_settings_say_so() -> None:
    texts = ["The bridge is closed until Friday.", "The bridge is now closed until Friday."]
    for same_id, ids, kept in (("pass", [7, 7], True), ("pass", [7, 8], False), ("drop", [7, 7], False)):
        sieve = Sieve(settings={"near.same_id": same_id, "near.window.messages": 9})
        verdict = sieve.judge(texts, ids=ids)[1]
        assert (verdict.kept, verdict.notes, verdict.reason) == (kept, (), "same id" if kept else None)


# --- columns of verdicts ---


def test_columns_are_arrays_and_rows_say_the_same() -> None:
    texts = [
        "The bridge is closed until Friday.",
        None,
        "the bridge is closed until friday",
        "The bridge is now closed until Friday.",
    ]
    verdicts = Sieve(window=9).judge(texts, ids=["a", "b", "c", "d"])
    columns = verdicts.columns()
    assert {name: column.dtype.kind for name, column in columns.items()} == {
        "position": "i", "kept": "b", "stage": "U", "leader": "i", "leader_id": "O", "similarity": "f",
        "distance": "i", "shared": "i", "estimated": "b", "unconfirmed": "b", "reason": "U", "apart_from": "i",
        "cluster": "i", "apart_from_id": "O", "says": "O", "apart_from_says": "O",
    }  # fmt: skip
    rows = verdicts.to_dict()
    nothing = {"leader": -1, "distance": -1, "shared": -1, "apart_from": -1, "similarity": -1.0, "reason": ""}
    for row, one in enumerate(verdicts):
        said = {name: getattr(one, name) for name in rows}
        said |= {name: empty for name, empty in nothing.items() if said[name] is None}
        assert said == {
            name: -1.0 if column[row] != column[row] else column[row] for name, column in rows.items()
        }
    assert rows.keys() == columns.keys()
    assert {name: column.tolist() for name, column in columns.items() if name != "similarity"} == {
        name: column for name, column in rows.items() if name != "similarity"
    }
    assert verdicts.reason.tolist() == [one.reason or "" for one in verdicts]
    assert rows["leader"] == [-1, -1, 0, 0]
    assert rows["leader_id"] == [None, None, "a", "a"]
    assert 0.85 <= rows["similarity"][3] < 1.0
    assert pd.DataFrame(columns)["kept"].tolist() == [True, True, False, False]
    assert pl.DataFrame(columns)["stage"].to_list() == ["unique", "no_text", "exact", "near"]
    assert pd.DataFrame(rows)["leader"].tolist() == pa.table(rows)["leader"].to_pylist() == [-1, -1, 0, 0]
    assert verdicts[-1] == verdicts[3]
    assert list(verdicts[1:3]) == list(verdicts)[1:3]
    with pytest.raises(IndexError):
        verdicts[4]


def test_verdicts_are_shown_as_a_table_that_no_id_can_break() -> None:
    verdicts = Sieve(window=99).judge(["one and the same words"] * 30, ids=["<b>\x1b[2J" + "x" * 50] * 30)
    shown = repr(verdicts)
    assert shown.splitlines()[0] == "Verdicts: 30 texts, 1 kept (1 unique, 29 exact, 0 near)"
    assert shown.splitlines()[-1] == "… 18 more"
    assert "\x1b" not in shown
    html = verdicts._repr_html_()
    assert "<b>" not in html
    assert "&lt;b&gt;" in html
    assert "\x1b" not in html


# --- dedup ---


def test_dedup_reads_no_further_than_a_chunk() -> None:
    read = []

    def items() -> Iterator[str]:
        for number in range(100):
            read.append(number)
            yield f"{chr(0x4E00 + number)} is a message of its own kind, number {number}"

    stream = Sieve(window=99).dedup(items(), chunk=5)
    assert read == []
    next(stream)
    assert read == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("text", ["body", lambda post: post["body"]])
def test_dedup_takes_rows_and_gives_back_the_same_objects(text: Any) -> None:
    posts = [
        {"body": "Rain until Friday.", "n": 1},
        {"body": "rain until friday!", "n": 2},
        {"body": None, "n": 3},
    ]
    kept = list(Sieve(window=9).dedup(iter(posts), text=text, ids="n", scopes=lambda post: None))
    assert [id(post) for post in kept] == [id(posts[0]), id(posts[2])]


def test_what_was_read_before_the_source_failed_is_judged_and_yielded() -> None:
    def broken() -> Iterator[str]:
        yield "Rain until Friday."
        yield "rain until friday"
        raise OSError("the line is down")

    sieve = Sieve(window=9)
    stream = sieve.dedup(broken())
    assert next(stream) == "Rain until Friday."
    with pytest.raises(OSError, match="the line is down"):
        next(stream)
    assert sieve.judge(["rain until friday"])[0].position == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"items": ["x"] * 7 + [b"y"], "chunk": 3}, "items[7] is bytes, not str; decode it first"),
        ({"items": [{"body": "x"}, {"text": "y"}], "text": "body", "chunk": 1}, "text[1]: the item has no 'body'"),
        ({"items": [{"t": 5}], "text": "t"}, "text[0] is an int (5), not str; convert it first"),
        ({"items": ["x", "y"], "text": "body"}, "text[0]: the item is a str, which has no 'body'"),
        ({"items": [{"t": "x", "i": 1.5}], "text": "t", "ids": "i"}, "ids[0] is a float (1.5); use int or str"),
        ({"items": "text"}, "items is one str, not a column"),
        ({"items": 5}, "items is an int; give a list, a generator or another iterable"),
        ({"items": pd.DataFrame({"t": ["x"]})},
         "items is a DataFrame; name the column of its texts, as in dedup(frame, text='title')"),
        ({"items": pl.DataFrame({"title": ["x"], "n": [1]}), "text": "titel"},
         "text: the DataFrame has no column 'titel' but 'title', 'n'; did you mean 'title'?"),
        ({"items": pd.DataFrame({"text": ["x"]}), "text": "TEXT"},
         "text: the DataFrame has no column 'TEXT' but 'text'; did you mean 'text'?"),
        ({"items": pa.table({"t": ["x"]}), "text": "t", "ids": "i"}, "ids: the Table has no column 'i' but 't'"),
        ({"items": pd.DataFrame([["x", "y"]], columns=["t", "t"]), "text": "t"},
         "text: the DataFrame has several columns 't'; rename them"),
        ({"items": pd.DataFrame({"t": ["x"]}), "text": str}, "text is a type; of a DataFrame name a column"),
        ({"items": pd.DataFrame({"t": ["x", 5]}), "text": "t"}, "text[1] is an int (5), not str"),
        ({"items": [], "chunk": 0}, "chunk is 0; it is a whole number of items, at least 1"),
        ({"items": [], "text": 3}, "text is an int; give a key or a function of an item"),
    ],
)  # fmt: skip
def test_a_misuse_of_dedup_names_argument_and_item(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as error:
        list(Sieve(window=9).dedup(**arguments))
    assert str(error.value).startswith(said)


def _elsewhere(columns: dict[str, list[Any]]) -> pd.DataFrame:
    return pd.DataFrame(columns, index=[3, 3, 1, 0, 9])


_FRAMES: dict[str, Callable[[dict[str, list[Any]]], Any]] = {
    "pandas": pd.DataFrame,
    "pandas with an index": _elsewhere,
    "polars": pl.DataFrame,
    "arrow": pa.table,
    "arrow batch": pa.RecordBatch.from_pydict,
    "arrow chunks": lambda columns: pa.concat_tables([pa.table(columns)[:2], pa.table(columns)[2:]]),
}


@pytest.mark.parametrize("make", _FRAMES.values(), ids=_FRAMES.keys())
def test_a_frame_comes_back_as_one_of_its_type_with_the_kept_rows(make: Callable[..., Any]) -> None:
    first = "The bridge is closed."
    frame = make(
        {
            "n": [1, 2, 3, 4, 5],
            "title": [first, None, first.lower(), "A ferry was late", f"{first}!"],
            "forum": ["a", "a", "b", "b", "a"],
        }
    )

    def rows(numbers: list[int]) -> Any:
        return (
            frame.iloc[numbers]
            if isinstance(frame, pd.DataFrame)
            else frame[numbers]
            if isinstance(frame, pl.DataFrame)
            else frame.take(pa.array(numbers, pa.int64()))
        )

    for kept, numbers in (
        (Sieve(window=9).dedup(frame, text="title"), [0, 1, 3]),
        (Sieve(window=9).dedup(frame, "title", ids="n", scopes="forum"), [0, 1, 2, 3]),
        (Sieve(window=9).dedup(rows([]), text="title"), []),
    ):
        assert type(kept) is type(frame)
        assert kept.equals(rows(numbers))


def test_times_of_a_frame_let_texts_grow_old() -> None:
    days = pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-09"])
    frame = pd.DataFrame({"t": ["the same words"] * 3, "at": days})
    kept = Sieve(window=9, max_age="3d").dedup(frame, text="t", times="at")
    assert kept.index.tolist() == [0, 2]


def test_an_age_limit_without_times_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    sieve, timed, plain = Sieve(window=9, max_age="1d"), Sieve(window=9, max_age="1d"), Sieve(window=9)
    sieve.judge([])
    for _ in range(2):
        sieve.judge(["one and the same words"])
    timed.judge(["one and the same words"], times=["2020-01-01"])
    plain.judge(["one and the same words"])
    told = [record.getMessage() for record in caplog.records if "times" in record.getMessage()]
    assert told == [
        "max_age has no effect, because no times were given; give judge(…, times=…), or no max_age"
    ]


# --- settings ---


def test_settings_are_those_of_the_command_and_keywords_count_first(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("near: {similarity: 0.7, window: {messages: 50}}\n")
    for chosen in (
        tmp_path / "s.yaml",
        str(tmp_path / "s.yaml"),
        {"near": {"similarity": 0.7, "window": {"messages": 50}}},
    ):
        config = Sieve(settings=chosen, differences="off")._engine.config
        assert (config.near.similarity, config.near.window, config.near.differences.level) == (
            7_000,
            Window(50),
            OFF,
        )
        assert Sieve(settings=chosen, similarity=0.9)._engine.config.near.similarity == 9_000


def test_a_sieve_without_settings_judges_as_the_commands_without_an_age() -> None:
    sieve = Sieve()
    assert (sieve._settings.profile, sieve._settings.near.similarity) == (
        Settings().profile,
        Settings().near.similarity,
    )
    assert (sieve._engine.config.near.window, sieve._engine.config.exact.window) == (
        Window(Settings().near.window.messages),
        Window(Settings().exact.window.messages),
    )
    tagged = Sieve(window=9, similarity=0.95).judge(
        ["#onetag# these are the same words", "#another# these are the same words"]
    )
    assert tagged.kept.tolist() == [True, False]


def test_every_problem_of_the_settings_is_told_at_once_with_its_argument() -> None:
    with pytest.raises(ConfigError) as error:
        Sieve(similarity=2, window=0, near="meaning", max_age="3")  # type: ignore[arg-type]
    assert [finding.split(" is ")[0] for finding in error.value.findings] == [
        "max_age", "near", "similarity", "window",
    ]  # fmt: skip
    with pytest.raises(ConfigError) as error:
        Sieve(max_age=3600)  # type: ignore[arg-type]
    assert error.value.findings == [
        "max_age is 3600, not a duration; write a number and a unit (ms, s, m, h, d, w), as in 24h"
    ]
    with pytest.raises(ConfigError, match=r"^window is 2\.5, not a whole number; write digits alone"):
        Sieve(window=2.5)  # type: ignore[arg-type]
    assert Sieve(window=1e3).stats().capacity == 1_000  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="settings: unknown key 'similarty'; did you mean"):
        Sieve(settings={"similarty": 0.9})
    with pytest.raises(ConfigError, match=r"near\.similarity is given twice"):
        Sieve(settings={"near.similarity": 0.9, "near": {"similarity": 0.8}})
    with pytest.raises(ConfigError, match=r"seed cannot be read") as secret:
        Sieve(seed=-77)
    assert "77" not in str(secret.value)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"settings": 5}, "settings is an int; give the path of a YAML file, or a mapping"),
        (
            {"settings": {"exact.fields": ["id"], "near.method": "none"}},
            "exact.fields is [id], but a sieve of texts knows no fields besides the text (text); give [text]",
        ),
        ({"settings": {"exact.fields": ["text", "id"]}}, "exact.fields is [text, id], but a sieve"),
        (
            {"settings": {"exact.fields": ["body"], "input.text_field": ["title", "body"]}},
            "exact.fields is [body], but a sieve",
        ),
        ({"settings": {"scope": ["tenant"]}}, "scope names fields of messages"),
        ({"distance": 3}, "distance is for near='hamming'"),
        ({"threads": 0}, "threads is 0; give a whole number from 1 on"),
        ({"threads": True}, "threads is True; give a whole number from 1 on"),
        ({"near": "hamming", "similarity": 0.9}, "similarity is for near='text', but near is 'hamming'"),
    ],
)
def test_what_no_sieve_of_texts_can_do_is_refused(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as error:
        Sieve(**arguments)
    assert str(error.value).startswith(said)


# --- files ---


def _content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def _written(folder: Path, before: dict[str, bytes]) -> int:
    """Bytes of the files, without the manifest, that a save has added to what was there."""
    now = _content(folder)
    assert {name for name, content in before.items() if now.get(name, content) != content} <= {"state"}
    return sum(len(content) for name, content in now.items() if name not in before)


def _own_texts(count: int, first: int = 0) -> list[str]:
    return [
        f"{chr(0x4E00 + n)}{chr(0x5E00 + n)} a message of its own {n}" for n in range(first, first + count)
    ]


def test_a_saved_sieve_is_private_and_holds_no_seed(tmp_path: Path) -> None:
    sieve = Sieve(window=9, seed=918_273_645)
    sieve.judge(["one and the same words"], ids=["a"])
    sieve.save(tmp_path / "s")
    assert (tmp_path / "s").stat().st_mode & 0o777 == 0o700
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in (tmp_path / "s").iterdir())
    assert b"918273645" not in b"".join(_content(tmp_path / "s").values())
    with pytest.raises(
        UsageError, match=r"was saved with a secret seed; give it, as in Sieve.load\(path, seed=…\)"
    ):
        Sieve.load(tmp_path / "s")
    with pytest.raises(StateError, match="fingerprint scheme"):
        Sieve.load(tmp_path / "s", seed=5)
    verdict = Sieve.load(tmp_path / "s", seed=918_273_645).judge(["one and the same words"])[0]
    assert (verdict.position, verdict.stage, verdict.leader_id) == (1, "exact", "a")


def test_a_save_writes_what_is_new(tmp_path: Path) -> None:
    """Also of a loaded sieve; the manifest holds what is small, and is written each time."""
    name = tmp_path / "s"
    sieve = Sieve(window=2_000, exact_window=2_000)
    texts = _own_texts(1_100)
    sieve.judge(texts[:1_000], ids=list(range(1_000)))
    sieve.save(name)
    whole = _written(name, {})
    before = _content(name)
    sieve.judge(texts[:1_000])
    sieve.save(name)
    assert _written(name, before) == 0, "nothing was kept"
    sizes = []
    for low in (1_000, 1_050):
        before = _content(name)
        sieve.judge(texts[low : low + 50])
        sieve.save(name)
        sizes.append(_written(name, before))
        sieve = Sieve.load(name)
    assert all(0 < size < whole / 5 for size in sizes), (sizes, whole)
    assert sieve.judge(texts).kept.sum() == 0
    before = _content(name)
    sieve.save(tmp_path / "other")
    assert _written(tmp_path / "other", {}) > whole / 2
    assert _content(name) == before
    assert Sieve.load(tmp_path / "other").judge(texts).kept.sum() == 0


def test_segments_that_fill_while_a_sieve_is_loaded_lie_in_files(tmp_path: Path) -> None:
    texts = [post["text"] for post in generate(900, seed=4)]
    cut = {"near.window.messages": 500, "near.segment": 60, "state.scratch": str(tmp_path)}
    plain, sieve = Sieve(settings=cut), Sieve(settings=cut)
    expected = plain.judge(texts)
    sieve.judge(texts[:600])
    sieve.save(tmp_path / "saved")
    loaded = Sieve.load(tmp_path / "saved")
    # The first call after a load takes over what was written meanwhile.
    loaded._engine.near.segments.wait_for_files()
    assert loaded.judge(texts[600:]).kept.tolist() == expected.kept[600:].tolist()
    assert loaded._engine.stats().bytes_mapped > 0


def test_between_saves_nothing_is_open_or_written_and_memory_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("twinsieve.api.saved_sieve.RECORD_MESSAGES", 100)
    name, texts = tmp_path / "s", _own_texts(700)
    sieve = Sieve(window=1_000, exact_window=1_000)
    sieve.save(name)
    files = os.listdir("/proc/self/fd")
    for high in (90, 350, 420):
        before = _content(name)
        low = sieve.stats().kept
        sieve.judge(texts[low:high])
        assert _content(name) == before
        assert sieve._last is not None
        assert sum(len(run) for _, run in sieve._last.held.runs) <= 100
        sieve.save(name)
        memory = {file for file in os.listdir(name) if file.startswith("near-")} - set(before)
        assert bool(memory) == (high == 350), "from 100 kept texts on, a save is whole"
        assert len(os.listdir("/proc/self/fd")) <= len(files)
        for writes in [one for one in threading.enumerate() if one.name.startswith("twinsieve-pieces")]:
            writes.join(300)  # it ends by itself, a moment after its last piece
            assert not writes.is_alive()
        assert Sieve.load(name).judge(texts).kept.sum() == len(texts) - high


def test_two_sieves_that_save_in_one_folder_replace_each_other(tmp_path: Path) -> None:
    name, texts = tmp_path / "s", _own_texts(300)
    sieve = Sieve(window=1_000)
    sieve.judge(texts[:100])
    sieve.save(name)
    other = Sieve.load(name)
    sieve.judge(texts[100:200])
    other.judge(texts[200:])
    for one, new in ((sieve, slice(200, 300)), (other, slice(100, 200)), (sieve, slice(200, 300))):
        one.save(name)
        assert np.flatnonzero(Sieve.load(name).judge(texts).kept).tolist() == list(range(300))[new]
    assert len(os.listdir(name)) <= 4, "what no manifest names is deleted"


def test_a_load_during_a_save_reads_one_of_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The save deletes files that the manifest names which the load has just read."""
    name, texts = tmp_path / "s", _own_texts(20)
    sieve = Sieve(window=100)
    sieve.judge(texts[:10])
    sieve.save(name)
    read = saved_sieve.ManifestReader
    saves = [1]

    def read_and_saved(*args: Any) -> Any:
        manifest = read(*args)
        if saves:
            saves.pop()
            whole = Sieve(window=100)
            whole.judge(texts)
            whole.save(name)
        return manifest

    monkeypatch.setattr(saved_sieve, "ManifestReader", read_and_saved)
    assert Sieve.load(name).judge(texts).kept.sum() == 0
    assert not saves


@settings(max_examples=examples(60))
@given(st.floats(0, 1, exclude_max=True), st.floats(0, 1, exclude_max=True), st.booleans(), st.integers(0, 7))
def test_a_damaged_file_is_refused(
    tmp_path_factory: pytest.TempPathFactory, which: float, where: float, cut: bool, bit: int
) -> None:
    name = tmp_path_factory.mktemp("damaged") / "s"
    texts = ["one and the same words", "quite another message", "a third one of its own"]
    sieve = Sieve(window=9, exact_window=9)
    sieve.judge(texts[:2], ids=["a", 10**30])
    sieve.save(name)
    sieve.judge(texts[2:])
    sieve.save(name)
    paths = sorted(name.iterdir())
    assert len(paths) == 6, (
        "manifest, near stage, kept texts, ids, a full generation of the exact stage, new keys"
    )
    path = paths[int(which * len(paths))]
    content = bytearray(path.read_bytes())
    at = int(where * len(content))
    if cut:
        del content[at:]
    else:
        content[at] ^= 1 << bit
    path.write_bytes(content)
    with pytest.raises(StateError) as refused:
        Sieve.load(name)
    assert str(refused.value).startswith(f"{path}: ")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("kind", ["near", "kept", "ids", "state"])
def test_a_missing_file_is_named_with_what_to_do(tmp_path: Path, kind: str) -> None:
    name = tmp_path / "s"
    sieve = Sieve(window=9)
    for text in ("one and the same words", "quite another message"):
        sieve.judge([text], ids=[text])
        sieve.save(name)
    (path,) = [path for path in name.iterdir() if path.name.partition("-")[0] == kind]
    path.unlink()
    before = _content(name)
    with pytest.raises(
        StateError, match=rf"^{path}: is missing; restore it from a copy, or start with a new Sieve$"
    ):
        Sieve.load(name)
    assert _content(name) == before


@settings(max_examples=examples(20))
@given(
    st.lists(
        st.text(st.characters(), max_size=4) | st.integers(-(2**128) + 1, 2**128 - 1) | st.none(), max_size=12
    ),
    st.integers(1, 5),
)
def test_ids_come_back_as_they_were_through_a_file(
    tmp_path_factory: pytest.TempPathFactory, ids: list[str | int | None], block: int
) -> None:
    texts = [f"{chr(0x4E00 + n)} a message of its own {n}" for n in range(len(ids))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("twinsieve.api.leader_ids._BLOCK", block)
        sieve = Sieve(window=5, exact_window=20, exact="trie")
    name = tmp_path_factory.mktemp("ids") / "s"
    for half in (slice(0, 7), slice(7, None)):
        sieve.judge(texts[half], ids=ids[half])
        before = _content(name) if name.exists() else {}
        sieve.save(name)
        full = {file for file in before if file.startswith("ids-") and file.split("-")[2] == str(block)}
        assert full <= set(_content(name)), "full blocks are not written again"
        assert all(int(file.split("-")[2]) <= block for file in _content(name) if file.startswith("ids-"))
    found = Sieve.load(name).judge(texts).leader_id.tolist()
    assert (found, list(map(type, found))) == (ids, list(map(type, ids)))


def test_files_of_others_are_refused_with_what_to_do(tmp_path: Path) -> None:
    """And are not changed."""
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "old").write_bytes(b"twinsieve sieve\n\x01\0and so on")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine").write_text("text")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "state").write_bytes(b"twinsieve files\n\x04\0and so on")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for name, said in (
        ("empty", "/empty: is not what Sieve.save wrote, but a file; name a folder, or a new one"),
        (
            "old",
            "/old: is a file that an earlier version of twinsieve wrote, and now a folder is written; name a ",
        ),
        (
            "notes",
            "/notes: is a folder with other files, not what Sieve.save wrote; name another folder, or a new",
        ),
        ("run", "/run/state: is not what Sieve.save wrote; name the right folder, or start with a new Sieve"),
    ):
        for call in (Sieve.load, Sieve(window=9).save):
            with pytest.raises(StateError, match=said):
                call(tmp_path / name)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    with pytest.raises(FileError, match="cannot be read: No such file"):
        Sieve.load(tmp_path / "none")
    with pytest.raises(FileError, match=r"there is no folder .*/no; make it: mkdir"):
        Sieve(window=9).save(tmp_path / "no" / "folder")
    with pytest.raises(UsageError, match="path is '-'"):
        Sieve(window=9).save("-")
    Sieve(window=9).save(tmp_path / "s")
    content = bytearray((tmp_path / "s" / "state").read_bytes())
    content[16] = 9
    (tmp_path / "s" / "state").write_bytes(content)
    with pytest.raises(
        StateError, match="has format version 9, this program reads 3; use the program that wrote it"
    ):
        Sieve.load(tmp_path / "s")
    used = pytest.raises(FileError, match="another process is using it; let it end, or name another folder")
    with StateFolder(str(tmp_path / "s"), SIEVE).locked(), used:
        Sieve(window=9).save(tmp_path / "s")
    Sieve(window=9).save(tmp_path / "s")
    assert Sieve.load(tmp_path / "s").stats().kept == 0, "a damaged one may be replaced"
    (tmp_path / "link").symlink_to(tmp_path / "behind")
    Sieve(window=9).save(tmp_path / "link")
    assert Sieve.load(tmp_path / "behind").stats().kept == 0


@pytest.mark.parametrize("after", range(5))
def test_a_save_that_fails_leaves_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    """After some files were put on disk: kept texts, ids, the manifest; the next save is not a whole one."""
    name = tmp_path / "s"
    texts = _own_texts(60)
    sieve = Sieve(window=100)
    sieve.judge(texts[:20], ids=list(range(20)))
    sieve.save(name)
    before = _content(name)
    sieve.judge(texts[20:40], ids=list(range(20)))
    calls = []
    fsync = os.fsync

    def full(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) > after:
            raise OSError(28, "No space left on device")
        fsync(descriptor)

    saves = [(sieve, name)] if after > 1 else [(sieve, name), (Sieve(window=9), tmp_path / "new")]
    for one, path in saves:
        calls.clear()
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(FileError, match="No space left on device"):
                one.save(path)
    assert _content(name) == before
    assert os.listdir(tmp_path) == ["s"]
    assert Sieve.load(name).judge(texts).kept.sum() == 40
    sieve.judge(texts[40:50])
    sieve.save(name)
    assert {file for file in before if file.startswith("near")} <= set(_content(name))
    assert Sieve.load(name).judge(texts).kept.sum() == 10


def test_an_interruption_when_a_save_has_its_name_deletes_none_of_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, texts = tmp_path / "s", _own_texts(40)
    sieve = Sieve(window=100)
    sieve.judge(texts[:20])
    sieve.save(name)
    sieve.judge(texts[20:30])
    place = Output.place

    def interrupted(output: Output) -> None:
        place(output)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Output, "place", interrupted)
        with pytest.raises(KeyboardInterrupt):
            sieve.save(name)
    assert Sieve.load(name).judge(texts).kept.sum() == 10
    sieve.judge(texts[30:])
    sieve.save(name)
    assert Sieve.load(name).judge(texts).kept.sum() == 0


# --- one sieve, many hands ---


def test_threads_may_share_a_sieve() -> None:
    sieve = Sieve(window=1_000)
    texts = [f"{chr(0x4E00 + n)} a message of its own {n}" for n in range(200)]
    found: list[list[bool]] = []

    def work() -> None:
        found.append([kept for text in texts for kept in sieve.judge([text]).kept.tolist()])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [sum(column) for column in zip(*found, strict=True)] == [1] * len(texts)
    assert sieve.judge(["one more"])[0].position == 800


def test_calls_and_saves_hold_the_sieve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sieve = Sieve(window=9)
    held = []

    def held_while(method: Any) -> Any:
        def call(engine: BatchSieve, *arguments: Any) -> Any:
            held.append(sieve._lock.locked())
            return method(engine, *arguments)

        return call

    for name in ("judge", "freeze", "stats"):
        monkeypatch.setattr(BatchSieve, name, held_while(getattr(BatchSieve, name)))
    sieve.judge(["x"])
    sieve.save(tmp_path / "s")
    sieve.stats()
    assert len(held) > 3
    assert all(held)
    assert not sieve._lock.locked()


def test_a_fork_of_a_sieve_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A forked child has the pool of threads without its threads, and would wait for ever."""
    sieve = Sieve(window=9)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(UsageError, match=r"made in another process; use save\(path\) there and Sieve.load"):
        sieve.judge(["x"])


def test_a_sieve_is_not_pickled() -> None:
    with pytest.raises(TypeError, match=r"use save\(path\) and Sieve.load\(path\)"):
        pickle.dumps(Sieve(window=9))


def test_an_interrupted_call_ends_the_sieve_and_an_earlier_file_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state then holds texts whose verdicts nobody has: judged again, they would repeat themselves."""
    sieve = Sieve(window=9)
    sieve.save(tmp_path / "s")
    judge = BatchSieve.judge

    def interrupted(engine: BatchSieve, batch: Any, meanwhile: Any) -> Any:
        judge(engine, batch, meanwhile)
        raise KeyboardInterrupt

    monkeypatch.setattr(BatchSieve, "judge", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sieve.judge(["one and the same words"])
    monkeypatch.undo()
    with pytest.raises(UsageError, match="an earlier call was interrupted while it judged"):
        sieve.judge(["one and the same words"])
    with pytest.raises(UsageError, match="an earlier call was interrupted"):
        sieve.save(tmp_path / "s")
    assert Sieve.load(tmp_path / "s").judge(["one and the same words"]).kept.tolist() == [True]


def test_a_full_window_that_nobody_chose_is_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    default_window(monkeypatch, 3)
    caplog.set_level(logging.WARNING, "twinsieve")
    texts = [f"{chr(0x4E00 + n)} a message of its own {n}" for n in range(5)]
    sieve = Sieve()
    sieve.judge(texts[:2])
    assert caplog.messages == []
    sieve.judge(texts[2:])
    sieve.judge(texts)
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith("the window of 3 kept texts is full")
    caplog.clear()
    Sieve(window=3).judge(texts)
    assert caplog.messages == []


def test_slices_without_any_text_stop_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next slice is read while one is judged, and there is nothing to judge in these."""
    monkeypatch.setattr(sieve_module, "_SLICE", 4)
    texts = (
        [None] * 9 + ["the same words twice"] + [None] * 9 + ["the same words twice", "others"] + [None] * 9
    )
    judged = Sieve(threads=2).judge(texts)
    assert np.flatnonzero(judged.stage != "no_text").tolist() == [9, 19, 20]
    assert judged.leader[19] == 9
    assert judged.kept[20]
