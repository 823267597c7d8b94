"""Generated posts of each language of `twinsieve generate`, with more hard cases than it makes, and their true pairs.

Half of a stream is new; the rest repeats earlier posts, many of them with as many edits as it takes to lie just
above or just below the usual thresholds. The truth is a full comparison of plain bodies by rapidfuzz; no code of the
program has a part in it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

import numpy as np
from rapidfuzz.distance import Indel
from rapidfuzz.process import cdist

from tests.stages.text import twin as text_twin
from twinsieve.pipeline.tools.evaluate.truth import Pair
from twinsieve.pipeline.tools.generate.grammar import Grammar
from twinsieve.pipeline.tools.generate.languages import LANGUAGES as LANGUAGES
from twinsieve.stages.contract import MIN_NEAR_LENGTH, SIMILARITY_SCALE

Origin = Literal["new", "copy", "dressed", "edited", "number", "answer"]
"""How a post came about: new; the same body, or nearly; the source with another number; another answer to a poll."""

_NUMBERED = 0.3
_MAX_EDITS = 0.2
"""Edited characters of a post, at most, as a share."""
_IN_ONE_PIECE = 0.3
_NAME_EVERY = 24
"""Letters between two made-up names: the word lists alone are short, and real posts name things."""


@dataclass
class Stream:
    """Posts in order.

    sources: row that a post repeats, -1 for new ones
    """

    texts: list[str] = field(default_factory=list)
    origins: list[Origin] = field(default_factory=list)
    sources: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.texts)


def profile_of(language: str) -> Literal["microblog", "plain"]:
    """The profile for posts of a language: cards, tags and chains are Chinese."""
    return "microblog" if language == "zh" else "plain"


def stream(language: str, count: int, seed: int = 1, most_edits: float = _MAX_EDITS) -> Stream:
    """`count` posts of one language; the same seed gives the same posts.

    most_edits: edited characters of a post, at most, as a share
    """
    draw = random.Random(f"{language} {seed}")
    words = _Words(language, draw)
    made = Stream()
    new: list[int] = []
    numbered: list[int] = []
    for row in range(count):
        luck = draw.random() if numbered else 0.0
        origin: Origin = "new"
        source = -1
        if luck < 0.5:
            text = words.post()
            if not numbered or draw.random() < _NUMBERED:
                text = f"{text} {draw.randrange(2, 10_000)} {words.name()}"
                numbered.append(row)
            new.append(row)
        else:
            # Young posts are repeated more often than old ones.
            rows = numbered if luck >= 0.96 else new
            source = rows[-1 - int(draw.random() ** 2 * len(rows))]
            text = made.texts[source]
            if luck < 0.6:
                origin = "copy"
            elif luck < 0.7:
                origin, text = "dressed", _dressed(text, draw)
            elif luck < 0.96:
                origin, text = "edited", words.edited(text, most_edits)
            else:
                origin, text = "number", _with_another_number(text, draw)
        made.texts.append(text)
        made.origins.append(origin)
        made.sources.append(source)
    return made


def polls(count: int, seed: int = 1) -> Stream:
    """Answers to polls: a few own words before a card that two posts share; every second one answers as the first."""
    draw = random.Random(seed)
    words = _Words("zh", draw)
    made = Stream()
    for row in range(0, count, 2):
        card, mine, other = words.post(60), words.post(6)[:6], words.post(7)[:7]
        same = draw.random() < 0.5
        made.texts += [f"{mine} O{card}", f"{mine if same else other} O{card}{words.name()[:2]}"]
        made.origins += ["new", "edited" if same else "answer"]
        made.sources += [-1, row]
    return made


def articles(language: str, count: int, planted: int, seed: int = 1) -> Stream:
    """Long texts that are unlike each other, but the last `planted`, which are lightly edited earlier ones."""
    draw = random.Random(f"{language} {seed}")
    words = _Words(language, draw, name_every=8)
    texts = [words.post(draw.randrange(900, 2_000)) for _ in range(count - planted)]
    sources = draw.sample(range(len(texts)), planted)
    again = [words.edited(texts[source], 0.03) for source in sources]
    origins: list[Origin] = ["new"] * len(texts) + ["edited"] * planted
    return Stream(texts + again, origins, [-1] * len(texts) + sources)


def plain_bodies(
    texts: Sequence[str], language: str, rule: Literal["letters", "product"]
) -> list[text_twin.Row]:
    """What the text stage should make of them, by regular expressions."""
    return [text_twin.row(text, profile_of(language), rule) for text in texts]


def true_pairs(ids: Sequence[str], rows: Sequence[text_twin.Row], least: int) -> list[Pair]:
    """Every pair of rows that is equal or at least `least` alike, by comparing each with each.

    least: out of SIMILARITY_SCALE; similarities are exact and rounded down, so no pair is lifted over a threshold
    """
    keys = [row.key for row in rows]
    cutoff = least / SIMILARITY_SCALE - 1e-6
    alike = cdist(keys, keys, scorer=Indel.normalized_similarity, score_cutoff=cutoff, dtype=np.float32) > 0
    pairs = []
    for later, earlier in zip(*(column.tolist() for column in np.nonzero(np.tril(alike, -1))), strict=True):
        a, b = keys[later], keys[earlier]
        if a == b:
            pairs.append(Pair(ids[later], ids[earlier], SIMILARITY_SCALE, True))
        elif min(rows[later].body_length, rows[earlier].body_length) >= MIN_NEAR_LENGTH:
            both = len(a) + len(b)
            similarity = (both - Indel.distance(a, b)) * SIMILARITY_SCALE // both
            if similarity >= least:
                pairs.append(Pair(ids[later], ids[earlier], similarity, False))
    return pairs


class _Words:
    """Texts of a language: sentences of its grammar with made-up names in between."""

    def __init__(self, language: str, draw: random.Random, name_every: int = _NAME_EVERY) -> None:
        self._draw = draw
        grammar = Grammar(language)
        self._glue = grammar.glue
        self._name_every = name_every
        numbers = np.random.Generator(np.random.PCG64(draw.getrandbits(32)))
        self._sentences = grammar.texts(np.ones(4_000, np.int64), numbers)
        # With the shares that letters have in the language.
        self._letters = [char for sentence in self._sentences for char in sentence if char.isalpha()]

    def name(self) -> str:
        least, most = (5, 10) if self._glue else (2, 4)
        return "".join(self._draw.choices(self._letters, k=self._draw.randint(least, most)))

    def post(self, length: int | None = None) -> str:
        """A text; lengths are as in real posts, half as long again where words have blanks between them."""
        if length is None:
            length = round(
                min(41 * math.exp(0.85 * self._draw.gauss(0, 1)), 300) * (1.5 if self._glue else 1)
            )
        parts: list[str] = []
        wanted = max(length, 10)
        while sum(map(len, parts)) < wanted:
            sentence = self._draw.choice(self._sentences)
            at = [0, *range(self._draw.randrange(self._name_every), len(sentence), self._name_every)]
            for start, end in pairwise([*at, len(sentence)]):
                parts += [sentence[start:end], self._glue, self.name(), self._glue]
        return "".join(parts)[:wanted]

    def edited(self, text: str, most: float = _MAX_EDITS) -> str:
        """The text with 1 to a share of its characters changed, here and there or in one piece."""
        draw, chars = self._draw, list(text)
        count = max(1, round(len(chars) * draw.random() * most))
        new = draw.choices(self._letters, k=count)
        if draw.random() < _IN_ONE_PIECE:
            at = draw.randrange(max(1, len(chars) - count))
            what = draw.random()
            if what < 0.4:
                chars[at : at + count] = new
            elif what < 0.7:
                chars[at:at] = new
            else:
                del chars[at : at + count]
            return "".join(chars)
        for char in new:
            at, what = draw.randrange(len(chars)), draw.random()
            if what < 0.5:
                chars[at] = char
            elif what < 0.75:
                chars.insert(at, char)
            elif len(chars) > 1:
                del chars[at]
        return "".join(chars)


def _dressed(text: str, draw: random.Random) -> str:
    """The text with something on it that is no part of a body."""
    dresses = [
        text.upper(),
        f"{text} http://t.cn/A{draw.randrange(10**6)}",
        f"@abc {text}",
        f"{text}!!",
        f"  {text}",
    ]
    return draw.choice(dresses)


def _with_another_number(text: str, draw: random.Random) -> str:
    """The text with another number in place of its last one."""
    words = text.split(" ")
    at = max(i for i, word in enumerate(words) if word.isdecimal())
    words[at] = str(int(words[at]) + draw.randrange(1, 90))
    return " ".join(words)
