"""What the command says of clusters, kept rows, pairs and differences, Python says, too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest
from rapidfuzz.distance import LCSseq

from tests.calling import Run
from tests.generated_posts import generate
from tests.row_files import read_lines, write_rows
from twinsieve import Sieve
from twinsieve.api.verdicts import Verdict

_POSTS = [
    {key: post[key] for key in ("id", "text")} if number % 50 else {"id": f"none{number}", "text": None}
    for number, post in enumerate(generate(2_000, seed=5))
]
_TEXTS = [post["text"] for post in _POSTS]


def _by_command(run: Run, folder: Path, *flags: Any) -> list[dict[str, Any]]:
    source = write_rows(folder / "in.jsonl", _POSTS)
    words = ("--set", "input.null_text=pass", *flags)
    assert run("dedup", "-q", source, "-o", folder / "out.jsonl", *words).code == 0
    return read_lines(folder / "out.jsonl")


def test_clusters_are_those_of_the_command(tmp_path: Path, run: Run) -> None:
    _by_command(run, tmp_path, "--clusters", tmp_path / "c")
    expected = {one["cluster"] - 1: [row - 1 for row in one["rows"]] for one in read_lines(tmp_path / "c")}
    assert len(expected) > 100
    verdicts = Sieve().judge(_TEXTS)
    found: dict[int, list[int]] = {}
    for row, cluster in enumerate(verdicts.clusters.tolist()):
        found.setdefault(cluster, []).append(row)
    assert {cluster: rows for cluster, rows in found.items() if len(rows) > 1} == expected
    assert [one.cluster for one in verdicts] == verdicts.clusters.tolist()


@pytest.mark.parametrize("keep", ["first", "last", "longest", "none"])
@pytest.mark.parametrize("make", [list, iter, pd.DataFrame, pl.DataFrame])
def test_the_kept_row_of_a_cluster_is_that_of_the_command(
    tmp_path: Path, run: Run, keep: Any, make: Callable[[Any], Any]
) -> None:
    expected = [row["id"] for row in _by_command(run, tmp_path, "--keep", keep)]
    kept = Sieve().dedup(make(_POSTS), text="text", keep=keep)
    found = list(kept["id"]) if hasattr(kept, "columns") else [post["id"] for post in kept]
    assert found == expected


def test_of_a_cluster_of_an_earlier_call_none_is_kept() -> None:
    sieve = Sieve()
    first = "The bridge is closed until Friday."
    assert list(sieve.dedup([first], keep="last")) == [first]
    assert list(sieve.dedup([f"{first}!!", "Nobody was late.", "nobody was late"], keep="last")) == [
        "nobody was late"
    ]


def test_words_that_keep_two_rows_apart_are_those_of_the_command(tmp_path: Path, run: Run) -> None:
    _by_command(run, tmp_path, "--kept-apart", tmp_path / "a")
    names = ("position", "apart_from", "apart_from_id", "reason", "says", "apart_from_says")
    expected = [tuple(one.get(name) for name in names) for one in read_lines(tmp_path / "a")]
    assert sum(one[-1] is not None for one in expected) > 20
    verdicts = Sieve().judge(_TEXTS, ids=[post["id"] for post in _POSTS])
    found = [
        (one.position + 1, one.apart_from + 1, one.apart_from_id, one.reason, one.says, one.apart_from_says)
        for one in verdicts
        if one.apart_from is not None
    ]
    assert found == expected


_PAIRS = [
    ("Three dead in the fire in Leeds", "Five dead in the fire in Leeds"),
    ("The bridge is closed until Friday.", "the bridge is closed until friday!"),
    ("The bridge is now closed until Friday.", "The bridge is closed until Friday, they say."),
    ("ok", "okay"),
    ("今天武汉下雨了，大家出门记得带伞", "今天武汉下雨了，出门记得带伞哦"),
]


@pytest.mark.parametrize("pair", _PAIRS)
@pytest.mark.parametrize("method", ["text", "hamming"])
def test_an_explanation_has_the_lines_of_the_command(run: Run, pair: tuple[str, str], method: str) -> None:
    shown = run("explain", *pair, "--set", f"near.method={method}").out
    explanation = Sieve(settings={"near.method": method}).explain(*pair)
    for step, result in explanation.lines:
        assert f"{step} " in shown
        assert "".join(result.split()) in "".join(shown.split())
    assert str(explanation).splitlines()[-1].split(maxsplit=1) == list(explanation.lines[-1])


def test_nothing_in_a_text_controls_the_terminal_that_shows_an_explanation() -> None:
    assert "\x1b" not in str(
        Sieve().explain("a red \x1b[31m text of some words", "a red \x1b[31m text of words")
    )


@pytest.mark.parametrize("pair", _PAIRS)
def test_similarity_is_the_indel_ratio_of_the_bodies(pair: tuple[str, str]) -> None:
    sieve = Sieve()
    one, two = sieve.explain(*pair).bodies
    expected = 2 * LCSseq.similarity(one, two) * 10_000 // (len(one) + len(two)) / 10_000
    short = min(len(one), len(two)) < 8 and one != two
    assert sieve.similarity(*pair) == (0.0 if short else expected)
    verdict = sieve.judge(list(pair))[1]
    assert verdict.similarity in (None, sieve.similarity(*pair))


def test_dropped_items_of_a_stream_come_with_their_verdicts_in_the_order_of_the_items() -> None:
    seen: list[tuple[str, Verdict | None]] = []

    def dropped(post: dict[str, Any], verdict: Verdict) -> None:
        seen.append((post["id"], verdict))

    for post in Sieve().dedup(iter(_POSTS), text="text", ids="id", chunk=77, on_drop=dropped):
        seen.append((post["id"], None))
    ids = [post["id"] for post in _POSTS]
    verdicts = Sieve().judge(_TEXTS, ids=ids)
    assert seen == [(id_, None if one.kept else one) for id_, one in zip(ids, verdicts, strict=True)]


@pytest.mark.matrix
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"near.method": "hamming"},
        {"near.same_id": "pass"},
        {"near.window.messages": 300, "exact.method": "trie"},
    ],
)
def test_a_query_is_the_verdict_on_each_text_alone_and_changes_nothing(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    ids, scopes = [post["id"] for post in _POSTS], [number % 2 for number in range(len(_POSTS))]
    sieve, untouched = Sieve(settings=settings), Sieve(settings=settings)
    for each in (sieve, untouched):
        each.judge(_TEXTS[:1_000], ids[:1_000], scopes=scopes[:1_000])
    sieve.save(tmp_path / "s")
    found = sieve.query(_TEXTS[900:1_100], ids[900:1_100], scopes[900:1_100])
    assert set(found.position.tolist()) == {-1}
    for row in range(0, 200, 9):
        at = slice(900 + row, 901 + row)
        alone = Sieve.load(tmp_path / "s").judge(_TEXTS[at], ids[at], scopes=scopes[at])
        expected, query = alone.to_dict(), found[row : row + 1].to_dict()
        for of_an_order in ("position", "cluster"):
            del expected[of_an_order], query[of_an_order]
        assert repr(query) == repr(expected)
    assert found.kept[100:].any()
    assert not found.kept[:100].all()
    later = [
        sieve_.judge(_TEXTS[1_000:], ids[1_000:], scopes=scopes[1_000:]) for sieve_ in (sieve, untouched)
    ]
    assert repr(later[0].to_dict()) == repr(later[1].to_dict())
