"""Settings of the features that a SimHash is made of.

Settings are checked without a kernel, so this module imports none.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from twinsieve.stages.errors import UsageError

Dropped = Literal["latin", "digits"]

_CHOICES = {
    "features": ("chars", "shingles", "keywords"),
    "unit": ("chars", "words"),
    "weights": ("none", "tf", "tfidf", "position", "scale5"),
    "choose": ("tfidf", "frequency"),
    "stop_words": ("jieba", "none"),
}

FLAGS = frozenset((
    "a", "ad", "ag", "an", "b", "bg", "c", "d", "df", "dg", "e", "en", "eng", "f", "g", "h", "i", "in", "j",
    "jn", "k", "l", "ln", "m", "mg", "mq", "n", "ng", "nr", "nrfg", "nrt", "ns", "nt", "nz", "o", "p", "q",
    "qe", "qg", "r", "rg", "rr", "rz", "s", "t", "tg", "u", "ud", "ug", "uj", "ul", "uv", "uz", "v", "vd",
    "vg", "vi", "vn", "vq", "w", "x", "y", "yg", "z", "zg",
))  # fmt: skip
"""All flags that jieba gives to words: those of its dictionary, of its model for other words, and `eng`."""
UNKNOWN_FLAG = "no flag of jieba, as n, ns, v or eng are; correct it, or give it to a word of dictionary_file"

_ENTRY = re.compile(r"(\S+)(?: +([0-9]{1,9}))?(?: +([a-z]+))?")


@dataclass(frozen=True, slots=True)
class FeatureConfig:
    """Which features a SimHash has, and how much each counts.

    features: `chars`: in unspaced scripts, characters and pairs of them; in other scripts, words and pairs of
        words. `shingles`: each sequence of `width` units. `keywords`: words that jieba finds.
    unit: unit of shingles: `chars`, or `words` (a character of an unspaced script counts as a word)
    width: number of units of a shingle, ≥ 1; a body with fewer units has no feature
    top_k: number of keywords that are kept, ≥ 1
    choose: keywords are the words with the greatest count × IDF (`tfidf`) or the greatest count
        (`frequency`); of equal ones, those that come first in the text
    parts_of_speech: jieba flags of the keywords to keep, such as `n`, `nr`, `v`; empty: keep all
    drop_parts_of_speech: jieba flags of words that are never keywords
    min_word: least number of characters of a keyword, ≥ 1
    dictionary: lines `word [frequency] [flag]` for jieba; a word without a frequency gets one with which
        jieba recognises it
    stop_words: `jieba`: the 31 English words that jieba's `extract_tags` leaves out are never keywords
    own_stop_words: more words that are never keywords
    drop: characters that are removed from a body before it is cut into words: `latin`, `digits`
    min_features: bodies with fewer distinct features have no SimHash, ≥ 1
    weights: the number that a feature adds to, or subtracts from, the sum of each bit:
        `none`: 1; `tf`: its number of occurrences; `tfidf`: occurrences × IDF, in units of 1/256;
        `position`: 4, 3, 2 or 1 for an occurrence in the first to the last quarter of the features;
        `scale5` (keywords only): 1 for the lightest to 5 for the heaviest, by the values that chose them
    idf: (feature as text, IDF) pairs. In a pair or shingle, a blank stands between two words that are both of
        a spaced script. A feature that is not in the table gets the median. None: jieba's table, which is for
        keywords only
    The words of `dictionary`, `own_stop_words` and `idf` are normalised like bodies (`dictionary.folded`).
    raises: UsageError, which names the setting
    """

    features: Literal["chars", "shingles", "keywords"] = "chars"
    unit: Literal["chars", "words"] = "chars"
    width: int = 3
    top_k: int = 10
    choose: Literal["tfidf", "frequency"] = "tfidf"
    parts_of_speech: tuple[str, ...] = ()
    drop_parts_of_speech: tuple[str, ...] = ()
    min_word: int = 2
    dictionary: tuple[str, ...] = ()
    stop_words: Literal["jieba", "none"] = "jieba"
    own_stop_words: tuple[str, ...] = ()
    drop: tuple[Dropped, ...] = ()
    min_features: int = 1
    weights: Literal["none", "tf", "tfidf", "position", "scale5"] = "tf"
    idf: tuple[tuple[str, float], ...] | None = None

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                shown = "kind" if name == "features" else name
                raise UsageError(f"features.{shown} is {value!r}; use one of {', '.join(choices)}")
        for name in ("width", "top_k", "min_word", "min_features"):
            if getattr(self, name) < 1:
                raise UsageError(f"features.{name} is {getattr(self, name)}; use 1 or more")
        if self.weights == "tfidf" and self.features != "keywords" and self.idf is None:
            raise UsageError(
                f"features.weights is tfidf without an IDF table for {self.features}; give one or use tf"
            )
        if self.weights == "scale5" and self.features != "keywords":
            raise UsageError(
                f"features.weights is scale5, which is for keywords, not {self.features}; use tf"
            )
        for name in self.drop:
            if name not in get_args(Dropped):
                raise UsageError(f"features.drop holds {name!r}; use some of {', '.join(get_args(Dropped))}")
        self._check_flags()
        if self.idf is not None and not self.idf:
            raise UsageError("the IDF table is empty; add lines, or leave it out")
        for feature, idf in self.idf or ():
            if not (math.isfinite(idf) and idf >= 0.0):
                raise UsageError(f"the IDF of {feature!r} is {idf}; use a number from 0")

    def _check_flags(self) -> None:
        known = FLAGS | flags_of(self.dictionary)
        for flag in (*self.parts_of_speech, *self.drop_parts_of_speech):
            if flag not in known:
                raise UsageError(f"{flag!r} in features is {UNKNOWN_FLAG}")
        for flag in set(self.parts_of_speech).intersection(self.drop_parts_of_speech):
            raise UsageError(f"features.parts_of_speech and drop_parts_of_speech both name {flag!r}")

    @property
    def by_words(self) -> bool:
        """Whether the units of chars or shingles are words in spaced scripts, instead of characters."""
        return self.features == "chars" or self.unit == "words"

    @property
    def widths(self) -> tuple[int, int]:
        """(least, greatest) number of units of one feature, for chars and shingles."""
        return (self.width, self.width) if self.features == "shingles" else (1, 2)


def entry_of(line: str) -> tuple[str, int | None, str | None]:
    """(word as written, frequency, flag) of a line of a dictionary.

    raises: UsageError if the line is not `word [frequency] [flag]` with a frequency from 1

    >>> entry_of("方舱医院 120 n"), entry_of("雷神山")
    (('方舱医院', 120, 'n'), ('雷神山', None, None))
    """
    match = _ENTRY.fullmatch(line.strip())
    # jieba would take a frequency of 0 as a command to split the word, and remember it for the whole process.
    if match is None or (match[2] is not None and int(match[2]) == 0):
        raise UsageError(f"{line!r} is not a dictionary entry; use `word [frequency from 1] [flag]`")
    return match[1], int(match[2]) if match[2] else None, match[3]


def flags_of(dictionary: Iterable[str]) -> frozenset[str]:
    """The flags that the lines of a dictionary give. raises: UsageError, as `entry_of`"""
    return frozenset(flag for _, _, flag in map(entry_of, dictionary) if flag)
