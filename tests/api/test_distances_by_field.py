"""Title and body with a SimHash each: both must be near, on files and in Python, as a plain loop says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.calling import SMALL, Run
from tests.examples import examples
from twinsieve import Sieve, UsageError, simhash
from twinsieve.stages.judge.scheme import FieldLines, Scheme, SchemeConfig, join_fields
from twinsieve.stages.text.rules import TextConfig

_FIELDS = ["title", "body"]
_WORDS = (
    "the",
    "ferry",
    "leaves",
    "at",
    "nine",
    "today",
    "rain",
    "until",
    "friday",
    "bridge",
    "closed",
    "city",
)
_PLAIN = Scheme(SchemeConfig(text=TextConfig(profile="plain")))


def _text(low: int, high: int) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(_WORDS), min_size=low, max_size=high).map(" ".join)


_BASES = st.lists(st.tuples(_text(2, 5), _text(8, 14)), min_size=1, max_size=4)


@st.composite
def _posts(draw: st.DrawFn) -> list[dict[str, str | None]]:
    """Titles and bodies in crowds: a word more or less in the one or the other, and missing ones."""
    bases = draw(_BASES)
    posts: list[dict[str, str | None]] = []
    for _ in range(draw(st.integers(1, 30))):
        title, body = draw(st.sampled_from(bases))
        title += draw(st.sampled_from(["", "", " again", "\nnow"]))
        body += draw(st.sampled_from(["", "", " again", "\nmore to come", " again and again"]))
        lacks = draw(st.sampled_from(["", "", "", "", "title", "body"]))
        posts.append(
            {name: None if name == lacks else text for name, text in (("title", title), ("body", body))}
        )
    return posts


def _simhash(text: str | None) -> int | None:
    _, prints = _PLAIN.read([text or ""])
    return int(prints.simhashes[0, 0]) if prints.has_simhash[0] else None


def _plain_loop(posts: list[dict[str, str | None]], limits: dict[str, int]) -> list[tuple[int, int]]:
    """(leader, distance) of each post, (-1, -1) if it is kept: compared with every kept one."""
    said, kept = [], []
    for row, post in enumerate(posts):
        prints = [
            _simhash((post[name] or "").replace("\n", " ") if name == "title" else post[name])
            for name in limits
        ]
        best = (-1, -1)
        for leader, others in kept:
            if None in prints or None in others:
                continue
            bits = [(one ^ other).bit_count() for one, other in zip(prints, others, strict=True)]
            if all(bit <= k for bit, k in zip(bits, limits.values(), strict=True)) and (
                best[0] < 0 or sum(bits) < best[1]
            ):
                best = leader, sum(bits)
        if best[0] < 0:
            kept.append((row, prints))
        said.append(best)
    return said


def _settings(limits: dict[str, int], **near: object) -> dict[str, Any]:
    return {
        "profile": "plain",
        "exact": {"method": "none"},
        "near": {"method": "hamming", "distances_by_field": limits, "window": {"messages": 2000}, **near},
        "input": {"text_field": _FIELDS},
    }


_LIMITS = st.sampled_from(
    [{"title": 3, "body": 3}, {"title": 0, "body": 7}, {"title": 7, "body": 2}, {"body": 5}, {"title": 7}]
)


@settings(max_examples=examples(60))
@given(_posts(), _LIMITS, st.sampled_from(["index", "scan"]), st.sampled_from([1, 7, 1000]))
def test_the_sieve_says_what_the_plain_loop_says(
    posts: list[dict[str, str | None]], limits: dict[str, int], candidates: str, size: int
) -> None:
    sieve = Sieve(settings=_settings(limits, candidates=candidates))
    said = []
    for low in range(0, len(posts), size):
        part = posts[low : low + size]
        verdicts = sieve.judge({name: [post[name] for post in part] for name in _FIELDS})
        leaders = np.where(verdicts.kept, -1, verdicts.leader)
        said += list(zip(leaders.tolist(), verdicts.distance.tolist(), strict=True))
    assert said == _plain_loop(posts, limits)


_POSTS = [
    {
        "id": 1,
        "title": "Ferry to the island",
        "body": "The ferry leaves at nine today and comes back at noon.",
    },
    {
        "id": 2,
        "title": "Ferry to the island!",
        "body": "The ferry leaves at nine today and comes back at noon.",
    },
    {"id": 3, "title": "Rain until Friday", "body": "The ferry leaves at nine today and comes back at noon."},
    {
        "id": 4,
        "title": "Ferry to the island",
        "body": "Nobody knows when the bridge will open again this year.",
    },
    {"id": 5, "body": "The ferry leaves at nine today and comes back at noon."},
    {"id": 6, "title": "Ferry to the island"},
    {"id": 7, "title": None, "body": None},
]
_KEPT = [1, 3, 4, 5, 6, 7]


def _near_only() -> dict[str, Any]:
    return _settings({"title": 3, "body": 3})


@pytest.mark.parametrize(
    "make",
    [
        lambda columns: columns,
        pd.DataFrame,
        lambda columns: pl.DataFrame(columns, strict=False),
        pa.table,
    ],
    ids=["mapping", "pandas", "polars", "arrow"],
)
def test_frames_and_mappings_of_columns_are_judged_alike(make: Any) -> None:
    columns = {name: [post.get(name) for post in _POSTS] for name in ("id", *_FIELDS)}
    verdicts = Sieve(settings=_near_only()).judge(make(columns))
    assert [row + 1 for row in np.flatnonzero(verdicts.kept)] == _KEPT
    assert (verdicts[1].leader, verdicts[1].distance) == (0, 0)
    assert verdicts[6].stage == "no_text"
    assert [row + 1 for row in range(6) if "no_features" in verdicts[row].notes] == [5, 6]
    if not isinstance(make(columns), dict):
        frame = Sieve(settings=_near_only()).dedup(make(columns))
        assert list(frame["id"].to_pylist() if hasattr(frame, "num_columns") else frame["id"]) == _KEPT


def test_a_stream_of_mappings_is_deduplicated() -> None:
    kept = Sieve(settings=_near_only()).dedup(iter(_POSTS), ids="id", chunk=2)
    assert [post["id"] for post in kept] == _KEPT


def test_a_saved_sieve_goes_on(tmp_path: Path) -> None:
    sieve = Sieve(settings=_near_only())
    sieve.judge({name: [post.get(name) for post in _POSTS[:1]] for name in _FIELDS})
    sieve.save(tmp_path / "s")
    verdicts = Sieve.load(tmp_path / "s").judge(
        {name: [post.get(name) for post in _POSTS] for name in _FIELDS}
    )
    assert verdicts.leader[:2].tolist() == [0, 0]
    assert [row + 1 for row in np.flatnonzero(verdicts.kept)] == _KEPT[1:]


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (
            ["a text"],
            "texts is a list, but near.distances_by_field compares fields; give a frame, or a mapping",
        ),
        ({"text": ["x"]}, "texts has no column 'title' or 'body'"),
        ({"title": ["x"], "body": ["x", "y"]}, "body has 2 rows, title has 1"),
        ({"title": [b"x"]}, "title[0] is bytes, not str; decode it first"),
        (pd.DataFrame({"title": ["x"]}), "texts: the DataFrame has no column 'body' but 'title'"),
    ],
)
def test_a_misuse_names_column_and_row(texts: Any, said: str) -> None:
    with pytest.raises(UsageError) as error:
        Sieve(settings=_near_only()).judge(texts)
    assert str(error.value).startswith(said)


def test_items_that_are_no_mappings_and_a_text_beside_fields_are_refused() -> None:
    with pytest.raises(UsageError, match=r"items\[0\] is a str, but near.distances_by_field compares fields"):
        list(Sieve(settings=_near_only()).dedup(["a text"]))
    with pytest.raises(
        UsageError, match=r"text is 'body', but input\.text_field of the settings is \[title, body\]"
    ):
        Sieve(settings=_near_only()).dedup(_POSTS, text="body")


def test_a_simhash_of_several_fields_is_refused() -> None:
    with pytest.raises(
        UsageError, match=r"near\.distances_by_field, which gives each field a SimHash of its own"
    ):
        simhash(["a title\na body"], settings=_near_only())


_FLAGS = (
    *SMALL, "--profile", "plain", "--set", "near.method=hamming", "--set", "exact.method=none",
    "--set", "input.text_field=title,body", "--set", "near.distances_by_field=title:3,body:7",
)  # fmt: skip


def test_files_are_judged_by_field_and_told_the_sum(tmp_path: Path, run: Run) -> None:
    source, duplicates, output = (tmp_path / name for name in ("in.jsonl", "dup.jsonl", "out.jsonl"))
    posts = [
        *_POSTS,
        {"id": 8, "title": "Ferry to the island", "body": f"{_POSTS[0]['body']} Again at noon."},
    ]
    source.write_text("".join(json.dumps(post) + "\n" for post in posts))
    assert run("dedup", "-q", source, "-o", output, "--duplicates", duplicates, *_FLAGS).code == 0
    lines = [json.loads(line) for line in duplicates.read_text().splitlines()]
    title, body = (_simhash(str(_POSTS[0][name])) for name in _FIELDS)
    expected = (title ^ title).bit_count() + (body ^ _simhash(str(posts[-1]["body"]))).bit_count()  # type: ignore[operator]
    assert 0 < expected <= 7
    assert [(line["id"], line["duplicate_of_id"], line["distance"]) for line in lines] == [
        (2, 1, 0), (8, 1, expected),
    ]  # fmt: skip
    assert [json.loads(line)["id"] for line in output.read_text().splitlines()] == _KEPT
    said = run("explain", "--input", source, "--id", "1", "--id", "3", *_FLAGS).out
    apart = (title ^ _simhash(str(_POSTS[2]["title"]))).bit_count()  # type: ignore[operator]
    assert f"title {apart} bits apart, over 3; body 0 bits apart, within 7" in " ".join(said.split())
    assert "no fingerprint" in run("explain", "--input", source, "--id", "1", "--id", "5", *_FLAGS).out


def test_lint_says_that_run_refuses_fields(run: Run) -> None:
    ran = run("lint", *_FLAGS)
    assert ran.code == 0
    assert "refused on Kafka: near.distances_by_field is for files and Python alone" in ran.out


@given(st.lists(st.text("ab\n "), min_size=1, max_size=4))
def test_fields_come_out_of_a_text_as_they_went_in(parts: list[str]) -> None:
    text = join_fields(parts)
    for number, part in enumerate(parts):
        expected = part if number == len(parts) - 1 else part.replace("\n", " ")
        assert FieldLines(len(parts), (number,)).of([text], 0) == [expected]
