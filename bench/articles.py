"""Generates made-up news articles: new ones, reprints of them, and others that only look like reprints.

The same seed gives the same articles on every machine and with every version of NumPy. No text of a real
person is used. For each article it is known whether it is a reprint, so that dropped articles can be checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from enum import IntEnum
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from twinsieve.pipeline.tools.generate.grammar import Grammar

CHUNK = 256
"""Number of articles generated at a time. Changing it changes the articles that a seed gives."""

SOURCES = 4_096
"""The source of a reprint is one of this many of the latest new articles."""

_DATA = Path(__file__).parent / "data"
_START_MS = 1_704_067_200_000
_ZONE = timezone(timedelta(hours=8))
_MEAN_GAP_MS = 60_000
_ENGLISH_SHARE = 0.15
_SHORTEST, _LONGEST = 850, 2_750
"""Least and greatest wanted length of a new article, in characters. It may be longer by about one paragraph.
With these limits, reprints that are shortened or have added lines also have 500 to 3,000 characters."""
_FEWEST_LEFT = 500
_PARAGRAPH = 60, 180
"""After each sentence, a number between these two is drawn. The paragraph ends there if it is at least that
long."""
_DRAWS = 24
_MARK = re.compile(r"\{([a-z]+)\}")
_NUMBERS = {"n": (3, 960), "few": (2, 11), "age": (23, 60)}
"""Placeholders for a number: the least number, and how many different numbers are possible."""


class ArticleKind(IntEnum):
    """How an article was made.

    Duplicates of an earlier article, their source: WHOLE (the same bytes), CUT (the last paragraphs are
    missing), NEW_TITLE (only the title is new), MOVED (one paragraph is at another place), AGENCY (the name
    of a news agency is added before the text, and a line of an editor after it).
    Not duplicates: FRESH (a new article), NUMBERS (a later report: the source with other numbers), TOPIC
    (other sentences on the topic, place and people of the source).
    """

    FRESH = 0
    WHOLE = 1
    CUT = 2
    NEW_TITLE = 3
    MOVED = 4
    AGENCY = 5
    NUMBERS = 6
    TOPIC = 7


REPRINTS = (
    ArticleKind.WHOLE,
    ArticleKind.CUT,
    ArticleKind.NEW_TITLE,
    ArticleKind.MOVED,
    ArticleKind.AGENCY,
)
"""The kinds that are duplicates. Each has the same share of all reprints."""

LOOKALIKE_SHARES = {ArticleKind.NUMBERS: 0.04, ArticleKind.TOPIC: 0.04}


@dataclass(frozen=True, slots=True)
class _Story:
    """What an article is about: it is the same in all its sentences, and in other articles on this story.

    marks: the text for each placeholder of the grammar, by name of the placeholder
    words: the words of the topic
    """

    language: str
    marks: dict[str, str]
    words: list[str]


@dataclass(frozen=True, slots=True)
class _Article:
    story: _Story
    number: int
    title: str
    lead: str
    paragraphs: tuple[str, ...]


def article_id(number: int) -> str:
    """The id of an article, by its number in the stream.

    >>> article_id(41)
    'a0000000041'
    """
    return f"a{number:010d}"


def generate_articles(
    count: int, seed: int = 1, *, repeats: float = 0.28, truth: bool = False
) -> Iterator[dict[str, Any]]:
    """`count` articles as `{"id", "title", "lead", "text", "created_at"}`, mainly Chinese, some English.

    A text has 500 to 3,000 characters; each paragraph is one line.

    repeats: share of articles that are reprints, 0 to 0.9; with 0, all articles are FRESH
    truth: add `kind` (the `ArticleKind`) to each article, and to duplicates `duplicate_of` (the id of the
        source)
    raises: ValueError for values out of range

    >>> [article["kind"] for article in generate_articles(3, seed=5, repeats=0, truth=True)]
    ['fresh', 'fresh', 'fresh']
    """
    if count < 0 or not 0 <= repeats <= 0.9:
        raise ValueError(
            f"generate: count {count}, repeats {repeats}: take a count from 0 and repeats from 0 to 0.9"
        )
    stream = _Stream(seed, repeats)
    for first in range(0, count, CHUNK):
        for number, (article, kind, created_ms) in enumerate(
            stream.chunk(first, min(CHUNK, count - first)), start=first
        ):
            created = datetime.fromtimestamp(created_ms / 1000, _ZONE)
            row = {
                "id": article_id(number),
                "title": article.title,
                "lead": article.lead,
                "text": "\n".join(article.paragraphs),
                "created_at": created.isoformat(timespec="milliseconds"),
            }
            if truth:
                row["kind"] = kind.name.lower()
                if kind in REPRINTS:
                    row["duplicate_of"] = article_id(article.number)
            yield row


class _Writer:
    """Writes articles in one language."""

    def __init__(self, language: str) -> None:
        self.language = language
        self.sentences = Grammar(language, "article", _DATA)
        self.titles = Grammar(language, "title", _DATA)
        slots = self.sentences.slots
        self._slots = slots
        self._topics = [words for name, words in slots.items() if name.startswith("ABOUT_")]

    def story(self, draws: Sequence[float]) -> _Story:
        """A story that is chosen by `draws`: a topic, a place, an office and two people."""
        pick, slots = _Picks(draws), self._slots
        topic, *words = pick(self._topics)
        if self.language == "zh":
            place = pick(slots["PA"]) + pick(slots["PB"]) + pick(slots["PS"])
            office = place[:2] + words[0] + pick(slots["OFFICE"])
            people = [pick(slots["SUR"]) + pick(slots["GIV"]) + pick(slots["GIV"]) for _ in range(2)]
        else:
            place = pick(slots["TOWN"])
            office = f"{pick(slots['SIDE'])} {pick(slots['OFFICE'])}"
            people = [f"{pick(slots['FIRST'])} {pick(slots['LAST'])}" for _ in range(2)]
        marks = {"topic": topic, "place": place, "office": office, "chief": people[0], "other": people[1]}
        return _Story(self.language, marks, words)

    def agency(self, story: _Story, draws: Sequence[float]) -> tuple[str, str]:
        """The words of a news agency before a text, and the line of an editor after it."""
        month, day = 1 + int(draws[0] * 12), 1 + int(draws[1] * 28)
        pick = _Picks(draws[2:])
        if self.language == "zh":
            name = pick(self._slots["SUR"]) + pick(self._slots["GIV"])
            agency = pick(self._slots["PA"]) + pick(self._slots["PB"])
            return (
                f"{agency}通讯社{story.marks['place']}{month}月{day}日电（记者{name}）",
                f"（责任编辑：{pick(self._slots['SUR'])}{pick(self._slots['GIV'])}）",
            )
        return (
            f"{story.marks['place']}, {month}/{day} ({pick(self._slots['TOWN'])} Press Agency) – ",
            f"Edited by {pick(self._slots['FIRST'])} {pick(self._slots['LAST'])}",
        )


class _Picks:
    """Chooses items from lists; each choice uses the next of the numbers in [0, 1)."""

    def __init__(self, draws: Sequence[float]) -> None:
        self._draws = iter(draws)

    def __call__(self, choices: Sequence[Any]) -> Any:
        return choices[int(next(self._draws) * len(choices))]


class _Stream:
    def __init__(self, seed: int, repeats: float) -> None:
        self._random = np.random.Generator(np.random.PCG64(seed))
        self._now_ms = float(_START_MS)
        self._writers = [_Writer("zh"), _Writer("en")]
        self._sources: list[_Article] = []
        shares = dict.fromkeys(REPRINTS, repeats / len(REPRINTS)) | LOOKALIKE_SHARES if repeats else {}
        self._kinds = [*shares, ArticleKind.FRESH]
        self._limits = np.cumsum(list(shares.values()))

    def chunk(self, first: int, size: int) -> Iterator[tuple[_Article, ArticleKind, int]]:
        """The next `size` articles, each with its kind and time; for a reprint, `number` names its source."""
        random = self._random
        kinds = np.searchsorted(self._limits, random.random(CHUNK), side="right").tolist()
        created = self._now_ms + np.cumsum(random.random(CHUNK) * 2 * _MEAN_GAP_MS)
        self._now_ms = float(created[-1])
        english = (random.random(CHUNK) < _ENGLISH_SHARE).astype(int).tolist()
        luck = random.random((CHUNK, _DRAWS)).tolist()
        shares = random.random(CHUNK)
        lengths = (_SHORTEST + (_LONGEST - _SHORTEST) * shares * shares).astype(np.int64).tolist()
        for row in range(size):
            kind, draws, number = self._kinds[kinds[row]], luck[row], first + row
            if kind == ArticleKind.FRESH or not self._sources:
                writer = self._writers[english[row]]
                article = self._written(writer, writer.story(draws), number, lengths[row], draws)
                self._remember(article)
                yield article, ArticleKind.FRESH, int(created[row])
                continue
            age = int(draws[-1] * draws[-1] * min(len(self._sources), SOURCES))
            source = self._sources[-1 - age]
            writer = self._writers[source.story.language == "en"]
            if kind in (ArticleKind.TOPIC, ArticleKind.NEW_TITLE):
                article = self._written(writer, source.story, number, lengths[row], draws)
                if kind == ArticleKind.NEW_TITLE:
                    article = replace(source, title=article.title)
            else:
                article = _changed(source, kind, writer, draws)
            yield article, kind, int(created[row])

    def _remember(self, article: _Article) -> None:
        self._sources.append(article)
        if len(self._sources) >= 2 * SOURCES:
            del self._sources[:SOURCES]

    def _written(
        self, writer: _Writer, story: _Story, number: int, length: int, draws: Sequence[float]
    ) -> _Article:
        """An article on this story, of about `length` characters."""
        random = self._random
        # Make 1.5 times as many sentences as the mean length asks for: most sentences become shorter, because
        # a placeholder is longer than the text that replaces it.
        count = int(1.5 * length / writer.sentences.mean_length) + 4
        sentences = writer.sentences.texts(np.ones(count, np.int64), random)
        title = writer.titles.texts(np.ones(1, np.int64), random)[0]
        marks = title.count("{") + sum(sentence.count("{") for sentence in sentences)
        luck = iter(random.random(marks).tolist())
        title = _begun(_filled(title, story, luck))
        sentences = [_begun(_filled(sentence, story, luck)) for sentence in sentences]
        glue = writer.sentences.glue
        low, high = _PARAGRAPH
        ends = cycle(low + draw * (high - low) for draw in draws)
        paragraphs = [""]
        for sentence in sentences[2:]:
            if len(paragraphs[-1]) >= next(ends):
                if sum(map(len, paragraphs)) >= length:
                    break
                paragraphs.append("")
            paragraphs[-1] += (glue if paragraphs[-1] else "") + sentence
        return _Article(story, number, title, glue.join(sentences[:2]), tuple(paragraphs))


def _filled(text: str, story: _Story, luck: Iterator[float]) -> str:
    """The text with its placeholders filled in. luck: a number in [0, 1) for each placeholder"""

    def word(mark: re.Match[str]) -> str:
        draw = next(luck)
        if mark[1] in _NUMBERS:
            low, range_ = _NUMBERS[mark[1]]
            return str(low + int(draw * draw * range_))
        if mark[1] == "about":
            return story.words[int(draw * len(story.words))]
        return story.marks[mark[1]]

    return _MARK.sub(word, text)


def _begun(sentence: str) -> str:
    """The sentence with a capital first letter, if its script has capital letters."""
    return sentence[:1].upper() + sentence[1:]


def _changed(source: _Article, kind: ArticleKind, writer: _Writer, draws: Sequence[float]) -> _Article:
    """The source, changed as `kind` says: a reprint, or a later report with other numbers."""
    paragraphs = source.paragraphs
    if kind == ArticleKind.CUT:
        kept, wanted = 1, max(_FEWEST_LEFT, (0.55 + 0.4 * draws[0]) * len("\n".join(paragraphs)))
        while kept < len(paragraphs) - 1 and len("\n".join(paragraphs[:kept])) < wanted:
            kept += 1
        return replace(source, paragraphs=paragraphs[:kept])
    if kind == ArticleKind.MOVED:
        moved = list(paragraphs)
        taken = moved.pop(int(draws[0] * len(moved)))
        orders = [(*moved[:place], taken, *moved[place:]) for place in range(len(paragraphs))]
        other = [order for order in orders if order != paragraphs]
        return replace(source, paragraphs=other[int(draws[1] * len(other))])
    if kind == ArticleKind.AGENCY:
        before, behind = writer.agency(source.story, draws)
        return replace(source, paragraphs=(before + paragraphs[0], *paragraphs[1:], behind))
    if kind == ArticleKind.NUMBERS:
        steps = cycle(draws)
        texts = (source.title, source.lead, *paragraphs)
        title, lead, *rest = (_updated(text, steps) for text in texts)
        return replace(source, title=title, lead=lead, paragraphs=tuple(rest))
    return source


def _updated(text: str, draws: Iterator[float]) -> str:
    """The text with each number replaced by a larger one.

    draws: a number in [0, 1) for each number in the text; the greater it is, the more is added

    >>> _updated("3 of 20", iter([0.0, 0.5]))
    '4 of 28'
    """

    def later(number: re.Match[str]) -> str:
        value = int(number[0])
        return str(value + 1 + int(next(draws) * (5 + value // 2)))

    return re.sub(r"[0-9]+", later, text)
