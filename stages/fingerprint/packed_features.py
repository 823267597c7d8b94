"""The features of a body as a set: distinct, each with its weight.

A SimHash only adds weights up and does not need this form. Signatures do, which name single features, and so
does whoever wants to see what a fingerprint is made of.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import Bodies
from twinsieve.stages.fingerprint.simhash import FeatureRules, fill_distinct_features


class PackedFeatures(NamedTuple):
    """The distinct features of n bodies, end to end: row i has features[starts[i]:starts[i + 1]].

    features: uint64[m], hashes, of each body in the order of their first occurrence
    weights: int64[m], the sum over the occurrences; starts: int64[n + 1]
    A row that is compared exactly only, or has fewer than `min_features` features, has none.
    """

    features: NDArray[np.uint64]
    weights: NDArray[np.int64]
    starts: NDArray[np.int64]


def packed_features(bodies: Bodies, rules: FeatureRules, seed: np.uint64) -> PackedFeatures:
    """The distinct features of each body, chars or shingles as `rules` say, with their weights.

    bodies: contiguous (`for_kernels`); seed: for the hashes of tokens

    >>> from twinsieve.stages.fingerprint.simhash import OCCURRENCES
    >>> lengths = np.array([9], np.int32)
    >>> chars = np.array([ord(c) for c in "天气天气天气天气好"], np.uint32)
    >>> starts, none = np.array([0, 9]), np.array([False])
    >>> bodies = Bodies(chars, starts, np.zeros(9, np.uint8), lengths, lengths, none, lengths)
    >>> rules = FeatureRules(True, 1, 1, OCCURRENCES, 1, np.empty(0, np.uint64), np.ones(1, np.int64))
    >>> packed_features(bodies, rules, np.uint64(7)).weights.tolist()
    [4, 4, 1]
    """
    lengths = np.diff(bodies.starts)[~bodies.exact_only]
    most = int(lengths.sum()) * (rules.widest - rules.narrowest + 1)
    features, weights = np.empty(most, np.uint64), np.empty(most, np.int64)
    starts = np.zeros(len(bodies) + 1, np.int64)
    columns = (bodies.chars, bodies.starts, bodies.word_starts, bodies.exact_only)
    fill_distinct_features(*columns, rules, seed, features, weights, starts)
    return PackedFeatures(features[: starts[-1]], weights[: starts[-1]], starts)
