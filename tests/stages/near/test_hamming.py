"""Layouts and limits of hamming mode, and its scan; that its tables find all stands in `tests/accuracy`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.whole_state import from_bytes, to_bytes
from twinsieve.stages.contract import (
    MAX_SCAN_DISTANCE,
    NO_TIME,
    Batch,
    Bodies,
    ExactConfig,
    Fingerprints,
    Kind,
    NearConfig,
    SieveConfig,
    Window,
)
from twinsieve.stages.errors import UsageError
from twinsieve.stages.judge.batch_sieve import BatchSieve, worst_case_bytes
from twinsieve.stages.near.hamming import distance_table, table_masks


def _batch(fingerprints: np.ndarray) -> Batch:
    n = len(fingerprints)
    none = np.full(n, NO_TIME, np.int64)
    lengths = np.full(n, 20, np.int32)
    bodies = Bodies(
        np.zeros(20 * n, np.uint32),
        np.arange(n + 1, dtype=np.int64) * 20,
        np.zeros(20 * n, np.uint8),
        lengths,
        lengths,
        np.zeros(n, np.bool_),
        np.zeros(n, np.uint32),
    )
    prints = Fingerprints.blank(n, dims={"tables": 6, "weak": 2, "bands": 24})
    prints.digests[:] = np.arange(n)[:, None]
    prints.simhashes[:, 0] = fingerprints
    prints.has_simhash[:] = True
    zeros = np.zeros(n, np.uint64)
    return Batch(np.arange(n, dtype=np.int64), none, none, none, zeros, zeros, bodies, prints)


def _clustered(n: int, k: int) -> np.ndarray:
    """Random fingerprints, most of them a few flipped bits (around k) from an earlier one."""
    rng = np.random.default_rng(k + 1)
    words = rng.integers(0, 2**64, n, dtype=np.uint64)
    for i in range(1, n):
        if rng.random() < 0.6:
            words[i] = words[rng.integers(0, i)]
            for bit in rng.choice(64, rng.integers(0, 2 * k + 2), replace=False):
                words[i] ^= np.uint64(1) << np.uint64(bit)
    return words


def _full_scan(words: np.ndarray, k: int, window: int) -> list[tuple[int, int]]:
    """(leader, distance) of each row by comparing with every kept one, or (-1, -1)."""
    kept: list[int] = []
    said = []
    for i in range(len(words)):
        recent = kept[-window:]
        distances = np.bitwise_count(words[recent] ^ words[i]).tolist() if recent else []
        best = min(range(len(recent)), key=lambda j: (distances[j], recent[j]), default=None)
        if best is not None and distances[best] <= k:
            said.append((recent[best], distances[best]))
        else:
            said.append((-1, -1))
            kept.append(i)
    return said


def _said(words: np.ndarray, near: NearConfig, size: int) -> list[tuple[int, int]]:
    """(leader, distance) of each row by the sieve, judged in batches of `size`, saved and loaded in between."""
    config = SieveConfig(ExactConfig(method="none"), near)
    batch, sieve = _batch(words), BatchSieve(config)
    said = []
    for low in range(0, len(batch), size):
        sieve = from_bytes(to_bytes(sieve), config)
        verdicts = sieve.judge(batch.slice(low, min(low + size, len(batch))))
        leaders = np.where(verdicts.kinds == Kind.NEAR, verdicts.leaders, -1)
        said += list(zip(leaders.tolist(), verdicts.distances.tolist(), strict=True))
    return said


@pytest.mark.matrix
@pytest.mark.parametrize("k", range(MAX_SCAN_DISTANCE + 1))
@pytest.mark.parametrize("window", [600, 3_000])
def test_the_scan_finds_what_a_full_scan_finds(k: int, window: int) -> None:
    words = _clustered(2500, k)
    near = NearConfig("hamming", window=Window(window), distances=((8, k),), candidates="scan", threads=2)
    expected = _full_scan(words, k, window)
    assert _said(words, near, 900) == expected
    assert 400 < sum(leader >= 0 for leader, _ in expected) < 2400


def test_a_crowd_that_no_room_holds_is_scanned_again() -> None:
    # Each row is close to all before it, and no two are close enough to drop: ids keep them apart.
    words = np.zeros(1_500, np.uint64)
    batch = _batch(words)
    batch.ids[:] = 1
    near = NearConfig("hamming", window=Window(2_000), candidates="scan", same_id="pass")
    sieve = BatchSieve(SieveConfig(ExactConfig(method="none"), near))
    for low in (0, 750):
        assert set(sieve.judge(batch.slice(low, low + 750)).kinds.tolist()) == {Kind.UNIQUE}
    batch.ids[:] = 2
    assert sieve.judge(batch.slice(0, 9)).leaders.tolist() == [0] * 9


def test_a_scan_holds_no_tables() -> None:
    def bytes_of(candidates: Any) -> tuple[int, set[str]]:
        near = NearConfig("hamming", window=Window(100_000), candidates=candidates)
        config = SieveConfig(ExactConfig(method="none"), near)
        return BatchSieve(config).stats().bytes_used, set(worst_case_bytes(config))

    tables, scan = bytes_of("index"), bytes_of("scan")
    assert tables[1] - scan[1] == {"tables"}
    assert tables[0] - scan[0] > 10 * 4 * 100_000


def test_layouts_without_full_recall_are_refused() -> None:
    with pytest.raises(UsageError, match=r"near.blocks is 3.*use 4..64"):
        table_masks(3, 3)
    with pytest.raises(UsageError, match="tables"):
        table_masks(20, 7)


def test_tables_refuse_a_distance_that_a_scan_takes() -> None:
    near = NearConfig(method="hamming", distances=((8, 8),))
    with pytest.raises(UsageError, match=r"k 8 needs near\.candidates: scan"):
        BatchSieve(SieveConfig(near=near))


@pytest.mark.parametrize("steps", [(), ((8, 13),), ((8, -1),), ((20, 3), (8, 5)), ((8, 3), (8, 4))])
def test_unusable_distance_steps_are_refused(steps: tuple[tuple[int, int], ...]) -> None:
    with pytest.raises(UsageError, match=r"near\.distances"):
        distance_table(steps)


def test_k_follows_the_shorter_body() -> None:
    assert distance_table(((8, 7), (20, 3))).tolist() == [-1] * 8 + [7] * 12 + [3]


@pytest.mark.parametrize("candidates", ["index", "scan"])
@pytest.mark.parametrize("size", [1, 2])
def test_a_message_without_features_matches_nothing_near_zero(size: int, candidates: Any) -> None:
    batch = _batch(np.array([0, 1], np.uint64))
    batch.fingerprints.has_simhash[0] = False
    near = NearConfig("hamming", window=Window(10), distances=((8, 3),), candidates=candidates)
    sieve = BatchSieve(SieveConfig(ExactConfig(method="none"), near))
    parts = [batch] if size == 2 else [batch.slice(0, 1), batch.slice(1, 2)]
    kinds = [kind for part in parts for kind in sieve.judge(part).kinds.tolist()]
    assert kinds == [Kind.UNIQUE, Kind.UNIQUE]
