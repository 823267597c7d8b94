"""What a SimHash is made of, as settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from stages.errors import UsageError

_CHOICES = {
    "features": ("chars", "shingles", "keywords"),
    "unit": ("chars", "words"),
    "weights": ("none", "tf", "tfidf", "position"),
}


@dataclass(frozen=True, slots=True)
class FeatureConfig:
    """Which features a SimHash adds up, and how much each counts.

    features: `chars`: characters and pairs of them in scripts written without blanks, words and pairs
        of words in others; `shingles`: runs of `width` units; `keywords`: words by jieba
    unit: of shingles: `chars`, or `words` (a character of an unspaced script is a word of its own)
    width: of shingles, in units, ≥ 1; a body with fewer units has no feature
    top_k: keywords kept, by count × IDF (ties: first in the text), ≥ 1
    parts_of_speech: jieba flags of keywords to keep, such as `n`, `nr`, `v`; empty keeps all
    dictionary: lines `word [frequency] [flag]` for jieba
    stop_words: words that are no keywords
    min_features: bodies with fewer distinct features have no SimHash, ≥ 1
    weights: what a feature adds to, or takes from, each bit:
        `none` 1; `tf` its number of occurrences; `tfidf` occurrences × IDF in 1/256;
        `position` 4, 3, 2 or 1 for an occurrence in the first … last quarter of the features
    idf: (feature as text, IDF) pairs; words of a pair or shingle are joined by a blank where both are
        of a spaced script. Others get the median. None: jieba's table, for keywords alone
    raises: UsageError, naming the setting
    """

    features: Literal["chars", "shingles", "keywords"] = "chars"
    unit: Literal["chars", "words"] = "chars"
    width: int = 3
    top_k: int = 10
    parts_of_speech: tuple[str, ...] = ()
    dictionary: tuple[str, ...] = ()
    stop_words: tuple[str, ...] = ()
    min_features: int = 1
    weights: Literal["none", "tf", "tfidf", "position"] = "tf"
    idf: tuple[tuple[str, float], ...] | None = None

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                raise UsageError(f"{name} is {value!r}; use one of {', '.join(choices)}")
        for name in ("width", "top_k", "min_features"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} is {getattr(self, name)}; use 1 or more")
        if self.weights == "tfidf" and self.features != "keywords" and self.idf is None:
            raise UsageError(
                f"weights are tfidf, but there is no IDF table for {self.features}; train one or use tf"
            )
