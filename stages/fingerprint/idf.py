"""Inverse document frequencies (IDF): reading jieba's table, and turning them into integers."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import Bodies
from twinsieve.stages.errors import UsageError
from twinsieve.stages.fingerprint.dictionary import folded
from twinsieve.stages.fingerprint.features import FeatureConfig
from twinsieve.stages.fingerprint.simhash_tokens import term_hashes
from twinsieve.stages.text.scripts import unspaced_table

_SCALE = 256
_MAX_WEIGHT = 1 << 20


def fixed_point(idf: float) -> int:
    """The IDF in units of 1/256, limited to 1…2^20: so each feature counts, and all sums fit 64 bits.

    >>> fixed_point(1.5), fixed_point(0.0)
    (384, 1)
    """
    return max(1, min(_MAX_WEIGHT, round(idf * _SCALE)))


def median(weights: Iterable[int]) -> int:
    """Upper median of the weights. As in jieba, features that are not in a table get this weight."""
    ordered = sorted(weights)
    return ordered[len(ordered) // 2]


def word_weights(config: FeatureConfig) -> tuple[dict[str, int], int]:
    """(weight of each folded word, weight of any other word) in 1/256, from `idf` or jieba's own table."""
    if config.idf is None:
        return _jieba_weights()
    return _weights_of(config.idf)


@cache
def _jieba_weights() -> tuple[dict[str, int], int]:
    table = pkgutil.get_data("jieba", "analyse/idf.txt")
    if table is None:
        raise UsageError("jieba was installed without its idf.txt; install it again or give an IDF file")
    lines = (line.split(" ") for line in table.decode("utf-8").splitlines())
    return _weights_of((word, float(idf)) for word, idf in lines)


def _weights_of(pairs: Iterable[tuple[str, float]]) -> tuple[dict[str, int], int]:
    words, idfs = zip(*pairs, strict=True)
    weights: dict[str, int] = {}
    for word, idf in zip(folded(words), idfs, strict=True):
        weights.setdefault(word, fixed_point(idf))
    return weights, median(weights.values())


def run_weights(config: FeatureConfig, seed: np.uint64) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """The `idf` of chars or shingles in the form that `fill_simhashes` takes.

    returns: uint64[m], feature hashes, ascending; int64[m + 1], their weights in units of 1/256, and at the
        end the median
    Entries with another number of tokens than features can have are left out, but count for the median.
    """
    if config.idf is None:
        return np.empty(0, np.uint64), np.ones(1, np.int64)
    weights, other = _weights_of(config.idf)
    terms = list(weights)
    bodies = _terms_as_bodies(terms)
    hashes = np.zeros(len(terms), np.uint64)
    counts = np.zeros(len(terms), np.int64)
    term_hashes(bodies[0], bodies[1], bodies[2], config.by_words, seed, hashes, counts)
    narrowest, widest = config.widths
    fitting = (counts >= narrowest) & (counts <= widest)
    features, places = np.unique(hashes[fitting], return_index=True)
    values = np.fromiter(weights.values(), np.int64, len(terms))[fitting][places]
    return features, np.append(values, other)


def _terms_as_bodies(
    terms: list[str],
) -> tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.uint8]]:
    cut = [term.split() for term in terms]
    lengths = [sum(map(len, words)) for words in cut]
    text = "".join(word for words in cut for word in words)
    chars = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.uint32)
    starts = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    word_starts = np.zeros(len(chars), np.uint8)
    begins = np.cumsum([0] + [len(word) for words in cut for word in words])[:-1]
    word_starts[begins] = 1
    return chars, starts, word_starts


def runs_as_text(bodies: Bodies, config: FeatureConfig) -> Iterator[list[str]]:
    """The features of chars or shingles of each near row, as text, in the order of the kernel."""
    narrowest, widest = config.widths
    alone = unspaced_table()[bodies.chars] | (not config.by_words)
    begins = alone | (bodies.word_starts != 0)
    begins[1:] |= alone[:-1]
    for row in np.flatnonzero(~bodies.exact_only):
        start, end = bodies.starts[row], bodies.starts[row + 1]
        text = bodies.text(int(row))
        cuts = np.flatnonzero(begins[start:end]).tolist()
        if text and (not cuts or cuts[0] != 0):
            cuts.insert(0, 0)
        # A blank separates two words that only word_starts separates in the kernel.
        tokens = [
            text[a:b] if alone[start + a] or a == 0 or alone[start + a - 1] else " " + text[a:b]
            for a, b in zip(cuts, [*cuts[1:], len(text)] if cuts else [], strict=True)
        ]
        yield [
            "".join(tokens[i : i + width]).lstrip(" ")
            for width in range(narrowest, widest + 1)
            for i in range(len(tokens) - width + 1)
        ]
