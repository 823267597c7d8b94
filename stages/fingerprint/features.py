"""Settings of the features that a SimHash is made of."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from twinsieve.stages.errors import UsageError
from twinsieve.stages.text.compatibility import case_folded, nfkc_texts

_CHOICES = {
    "features": ("chars", "shingles", "keywords"),
    "unit": ("chars", "words"),
    "weights": ("none", "tf", "tfidf", "position"),
}

_ENTRY = re.compile(r"(\S+)(?: +([0-9]{1,9}))?(?: +([a-z]+))?")


@dataclass(frozen=True, slots=True)
class FeatureConfig:
    """Which features a SimHash has, and how much each counts.

    features: `chars`: in unspaced scripts, characters and pairs of them; in other scripts, words and pairs of
        words. `shingles`: each sequence of `width` units. `keywords`: words that jieba finds
    unit: unit of shingles: `chars`, or `words` (a character of an unspaced script counts as a word)
    width: number of units of a shingle, ≥ 1; a body with fewer units has no feature
    top_k: number of keywords that are kept, ≥ 1: those with the greatest count × IDF (of equal ones, those
        that come first in the text)
    parts_of_speech: jieba flags of the keywords to keep, such as `n`, `nr`, `v`; empty: keep all
    dictionary: lines `word [frequency] [flag]` for jieba; a word without a frequency gets one with which
        jieba recognises it
    stop_words: words that are never keywords
    min_features: bodies with fewer distinct features have no SimHash, ≥ 1
    weights: the number that a feature adds to, or subtracts from, the sum of each bit:
        `none`: 1; `tf`: its number of occurrences; `tfidf`: occurrences × IDF, in units of 1/256;
        `position`: 4, 3, 2 or 1 for an occurrence in the first to the last quarter of the features
    idf: (feature as text, IDF) pairs. In a pair or shingle, a blank stands between two words that are both of
        a spaced script. A feature that is not in the table gets the median. None: jieba's table, which is for
        keywords only
    The words of `dictionary`, `stop_words` and `idf` are normalised like bodies (`folded`).
    raises: UsageError, which names the setting
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
                shown = "kind" if name == "features" else name
                raise UsageError(f"features.{shown} is {value!r}; use one of {', '.join(choices)}")
        for name in ("width", "top_k", "min_features"):
            if getattr(self, name) < 1:
                raise UsageError(f"features.{name} is {getattr(self, name)}; use 1 or more")
        if self.weights == "tfidf" and self.features != "keywords" and self.idf is None:
            raise UsageError(
                f"features.weights is tfidf without an IDF table for {self.features}; train one or use tf"
            )
        dictionary_entries(self.dictionary)
        if self.idf is not None and not self.idf:
            raise UsageError("the IDF table is empty; train it from more text, or leave it out")
        for feature, idf in self.idf or ():
            if not (math.isfinite(idf) and idf >= 0.0):
                raise UsageError(f"the IDF of {feature!r} is {idf}; use a number from 0")

    @property
    def by_words(self) -> bool:
        """Whether the units of chars or shingles are words in spaced scripts, instead of characters."""
        return self.features == "chars" or self.unit == "words"

    @property
    def widths(self) -> tuple[int, int]:
        """(least, greatest) number of units of one feature, for chars and shingles."""
        return (self.width, self.width) if self.features == "shingles" else (1, 2)


def folded(words: Iterable[str]) -> list[str]:
    """The words as bodies contain them: NFKC and case-folded.

    >>> folded(["Ｔ恤", "WHO"])
    ['t恤', 'who']
    """
    return nfkc_texts([case_folded(word) for word in nfkc_texts(list(words))])


def dictionary_entries(lines: Iterable[str]) -> list[tuple[str, int | None, str | None]]:
    """(folded word, frequency, flag) of each line of a dictionary.

    raises: UsageError if a line is not `word [frequency] [flag]` with a frequency from 1

    >>> dictionary_entries(["方舱医院 120 n", "雷神山"])
    [('方舱医院', 120, 'n'), ('雷神山', None, None)]
    """
    parts = [_entry(line) for line in lines]
    words = folded(word for word, _, _ in parts)
    return [(word, frequency, flag) for word, (_, frequency, flag) in zip(words, parts, strict=True)]


def _entry(line: str) -> tuple[str, int | None, str | None]:
    match = _ENTRY.fullmatch(line.strip())
    # jieba would take a frequency of 0 as a command to split the word, and remember it for the whole process.
    if match is None or (match[2] is not None and int(match[2]) == 0):
        raise UsageError(f"{line!r} is not a dictionary entry; use `word [frequency from 1] [flag]`")
    return match[1], int(match[2]) if match[2] else None, match[3]
