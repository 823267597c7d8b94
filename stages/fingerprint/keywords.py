"""Keywords of bodies as weighted features of a SimHash, a common method for news."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import Bodies
from twinsieve.stages.fingerprint.features import FeatureConfig
from twinsieve.stages.fingerprint.idf import word_weights
from twinsieve.stages.fingerprint.segmenter import Segmenter


class Keywords:
    """Finds the keywords of near rows. jieba and its tables are loaded with the first batch.

    Words are ranked by count × IDF; of words with the same rank, the first in the text wins. With
    `weights: tfidf`, this product is also the weight.
    source: jieba's extract_tags, which chooses the same words, except for rounding
    """

    def __init__(self, config: FeatureConfig, seed: int) -> None:
        self._config = config
        self._secret = seed.to_bytes(8, "little")
        self._segmenter = Segmenter(config)

    def pack(self, bodies: Bodies) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64]]:
        """(uint64[m], hashes of all features; int64[m], their weights; int64[n + 1], where each row begins).

        Exact-only rows, and rows with fewer than min_features keywords, have no features.
        """
        features: list[int] = []
        weights: list[int] = []
        starts = [0]
        for row in range(len(bodies)):
            if not bodies.exact_only[row]:
                keywords = self.keywords(bodies, row)
                if len(keywords) >= self._config.min_features:
                    features += map(self._hash, keywords)
                    weights += keywords.values()
            starts.append(len(features))
        return np.array(features, np.uint64), np.array(weights, np.int64), np.array(starts, np.int64)

    def keywords(self, bodies: Bodies, row: int) -> dict[str, int]:
        """The keywords of one body with their weights, highest rank first."""
        words = self._segmenter.words(bodies, row)
        counts = Counter(words)
        idf, other = self._idf
        ranks = {word: count * idf.get(word, other) for word, count in counts.items()}
        best = sorted(ranks, key=ranks.__getitem__, reverse=True)[: self._config.top_k]
        match self._config.weights:
            case "none":
                return dict.fromkeys(best, 1)
            case "tf":
                return {word: counts[word] for word in best}
            case "tfidf":
                return {word: ranks[word] for word in best}
            case "position":
                positions: Counter[str] = Counter()
                for i, word in enumerate(words):
                    positions[word] += 4 - 4 * i // len(words)
                return {word: positions[word] for word in best}

    def idf_table(self) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """uint64[m] hashes of words, ascending, and int64[m + 1] their IDF in 1/256; last of other words."""
        idf, other = self._idf
        hashes = np.fromiter(map(self._hash, idf), np.uint64, len(idf))
        features, places = np.unique(hashes, return_index=True)
        return features, np.append(np.fromiter(idf.values(), np.int64, len(idf))[places], other)

    @cached_property
    def _idf(self) -> tuple[dict[str, int], int]:
        return word_weights(self._config)

    def _hash(self, word: str) -> int:
        raw = word.encode("utf-8", "surrogatepass")
        return int.from_bytes(blake2b(raw, digest_size=8, key=self._secret).digest(), "little")
