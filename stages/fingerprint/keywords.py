"""Keywords of bodies as weighted features of a SimHash, a common method for news."""

from __future__ import annotations

from collections import Counter
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import Bodies
from twinsieve.stages.fingerprint.features import FeatureConfig
from twinsieve.stages.fingerprint.idf import word_weights
from twinsieve.stages.fingerprint.mixing import hash_64
from twinsieve.stages.fingerprint.segmenter import Segmenter


class Keywords:
    """Finds the keywords of near rows. jieba and its tables are loaded with the first batch.

    The words with the greatest values are chosen; of words with the same value, the first in the text wins.
    The value of a word is count × IDF, or with `choose: frequency` its count.
    source: jieba's extract_tags, which chooses the same words, except for rounding
    """

    def __init__(self, config: FeatureConfig) -> None:
        self._config = config
        self._segmenter = Segmenter(config)

    def pack(self, bodies: Bodies) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64]]:
        """(uint64[m], hashes of all features; int64[m], their weights; int64[n + 1], where each row begins).

        The keywords of a row are in the order of their first occurrence. Exact-only rows, and rows with fewer
        than min_features keywords, have no features.
        """
        features: list[int] = []
        weights: list[int] = []
        starts = [0]
        for row in range(len(bodies)):
            if not bodies.exact_only[row]:
                keywords = self.keywords(bodies, row)
                if len(keywords) >= self._config.min_features:
                    features += map(_hash, keywords)
                    weights += keywords.values()
            starts.append(len(features))
        return np.array(features, np.uint64), np.array(weights, np.int64), np.array(starts, np.int64)

    def keywords(self, bodies: Bodies, row: int) -> dict[str, int]:
        """The keywords of one body with their weights, in the order of their first occurrence."""
        words = self._segmenter.words(bodies, row)
        counts = Counter(words)
        values = counts if self._config.choose == "frequency" else self._by_idf(counts)
        chosen = set(sorted(values, key=values.__getitem__, reverse=True)[: self._config.top_k])
        best = [word for word in counts if word in chosen]
        match self._config.weights:
            case "none":
                return dict.fromkeys(best, 1)
            case "tf":
                return {word: counts[word] for word in best}
            case "tfidf":
                by_idf = self._by_idf(counts) if self._config.choose == "frequency" else values
                return {word: by_idf[word] for word in best}
            case "scale5":
                return _levels({word: values[word] for word in best})
            case "position":
                positions: Counter[str] = Counter()
                for i, word in enumerate(words):
                    positions[word] += 4 - 4 * i // len(words)
                return {word: positions[word] for word in best}

    def _by_idf(self, counts: dict[str, int]) -> dict[str, int]:
        """Count × IDF of each word, in 1/256."""
        idf, other = self._idf
        return {word: count * idf.get(word, other) for word, count in counts.items()}

    def idf_table(self) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """uint64[m] hashes of words, ascending, and int64[m + 1] their IDF in 1/256; last of other words."""
        idf, other = self._idf
        hashes = np.fromiter(map(_hash, idf), np.uint64, len(idf))
        features, places = np.unique(hashes, return_index=True)
        return features, np.append(np.fromiter(idf.values(), np.int64, len(idf))[places], other)

    @cached_property
    def _idf(self) -> tuple[dict[str, int], int]:
        return word_weights(self._config)


def _hash(word: str) -> int:
    return hash_64(word.encode("utf-8", "surrogatepass"))


def _levels(values: dict[str, int]) -> dict[str, int]:
    """Weights 1…5: the distinct values ranked 0 (lightest) … m, then 1 + 4 × rank / m, rounded half up.

    >>> _levels({"ufo": 30, "sees": 10, "area51": 30, "grey": 20}), _levels({"ufo": 7})
    ({'ufo': 5, 'sees': 1, 'area51': 5, 'grey': 3}, {'ufo': 5})
    """
    ranks = {value: rank for rank, value in enumerate(sorted(set(values.values())))}
    last = len(ranks) - 1
    if last == 0:
        return dict.fromkeys(values, 5)
    return {word: 1 + (8 * ranks[value] + last) // (2 * last) for word, value in values.items()}
