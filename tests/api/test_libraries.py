"""Frames of other libraries are judged as the list of their texts, and come back as their users expect."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tests.generated_posts import generate
from twinsieve import Sieve, UsageError
from twinsieve.api import frames

_POSTS = [
    {"n": number, "text": None if number % 100 == 7 else post["text"], "forum": "ab"[number % 2]}
    for number, post in enumerate(generate(2_000, seed=5))
]
_COLUMNS = {name: [post[name] for post in _POSTS] for name in ("n", "text", "forum")}

_SPLITS = datasets.DatasetDict({"train": datasets.Dataset.from_dict({"text": ["a text"]})})


def _expected(**scopes: list[Any]) -> list[int]:
    """Numbers of the rows that are kept, judged as lists."""
    kept = Sieve().judge(_COLUMNS["text"], **scopes).kept  # type: ignore[arg-type]
    return [post["n"] for post, one in zip(_POSTS, kept, strict=True) if one]


def _on_disk(columns: dict[str, list[Any]], folder: Path) -> datasets.Dataset:
    datasets.Dataset.from_dict(columns).save_to_disk(folder)
    return datasets.Dataset.load_from_disk(folder)


def _shuffled_back(columns: dict[str, list[Any]], _folder: Path) -> datasets.Dataset:
    """Rows in the order of an index, as filters and shuffles leave them."""
    turned = datasets.Dataset.from_dict({name: column[::-1] for name, column in columns.items()})
    return turned.select(range(len(turned) - 1, -1, -1))


@pytest.mark.parametrize(
    "make",
    [
        lambda columns, _: datasets.Dataset.from_dict(columns),
        lambda columns, _: datasets.Dataset.from_dict(columns).with_format("pandas"),
        _on_disk,
        _shuffled_back,
    ],
    ids=["in memory", "another format", "on disk", "through an index"],
)
def test_a_dataset_comes_back_with_the_kept_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[..., Any]
) -> None:
    monkeypatch.setattr(frames, "_BATCH_ROWS", 300)
    given = make(_COLUMNS, tmp_path / "d")
    for kept, expected in (
        (Sieve().dedup(given, text="text"), _expected()),
        (Sieve().dedup(given, text="text", ids="n", scopes="forum"), _expected(scopes=_COLUMNS["forum"])),
    ):
        assert type(kept) is datasets.Dataset
        assert kept.features == given.features
        assert kept.with_format(None)["n"][:] == expected
    assert Sieve().judge(given.with_format(None)["text"]).kept.sum() == len(_expected())
    assert len(Sieve().dedup(given.select([]), text="text")) == 0


def test_a_stream_of_a_dataset_is_read_as_items() -> None:
    stream = datasets.Dataset.from_dict(_COLUMNS).to_iterable_dataset()
    assert [row["n"] for row in Sieve().dedup(stream, text="text", chunk=300)] == _expected()


def test_a_map_over_batches_gives_the_same_rows() -> None:
    sieve = Sieve()
    given = datasets.Dataset.from_dict(_COLUMNS)
    kept = given.filter(
        lambda batch: sieve.judge(batch["text"]).kept.tolist(),
        batched=True,
        load_from_cache_file=False,
        new_fingerprint="x",
    )
    assert kept["n"][:] == _expected()


def test_a_relation_comes_back_as_an_arrow_table(tmp_path: Path) -> None:
    table = pa.table(_COLUMNS)
    connection = duckdb.connect()
    relation = connection.from_arrow(table)
    kept: Any = Sieve().dedup(relation, text="text")
    assert isinstance(kept, pa.Table)
    assert kept["n"].to_pylist() == _expected()
    assert duckdb.sql("select count(*) from kept").fetchall() == [(len(_expected()),)]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: Sieve().dedup(pl.LazyFrame(_COLUMNS), text="text"),  # type: ignore[call-overload]
            "items is a LazyFrame, which has no rows yet; give items.collect()",
        ),
        (lambda: Sieve().judge(pl.LazyFrame(_COLUMNS)), "texts is a LazyFrame, which has no rows yet"),
        (
            lambda: Sieve().dedup(_SPLITS, text="text"),  # type: ignore[call-overload]
            "items is a DatasetDict; give one of its splits, as items['train']",
        ),
        (lambda: Sieve().judge(_SPLITS), "texts is a DatasetDict; give one of its splits, as texts['train']"),
        (
            lambda: Sieve().dedup(datasets.Dataset.from_dict(_COLUMNS), text="body"),
            "text: the Dataset has no column 'body' but 'n', 'text', 'forum'",
        ),
        (
            lambda: Sieve().dedup(datasets.Dataset.from_dict(_COLUMNS)),
            "items is a Dataset; name the column of its texts",
        ),
        (
            lambda: Sieve().judge(duckdb.sql("select 'x' as text")),
            "texts is a DuckDBPyRelation, not a column",
        ),
        (
            lambda: Sieve().dedup(pd.DataFrame(_COLUMNS), text="text", on_drop=print),  # type: ignore[call-overload]
            "on_drop is for an iterable of items; of a frame, judge(…) has all verdicts",
        ),
    ],
)
def test_what_has_no_rows_is_refused_in_one_line(call: Callable[[], Any], said: str) -> None:
    """Warnings are errors in these tests: polars warns whoever asks a lazy frame for its columns."""
    with pytest.raises(UsageError) as error:
        call()
    assert str(error.value).startswith(said)
    assert "\n" not in str(error.value)


def test_a_row_of_a_later_batch_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "_BATCH_ROWS", 2)
    given = datasets.Dataset.from_dict(
        {"text": ["one of them", "another one", "a third one"], "at": ["2020-01-01", "2020-01-02", "now"]}
    )
    with pytest.raises(UsageError, match=r"times\[2\] is 'now'"):
        Sieve(max_age="1d").dedup(given, text="text", times="at")


_TEXTS = [
    "The bridge is closed until Friday.", None, "the bridge is closed until friday",
    "The bridge is now closed until Friday.", "The bridge is closed until Monday.",
]  # fmt: skip


def _as_row(one: Any, names: list[str]) -> dict[str, Any]:
    return {name: getattr(one, name) for name in names}


def test_verdicts_are_a_table_of_arrow_with_nulls_for_what_is_missing() -> None:
    verdicts = Sieve().judge(_TEXTS, ids=["a", "b", "c", "d", "e"])
    expected = [_as_row(one, list(verdicts.columns())) for one in verdicts]
    assert pa.table(verdicts).to_pylist() == expected
    assert pl.DataFrame(pa.table(verdicts)).to_dicts() == expected
    found = duckdb.sql("select position, leader_id from verdicts where not kept").fetchall()
    assert found == [(2, "a"), (3, "a")]
    assert pa.table(Sieve().judge([])).num_rows == 0
    with pytest.raises(UsageError, match="ids are of several types"):
        pa.table(
            Sieve().judge(
                ["the same words twice"] * 3 + ["A ferry was late on Monday"] * 2, ids=["a", 1, 2, 3, 4]
            )
        )
