"""A fingerprint taken apart: features, weights, hashes, sums and bits, for people to look at."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from twinsieve.stages.fingerprint.simhash import LANE_BITS, add_bits, bits_of


class SeenFeature(NamedTuple):
    """One feature: its text, its weight, and the 64 bits of its hash, of which each adds to one sum."""

    text: str
    weight: int
    hashed: int


class SeenFingerprint(NamedTuple):
    """The 64-bit SimHash of one text and what it is made of.

    features: in the order of their first occurrence; empty: there is no fingerprint
    sums: of bit 0 … 63; bits: None if there is no fingerprint
    """

    features: list[SeenFeature]
    sums: list[int]
    bits: int | None


def sums_of(weighted: Iterable[tuple[int, int]]) -> list[int]:
    """The sums of bit 0 … 63: each (hash, weight) adds its weight where its bit is 1, else subtracts it.

    >>> sums_of([(0b100101, 4), (0b101011, 5)])[5::-1]
    [9, -9, 1, -1, 1, 9]
    """
    sums = np.zeros(LANE_BITS, np.int64)
    for hashed, weight in weighted:
        add_bits(np.uint64(hashed), weight, sums, 0)
    return sums.tolist()


def bits_of_sums(sums: list[int]) -> int:
    """The fingerprint: bit b is 1 if the sum of bit b is above 0.

    >>> bin(bits_of_sums([9, 1, -1, 1, -9, 9]))
    '0b101011'
    """
    padded = np.zeros(LANE_BITS, np.int64)
    padded[: len(sums)] = sums
    return int(bits_of(padded, 0))


def seen(features: list[SeenFeature]) -> SeenFingerprint:
    """The fingerprint that these features make."""
    sums = sums_of((feature.hashed, feature.weight) for feature in features)
    return SeenFingerprint(features, sums, bits_of_sums(sums) if features else None)
