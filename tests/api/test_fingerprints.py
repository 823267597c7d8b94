"""Fingerprints of texts, and all pairs of them: none missed, none invented, none twice."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from twinsieve import ConfigError, UsageError, find_all, simhash
from twinsieve.pipeline.tools.generate.stream import generate
from twinsieve.stages.judge.scheme import DigestConfig, FeatureConfig, Scheme, SchemeConfig
from twinsieve.stages.pairs import found as pairs_found
from twinsieve.stages.pairs.all_pairs import Search
from twinsieve.stages.text.rules import TextConfig


@st.composite
def _crowds(draw: st.DrawFn) -> list[int]:
    """Fingerprints in crowds: some alike, some equal, some at the very distance and one beyond."""
    seeds = draw(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=4))
    found = []
    for _ in range(draw(st.integers(0, 40))):
        one = draw(st.sampled_from(seeds))
        for bit in draw(st.lists(st.integers(0, 63), max_size=5)):
            one ^= 1 << bit
        found.append(one)
    return found


def _scan(fingerprints: list[int], k: int) -> list[list[int]]:
    rows = combinations(range(len(fingerprints)), 2)
    return [[i, j] for i, j in rows if (fingerprints[i] ^ fingerprints[j]).bit_count() <= k]


_REACH: dict[Search, int] = {"tables": 7, "sorted": 7, "enumerate": 3, "expand": 2, "scan": 12}
"""Greatest k of each search."""


@pytest.mark.parametrize("search", _REACH)
@settings(max_examples=150)
@given(_crowds(), st.data())
def test_all_pairs_are_those_of_a_full_scan(
    search: Search, fingerprints: list[int], data: st.DataObject
) -> None:
    k = data.draw(st.integers(0, _REACH[search]))
    pairs = find_all(np.array(fingerprints, dtype=np.uint64), k, search=search)
    assert pairs.tolist() == _scan(fingerprints, k)


def _planted(rows: int, seed: int) -> NDArray[np.uint64]:
    """Random fingerprints; a third of them has 0 to 12 bits flipped from an earlier one."""
    random = np.random.default_rng(seed)
    found = random.integers(0, 2**64, rows, dtype=np.uint64)
    for row in range(1, rows, 3):
        found[row] = found[random.integers(0, row)]
        for bit in random.choice(64, random.integers(0, 13), replace=False):
            found[row] ^= np.uint64(1) << np.uint64(bit)
    return found


@pytest.mark.parametrize("search", _REACH)
def test_no_planted_pair_is_missed_and_none_is_invented(search: Search) -> None:
    found = _planted(3_000, 7)
    distances = np.bitwise_count(found[:, None] ^ found[None, :])
    earlier, later = np.nonzero(np.triu(distances <= 12, 1))
    for k in range(_REACH[search] + 1):
        near = distances[earlier, later] <= k
        expected = np.stack([earlier[near], later[near]], axis=1)
        assert (find_all(found, k, search=search) == expected).all(), k
        assert len(expected) > 50


@pytest.mark.parametrize("search", _REACH)
def test_every_place_and_number_of_flipped_bits_is_found(search: Search) -> None:
    one = 0x0123_4567_89AB_CDEF
    k = min(3, _REACH[search])
    flips = [
        sum(1 << bit for bit in bits) for size in range(1, k + 1) for bits in combinations(range(64), size)
    ]
    rows = [one, *(one ^ flip for flip in flips[:400] + flips[-400:])]
    pairs = find_all(np.array(rows, np.uint64), k, search=search)
    assert set(pairs[pairs[:, 0] == 0, 1].tolist()) == set(range(1, len(rows)))


@pytest.mark.parametrize("search", _REACH)
def test_more_pairs_than_first_room_are_all_there(search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs_found, "FIRST_ROOM", 2)
    fingerprints = [1 << bit for bit in range(40)] + [0, 2**64 - 1] + [5, 5, 5]
    assert find_all(fingerprints, 2, search=search).tolist() == _scan(fingerprints, 2)


@pytest.mark.parametrize(
    ("search", "rows", "k", "said"),
    [
        ("tables", 2, 8, "k is 8; use 0..7, or search='scan', which goes to 12"),
        ("sorted", 2, 8, "k is 8; use 0..7, or search='scan', which goes to 12"),
        ("scan", 2, 13, "k is 13; use 0..12"),
        ("scan", 2, -1, "k is -1; use 0..12"),
        ("enumerate", 2, 4, "k is 4; search='enumerate' would take 679,121 look-ups a row; use 0..3"),
        ("expand", 2, 3, "k is 3; search='expand' would take 43,745 entries of 8 bytes a row; use 0..2"),
        ("expand", 2, 999, "k is 999; search='expand' would take 18,446,744,073,709,551,616 entries"),
        ("enumerate", 300_000, 3,
         "search='enumerate' with k 3 makes 43,745 look-ups a row: 13,123,500,000 look-ups for 300,000 rows, at "
         "most 10,000,000,000; use search='tables', or fewer rows"),
        ("expand", 200_000, 2,
         "search='expand' with k 2 stores 2,081 entries of 8 bytes a row: 3,329,600,000 bytes for 200,000 rows, "
         "at most 2,147,483,648"),
        ("scan", 5_000_000, 9, "search='scan' with k 9 makes 12,499,997,500,000 comparisons for 5,000,000 rows"),
        ("probe", 2, 3, "search is 'probe'; choose tables, sorted, enumerate, expand, scan"),
        ([], 2, 3, "search is []; choose tables"),
    ],
)  # fmt: skip
def test_a_search_that_cannot_work_is_refused_with_the_arithmetic(
    search: Any, rows: int, k: int, said: str
) -> None:
    with pytest.raises(UsageError) as error:
        find_all(np.arange(rows, dtype=np.uint64), k, search=search)
    assert str(error.value).startswith(said)


def test_alike_posts_of_all_languages_are_found_as_by_a_full_scan() -> None:
    texts = [post["text"] for post in generate(400, seed=3)]
    found = simhash(texts, profile="microblog")
    rows = np.flatnonzero(~np.ma.getmaskarray(found))
    plain = [int(one) for one in found[rows]]
    expected = [[int(rows[i]), int(rows[j])] for i, j in _scan(plain, 3)]
    assert len(expected) > 20
    assert find_all(found, 3).tolist() == expected


@pytest.mark.parametrize(
    "make",
    [
        list,
        tuple,
        lambda values: np.array([value or 0 for value in values], dtype=object),
        lambda values: np.ma.MaskedArray(
            np.array([value or 0 for value in values], np.uint64), mask=[value is None for value in values]
        ),
        lambda values: pd.Series(values, dtype="UInt64"),
        lambda values: pl.Series(values, dtype=pl.UInt64),
        lambda values: pa.array(values, pa.uint64()),
    ],
)
def test_every_column_of_fingerprints_gives_the_same_pairs(make: Callable[[list[Any]], Any]) -> None:
    values = [2**64 - 1, 3, 2**64 - 2, 7]
    assert find_all(make(values), 1).tolist() == [[0, 2], [1, 3]]


def test_rows_that_are_missing_stand_in_no_pair() -> None:
    for column in (
        [5, None, None, 5],
        pd.Series([5, None, None, 5], dtype="UInt64"),
        pa.array([5, None, None, 5]),
    ):
        pairs = find_all(column, 7)
        assert (pairs.tolist(), pairs.dtype, pairs.shape) == ([[0, 3]], np.int64, (1, 2))
    assert find_all([], 3).shape == (0, 2)
    assert find_all([None, None], 3).shape == (0, 2)


@pytest.mark.parametrize(
    ("column", "k", "said"),
    [
        ([1, -1], 3, "fingerprints[1] is -1, outside uint64; view signed ones with .view('uint64')"),
        ([1 << 64], 3, f"fingerprints[0] is {1 << 64}, outside uint64"),
        ([1.5], 3, "fingerprints[0] is a float (1.5), not a uint64"),
        ([True], 3, "fingerprints[0] is a bool (True), not a uint64"),
        (
            np.zeros((2, 2), np.uint64),
            3,
            "fingerprints is a ndarray of 2 dimensions; give one of its columns",
        ),
        ([1], 8, "k is 8; use 0..7, or search='scan'"),
        ([1], -1, "k is -1; use 0..7"),
        ([1], 2.0, "k is a float (2.0), not a whole number"),
        ([1], True, "k is a bool (True), not a whole number"),
    ],
)
def test_a_misuse_names_argument_and_row(column: Any, k: Any, said: str) -> None:
    with pytest.raises(UsageError) as error:
        find_all(column, k)
    assert str(error.value).startswith(said)


def test_more_pairs_than_asked_for_are_refused_before_memory_is_taken() -> None:
    with pytest.raises(UsageError, match="there are more than 100,000,000 pairs; use a smaller k"):
        find_all(np.zeros(1_000_000, np.uint64), 0)
    with pytest.raises(UsageError, match="there are more than 779 pairs"):
        find_all([1 << bit for bit in range(40)], 2, max_pairs=779)
    assert len(find_all([1 << bit for bit in range(40)], 2, max_pairs=780)) == 780


def test_fingerprints_are_those_that_the_sieve_compares() -> None:
    texts = [post["text"] for post in generate(300, seed=2)]
    _, prints = Scheme(SchemeConfig(text=TextConfig(profile="plain"))).read(texts)
    for bits, expected in ((64, prints.simhashes[:, 0]), (128, prints.simhashes)):
        found = simhash(texts, bits)
        assert (found.dtype, found.shape) == (np.uint64, expected.shape)
        assert found.data.tolist() == expected.tolist()
        mask = np.ma.getmaskarray(found)
        assert (mask if bits == 64 else mask[:, 0]).tolist() == (~prints.has_simhash).tolist()
        assert bits == 64 or (mask[:, 0] == mask[:, 1]).all()


def test_a_text_without_fingerprint_is_masked_and_matches_nothing() -> None:
    found = simhash(["ok", "👍", None, "", "12345678", "a text that has features"])
    assert found.mask.tolist() == [True] * 5 + [False]
    assert find_all(found, 7).shape == (0, 2)
    assert pa.array(found).null_count == 5


def test_profile_and_seed_make_other_fingerprints() -> None:
    texts = ["#one tag# the same words in both", "#another# the same words in both"]
    assert find_all(simhash(texts, profile="microblog"), 0).tolist() == [[0, 1]]
    assert find_all(simhash(texts), 0).tolist() == []
    assert simhash(texts, seed=1).tolist() != simhash(texts).tolist()


def test_slices_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from twinsieve.api import fingerprints

    texts = [post["text"] for post in generate(100, seed=2)]
    whole = simhash(texts).tolist()
    monkeypatch.setattr(fingerprints, "_SLICE", 7)
    assert simhash(texts).tolist() == whole


def test_bits_are_64_or_128() -> None:
    with pytest.raises(UsageError, match="bits is 32; choose 64 or 128"):
        simhash(["x"], 32)  # type: ignore[arg-type]


def test_fingerprints_of_any_recipe_are_those_of_its_scheme(tmp_path: Path) -> None:
    texts = [post["text"] for post in generate(50, seed=3)]
    recipe = {"profile": "plain", "features": {"kind": "shingles", "width": 4, "drop": ["digits"]}}
    config = SchemeConfig(
        TextConfig("plain"), FeatureConfig("shingles", width=4, drop=("digits",)), digest=DigestConfig(seed=4)
    )
    _, made = Scheme(config).read(texts)
    found = simhash(texts, settings=recipe, seed=4)
    assert np.ma.getdata(found).tolist() == made.simhashes[:, 0].tolist()
    assert (~np.ma.getmaskarray(found)).tolist() == made.has_simhash.tolist()
    path = tmp_path / "recipe.yaml"
    path.write_text("profile: plain\nfeatures: {kind: shingles, width: 4, drop: [digits]}\n")
    assert np.ma.allequal(found, simhash(texts, settings=path, seed=4))
    assert not np.ma.allequal(found, simhash(texts, seed=4))


def test_a_recipe_with_problems_is_refused_with_all_of_them() -> None:
    with pytest.raises(ConfigError, match=r"features\.kind is 'bytes'") as caught:
        simhash(["a text"], settings={"features": {"kind": "bytes", "drop": ["greek"]}})
    assert len(caught.value.findings) == 2
