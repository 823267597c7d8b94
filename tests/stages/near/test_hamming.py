"""Hamming mode finds exactly what a full scan finds, under any table layout."""

from __future__ import annotations

import numpy as np
import pytest

from tests.property.streams import part_of
from twinsieve.stages.contract import (
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
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.near.hamming import distance_table, table_masks

_LAYOUTS = [
    (0, 1), (0, 4), (1, 2), (1, 8), (2, 3), (2, 6), (3, 4), (3, 5), (3, 6),
    (4, 6), (5, 7), (6, 8), (7, 8), (7, 9),
]  # fmt: skip


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
    )
    prints = Fingerprints(
        digests=np.stack([np.arange(n), np.arange(n)], axis=1).astype(np.uint64),
        simhashes=np.stack([fingerprints, np.zeros(n, np.uint64)], axis=1),
        has_simhash=np.ones(n, np.bool_),
        weak_bits=np.zeros((n, 6, 2), np.uint8),
        band_keys=np.zeros((n, 24), np.uint32),
        bags=np.zeros((n, 32), np.uint8),
        signatures=np.zeros(n, np.uint32),
        sketches=np.zeros((0, 64), np.uint8),
        sketch_rows=np.full(n, -1, np.int32),
        part_hashes=np.zeros((n, 0), np.uint64),
        tallies=np.zeros(n, np.uint64),
    )
    zeros = np.zeros(n, np.uint64)
    return Batch(np.arange(n, dtype=np.int64), none, none, zeros, zeros, bodies, prints)


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


@pytest.mark.parametrize(("k", "blocks"), _LAYOUTS)
def test_tables_find_what_a_full_scan_finds(k: int, blocks: int) -> None:
    words = _clustered(2500, k)
    window = 600
    near = NearConfig(method="hamming", window=Window(window), distances=((8, k),), blocks=blocks)
    verdicts = BatchSieve(SieveConfig(ExactConfig(method="none"), near)).judge(_batch(words))
    said = [
        (leader if kind == Kind.NEAR else -1, distance)
        for kind, leader, distance in zip(
            verdicts.kinds.tolist(), verdicts.leaders.tolist(), verdicts.distances.tolist(), strict=True
        )
    ]
    expected = _full_scan(words, k, window)
    assert said == expected
    assert 400 < sum(leader >= 0 for leader, _ in expected) < 2400


def test_layouts_without_full_recall_are_refused() -> None:
    with pytest.raises(UsageError, match=r"near.blocks is 3.*use 4..64"):
        table_masks(3, 3)
    with pytest.raises(UsageError, match="tables"):
        table_masks(20, 7)


@pytest.mark.parametrize("steps", [(), ((8, 8),), ((8, -1),), ((20, 3), (8, 5)), ((8, 3), (8, 4))])
def test_unusable_distance_steps_are_refused(steps: tuple[tuple[int, int], ...]) -> None:
    with pytest.raises(UsageError, match=r"near\.distances"):
        distance_table(steps)


def test_k_follows_the_shorter_body() -> None:
    assert distance_table(((8, 7), (20, 3))).tolist() == [-1] * 8 + [7] * 12 + [3]


@pytest.mark.parametrize("size", [1, 2])
def test_a_message_without_features_matches_nothing_near_zero(size: int) -> None:
    batch = _batch(np.array([0, 1], np.uint64))
    batch.fingerprints.has_simhash[0] = False
    near = NearConfig(method="hamming", window=Window(10), distances=((8, 3),))
    sieve = BatchSieve(SieveConfig(ExactConfig(method="none"), near))
    parts = [batch] if size == 2 else [part_of(batch, 0, 1), part_of(batch, 1, 2)]
    kinds = [kind for part in parts for kind in sieve.judge(part).kinds.tolist()]
    assert kinds == [Kind.UNIQUE, Kind.UNIQUE]
