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

from tests.examples import examples
from tests.generated_posts import generate
from twinsieve import ConfigError, UsageError, find_all, simhash
from twinsieve.stages.contract import MAX_DISTANCE
from twinsieve.stages.judge.scheme import FeatureConfig, Scheme, SchemeConfig
from twinsieve.stages.pairs import found as pairs_found
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


@settings(max_examples=examples(150))
@given(_crowds(), st.integers(0, MAX_DISTANCE))
def test_all_pairs_are_those_of_a_full_scan(fingerprints: list[int], k: int) -> None:
    assert find_all(np.array(fingerprints, dtype=np.uint64), k).tolist() == _scan(fingerprints, k)


def _planted(rows: int, seed: int) -> NDArray[np.uint64]:
    """Random fingerprints; a third of them has 0 to 12 bits flipped from an earlier one."""
    random = np.random.default_rng(seed)
    found = random.integers(0, 2**64, rows, dtype=np.uint64)
    for row in range(1, rows, 3):
        found[row] = found[random.integers(0, row)]
        for bit in random.choice(64, random.integers(0, 13), replace=False):
            found[row] ^= np.uint64(1) << np.uint64(bit)
    return found


def test_no_planted_pair_is_missed_and_none_is_invented() -> None:
    found = _planted(3_000, 7)
    distances = np.bitwise_count(found[:, None] ^ found[None, :])
    earlier, later = np.nonzero(np.triu(distances <= MAX_DISTANCE, 1))
    for k in range(MAX_DISTANCE + 1):
        near = distances[earlier, later] <= k
        expected = np.stack([earlier[near], later[near]], axis=1)
        assert (find_all(found, k) == expected).all(), k
        assert len(expected) > 50


def test_every_place_and_number_of_flipped_bits_is_found() -> None:
    one = 0x0123_4567_89AB_CDEF
    flips = [sum(1 << bit for bit in bits) for size in range(1, 4) for bits in combinations(range(64), size)]
    rows = [one, *(one ^ flip for flip in flips[:400] + flips[-400:])]
    pairs = find_all(np.array(rows, np.uint64), 3)
    assert set(pairs[pairs[:, 0] == 0, 1].tolist()) == set(range(1, len(rows)))


def test_more_pairs_than_first_room_are_all_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs_found, "FIRST_ROOM", 2)
    fingerprints = [1 << bit for bit in range(40)] + [0, 2**64 - 1] + [5, 5, 5]
    assert find_all(fingerprints, 2).tolist() == _scan(fingerprints, 2)


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
        ([1], 8, "k is 8; use 0..7"),
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


def test_the_profile_makes_other_fingerprints() -> None:
    texts = ["#onetag# the same words in both", "#another# the same words in both"]
    assert find_all(simhash(texts, profile="microblog"), 0).tolist() == [[0, 1]]
    assert find_all(simhash(texts), 0).tolist() == []


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
    config = SchemeConfig(TextConfig("plain"), FeatureConfig("shingles", width=4, drop=("digits",)))
    _, made = Scheme(config).read(texts)
    found = simhash(texts, settings=recipe)
    assert np.ma.getdata(found).tolist() == made.simhashes[:, 0].tolist()
    assert (~np.ma.getmaskarray(found)).tolist() == made.has_simhash.tolist()
    path = tmp_path / "recipe.yaml"
    path.write_text("profile: plain\nfeatures: {kind: shingles, width: 4, drop: [digits]}\n")
    assert np.ma.allequal(found, simhash(texts, settings=path))
    assert not np.ma.allequal(found, simhash(texts))


def test_a_recipe_with_problems_is_refused_with_all_of_them() -> None:
    with pytest.raises(ConfigError, match=r"features\.kind is 'bytes'") as caught:
        simhash(["a text"], settings={"features": {"kind": "bytes", "drop": ["greek"]}})
    assert len(caught.value.findings) == 2
