"""Hamming mode and a full scan, on fingerprints of posts and on random ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from math import comb

import numpy as np
from numpy.typing import NDArray

from tests.accuracy.data_sets import WEIBO
from twinsieve.pipeline.tools.evaluate.evaluate import batch_of, read_texts
from twinsieve.pipeline.tools.generate.stream import generate_columns
from twinsieve.stages.contract import MAX_DISTANCE as MAX_DISTANCE
from twinsieve.stages.contract import NO_LEADER, Batch, ExactConfig, Kind, NearConfig, SieveConfig, Window
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig

MAX_TABLES = 128
BATCH = 50
"""Rows judged at a time: what a batch keeps itself is met without the tables, so a large one tests little."""


def real_batch(rows: int) -> Batch:
    """The first weibo posts with their own fingerprints."""
    _, texts = read_texts(WEIBO.texts)
    return batch_of(*Scheme(SchemeConfig()).read(texts[:rows]))


def generated_batch(rows: int) -> Batch:
    """Generated posts with their own fingerprints."""
    texts = [text for posts in generate_columns(rows) for text in posts.texts]
    return batch_of(*Scheme(SchemeConfig()).read(texts))


def random_batch(rows: int, seed: int = 1) -> Batch:
    """Posts with fingerprints of no meaning: half of them 0 to 9 flipped bits away from another one.

    One in twenty says that it has none: its bits count for nothing.
    """
    batch = generated_batch(rows)
    random = np.random.default_rng(seed)
    prints = random.integers(0, 2**64, rows, dtype=np.uint64)
    for row in range(1, rows, 2):
        flips = random.choice(64, size=random.integers(0, 10), replace=False)
        flipped = sum(1 << int(bit) for bit in flips)
        prints[row] = prints[random.integers(0, row)] ^ np.uint64(flipped)
    simhashes = batch.fingerprints.simhashes.copy()
    simhashes[:, 0] = prints
    has_simhash = batch.fingerprints.has_simhash.copy()
    has_simhash[::20] = False
    batch.fingerprints = replace(batch.fingerprints, simhashes=simhashes, has_simhash=has_simhash)
    return batch


def layouts(k: int) -> Iterator[int]:
    """Numbers of blocks that promise full recall at k within the limit of tables; a few, small and large."""
    possible = [blocks for blocks in range(k + 1, 17) if comb(blocks, k) <= MAX_TABLES]
    yield from sorted({possible[0], possible[len(possible) // 2], possible[-1]})


def full_scan(batch: Batch, k: int, window: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(int64[n] leader row or -1, int64[n] distance or -1), by comparing with every kept row of the window."""
    count = len(batch)
    leaders, distances = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    prints = batch.fingerprints.simhashes[:, 0]
    usable = batch.fingerprints.has_simhash & ~batch.bodies.exact_only
    kept, total = np.zeros(count, np.int64), 0
    for row in range(count):
        recent = kept[max(0, total - window) : total]
        candidates = recent[usable[recent] & usable[row]]
        bits = np.bitwise_count(prints[candidates] ^ prints[row])
        if len(bits) and bits.min() <= k:
            leaders[row], distances[row] = candidates[bits.argmin()], bits.min()
        else:
            kept[total] = row
            total += 1
    return leaders, distances


def sieve_leaders(
    batch: Batch, k: int, blocks: int, window: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The same two columns from the sieve's tables."""
    near = NearConfig(method="hamming", window=Window(window), distances=((8, k),), blocks=blocks)
    sieve = BatchSieve(SieveConfig(exact=ExactConfig("none"), near=near))
    ends = [*range(0, len(batch), BATCH), len(batch)]
    parts = [sieve.judge(batch.slice(low, high)) for low, high in pairwise(ends)]
    kinds, leaders, distances = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("kinds", "leaders", "distances")
    )
    near_rows = kinds == Kind.NEAR
    return np.where(near_rows & (leaders != NO_LEADER), leaders, -1), np.where(
        near_rows, distances, -1
    ).astype(np.int64)


def wrong_rows(batch: Batch, k: int, blocks: int, window: int) -> tuple[int, int]:
    """(rows the scan drops, rows where tables and scan differ in verdict, leader or distance)."""
    leaders, distances = full_scan(batch, k, window)
    found_leaders, found_distances = sieve_leaders(batch, k, blocks, window)
    differ = (leaders != found_leaders) | (distances != found_distances)
    return int(np.count_nonzero(leaders >= 0)), int(np.count_nonzero(differ))
