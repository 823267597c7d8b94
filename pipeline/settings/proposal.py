"""Proposes a profile by the texts of a run: posts in Chinese, posts in alphabets, titles, or text messages.

`dedup`, `run` and `tune` all propose by `profile_of`. The signs are rough: they tell kinds of text apart that
have a profile of their own, and propose nothing where texts are of several kinds. A proposal changes nothing
by itself, and is only made to users who chose neither a profile nor a similarity. It is made for scripts of
which there are labelled texts (docs/BENCHMARKS.md), and for no other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.pipeline.settings.model import Settings
from twinsieve.stages.text.code_point_tables import DIGIT, LETTER, UNSPACED, tables
from twinsieve.stages.text.scripts import LATIN_RANGES

ON_KAFKA = 20_000
"""A stream has no end, so a proposal is made after this many texts."""
_HELD = 2_000
"""The most texts that are held."""
_PARTS = 10
"""Parts of a sample, each of which must be of the same kind."""
_LEAST = 200
"""Fewer texts say too little."""
_READ = 400
"""Characters that are read of a text."""
_ONE_SCRIPT = 0.75
"""Least share of texts in Chinese, or in alphabets of which there are labelled texts."""
_HAN_RANGES = ((0x3400, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF))
_ALPHABETS = (
    LATIN_RANGES,
    ((0x400, 0x52F),),
    ((0x600, 0x6FF), (0x750, 0x77F), (0xFB50, 0xFDFF), (0xFE70, 0xFEFF)),
    ((0x1100, 0x11FF), (0x3130, 0x318F), (0xAC00, 0xD7A3)),
)
"""Code points of Latin, Cyrillic, Arabic and Korean letters. There are labelled posts in these alphabets, and
labelled titles in Latin letters."""
_HAN = 0.95
"""Least share of Han among the unspaced letters of a text in Chinese; one in Japanese has kana."""
_POSTS = 0.5
"""Share of texts with a link, an @name or a tag from which on they are posts."""
_BARE = 0.03
"""Greatest share of them in titles."""
_TITLE = 70
"""Greatest median of characters of titles in alphabets; half of it counts in unspaced scripts."""
_SENTENCES = 0.2
"""Greatest share of titles that end like a sentence."""
_SIGNED = 0.4
"""Share of texts with a sender in brackets, 【bank】, from which on they are text messages."""
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""2^64 divided by the golden ratio. Multiples of it, modulo 2^64, are spread evenly."""


class Kind(NamedTuple):
    """A kind of text that has a profile.

    texts: its name; of: what pairs the labels are of
    same, different: number of pairs with this label
    drops, drops_without: (same, different): how many of them this profile drops, and how many none does
        (docs/BENCHMARKS.md; tests/accuracy/test_label_counts.py compares them)
    """

    texts: str
    of: str
    same: int
    different: int
    drops: tuple[int, int]
    drops_without: tuple[int, int]

    @property
    def cost(self) -> str:
        """What the profile changes, in the figures of the labelled pairs."""
        same, different = self.drops
        same_without, different_without = self.drops_without
        drops = "more" if same > same_without else "fewer" if same < same_without else "as many"
        errs = "more" if different > different_without else "less" if different < different_without else "as"
        return (
            f"it drops {drops} of them and errs {errs} often: of labelled {self.of} it drops {same:,} of "
            f"{self.same:,} pairs that are the same and {different:,} of {self.different:,} that are not, "
            f"without a profile {same_without:,} and {different_without:,}"
        )


KINDS = {
    "microblog": Kind("posts in Chinese", "posts on weibo", 614, 36, (545, 4), (373, 0)),
    "plain": Kind("posts in alphabets", "tweets", 147, 58, (121, 2), (98, 1)),
    "titles": Kind("titles", "headlines", 41, 71, (28, 0), (28, 0)),
    "sms": Kind("text messages", "spam messages", 134, 51, (81, 1), (93, 8)),
}
"""By profile: the kind of text that it is made for."""


@dataclass(slots=True)
class SampledTexts:
    """Some of the texts of a run, in their order and evenly from first to last, however many there are.

    seen: number of all texts; texts: at most _HELD of them, cut
    """

    seen: int = 0
    _below: int = 1 << 64
    _held: list[tuple[int, str]] = field(default_factory=list)

    def add(self, texts: Sequence[str]) -> None:
        """Add the next texts of the run."""
        # A text is held if the multiple of _GOLDEN at its place is small. Unlike each n-th text, such places
        # keep step with no pattern of the input, and unlike drawn ones they are the same in each run.
        places = np.arange(self.seen + 1, self.seen + len(texts) + 1, dtype=np.uint64) * _GOLDEN
        self.seen += len(texts)
        rows = np.flatnonzero(places <= np.uint64(self._below - 1)).tolist()
        self._held += [(int(places[row]), texts[row][:_READ]) for row in rows]
        while len(self._held) > _HELD:
            self._below //= 2
            self._held = [each for each in self._held if each[0] < self._below]

    @property
    def texts(self) -> list[str]:
        """The sampled texts."""
        return [text for _, text in self._held]


@dataclass(slots=True)
class ProfileProposal:
    """Samples the texts of a run and proposes a profile once.

    upto: number of texts after which it is made; None: `end` makes it
    """

    upto: int | None = None
    _sampled: SampledTexts | None = field(default_factory=SampledTexts)

    def look(self, texts: Sequence[str]) -> str | None:
        """Add texts. returns: the line of `end`, once, when there are enough; else None"""
        if self._sampled is None:
            return None
        self._sampled.add(texts)
        return self.end() if self.upto is not None and self._sampled.seen >= self.upto else None

    def end(self) -> str | None:
        """A line with the proposal, once; None if there is none."""
        sampled, self._sampled = self._sampled, None
        return proposed(sampled, is_begun=self.upto is not None) if sampled is not None else None


def proposed(sampled: SampledTexts, *, is_begun: bool = False) -> str | None:
    """A line with the profile for these texts and what it changes; None if they speak for no profile.

    is_begun: whether more texts will follow
    """
    profile = profile_of(sampled.texts)
    if profile is None:
        return None
    read = f"{len(sampled.texts):,} of the {'first ' if is_begun else ''}{sampled.seen:,} were read"
    return f"the texts look like {_for_which(profile)} ({read}); {KINDS[profile].cost}"


def proposal_for(settings: Settings, *, on_kafka: bool = False) -> ProfileProposal | None:
    """What samples the texts of a run with these settings; None if it `needs_no_profile`."""
    return None if needs_no_profile(settings) else ProfileProposal(ON_KAFKA if on_kafka else None)


def needs_no_profile(settings: Settings) -> bool:
    """Whether a run with these settings compares no texts, or the user chose a profile or a similarity."""
    chosen = "profile" in settings.model_fields_set or "similarity" in settings.near.model_fields_set
    return chosen or settings.near.method != "text"


def _for_which(profile: str) -> str:
    return f"{KINDS[profile].texts}, for which there is profile: {profile}"


def misfit_line(profile: str, texts: Sequence[str]) -> str | None:
    """A line on texts of another kind than a profile is made for; None if no other kind is seen in them.

    >>> posts = ["@anna look at this! http://t.co/x " + "so good " * 9] * 200
    >>> misfit_line("microblog", posts)[:66]
    'these texts look like posts in alphabets, for which there is profi'
    >>> misfit_line("plain", posts)
    """
    found = profile_of(texts)
    if found == profile:
        return None
    made_for = f"{profile} is made for {KINDS[profile].texts}" if profile in KINDS else ""
    if found is not None:
        return "; ".join(filter(None, [f"these texts look like {_for_which(found)}", made_for]))
    chinese = _scripts(texts)[0]
    if profile == "microblog" and texts and chinese < _ONE_SCRIPT:
        return f"{chinese:.0%} of these texts are in Chinese; {made_for}"
    return None


def profile_of(texts: Sequence[str]) -> str | None:
    """The profile for the kind of these texts; None if they are too few, or of several kinds.

    texts: in the order of the input, since each tenth of them must be of the same kind

    >>> profile_of(["Storm hits the coast and leaves thousands without power"] * 200)
    'titles'
    >>> profile_of(["@anna look at this! http://t.co/x " + "so good " * 9] * 200)
    'plain'
    >>> profile_of(["【某银行】您的验证码已发送,请勿告诉他人。"] * 200)
    'sms'
    """
    texts = [text[:_READ] for text in texts if text.strip()]
    if len(texts) < _LEAST:
        return None
    found = _kind(texts)
    parts = min(_PARTS, len(texts) // _LEAST)
    size = len(texts) / parts
    if any(_kind(texts[round(n * size) : round((n + 1) * size)]) != found for n in range(parts)):
        return None
    return found


def _kind(texts: Sequence[str]) -> str | None:
    """The profile for these texts, if labels say how right it is for their script (`KINDS`)."""
    share = 1 / len(texts)
    chinese, latin, lettered = _scripts(texts)
    if max(chinese, lettered) < _ONE_SCRIPT:
        return None
    marked = sum("http" in text or "@" in text or "#" in text for text in texts) * share
    signed = sum("【" in text[:3] or text.rstrip().endswith("】") for text in texts) * share
    ended = sum(text.rstrip()[-1] in ".!?…。!?！？।۔" for text in texts) * share
    if signed >= _SIGNED:
        return "sms" if chinese >= _ONE_SCRIPT else None
    if marked >= _POSTS:
        return "microblog" if chinese > lettered else "plain"
    length = median(map(len, texts)) * (2 if chinese > lettered else 1)
    of_titles = max(chinese, latin) >= _ONE_SCRIPT
    if of_titles and marked <= _BARE and length <= _TITLE and ended <= _SENTENCES:
        return "titles"
    return None


def _scripts(texts: Sequence[str]) -> tuple[float, float, float]:
    """Of the texts with letters: the share in Chinese, in Latin letters, and in one of the alphabets of which
    there are labelled posts."""
    codes = np.frombuffer("".join(texts).encode("utf-32-le", "replace"), "<u4")
    of_text = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
    properties = tables().properties[codes]
    is_letter = properties & (LETTER | DIGIT) == LETTER
    of_text, codes, is_unspaced = of_text[is_letter], codes[is_letter], properties[is_letter] & UNSPACED != 0
    letters = np.bincount(of_text, minlength=len(texts))
    unspaced = np.bincount(of_text[is_unspaced], minlength=len(texts))
    han = _count(codes, of_text, _HAN_RANGES, len(texts))
    alphabets = np.array([_count(codes, of_text, ranges, len(texts)) for ranges in _ALPHABETS])
    # No kana, Thai, Khmer and so on: other unspaced scripts have no profile.
    chinese = (2 * unspaced > letters) & (han >= _HAN * unspaced)
    spaced = (2 * unspaced <= letters) & (letters > 0)
    most = spaced & (2 * alphabets > letters)
    of = max(1, int(np.count_nonzero(letters)))
    return np.count_nonzero(chinese) / of, np.count_nonzero(most[0]) / of, np.count_nonzero(most.any(0)) / of


def _count(
    codes: NDArray[np.uint32], of_text: NDArray[np.int64], ranges: Sequence[tuple[int, int]], texts: int
) -> NDArray[np.int64]:
    """int64[texts]: how many letters of each text lie in one of the ranges, whose ends belong to them."""
    inside = np.zeros(len(codes), bool)
    for first, last in ranges:
        inside |= (codes >= first) & (codes <= last)
    return np.bincount(of_text[inside], minlength=texts)
